#include "deploy/render/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace stoker {
namespace {

std::vector<std::pair<std::string, std::string>> degrees_of(const Deployment& deployment) {
    const ParallelLayout& layout = deployment.training->layout;
    std::vector<std::pair<std::string, std::string>> out = {
        {"DATA", std::to_string(layout.data)},
        {"TENSOR", std::to_string(layout.tensor)},
        {"PIPELINE", std::to_string(layout.pipeline)},
        {"CONTEXT", std::to_string(layout.context)},
        {"EXPERT", std::to_string(layout.expert)},
        {"ZERO", std::to_string(layout.zero)},
        {"SHARD_RANKS", std::to_string(layout.shard_ranks())},
        {"RECOMPUTE", std::string(to_string(layout.recompute))},
        {"OFFLOAD", layout.offload ? "1" : "0"},
        {"SEQUENCE_PARALLEL", layout.sequence_parallel ? "1" : "0"},
        {"VIRTUAL_STAGES", std::to_string(layout.virtual_stages)},
        {"MICRO_BATCH", std::to_string(layout.micro_batch)},
        {"ACCUMULATION", std::to_string(layout.micro_batches)},
        {"PRECISION", std::string(to_string(deployment.precision))},
    };
    // What the plan's memory counts on, where not all weights are trained.
    const TrainingWork& work = *deployment.training;
    if (work.method != Method::full) {
        out.emplace_back("METHOD", to_string(work.method));
        out.emplace_back("LORA_RANK", fmt::format("{:g}", work.lora.rank));
        out.emplace_back("LORA_TARGETS", work.lora.targets);
    }
    return out;
}

// Of a comment, without its sign.
constexpr std::size_t kCommentWidth = 112;

bool is_plain(char c, std::string_view more) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || more.find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_word(std::string_view text) {
    const bool plain =
        !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return is_plain(c, "_-+=:,./@%"); });
    if (plain) return std::string(text);
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string json_text(std::string_view text) {
    return Json(text).dump();
}

std::string yaml_word(std::string_view text) {
    static constexpr std::array<std::string_view, 9> kWords = {"true", "false", "yes", "no", "on",
                                                               "off",  "null",  "y",   "n"};
    const bool plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
                       std::all_of(text.begin(), text.end(), [](char c) { return is_plain(c, "_-./+"); }) &&
                       std::none_of(kWords.begin(), kWords.end(),
                                    [&](std::string_view each) { return equals_ignore_case(each, text); });
    return plain ? std::string(text) : json_text(text);
}

std::string dns_label(std::string_view text, std::size_t most) {
    std::string out;
    for (const char c : lower(text)) {
        const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0;
        if (fits)
            out += c;
        else if (!out.empty() && out.back() != '-')
            out += '-';
    }
    // Some kinds of resources want a letter first.
    if (out.empty() || std::isdigit(static_cast<unsigned char>(out.front())) != 0) out = "w-" + out;
    out = out.substr(0, most);
    while (!out.empty() && out.back() == '-') out.pop_back();
    return out;
}

std::int64_t whole_cpus(const RankNeeds& needs) {
    return std::max<std::int64_t>(1, needs.cpu_milli / 1000);
}

std::int64_t whole_mib(std::int64_t bytes) {
    return bytes / (1LL << 20);
}

std::string indented(std::string_view text, std::string_view indent) {
    std::string out;
    for (const std::string_view line : split_lines(text)) {
        if (!line.empty()) out += fmt::format("{}{}", indent, line);
        out += "\n";
    }
    return out;
}

std::string why(std::string_view reason, std::string_view source) {
    // Of a place in the workload file its name: where it lies on this machine is nobody's business.
    if (source.starts_with('/')) source = source.substr(source.rfind('/') + 1);
    std::string out;
    for (const std::string& line : wrap(fmt::format("{} ({})", reason, source), kCommentWidth))
        out += "# " + line + "\n";
    return out;
}

std::string reason_of(const Deployment& deployment, std::string_view setting) {
    for (const Because& each : deployment.because)
        if (each.setting == setting) return why(each.reason, each.source);
    return "";
}

std::string heading(const Deployment& deployment) {
    const NodeSet& nodes = deployment.nodes;
    const int ranks = deployment.ranks.count;
    const int count = deployment.serving ? deployment.serving->replicas : ranks;
    const char* unit = deployment.training ? "rank" : deployment.serving ? "replica" : "share";
    const std::string parts = deployment.training || deployment.serving || count > 1
                                  ? fmt::format(", {} {}{}", count, unit, count == 1 ? "" : "s")
                                  : "";
    const std::string machine = nodes.mig ? nodes.mig->profile + " of " + nodes.machine : nodes.machine;
    const std::string kept =
        nodes.kept > 0 ? fmt::format(", {} on demand and {} on spot", nodes.kept, nodes.count - nodes.kept) : "";
    return fmt::format("{}: {} x {}{}{}{}, catalogue {}.", deployment.title, nodes.count, machine,
                       nodes.region.empty() ? "" : ", " + nodes.region, kept, parts, deployment.prediction.catalogue);
}

std::string head_comment(const Deployment& deployment) {
    std::string out = fmt::format("# {}\n", heading(deployment));
    for (const std::string& note : deployment.notes) out += fmt::format("# {}\n", note);
    return out;
}

std::string environment_exports(const Deployment& deployment) {
    std::string out;
    for (const auto& [key, value] : deployment.environment)
        out += reason_of(deployment, "environment." + key) + fmt::format("export {}={}\n", key, shell_word(value));
    return out;
}

