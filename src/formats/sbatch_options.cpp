#include "formats/sbatch_options.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace stoker::sbatch {

namespace {

constexpr Option kOptions[] = {
    {"account", 'A', Takes::value},
    {"acctg-freq", 0, Takes::value, Sort::sampling},
    {"array", 'a', Takes::value, Sort::indices},
    {"autocomplete", 0, Takes::value, Sort::any, Age::some},
    {"batch", 0, Takes::value},
    {"bb", 0, Takes::value},
    {"bbf", 0, Takes::value},
    {"begin", 'b', Takes::value, Sort::moment},
    {"chdir", 'D', Takes::value},
    {"cluster", 0, Takes::value, Sort::any, Age::always, "clusters"},
    {"cluster-constraint", 0, Takes::value},
    {"clusters", 'M', Takes::value},
    {"comment", 0, Takes::value},
    {"consolidate-segments", 0, Takes::nothing, Sort::any, Age::some},
    {"constraint", 'C', Takes::value},
    {"container", 0, Takes::value},
    {"container-id", 0, Takes::value, Sort::any, Age::some},
    {"container-type", 0, Takes::value, Sort::any, Age::some},
    {"context", 0, Takes::value},
    {"contiguous", 0, Takes::nothing},
    {"core-spec", 'S', Takes::value, Sort::spare_cores},
    {"cores-per-socket", 0, Takes::value, Sort::whole},
    {"cpu-freq", 0, Takes::value, Sort::cpu_frequency},
    {"cpus-per-gpu", 0, Takes::value, Sort::whole},
    {"cpus-per-task", 'c', Takes::value, Sort::whole},
    {"deadline", 0, Takes::value, Sort::moment},
    {"delay-boot", 0, Takes::value, Sort::duration},
    {"dependency", 'd', Takes::value, Sort::dependency},
    {"distribution", 'm', Takes::value, Sort::distribution},
    {"error", 'e', Takes::value},
    {"exclude", 'x', Takes::value},
    {"exclusive", 0, Takes::maybe, Sort::exclusive},
    {"export", 0, Takes::value},
    {"export-file", 0, Takes::value, Sort::any, Age::some},
    {"external", 0, Takes::nothing, Sort::any, Age::some},
    {"extra", 0, Takes::value, Sort::any, Age::some},
    {"extra-node-info", 'B', Takes::value, Sort::layout},
    {"get-user-env", 0, Takes::maybe, Sort::environment_wait},
    {"gid", 0, Takes::value},
    {"gpu-bind", 0, Takes::value, Sort::gpu_bind},
    {"gpu-freq", 0, Takes::value, Sort::gpu_frequency},
    {"gpus", 'G', Takes::value, Sort::gpus},
    {"gpus-per-node", 0, Takes::value, Sort::gpus},
    {"gpus-per-socket", 0, Takes::value, Sort::gpus},
    {"gpus-per-task", 0, Takes::value, Sort::gpus},
    {"gres", 0, Takes::value, Sort::gres},
    {"gres-flags", 0, Takes::value, Sort::gres_flags},
    {"help", 'h', Takes::nothing},
    {"hint", 0, Takes::value, Sort::hint},
    {"hold", 'H', Takes::nothing},
    {"ignore-pbs", 0, Takes::nothing},
    {"input", 'i', Takes::value},
    {"job-name", 'J', Takes::value},
    {"kill-on-invalid-dep", 0, Takes::value, Sort::yes_no},
    {"licenses", 'L', Takes::value},
    {"mail-type", 0, Takes::value, Sort::mail},
    {"mail-user", 0, Takes::value},
    {"mcs-label", 0, Takes::value},
    {"mem", 0, Takes::value, Sort::size},
    {"mem-bind", 0, Takes::value, Sort::memory_bind},
    {"mem-per-cpu", 0, Takes::value, Sort::size},
    {"mem-per-gpu", 0, Takes::value, Sort::size},
    {"mem-update", 0, Takes::value, Sort::any, Age::some},
    {"mincpus", 0, Takes::value, Sort::whole},
    {"network", 0, Takes::value},
    {"nice", 0, Takes::maybe},
    {"no-kill", 'k', Takes::maybe, Sort::off},
    {"no-requeue", 0, Takes::nothing},
    {"nodefile", 'F', Takes::value},
    {"nodelist", 'w', Takes::value},
    {"nodes", 'N', Takes::value, Sort::node_count},
    {"ntasks", 'n', Takes::value, Sort::whole},
    {"ntasks-per-core", 0, Takes::value, Sort::whole},
    {"ntasks-per-gpu", 0, Takes::value, Sort::whole},
    {"ntasks-per-node", 0, Takes::value, Sort::whole},
    {"ntasks-per-socket", 0, Takes::value, Sort::whole},
    {"ntasks-per-tres", 0, Takes::value},
    {"oom-kill-step", 0, Takes::maybe, Sort::any, Age::some},
    {"open-mode", 0, Takes::value, Sort::open_mode},
    {"output", 'o', Takes::value},
    {"overcommit", 'O', Takes::nothing},
    {"oversubscribe", 's', Takes::nothing},
    {"parsable", 0, Takes::nothing},
    {"partition", 'p', Takes::value},
    {"power", 0, Takes::value, Sort::any, Age::some},
    {"prefer", 0, Takes::value},
    {"priority", 0, Takes::value, Sort::not_negative},
    {"profile", 0, Takes::value, Sort::profile},
    {"propagate", 0, Takes::maybe, Sort::limits},
    {"qos", 'q', Takes::value},
    {"quiet", 'Q', Takes::nothing},
    {"reboot", 0, Takes::nothing},
    {"requeue", 0, Takes::nothing},
    {"reservation", 0, Takes::value},
    {"resources", 0, Takes::value, Sort::any, Age::some},
    {"resv-ports", 0, Takes::maybe, Sort::any, Age::some},
    {"segment", 0, Takes::value, Sort::any, Age::some},
    {"share", 0, Takes::nothing, Sort::any, Age::gone},
    {"signal", 0, Takes::value, Sort::signal},
    {"sockets-per-node", 0, Takes::value, Sort::whole},
    {"spread-job", 0, Takes::nothing},
    {"spread-segments", 0, Takes::nothing, Sort::any, Age::some},
    {"stepmgr", 0, Takes::nothing, Sort::any, Age::some},
    {"switches", 0, Takes::value, Sort::switches},
    {"tasks-per-node", 0, Takes::value, Sort::whole, Age::always, "ntasks-per-node"},
    {"test-only", 0, Takes::nothing},
    {"thread-spec", 0, Takes::value, Sort::whole},
    {"threads-per-core", 0, Takes::value, Sort::whole},
    {"time", 't', Takes::value, Sort::duration},
    {"time-min", 0, Takes::value, Sort::duration},
    {"tmp", 0, Takes::value, Sort::size},
    {"tres-bind", 0, Takes::value, Sort::any, Age::some},
    {"tres-per-task", 0, Takes::value, Sort::any, Age::some},
    {"uid", 0, Takes::value},
    {"usage", 0, Takes::nothing},
    {"use-min-nodes", 0, Takes::nothing},
    {"verbose", 'v', Takes::nothing},
    {"version", 'V', Takes::nothing},
    {"wait", 'W', Takes::nothing},
    {"wait-all-nodes", 0, Takes::value, Sort::zero_one},
    {"wckey", 0, Takes::value},
    {"workdir", 0, Takes::value, Sort::any, Age::gone, "chdir"},
    {"wrap", 0, Takes::value},
};
static_assert(std::is_sorted(std::begin(kOptions), std::end(kOptions),
                             [](const Option& a, const Option& b) { return a.name < b.name; }));

const Option* at_or_behind(std::string_view name) {
    return std::lower_bound(std::begin(kOptions), std::end(kOptions), name,
                            [](const Option& option, std::string_view wanted) { return option.name < wanted; });
}
const Option* first_name(const Option* option) {
    return option->means.empty() ? option : at_or_behind(option->means);
}
// The letters of the table, by their code.
constexpr auto kLetters = [] {
    std::array<std::uint8_t, 128> rows{};  // 0: none; the first row has one
    for (std::size_t k = 0; k < std::size(kOptions); ++k)
        if (kOptions[k].letter != 0)
            rows[static_cast<std::size_t>(kOptions[k].letter)] = static_cast<std::uint8_t>(k + 1);
    return rows;
}();
static_assert(std::size(kOptions) < 255);

// What begins with `name`, of one age. getopt_long calls it ambiguous when two of them differ in what they are.
Found beginning_with(std::string_view name, Age age, bool& several) {
    Found found;
    for (const Option* row = at_or_behind(name); row != std::end(kOptions) && row->name.starts_with(name); ++row) {
        if (row->age != age) continue;
        if (!found)
            found = {first_name(row), row};
        else if (first_name(row) != found.option || row->takes != found.named->takes)
            several = true;
    }
    return found;
}

}  // namespace

std::span<const Option> options() {
    return kOptions;
}

Found find_option(std::string_view name) {
    if (name.empty()) return {};
    const Option* row = at_or_behind(name);
    if (row != std::end(kOptions) && row->name == name) return {first_name(row), row};
    bool several = false;
    Found found = beginning_with(name, Age::always, several);
    if (!found) found = beginning_with(name, Age::some, several);
    return several ? Found{} : found;
}

const Option* find_letter(char letter) {
    const auto code = static_cast<unsigned char>(letter);
    return code < kLetters.size() && kLetters[code] != 0 ? &kOptions[kLetters[code] - 1] : nullptr;
}

bool is_plugin_option(std::string_view name) {
    if (name.starts_with("container-") || name.starts_with("no-container-")) return true;
    // Shifter's, as at NERSC (shifter_slurm of NERSC/shifter).
    return name == "image" || name == "module" || name == "volume" || name == "imagevolume" || name == "entrypoint" ||
           name == "ccm" || name == "autoshift";
}

}  // namespace stoker::sbatch
