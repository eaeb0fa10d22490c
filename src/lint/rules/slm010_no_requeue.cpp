#include <charconv>

#include "base/text.h"
#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

// Hours of sbatch's forms: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS.
std::optional<double> slurm_hours(std::string_view text) {
    double days = 0;
    bool with_days = false;
    const auto number = [](std::string_view part) -> std::optional<double> {
        int value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc{} || end != part.data() + part.size()) return std::nullopt;
        return value;
    };
    if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
        const auto count = number(text.substr(0, dash));
        if (!count) return std::nullopt;
        days = *count;
        with_days = true;
        text.remove_prefix(dash + 1);
    }
    std::vector<double> parts;
    for (const std::string_view part : split(text, ':')) {
        const auto value = number(part);
        if (!value) return std::nullopt;
        parts.push_back(*value);
    }
    if (parts.empty() || parts.size() > 3) return std::nullopt;
    if (with_days) return days * 24 + parts[0] + (parts.size() > 1 ? parts[1] / 60 : 0);
    if (parts.size() == 3) return parts[0] + parts[1] / 60;
    return parts[0] / 60;
}

}  // namespace

void check_slm010(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    const Directive* time = batch_option(*batch, "time");
    if (!time || !time->value.known()) return;
    const auto hours = slurm_hours(time->value.text);
    if (!hours || *hours < 12 || batch_option(*batch, "signal") || batch_option(*batch, "requeue") ||
        batch_option(*batch, "no-requeue") || !work_of(file, report.knowledge()).training)
        return;
    for (const std::string_view word : {"checkpoint", "--save", "ckpt", "resume"})
        if (contains_nocase(batch->source().text(), word)) return;
    Finding* finding = report.add(time->value, script_address(*batch) + "#requeue",
                                  "a training job of half a day or more without --signal, --requeue or a checkpoint: a "
                                  "failed node or the time limit ends it for good");
    if (finding) finding->advice = "add #SBATCH --signal=B:USR1@300 and --requeue, and save on the signal";
}

}  // namespace stoker::lint