std::string layout_exports(const Deployment& deployment) {
    if (!deployment.training) return "";
    std::string out = fmt::format("# The layout: {}.\n", describe(deployment.training->layout));
    for (const char* part : {"tensor", "pipeline", "zero", "recompute", "micro_batches"})
        out += reason_of(deployment, std::string("training.layout.") + part);
    for (const auto& [key, value] : degrees_of(deployment)) out += fmt::format("export STOKER_{}={}\n", key, value);
    return out;
}

std::string checkpoint_exports(const Deployment& deployment) {
    const CheckpointPolicy& policy = deployment.checkpoint;
    if (policy.folder.empty()) return "";
    std::string out = reason_of(deployment, policy.interval_s > 0 ? "checkpoint.interval_s" : "checkpoint.folder");
    if (const std::string word = shell_word(policy.folder); word == policy.folder)
        out += fmt::format("export STOKER_CHECKPOINT_DIR=\"${{STOKER_CHECKPOINT_DIR:-{}}}\"\n", word);
    else
        out += fmt::format(
            "[ -n \"${{STOKER_CHECKPOINT_DIR:-}}\" ] || STOKER_CHECKPOINT_DIR={}\nexport STOKER_CHECKPOINT_DIR\n",
            word);
    if (policy.interval_s > 0) out += fmt::format("export STOKER_CHECKPOINT_INTERVAL={}\n", policy.interval_s);
    return out;
}

std::string resume_search() {
    return "for each in \"$STOKER_CHECKPOINT_DIR\"/step-*[0-9]/manifest.json; do [ ! -e \"$each\" ] || "
           "STOKER_RESUME_FROM=\"${each%/manifest.json}\"; done";
}

std::string preamble(const Deployment& deployment) {
    std::string out;
    for (const std::string& part :
         {environment_exports(deployment), layout_exports(deployment), checkpoint_exports(deployment)})
        if (!part.empty()) out += part + "\n";
    if (!deployment.folder.empty() && deployment.folder != ".")
        out += fmt::format("cd {}\n", shell_word(deployment.folder));
    return out;
}

std::string resume_exports(const Deployment& deployment) {
    if (!deployment.training || deployment.checkpoint.folder.empty()) return "";
    return std::string(kResumeReason) + resume_search() + "\nexport STOKER_RESUME_FROM\n\n";
}

std::map<std::string, std::string> work_environment(const Deployment& deployment) {
    std::map<std::string, std::string> out = deployment.environment;
    if (deployment.training)
        for (const auto& [key, value] : degrees_of(deployment)) out["STOKER_" + key] = value;
    const CheckpointPolicy& policy = deployment.checkpoint;
    if (!policy.folder.empty()) out["STOKER_CHECKPOINT_DIR"] = policy.folder;
    if (!policy.folder.empty() && policy.interval_s > 0)
        out["STOKER_CHECKPOINT_INTERVAL"] = std::to_string(policy.interval_s);
    return out;
}

std::string program_words(const Deployment& deployment) {
    if (deployment.command.empty()) return "\"$@\"";
    std::string out;
    for (const std::string& word : deployment.command) out += (out.empty() ? "" : " ") + shell_word(word);
    return out;
}

std::string program_usage(const Deployment& deployment) {
    return deployment.command.empty() ? " PROGRAM ARGUMENTS" : "";
}

std::string started_by_hand(const Deployment& d, std::string_view variables, std::string_view arguments,
                            std::string_view form) {
    const bool tunes = d.kind == WorkloadKind::fine_tuning;
    std::string out;
    if (d.nodes.count > 1)
        out += fmt::format("# Start it on each of the {} nodes, with the name of the first:\n", d.nodes.count);
    out += fmt::format("#   {}{}{}./{}.sh {}\nset -eu\n\n", d.nodes.count > 1 ? "MASTER_ADDR=NODE-0 " : "",
                       tunes ? "PRETRAINED=FOLDER " : "", variables, d.name, arguments);
    if (tunes) out += fmt::format("PRETRAINED=${{PRETRAINED:?folder of the base model, {}}}\n\n", form);
    return out;
}

std::string torchrun_words(const Deployment& deployment, std::string_view rendezvous_id, std::string_view endpoint) {
    std::string out =
        fmt::format("torchrun --nnodes {} --nproc_per_node {} \\\n", deployment.nodes.count, deployment.ranks.per_node);
    if (deployment.nodes.count > 1)
        out += fmt::format(
            "    --rdzv_id {} --rdzv_backend c10d \\\n"
            "    --rdzv_endpoint {} \\\n",
            rendezvous_id, endpoint);
    else
        out += "    --standalone \\\n";
    return out + (deployment.command.empty() ? "    " : "    --no_python ");
}

int gpus_per_node(const Deployment& deployment) {
    if (deployment.nodes.gpus <= 0) return 0;
    return std::max(1, deployment.ranks.per_node * std::max(1, deployment.ranks.each.gpus));
}

bool takes_whole_nodes(const Deployment& deployment) {
    if (deployment.nodes.mig) return false;  // the other parts of the machine are others'
    return deployment.nodes.gpus <= 0 || gpus_per_node(deployment) >= deployment.nodes.gpus;
}

std::string weights_of(const Deployment& deployment) {
    for (const std::string& alias : deployment.model.aliases)
        if (alias.find('/') != std::string::npos && alias.find(' ') == std::string::npos) return alias;
    return deployment.model.name;
}

std::string clock_time(std::int64_t seconds) {
    const std::int64_t days = seconds / 86400, rest = seconds % 86400;
    const std::string clock = fmt::format("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    return days > 0 ? fmt::format("{}-{}", days, clock) : clock;
}

bool is_divisible(const Deployment& deployment) {
    return !deployment.training && deployment.kind != WorkloadKind::inference &&
           deployment.kind != WorkloadKind::notebook;
}

}  // namespace stoker
