#include "lint/rules/common_cloud.h"
#include "lint/rules/common_layout.h"

#include <fmt/format.h>

#include <charconv>

namespace stoker::lint {

namespace {

// "8", "7500m" as CPUs; 0: not known.
double sku024_cpus(const Node* node) {
    if (!node || !node->known || !node->is_scalar()) return 0;
    std::string_view text = node->text;
    const bool milli = text.ends_with('m');
    if (milli) text.remove_suffix(1);
    double value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || at != text.data() + text.size()) return 0;
    return milli ? value / 1000 : value;
}

// Each question is asked only when those before it leave the finding open: most files have no GPU.
void sku024_container(const Container& container, Report& report, const File& file) {
    if (!container.node || container.init) return;
    std::int64_t gpus = 0;
    for (const Quantity& quantity : container.resources)
        if (quantity.limit && quantity.resource == "nvidia.com/gpu") gpus = quantity.amount.as_int().value_or(0);
    const Node* limit = container.node->at({"resources", "limits", "cpu"});
    const double cpus = sku024_cpus(limit);
    if (gpus < 1 || cpus <= 0 || cpus >= report.options().cpus_per_gpu * static_cast<double>(gpus)) return;
    const Work work = work_of(file, report.knowledge());
    if (!work.training || !work.training->source) return;
    Finding* finding = report.add(Value::of(limit), container.address,
                                  fmt::format("{:g} CPUs for {} GPU{} in a training: data loading starves them", cpus,
                                              gpus, gpus == 1 ? "" : "s"));
    report.relate(finding, *work.training->source, work.training->span, work.training->what);
    if (finding) finding->advice = fmt::format("give each GPU {:g} CPUs or more", report.options().cpus_per_gpu);
}

// --cpus-per-task for the tasks of a node, and the GPUs that share it. --exclusive gives all CPUs of the node.
void sku024_batch(const File& file, Report& report) {
    const File* batch = batch_part(file);
    if (!batch || batch_option(*batch, "exclusive") || batch_option(*batch, "cpus-per-gpu")) return;
    const Directive* per_task = batch_option(*batch, "cpus-per-task");
    const auto cpus = per_task ? literal_int(per_task->value) : std::nullopt;
    const auto devices = batch_devices(*batch);
    if (!cpus || !devices || devices->count < 2 || *cpus < 1) return;
    const auto tasks = batch_tasks_per_node(*batch);
    // A number of tasks that is not known may be any.
    const bool unsaid = !batch_option(*batch, "ntasks") && !batch_option(*batch, "ntasks-per-node") &&
                        !batch_option(*batch, "ntasks-per-gpu") && !batch_option(*batch, "gpus-per-task");
    if (!tasks && !unsaid) return;
    // Cores are counted then, each of which has two threads.
    const Directive* hint = batch_option(*batch, "hint");
    const std::int64_t threads = hint && hint->value.is("nomultithread") ? 2 : 1;
    const double each =
        static_cast<double>(*cpus * threads * (tasks ? tasks->count : 1)) / static_cast<double>(devices->count);
    if (each >= report.options().cpus_per_gpu) return;
    const Work work = work_of(file, report.knowledge());
    if (!work.training) return;
    Finding* finding = report.add(
        per_task->value, "slurm:cpus-per-task",
        fmt::format("{:g} CPUs for each of {} GPUs in a training: data loading starves them", each, devices->count));
    if (!finding) return;
    report.relate(finding, *devices->value.source, devices->value.span, "GPUs per node");
    finding->advice = fmt::format("give each GPU {:g} CPUs or more", report.options().cpus_per_gpu);
}

}  // namespace

void check_sku024(const File& file, Report& report) {
    for (const Workload& workload : file.workloads)
        for (const Container& container : workload.containers) sku024_container(container, report, file);
    sku024_batch(file, report);
    for (const Directive& directive : file.script.directives) {
        const auto cpus = directive.option == "cpus-per-gpu" ? directive.value.as_int() : std::nullopt;
        if (!cpus || *cpus < 1 || static_cast<double>(*cpus) >= report.options().cpus_per_gpu) continue;
        if (!work_of(file, report.knowledge()).training) return;
        report.add(
            directive.value, "slurm:cpus-per-gpu",
            fmt::format("{} CPU{} for a GPU in a training: data loading starves it", *cpus, *cpus == 1 ? "" : "s"));
    }
}

}  // namespace stoker::lint
