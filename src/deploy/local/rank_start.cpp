#include "deploy/local/rank_start.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/text.h"
#include "deploy/local/box.h"
#include "deploy/local/rank_environment.h"

extern char** environ;

namespace stoker {
namespace {

// What a child tells about itself; less than PIPE_BUF, so that it arrives in one piece.
struct Report {
    enum Kind : int { ready, failed } kind = ready;
    Cause cause = Cause::none;
    std::int64_t outer_pid = 0;
    pid_t box = 0;  // of a rank in an image: its first process, which comes to the keeper
    std::array<char, 1024> text{};
};

struct Child {
    UniqueFd report;  // at its end after `ready`, the program runs
    bool ready = false, running = false;
};

// The part of a rank that runs before its program.
class Entrance {
public:
    Entrance(const LaunchOrder& order, std::size_t rank, int report, int gate, const UniqueFd& outer_proc)
        : order_(order), rank_(rank), report_(report), gate_(gate), outer_proc_(outer_proc) {}

    [[noreturn]] void run(const std::map<std::string, std::string>& environment, const std::string& run_folder,
                          const std::string& log_folder, pid_t keeper) {
        // The keeper may have gone before the kernel was asked to tell.
        if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != keeper) ::_exit(127);
        ::setsid();
        join_group();
        set_limits();
        open_files(log_folder);
        if (order_.user) become_user(keeper);
        enter_folder();
        if (!order_.gang.image.empty()) run_in_box(environment, run_folder);
        const FoundProgram program = find_program(spec().arguments[0], environment.at("PATH"), order_.gang.folder);
        if (program.path.empty()) fail(Cause::user_error, program.problem);
        std::vector<std::string> entries;
        for (const auto& [key, value] : environment) entries.push_back(key + "=" + value);
        reset_signals();
        tell({.kind = Report::ready, .outer_pid = outer_pid()});
        wait_for_all();
        execute(program.path, entries);
    }

private:
    const RankSpec& spec() const { return order_.gang.ranks[rank_]; }

    // Makes the box and starts it, and then is not needed any more.
    [[noreturn]] void run_in_box(const std::map<std::string, std::string>& environment, const std::string& run_folder) {
        reset_signals();
        const auto box = create_box(run_folder, order_, rank_, environment);
        if (!box) fail(Cause::user_error, box.error().message());
        tell({.kind = Report::ready, .outer_pid = outer_pid_of(*box), .box = *box});
        wait_for_all();
        if (const Status started = start_box(run_folder, order_, rank_); !started)
            fail(Cause::platform, started.error().message());
        ::_exit(0);
    }

    void wait_for_all() const {
        char go = 0;
        ssize_t got = 0;
        while ((got = ::read(gate_, &go, 1)) < 0 && errno == EINTR) {
        }
        if (got != 1) ::_exit(127);  // not all came
    }

    void tell(const Report& report) { (void)(::write(report_, &report, sizeof report) > 0); }
    [[noreturn]] void fail(Cause cause, const std::string& text) {
        Report report{.kind = Report::failed, .cause = cause};
        text.copy(report.text.data(), report.text.size() - 1);
        tell(report);
        ::_exit(127);
    }

    void join_group() {
        if (order_.tree == TreeKind::cgroup) {
            if (const Status joined = Cgroup(order_.cgroups, order_.cgroup_name(rank_)).join(); !joined)
                fail(Cause::platform, joined.error().message());
        }
        // The keeper is to be the last that the kernel kills for want of memory; its children are not.
        const UniqueFd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
        if (score) (void)(::write(score.get(), "0", 1) > 0);
    }

    void become_user(pid_t keeper) {
        if (const Status became = become(*order_.user, order_.device_files[rank_]); !became)
            fail(Cause::platform, became.error().message());
        // Another user's process forgets whose end it was to follow.
        if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != keeper) ::_exit(127);
    }

