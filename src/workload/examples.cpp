// How many sequences a workload goes through, whatever its data counts: epochs, pairs of answers, a reference that
// reads them as well.
#include <fmt/format.h>

#include "base/text.h"
#include "workload/workload_form.h"

namespace stoker {
namespace {

bool of_pairs(Loss loss) {
    return loss != Loss::sft && loss != Loss::kto;
}

bool reads_reference(Loss loss) {
    return loss == Loss::dpo || loss == Loss::ipo || loss == Loss::kto;
}

}  // namespace

std::string_view to_string(Loss loss) {
    switch (loss) {
        case Loss::sft: return "sft";
        case Loss::dpo: return "dpo";
        case Loss::ipo: return "ipo";
        case Loss::kto: return "kto";
        case Loss::orpo: return "orpo";
        case Loss::simpo: return "simpo";
    }
    return "";
}

std::string tuned_words(Method method, Loss loss) {
    std::string words = method == Method::full ? "" : method == Method::lora ? " with LoRA" : " with QLoRA";
    if (loss != Loss::sft) words += (words.empty() ? " with " : " and ") + upper(to_string(loss));
    return words;
}

bool Workload::learns_pairs() const {
    return kind == WorkloadKind::fine_tuning && of_pairs(loss);
}

double Workload::reference_share() const {
    if (kind != WorkloadKind::fine_tuning || !reads_reference(loss)) return 0;
    return method == Method::full ? 1.0 / 3 : 0.5;
}

double Workload::total_examples() const {
    const double epochs = data.epochs.value_or(1);
    if (!is_training(kind) && traffic.requests) return *traffic.requests;
    const double passes = epochs * (1 + reference_share());
    if (data.examples) return *data.examples * passes * (learns_pairs() ? 2 : 1);
    if (data.tokens) return *data.tokens * passes / sequence();
    return 0;
}

double Workload::total_tokens() const {
    if (data.tokens && is_training(kind)) return *data.tokens * data.epochs.value_or(1);
    return total_examples() * sequence();
}

void say_loss(WorkloadForm& w) {
    if (w.kind != WorkloadKind::fine_tuning || w.loss == Loss::sft) return;
    const std::string_view reference =
        !reads_reference(w.loss) ? "no reference is read"
        : w.method == Method::full
            ? "a frozen reference reads them as well: a third more work, done before the run, so that it takes no "
              "memory beside it"
            : "the reference is the model without its adapters: half more work, and no memory";
    w.assumptions.push_back(fmt::format(
        "loss {}: {}; {}", to_string(w.loss),
        w.learns_pairs() ? "both answers of a pair are learned from, each a sequence" : "each answer is a sequence",
        reference));
}

}  // namespace stoker
