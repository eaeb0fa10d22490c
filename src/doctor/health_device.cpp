#include "doctor/health_device.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "base/units.h"
#include "io/files.h"
#include "io/process.h"
#include "observe/health_lines.h"

extern char** environ;

namespace stoker {

namespace {

namespace fs = std::filesystem;

constexpr int kNotFound = 127;
constexpr std::size_t kMostProgramBytes = 64 << 10;

struct GpuCount {
    std::optional<int> gpus;
    std::string models, problem, fix;
    int tries = 0;
};

// One line for each GPU. A driver that is still being installed has no nvidia-smi yet: that is waited for.
GpuCount count_gpus(const HealthTarget& target, HealthLevel level, Deadline deadline) {
    const bool quick = level == HealthLevel::quick;
    const auto limit = std::min(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(quick ? 2 : 20));
    const auto pause = std::chrono::milliseconds(quick ? 200 : 2000);
    const RunsProgram& run = target.program ? target.program : RunsProgram(run_program);
    GpuCount found;
    for (;;) {
        ++found.tries;
        const auto answer = run({"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"}, limit);
        if (!answer) {
            found.problem = "nvidia-smi: " + answer.error().message();
            found.fix = "dmesg | grep -i nvrm; a GPU that hangs takes a reboot";
            return found;
        }
        if (answer->exit_code == 0) {
            int count = 0;
            for (const std::string_view line : split_lines(answer->out)) {
                if (trim(line).empty()) continue;
                if (count++ == 0) found.models = printable(trim(line), 80);
            }
            found.gpus = count;
            return found;
        }
        if (answer->exit_code != kNotFound) {
            found.problem =
                fmt::format("nvidia-smi ended with {}: {}", answer->exit_code, printable(trim(answer->out), 120));
            found.fix = "dmesg | grep -i nvrm; does the driver fit the kernel? (stoker explain secure-boot-driver)";
            return found;
        }
        if (std::chrono::steady_clock::now() + pause >= limit) {
            found.problem = fmt::format("nvidia-smi: command not found, {} times", found.tries);
            found.fix = "the driver is not installed, or its installation has not finished: wait, and look again";
            return found;
        }
        std::this_thread::sleep_for(pause);
    }
}

std::string small_file(const fs::path& path) {
    const auto text = read_file(path.string(), 4096);
    return text ? std::string(trim(*text)) : std::string();
}

struct PortCount {
    int active = 0;
    double slowest = 0;  // bytes/s, of the active ones
};
// /sys/class/infiniband/mlx5_0/ports/1/{state,rate}: "4: ACTIVE", "400 Gb/sec (4X NDR)".
PortCount count_ports(const std::string& root) {
    PortCount count;
    std::error_code code;
    for (fs::directory_iterator device(root + "sys/class/infiniband", code), end; !code && device != end;
         device.increment(code)) {
        std::error_code inner;
        for (fs::directory_iterator port(device->path() / "ports", inner), last; !inner && port != last;
             port.increment(inner)) {
            if (small_file(port->path() / "state").find("ACTIVE") == std::string::npos) continue;
            const double rate = std::strtod(small_file(port->path() / "rate").c_str(), nullptr) * 1e9 / 8;
            if (count.active++ == 0 || rate < count.slowest) count.slowest = rate;
        }
    }
    return count;
}

int count_nvme(const std::string& root) {
    int count = 0;
    std::error_code code;
    for (fs::directory_iterator each(root + "sys/class/nvme", code), end; !code && each != end; each.increment(code))
        ++count;
    return count;
}

}  // namespace

Result<ProgramAnswer> run_program(const std::vector<std::string>& words, Deadline deadline) {
    TRY(PipePair pipe, make_pipe());
    DetachedProgram program{.path = "/usr/bin/env",
                            .arguments = {"env"},
                            .environment = {},
                            .standard_output = pipe.write.get(),
                            .error_file = "/dev/null"};
    program.arguments.insert(program.arguments.end(), words.begin(), words.end());
    for (char** each = environ; *each != nullptr; ++each) program.environment.emplace_back(*each);
    TRY(const pid_t child, start_detached(program));
    pipe.write.reset();
    ProgramAnswer answer;
    const auto give_up = [&] {
        ::kill(-child, SIGKILL);  // it has a session of its own
        (void)reap(child, std::chrono::steady_clock::now() + std::chrono::milliseconds(500));
        return Error(ErrorKind::timed_out, "it did not end in time");
    };
    std::string piece(4096, '\0');
    while (answer.out.size() < kMostProgramBytes) {
        pollfd ready{.fd = pipe.read.get(), .events = POLLIN, .revents = 0};
        const int wait = milliseconds_until(deadline);
        if (wait <= 0) return give_up();
        if (::poll(&ready, 1, wait) <= 0) continue;
        const ssize_t got = ::read(pipe.read.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        answer.out.append(piece.data(), static_cast<std::size_t>(got));
    }
    const auto status = reap(child, deadline);
    if (!status) return give_up();
    answer.exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
    return answer;
}

std::vector<DeviceCheck> look_at_parts(const HealthTarget& target, const Machine& machine, HealthLevel level,
                                       Deadline deadline) {
    std::vector<SizeFact> facts;
    if (!target.size.empty())
        if (auto known = facts_of_size(target.size)) facts = std::move(*known);
    const auto declared = [&](std::string_view name, double by_node) -> std::optional<Expectation> {
        for (const SizeFact& fact : facts)
            if (fact.name == name)
                return Expectation{.value = fact.value, .source = fact.source, .is_line = fact.is_line};
        if (by_node > 0) return Expectation{.value = by_node, .source = "what the node declares"};
        return std::nullopt;
    };
    std::vector<DeviceCheck> out;
    const auto add = [&](const char* name, const char* unit) -> DeviceCheck& {
        DeviceCheck& each = out.emplace_back();
        each.check = {.layer = HealthLayer::device, .name = name, .node = target.node.name, .unit = unit};
        return each;
    };
    const auto has_no_expectation = [](DeviceCheck& each) {
        each.check.verdict = HealthVerdict::skipped;
        each.check.detail +=
            (each.check.detail.empty() ? "" : "; ") + std::string("nobody declares how much it should be");
        each.check.measured.reset();
        each.check.fix.clear();
    };

    DeviceCheck& gpus = add("gpu-count", "count");
    gpus.expected = declared("gpu-count", static_cast<double>(target.node.devices.size()));
    if (!gpus.expected) {
        gpus.check.detail = "no GPU is declared";
    } else {
        GpuCount count = count_gpus(target, level, deadline);
        if (count.gpus) {
            gpus.check.measured = *count.gpus;
            gpus.check.detail = count.models;
            gpus.check.fix = "nvidia-smi -L; dmesg | grep -i -e nvrm -e xid: one that fell off the bus takes a reboot";
        } else {
            gpus.check.verdict = HealthVerdict::fail;
            gpus.check.expected = gpus.expected->value;
            gpus.check.source = gpus.expected->source;
            gpus.check.detail = std::move(count.problem);
            gpus.check.fix = std::move(count.fix);
        }
    }

    DeviceCheck& processors = add("processors", "count");
    processors.check.detail = fmt::format("{} usable of {}", machine.usable_cores(), machine.logical_cores);
    processors.expected = declared("processors", static_cast<double>(target.node.cpu_milli / 1000));
    processors.check.measured = machine.usable_cores();
    processors.check.fix = "lscpu: offline processors; taskset -p $$ and the control group: forbidden ones";
    if (!processors.expected) has_no_expectation(processors);

    DeviceCheck& memory = add("memory-present", "bytes");
    memory.check.detail = format_bytes_gib(machine.usable_memory()) + " usable";
    memory.expected = declared("memory-present", static_cast<double>(target.node.memory_bytes));
    memory.check.measured = machine.usable_memory().v;
    memory.check.fix = "dmidecode -t memory: a module that is missing; the limit of the control group";
    if (!memory.expected) has_no_expectation(memory);

    if (const auto expected = declared("ib-ports", 0)) {
        const PortCount ports = count_ports(target.root);
        DeviceCheck& count = add("ib-ports", "count");
        count.expected = expected;
        count.check.measured = ports.active;
        count.check.detail = "active ports in /sys/class/infiniband";
        count.check.fix = "ibstat; is the OFED driver there? The image must be one for HPC: stoker explain images";
        if (ports.active > 0) {
            DeviceCheck& rate = add("ib-rate", "bytes/s");
            rate.expected = declared("ib-rate", 0);
            rate.check.measured = ports.slowest;
            rate.check.detail = fmt::format("{:g} Gb/s, the slowest active port", 8e-9 * ports.slowest);
            rate.check.fix = "ibstat, mlxlink: lanes and speed of the link; the node needs repair";
        }
    }
    if (const auto expected = declared("nvme-disks", 0)) {
        DeviceCheck& disks = add("nvme-disks", "count");
        disks.expected = expected;
        disks.check.measured = count_nvme(target.root);
        disks.check.fix = "lsblk, dmesg | grep nvme";
    }
    return out;
}

}  // namespace stoker
