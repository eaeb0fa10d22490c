#include "io/machine/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "base/text.h"
#include "io/files.h"

namespace stoker {
namespace {

constexpr std::size_t kMostBytes = 16u << 20;  // /proc/cpuinfo of 1024 cores is about 2 MB

std::string read_or_empty(const std::string& path) {
    auto text = read_file(path, kMostBytes);
    return text ? std::move(*text) : std::string();
}

template <class Number>
std::optional<Number> number_at_start(std::string_view text) {
    text = trim(text);
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end == text.data()) return std::nullopt;
    return value;
}

// "key<tab>: value" of /proc/cpuinfo, "key: value" of /proc/meminfo.
std::pair<std::string_view, std::string_view> key_and_value(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return {};
    return {trim(line.substr(0, colon)), trim(line.substr(colon + 1))};
}

bool matters(std::string_view flag) {
    static constexpr std::string_view kFlags[] = {
        "sse4_2",      "avx",         "f16c",        "fma",      "avx2",     "avx512f",  "avx512bw", "avx512vl",
        "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16", "asimd",
        "asimdhp",     "asimddp",     "sve",         "sve2",     "i8mm",     "bf16",     "svebf16",
    };
    return std::find(std::begin(kFlags), std::end(kFlags), flag) != std::end(kFlags);
}

void read_cpuinfo(std::string_view text, Machine& machine) {
    int processors = 0;
    std::string_view package = "0";
    std::set<std::string_view> packages;
    std::set<std::pair<std::string_view, std::string_view>> cores;
    for (const std::string_view line : split_lines(text)) {
        const auto [key, value] = key_and_value(line);
        if (key == "processor")
            ++processors;
        else if (key == "model name" && machine.model.empty())
            machine.model = value;
        else if (key == "cpu MHz")
            machine.mhz = std::max(machine.mhz, number_at_start<double>(value).value_or(0));
        else if (key == "physical id")
            packages.insert(package = value);
        else if (key == "core id")
            cores.emplace(package, value);
        else if ((key == "flags" || key == "Features") && machine.extensions.empty()) {
            for (const std::string_view flag : split_words(value))
                if (matters(flag)) machine.extensions.emplace_back(flag);
        }
    }
    if (processors > 0) machine.logical_cores = processors;
    // Arm and some guests name no cores; then each processor is one.
    machine.physical_cores = cores.empty() ? machine.logical_cores : static_cast<int>(cores.size());
    machine.sockets = packages.empty() ? 1 : static_cast<int>(packages.size());
}

void read_meminfo(std::string_view text, Machine& machine) {
    for (const std::string_view line : split_lines(text)) {
        const auto [key, value] = key_and_value(line);
        if (key == "MemTotal") machine.memory = Bytes(number_at_start<double>(value).value_or(0) * kKiB);
    }
}

void read_cache(const std::string& root, Machine& machine) {
    for (const char* index : {"index3", "index2"}) {
        const std::string text = read_or_empty(root + "/sys/devices/system/cpu/cpu0/cache/" + index + "/size");
        const double size = number_at_start<double>(text).value_or(0);
        if (size <= 0) continue;
        const std::string_view unit = trim(text);
        machine.last_level_cache = Bytes(size * (unit.ends_with('M') ? kMiB : unit.ends_with('K') ? kKiB : 1));
        return;
    }
}

void lower_cpu_limit(Machine& machine, double cores) {
    if (cores > 0 && (!machine.cpu_limit || cores < *machine.cpu_limit)) machine.cpu_limit = cores;
}

void lower_memory_limit(Machine& machine, double bytes) {
    // cgroup v1 says "no limit" with a number near 2^63.
    if (bytes <= 0 || bytes >= 1e18) return;
    if (!machine.memory_limit || bytes < machine.memory_limit->v) machine.memory_limit = Bytes(bytes);
}

// The limits of every group from the process's own up to the root count; the smallest wins. Inside a container the path
// that /proc/self/cgroup names may not exist, and the root is the container's own group.
template <class Visit>
void walk_up(const std::string& mount, std::string path, Visit visit) {
    for (;;) {
        visit(mount + path);
        if (path.empty() || path == "/") return;
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
}

void read_cgroup_v2(const std::string& mount, std::string_view path, Machine& machine) {
    walk_up(mount, std::string(path), [&](const std::string& group) {
        const std::string cpu = read_or_empty(group + "/cpu.max");
        const auto words = split_words(cpu);
        const auto quota = words.empty() ? std::nullopt : number_at_start<double>(words[0]);
        const auto period = words.size() < 2 ? std::nullopt : number_at_start<double>(words[1]);
        if (quota && period && *period > 0) lower_cpu_limit(machine, *quota / *period);
        if (const auto bytes = number_at_start<double>(read_or_empty(group + "/memory.max")))
            lower_memory_limit(machine, *bytes);
    });
}

void read_cgroup_v1(const std::string& mounts, std::string_view controllers, std::string_view path, Machine& machine) {
    for (const std::string_view controller : split(controllers, ',')) {
        if (controller == "cpu") {
            walk_up(mounts + "/cpu", std::string(path), [&](const std::string& group) {
                const auto quota = number_at_start<double>(read_or_empty(group + "/cpu.cfs_quota_us"));
                const auto period = number_at_start<double>(read_or_empty(group + "/cpu.cfs_period_us"));
                if (quota && period && *period > 0) lower_cpu_limit(machine, *quota / *period);  // -1: none
            });
        } else if (controller == "memory") {
            walk_up(mounts + "/memory", std::string(path), [&](const std::string& group) {
                if (const auto bytes = number_at_start<double>(read_or_empty(group + "/memory.limit_in_bytes")))
                    lower_memory_limit(machine, *bytes);
            });
        }
    }
}

void read_cgroups(const std::string& root, Machine& machine) {
    const std::string text = read_or_empty(root + "/proc/self/cgroup");
    for (const std::string_view line : split_lines(text)) {
        // "0::/user.slice" is v2, "4:cpu,cpuacct:/docker/ab12" is v1
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        const std::string_view path = line.substr(second + 1);
        if (controllers.empty())
            read_cgroup_v2(root + "/sys/fs/cgroup", path, machine);
        else
            read_cgroup_v1(root + "/sys/fs/cgroup", controllers, path, machine);
    }
}

int cores_by_affinity() {
    cpu_set_t set;
    CPU_ZERO(&set);
    // Fails on machines of more than 1024 processors; then the kernel's count will do.
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

int Machine::usable_cores() const {
    const int allowed = std::min(allowed_cores, logical_cores);
    if (!cpu_limit) return std::max(1, allowed);
    return std::clamp(static_cast<int>(std::ceil(*cpu_limit - 0.01)), 1, std::max(1, allowed));
}

Bytes Machine::usable_memory() const {
    return memory_limit && (memory.v == 0 || *memory_limit < memory) ? *memory_limit : memory;
}

bool Machine::has(const std::string& extension) const {
    return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

Machine discover_machine(const std::string& root) {
    const std::string base = root == "/" ? "" : root;
    Machine machine;
    utsname names{};
    if (uname(&names) == 0) machine.architecture = names.machine;
    machine.logical_cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    read_cpuinfo(read_or_empty(base + "/proc/cpuinfo"), machine);
    read_meminfo(read_or_empty(base + "/proc/meminfo"), machine);
    read_cache(base, machine);
    read_cgroups(base, machine);
    machine.allowed_cores = base.empty() ? cores_by_affinity() : machine.logical_cores;
    return machine;
}

}  // namespace stoker