    static void set_limits() {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);  // a core of a training rank fills the disk
        rlimit files{};
        constexpr rlim_t kFiles = 65536;  // data loaders reach the usual 1024
        if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kFiles) {
            files.rlim_cur = std::min(files.rlim_max, kFiles);
            ::setrlimit(RLIMIT_NOFILE, &files);
        }
    }

    void open_files(const std::string& log_folder) {
        const std::string path = log_path(log_folder, rank_);
        const int log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (log < 0) fail(Cause::platform, "cannot open the log " + path + ": " + std::strerror(errno));
        const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (nothing < 0) fail(Cause::platform, std::string("cannot open /dev/null: ") + std::strerror(errno));
        // Programs open /dev/stdout by its name, too.
        if (order_.user) (void)(::fchown(log, order_.user->uid, order_.user->gid) == 0);
        ::dup2(nothing, 0);
        ::dup2(log, 1);
        ::dup2(log, 2);
    }

    void enter_folder() {
        const std::string& folder = order_.gang.folder;
        if (::chdir(folder.c_str()) != 0)
            fail(Cause::user_error, "cannot work in the folder " + printable(folder) + ": " + std::strerror(errno) +
                                        (order_.user ? " (work runs as " + order_.user->name + " here)" : ""));
    }

    static void reset_signals() {
        for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
    }

    std::int64_t outer_pid() const {
        std::array<char, 32> link{};
        std::int64_t pid = ::getpid();
        const ssize_t size = ::readlinkat(outer_proc_.get(), "self", link.data(), link.size());
        if (size > 0) std::from_chars(link.data(), link.data() + size, pid);
        return pid;
    }

    // The numbers behind "Name:" in a status file of the machine's /proc.
    std::vector<std::int64_t> outer_numbers(const std::string& process, std::string_view name) const {
        const UniqueFd file(::openat(outer_proc_.get(), (process + "/status").c_str(), O_RDONLY | O_CLOEXEC));
        std::array<char, 4096> text{};
        const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
        std::vector<std::int64_t> numbers;
        for (const std::string_view line :
             split_lines({text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))}))
            if (line.starts_with(name))
                for (const std::string_view word : split_words(line.substr(name.size()))) {
                    std::int64_t number = 0;
                    std::from_chars(word.data(), word.data() + word.size(), number);
                    numbers.push_back(number);
                }
        return numbers;
    }
    // Of another child of the keeper, which we know by its pid in our namespace.
    std::int64_t outer_pid_of(pid_t pid) const {
        if (outer_pid() == ::getpid()) return pid;
        const auto keeper = outer_numbers("self", "PPid:");
        const UniqueFd folder(::openat(outer_proc_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        DIR* const list = folder ? ::fdopendir(::dup(folder.get())) : nullptr;
        std::int64_t found = pid;
        for (dirent* entry = nullptr; list != nullptr && (entry = ::readdir(list)) != nullptr;) {
            if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
            const auto names = outer_numbers(entry->d_name, "NSpid:");
            if (names.size() < 2 || names.back() != pid || outer_numbers(entry->d_name, "PPid:") != keeper) continue;
            found = names.front();
            break;
        }
        if (list != nullptr) ::closedir(list);
        return found;
    }

    [[noreturn]] void execute(const std::string& path, const std::vector<std::string>& entries) {
        std::vector<char*> arguments, environment;
        for (const std::string& each : spec().arguments) arguments.push_back(const_cast<char*>(each.c_str()));
        for (const std::string& each : entries) environment.push_back(const_cast<char*>(each.c_str()));
        arguments.push_back(nullptr);
        environment.push_back(nullptr);
        ::execve(path.c_str(), arguments.data(), environment.data());
        const int code = errno;
        std::string why = std::strerror(code);
        if (code == ENOEXEC) why = "it is no program of this machine (a script begins with a line like #!/bin/sh)";
        if (code == ENOENT) why = "its interpreter, named in the first line or inside, does not exist";
        if (code == E2BIG) why = "its arguments and environment are too long";
        fail(Cause::user_error, "cannot run " + printable(path) + ": " + why);
    }

    const LaunchOrder& order_;
    std::size_t rank_;
    int report_, gate_;
    const UniqueFd& outer_proc_;
};

// A port that nobody has, held until the ranks run.
UniqueFd hold_port(int& port) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
        return {};
    port = ntohs(address.sin_port);
    return socket;
}

