#include <algorithm>

#include <fmt/format.h>

#include "lint/rules/common_deepspeed.h"
#include "lint/rules/common_layout.h"

namespace stoker::lint {

namespace {

// Ranks of a launch that all see other samples: 0 where that is not written.
std::int64_t dsp002_ranks(const File& script, const Launch& launch) {
    if (launch.open || !launch.trains()) return 0;
    for (const LaunchOption& option : launch.options)
        if (contains_nocase(option.name, "parallel") && literal_int(option.value).value_or(2) != 1) return 0;
    // A rank for each task of the batch.
    if (launch.launcher == Launcher::srun && launch.per_node.absent() && launch.nodes.absent()) {
        const File* batch = batch_part(script);
        if (!batch || launch.srun_nodes.present() || launch.srun_tasks_per_node.present() || launch.option("ntasks"))
            return 0;
        const int component = component_of(*batch, launch);
        const auto nodes = batch_nodes(*batch, component), tasks = batch_tasks_per_node(*batch, component);
        return nodes && tasks && !nodes->value.assumed && !tasks->value.assumed ? nodes->count * tasks->count : 0;
    }
    const auto each = literal_int(launch.per_node);
    if (!each || *each < 1) return 0;
    if (launch.nodes.present()) {
        const auto nodes = literal_int(launch.nodes);
        return nodes && *nodes > 0 ? *nodes * *each : 0;
    }
    // One machine is their own default; a container may be told another number by its operator.
    const bool container = launch.file && launch.file->outermost().kinds.has(Kind::k8s);
    if (launch.launcher == Launcher::torchrun && !container) return *each;
    if (launch.launcher == Launcher::deepspeed && !container && !launch.option("hostfile")) return *each;
    return launch.option("standalone") ? *each : 0;
}

struct Dsp002Launch {
    const Launch* launch;
    std::int64_t ranks;
};

// Launches whose number of ranks is written and that read this configuration.
std::vector<Dsp002Launch> dsp002_launches(const Bundle& bundle, const DeepSpeedFile& ds) {
    std::vector<Dsp002Launch> found;
    for (const File* script : bundle.files)
        for_each_launch(*script, [&](const File&, const Launch& launch, const std::string&) {
            for (const std::string_view option : {"deepspeed", "deepspeed-config", "deepspeed-config-file"}) {
                const LaunchOption* config = launch.option(option);
                if (!config || !config->value.known() || !config->value.text.ends_with(".json")) continue;
                const std::string_view name = config->value.text.substr(config->value.text.rfind('/') + 1);
                const std::int64_t ranks =
                    file_name_of(ds.part.outermost()) == name ? dsp002_ranks(*script, launch) : 0;
                if (ranks > 0) found.push_back({&launch, ranks});
            }
        });
    return found;
}

// The batch and what its launches make of it: one that it fits is enough.
void dsp002_against_ranks(const DeepSpeedFile& ds, const Bundle& bundle, Report& report) {
    const Node* all = ds.root.find("train_batch_size");
    const Node* steps = ds.root.find("gradient_accumulation_steps");
    const auto batch = json_int(all), micro = json_int(ds.root.find("train_micro_batch_size_per_gpu"));
    const auto accumulate = json_int(steps);
    if (json_true(ds.root.at({"elasticity", "enabled"})) || !batch || !micro || (steps && !accumulate)) return;
    const std::int64_t rank = *micro * accumulate.value_or(1);
    if (*batch < 1 || rank < 1 || *batch % rank != 0) return;
    const std::vector<Dsp002Launch> launches = dsp002_launches(bundle, ds);
    const bool fits = std::any_of(launches.begin(), launches.end(), [&](const Dsp002Launch& each) {
        const std::int64_t whole = rank * each.ranks;
        return accumulate ? *batch == whole : *batch % whole == 0;
    });
    if (launches.empty() || fits) return;
    const std::int64_t ranks = launches[0].ranks;
    const std::string made = accumulate
                                 ? fmt::format("{} x {} x {} GPUs = {}", *micro, *accumulate, ranks, rank * ranks)
                                 : fmt::format("a multiple of {} x {} GPUs", *micro, ranks);
    Finding* finding =
        report.add(ds.part.source(), all->whole(), ds.address + "/train_batch_size",
                   fmt::format("train_batch_size {} is not {}: DeepSpeed stops with an assertion", *batch, made));
    if (!finding) return;
    report.relate(finding, *launches[0].launch->source, launches[0].launch->word,
                  fmt::format("started here on {} GPUs", ranks));
    finding->advice = "give two of the three and let DeepSpeed work out the third";
}

void dsp002_alone(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        if (json_true(ds.root.at({"elasticity", "enabled"}))) return;
        const Node* all = ds.root.find("train_batch_size");
        const Node* steps = ds.root.find("gradient_accumulation_steps");
        const auto batch = json_int(all), micro = json_int(ds.root.find("train_micro_batch_size_per_gpu"));
        const auto accumulate = json_int(steps);
        if (!batch || (!micro && !accumulate)) return;
        if ((steps && !accumulate) || *batch < 1 || micro.value_or(1) < 1 || accumulate.value_or(1) < 1) return;
        const std::int64_t rank = micro.value_or(1) * accumulate.value_or(1);
        if (*batch % rank == 0) return;
        Finding* finding =
            report.add(ds.part.source(), all->whole(), ds.address + "/train_batch_size",
                       "train_batch_size " + std::to_string(*batch) + " is not a multiple of " + std::to_string(rank) +
                           " (micro batch x accumulation steps): no number of GPUs makes it come out, and "
                           "DeepSpeed stops with an assertion");
        if (finding) finding->advice = "give two of the three and let DeepSpeed work out the third";
    });
}

}  // namespace

void check_dsp002(const Bundle& bundle, Report& report) {
    for (const File* file : bundle.files) {
        dsp002_alone(*file, report);
        for_each_deepspeed(*file, [&](const DeepSpeedFile& ds) { dsp002_against_ranks(ds, bundle, report); });
    }
}

}  // namespace stoker::lint
