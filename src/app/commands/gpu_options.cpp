#include "app/commands/gpu_options.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace stoker {

void add_gpu_options(CliCommand& command) {
    const std::vector<OptionSpec> more = {
        {.name = "compat",
         .value = "NAMES",
         .help = "names of another exporter in place of Stoker's",
         .choices = {"dcgm"}},
        {.name = "dcgm-names",
         .value = "VERSION",
         .help = "names of DCGM before 4.6 or since (4.5)",
         .choices = {"4.5", "4.6"}},
        {.name = "dcgm-hostname",
         .value = "LABEL",
         .help = "how dcgm-exporter of the time calls it (Hostname)",
         .choices = {"Hostname", "hostname"}},
        {.name = "dcgm-fields",
         .value = "WHICH",
         .help = "its default list, or all that are known (default)",
         .choices = {"default", "all"}},
        {.name = "compat-types",
         .value = "HOW",
         .help = "types as that exporter declares them, or as they behave (declared)",
         .choices = {"declared", "fixed"}},
        {.name = "period", .value = "SECONDS", .help = "between readings (1)"},
        {.name = "expected", .value = "N", .help = "GPUs that this machine should have (as many as the bus shows)"}};
    command.options.insert(command.options.end(), more.begin(), more.end());
}

Result<GpuWatchOptions> gpu_watch_options(const Args& args) {
    GpuWatchOptions options;
    TRY(options.period_s, args.number("period", 1, 0.05, 60));
    TRY(options.expected, args.whole_number("expected", 0, 0, 64));
    // For tests: waits that are as much shorter as the period is, and the kernel's files in another place.
    if (options.period_s < 1) {
        options.hung_s *= options.period_s, options.restart_s *= options.period_s,
            options.end_after_s *= options.period_s;
    }
    options.root = gpu_root_options().root;
    return options;
}

GpuWatchOptions gpu_root_options() {
    GpuWatchOptions options;
    if (const char* root = std::getenv("STOKER_GPU_ROOT")) options.root = root;
    return options;
}

Result<DcgmOptions> dcgm_options(const Args& args) {
    DcgmOptions options;
    options.lower_hostname = args.get_or("dcgm-hostname", "Hostname") == "hostname";
    options.names_4_6 = args.get_or("dcgm-names", "4.5") == "4.6";
    options.fixed_types = args.get_or("compat-types", "declared") == "fixed";
    options.all = args.get_or("dcgm-fields", "default") == "all";
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    options.hostname = name.data();
    // What a pod is told of its node goes before its own name.
    if (const char* node = std::getenv("NODE_NAME")) options.hostname = node;
    return options;
}

}  // namespace stoker