// Reads one report, or the end, from each child that has something to say; false when one failed or all are late.
bool hear(std::vector<Child>& children, Deadline deadline, StartResult& result) {
    std::vector<pollfd> waits;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < children.size(); ++i) {
        if (children[i].running) continue;
        waits.push_back({.fd = children[i].report.get(), .events = POLLIN, .revents = 0});
        who.push_back(i);
    }
    const int wait = milliseconds_until(deadline);
    if (::poll(waits.data(), waits.size(), wait) == 0 && wait == 0) {
        result.cause = Cause::platform;
        result.detail = "rank " + std::to_string(who[0]) + " did not get ready in time";
        return false;
    }
    for (std::size_t i = 0; i < waits.size(); ++i) {
        if (waits[i].revents == 0) continue;
        Child& child = children[who[i]];
        Report report;
        const ssize_t got = ::read(child.report.get(), &report, sizeof report);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got == sizeof report && report.kind == Report::ready) {
            child.ready = true;
            result.ranks[who[i]].outer_pid = report.outer_pid;
            if (report.box != 0) result.ranks[who[i]].pid = report.box;
        } else if (got == sizeof report) {
            result.cause = report.cause;
            result.detail = report.text.data();
            return false;
        } else if (child.ready) {
            child.running = true;  // its end of the pipe closed when the program was run
        } else {
            result.cause = Cause::platform;
            result.detail = "rank " + std::to_string(who[i]) + " ended before its program was run";
            return false;
        }
    }
    return true;
}

Result<std::vector<Child>> fork_ranks(const LaunchOrder& order, const std::string& run_folder,
                                      const std::string& log_folder, const UniqueFd& outer_proc, const PipePair& gate,
                                      int port, StartResult& result) {
    const auto own = own_environment();
    const pid_t keeper = ::getpid();
    std::vector<Child> children;
    for (std::size_t rank = 0; rank < order.gang.ranks.size(); ++rank) {
        // An image brings its own PATH, HOME and so on.
        const std::map<std::string, std::string> none;
        const auto environment =
            rank_environment(order, rank, port, run_folder + "/hostfile", order.gang.image.empty() ? own : none);
        TRY(PipePair report, make_pipe());
        const pid_t pid = ::fork();
        if (pid < 0) return Error(ErrorKind::exhausted, std::string("cannot fork: ") + std::strerror(errno));
        if (pid == 0) {
            ::close(gate.write.get());  // or the end of the keeper would not be seen
            Entrance(order, rank, report.write.get(), gate.read.get(), outer_proc)
                .run(environment, run_folder, log_folder, keeper);
        }
        result.ranks.push_back({.pid = pid, .outer_pid = pid});
        children.push_back({.report = std::move(report.read)});
    }
    return children;
}

}  // namespace

std::string log_path(const std::string& log_folder, std::size_t rank) {
    return log_folder + "/rank-" + std::to_string(rank) + ".out";
}

StartResult start_ranks(const LaunchOrder& order, const std::string& run_folder, const std::string& log_folder,
                        const UniqueFd& outer_proc, Deadline deadline) {
    StartResult result;
    const auto failed = [&](std::string detail) {
        result.cause = Cause::platform;
        result.detail = std::move(detail);
        return std::move(result);
    };
    int port = 0;
    UniqueFd held_port = hold_port(port);
    if (!held_port) return failed(std::string("no TCP port is free: ") + std::strerror(errno));
    auto gate = make_pipe();
    if (!gate) return failed(gate.error().message());
    auto children = fork_ranks(order, run_folder, log_folder, outer_proc, *gate, port, result);
    if (!children) return failed(children.error().message());
    const auto all = [&](bool Child::*state) {
        return std::all_of(children->begin(), children->end(), [&](const Child& child) { return child.*state; });
    };
    while (!all(&Child::ready))
        if (!hear(*children, deadline, result)) return result;
    held_port.reset();
    const std::string go(children->size(), 'g');  // one byte for each
    if (::write(gate->write.get(), go.data(), go.size()) != static_cast<ssize_t>(go.size()))
        return failed("the barrier could not be opened");
    while (!all(&Child::running))
        if (!hear(*children, deadline, result)) return result;
    result.ok = true;
    return result;
}

}  // namespace stoker
