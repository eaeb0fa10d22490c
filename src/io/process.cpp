#include "io/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>

#include "base/text.h"

namespace stoker {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// Files of /proc have no size; one read of a page or so gives all of those used here but environ.
std::string slurp_proc(const std::string& path, std::size_t most) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    if (!file) return text;
    std::array<char, 4096> block{};
    while (text.size() < most) {
        const ssize_t got = ::read(file.get(), block.data(), std::min(block.size(), most - text.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        text.append(block.data(), static_cast<std::size_t>(got));
    }
    return text;
}

std::string proc_file(pid_t pid, const char* name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

struct StatLine {
    char state = 0;
    pid_t parent = 0;
    std::uint64_t ticks = 0;
};

// The second field is the program's name in brackets and may hold blanks and brackets: fields count from the last one.
std::optional<StatLine> read_stat(pid_t pid) {
    const std::string text = slurp_proc(proc_file(pid, "stat"), 4096);
    const std::size_t bracket = text.rfind(')');
    if (bracket == std::string::npos) return std::nullopt;
    const auto fields = split_words(std::string_view(text).substr(bracket + 1));
    if (fields.size() < 20) return std::nullopt;
    StatLine stat{.state = fields[0][0]};
    std::from_chars(fields[1].data(), fields[1].data() + fields[1].size(), stat.parent);
    std::from_chars(fields[19].data(), fields[19].data() + fields[19].size(), stat.ticks);
    return stat;
}

std::vector<pid_t> all_pids() {
    std::vector<pid_t> pids;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
    if (!folder) return pids;
    while (const dirent* entry = ::readdir(folder.get())) {
        const std::string_view name = entry->d_name;
        pid_t pid = 0;
        const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (code == std::errc() && end == name.data() + name.size()) pids.push_back(pid);
    }
    return pids;
}

}  // namespace

void UniqueFd::reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

Result<PipePair> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        return Error(ErrorKind::exhausted, std::string("cannot make a pipe: ") + std::strerror(errno));
    return PipePair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::int64_t wall_clock_us() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

namespace {
std::int64_t clock_us(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}
}  // namespace

std::int64_t monotonic_clock_us() {
    return clock_us(CLOCK_MONOTONIC);
}

std::int64_t boot_time_us() {
    return wall_clock_us() - clock_us(CLOCK_BOOTTIME);
}

int milliseconds_until(SteadyTime deadline, int most) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return 0;
    if (left >= std::chrono::milliseconds(most)) return most;
    // Rounded up, so that a wait of less than 1 ms is no busy loop.
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

std::string boot_id() {
    return std::string(trim(slurp_proc("/proc/sys/kernel/random/boot_id", 100)));
}

std::optional<std::uint64_t> start_ticks(pid_t pid) {
    const auto stat = read_stat(pid);
    return stat ? std::optional(stat->ticks) : std::nullopt;
}

char process_state(pid_t pid) {
    const auto stat = read_stat(pid);
    return stat ? stat->state : '\0';
}

UniqueFd open_process(pid_t pid, std::uint64_t ticks) {
    if (pid <= 0) return {};
    // By number: glibc 2.36's <sys/pidfd.h> lacks extern "C". Opened first and compared after, so that a pid which
    // is used again in between is noticed.
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u)));
    if (!process || start_ticks(pid) != ticks) return {};
    return process;
}

bool has_ended(const UniqueFd& process) {
    pollfd poll{.fd = process.get(), .events = POLLIN, .revents = 0};
    return !process || (::poll(&poll, 1, 0) > 0 && (poll.revents & POLLIN) != 0);
}

std::vector<pid_t> descendants_of(pid_t root) {
    std::multimap<pid_t, pid_t> children;
    std::map<pid_t, char> states;
    for (const pid_t pid : all_pids()) {
        const auto stat = read_stat(pid);
        if (!stat) continue;
        children.emplace(stat->parent, pid);
        states[pid] = stat->state;
    }
    std::vector<pid_t> found, open = {root};
    while (!open.empty()) {
        const pid_t parent = open.back();
        open.pop_back();
        for (auto [it, end] = children.equal_range(parent); it != end; ++it) {
            open.push_back(it->second);
            if (const char state = states[it->second]; state != 'Z' && state != 'X') found.push_back(it->second);
        }
    }
    return found;
}

std::vector<pid_t> processes_with(std::string_view environment_entry) {
    std::vector<pid_t> found;
    const std::string wanted = '\0' + std::string(environment_entry) + '\0';
    for (const pid_t pid : all_pids()) {
        if (pid == ::getpid()) continue;
        const std::string environment = '\0' + slurp_proc(proc_file(pid, "environ"), 4u << 20) + '\0';
        if (environment.find(wanted) == std::string::npos) continue;
        if (const char state = process_state(pid); state != 0 && state != 'Z' && state != 'X') found.push_back(pid);
    }
    return found;
}

SignalUse signal_use(pid_t pid, int signal_number) {
    if (signal_number < 1 || signal_number > 64) return SignalUse::fatal;
    const std::string status = slurp_proc(proc_file(pid, "status"), 16384);
    const auto has = [&](std::string_view field) {
        const std::size_t at = status.find(field);
        if (at == std::string::npos) return false;
        const std::string_view digits = trim(std::string_view(status).substr(at + field.size(), 18));
        std::uint64_t mask = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
        return (mask >> (signal_number - 1) & 1) != 0;
    };
    if (has("\nSigCgt:")) return SignalUse::handled;
    return has("\nSigIgn:") ? SignalUse::ignored : SignalUse::fatal;
}

Result<pid_t> start_detached(const DetachedProgram& program) {
    std::vector<char*> arguments, environment;
    for (const std::string& each : program.arguments) arguments.push_back(const_cast<char*>(each.c_str()));
    for (const std::string& each : program.environment) environment.push_back(const_cast<char*>(each.c_str()));
    arguments.push_back(nullptr);
    environment.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    // In this order: standard_output may itself be 0 or 2 when the caller has closed those.
    if (program.standard_output >= 0) {
        ::posix_spawn_file_actions_adddup2(&actions, program.standard_output, 1);
    } else {
        ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    }
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, 2, program.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes,
                               static_cast<short>(POSIX_SPAWN_SETSID) | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child = -1;
    const int code =
        ::posix_spawn(&child, program.path.c_str(), &actions, &attributes, arguments.data(), environment.data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (code != 0)
        return Error(code == EAGAIN || code == ENOMEM ? ErrorKind::exhausted : ErrorKind::unavailable,
                     "cannot start " + printable(program.path) + ": " + std::strerror(code));
    return child;
}

std::optional<int> reap(pid_t child, SteadyTime deadline) {
    int status = 0;
    for (;;) {
        const pid_t got = ::waitpid(child, &status, WNOHANG);
        if (got == child) return status;
        if (got < 0 && errno != EINTR) return 0;  // somebody else has waited for it: it is gone
        const int wait = milliseconds_until(deadline, 1);
        if (wait == 0) return std::nullopt;
        ::poll(nullptr, 0, wait);
    }
}

std::string signal_name(int number) {
    const char* name = ::sigabbrev_np(number);
    return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

}  // namespace stoker
