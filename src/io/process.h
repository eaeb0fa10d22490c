// Processes: who they are, whether they still run, what descends from them, and how to start one that outlives us.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker {

// Closes what it holds.
class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~UniqueFd() { reset(); }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    void reset(int fd = -1);
    int release() { return std::exchange(fd_, -1); }  // the caller closes it

private:
    int fd_ = -1;
};

struct PipePair {
    UniqueFd read, write;
};
Result<PipePair> make_pipe();  // both ends close on exec

std::int64_t wall_clock_us();
// Since this boot; nobody sets it, so it says how long something took. Of no meaning on another machine or boot.
std::int64_t monotonic_clock_us();
// When this machine was booted, by the wall clock.
std::int64_t boot_time_us();
// Milliseconds for poll(): 0 when the deadline has passed, at most `most`.
int milliseconds_until(std::chrono::steady_clock::time_point deadline, int most = 60'000);

// Another text after a reboot.
std::string boot_id();
// When the process began, in clock ticks since boot (field 22 of /proc/PID/stat): with the boot id and the pid it names
// one process for ever. Nothing when there is none.
std::optional<std::uint64_t> start_ticks(pid_t pid);
// A pidfd, which becomes readable when the process ends; empty when it is gone, or when another process has its pid
// now.
UniqueFd open_process(pid_t pid, std::uint64_t ticks);
bool has_ended(const UniqueFd& process);

// Everything below `root` by parent pids, zombies left out; not `root`.
std::vector<pid_t> descendants_of(pid_t root);
// The processes whose initial environment has this entry ("STOKER_OP=..."), as far as we may look; not ourselves.
std::vector<pid_t> processes_with(std::string_view environment_entry);
enum class SignalUse { fatal, ignored, handled };  // fatal: what it does when nobody handles it
SignalUse signal_use(pid_t pid, int signal_number);
// "S", "D" (waits for a device and cannot be killed), "Z", ...; 0 when gone.
char process_state(pid_t pid);

struct DetachedProgram {
    std::string path;
    std::vector<std::string> arguments;    // arguments[0] is the name that ps shows
    std::vector<std::string> environment;  // "KEY=value"
    int standard_output = -1;              // descriptor; -1: /dev/null
    std::string error_file;                // stderr is appended to it
};
// Starts a program in a session of its own, with no descriptor of ours but the one named. The pid is our child: such
// programs fork once more and leave, and the caller waits for that with reap().
Result<pid_t> start_detached(const DetachedProgram& program);
// Waits for a child to end, at most until the deadline; the status of waitpid().
std::optional<int> reap(pid_t child, std::chrono::steady_clock::time_point deadline);

// "SIGSEGV"; "signal 77" for those without a name.
std::string signal_name(int number);

}  // namespace stoker
