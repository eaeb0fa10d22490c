#include "server/engine_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/table_impl.h"
#include "base/text.h"
#include "deploy/engines/engines.h"

namespace stoker {
namespace {

constexpr double kMostNoticeS = 65535;  // of sbatch --signal, in seconds (sbatch(1), Slurm 22.05)

struct Told {
    const char* key;
    std::string EngineChoice::*value;
};
// What only an engine with a queue of its own has a use for.
constexpr Told kOfAQueue[] = {{"partition", &EngineChoice::partition},
                              {"account", &EngineChoice::account},
                              {"qos", &EngineChoice::qos},
                              {"reservation", &EngineChoice::reservation},
                              {"constraint", &EngineChoice::constraint},
                              {"config", &EngineChoice::config},
                              {"commands", &EngineChoice::commands},
                              {"program", &EngineChoice::program}};

RecordTable<GpuNameForm> gpu_name_table() {
    RecordTable<GpuNameForm> t("gpu name", "What a GPU is called by the cluster, and in the catalogue.");
    t.text("name", &GpuNameForm::name, "Its type in gres.conf.", "a100").required();
    t.text("model", &GpuNameForm::model, "Its name in the catalogue.", "A100-SXM4-80GB").required();
    return t;
}

}  // namespace

RecordTable<EngineForm> engine_form_table() {
    RecordTable<EngineForm> t("engine", "What carries the work out. A single word stands for its kind.");
    std::vector<std::pair<std::string, std::string>> kinds;
    for (const EngineKind& kind : engines()) kinds.emplace_back(std::string(kind.name), std::string(kind.name));
    t.choice("kind", &EngineForm::kind, std::move(kinds), "Which.", "slurm").required();
    t.other_names({"name", "type", "backend"});
    t.text("partition", &EngineForm::partition, "Of Slurm: where jobs go; the cluster's default when nothing is said.",
           "gpu");
    t.other_names({"queue"});
    t.text("account", &EngineForm::account, "Of Slurm: which account pays.", "research");
    t.text("qos", &EngineForm::qos, "Of Slurm: on which terms.", "normal");
    t.text("reservation", &EngineForm::reservation, "Of Slurm: within this reservation.", "maintenance");
    t.text("constraint", &EngineForm::constraint, "Of Slurm: only on nodes with these features.", "ib&a100");
    t.other_names({"features"});
    t.text("config", &EngineForm::config, "Of Slurm: its slurm.conf, where that is not the usual one.",
           "/etc/slurm/slurm.conf");
    t.text("commands", &EngineForm::commands, "Of Slurm: the folder of sbatch and squeue, where they are not in PATH.",
           "/opt/slurm/bin");
    t.text("program", &EngineForm::program,
           "This program by the name that the nodes know; the same as here when nothing is said.",
           "/shared/bin/stoker");
    t.list_of("gpu_models", &EngineForm::gpu_names, gpu_name_table(),
              "What the cluster's GPUs are called in the catalogue, so that plans and runs mean the same.");
    t.seconds(
        "notice", &EngineForm::notice,
        "Of Slurm: how long before its time limit, or a preemption that tells jobs, a run is told (USR1); 60s when "
        "nothing is said.",
        "2m", 0, kMostNoticeS);
    t.shorthand("a kind", [](const Node& node, EngineForm& form, Problems&) {
        if (!node.is_scalar()) return false;
        form.kind = node.text;
        form.at["kind"] = node.pos;
        return true;
    });
    return t;
}

EngineChoice engine_choice(const EngineForm& form, Problems& problems) {
    EngineChoice choice = form;
    for (const GpuNameForm& each : form.gpu_names) choice.gpu_models[each.name] = each.model;
    if (form.notice) choice.notice_s = static_cast<int>(form.notice->value());
    const auto place = [&](const char* key) {
        const auto found = form.at.find(key);
        return found == form.at.end() ? SourcePos() : found->second;
    };
    if (const auto known = find_engine(choice.kind); !known)
        problems.push_back(
            {"engine.kind: " + known.error().message(), known.error().problems().front().remedy, place("kind")});
    for (const auto& [key, value] : kOfAQueue) {
        const std::string& text = choice.*value;
        if (text.empty()) continue;
        if (choice.kind == "local")
            problems.push_back({fmt::format("engine.{}: this machine has no queue of its own", key),
                                "leave it out, or name another kind", place(key)});
        // They go into the script of a job, a line each.
        if (text.find_first_of("\"\\") != std::string::npos ||
            std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }))
            problems.push_back(
                {fmt::format("engine.{}: has a quote, a backslash or a line end in it", key), "", place(key)});
    }
    return choice;
}

std::string in_words(const EngineChoice& choice) {
    std::string words = choice.kind.empty() ? std::string(engines().front().name) : choice.kind;
    for (const auto& [key, value] : kOfAQueue)
        if (!(choice.*value).empty()) words += fmt::format(", {} {}", key, printable(choice.*value, 60));
    return words;
}

}  // namespace stoker
