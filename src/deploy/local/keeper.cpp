#include "deploy/local/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/local/box.h"
#include "deploy/local/control.h"
#include "deploy/local/gang_files.h"
#include "deploy/local/log_file.h"
#include "deploy/local/rank_environment.h"
#include "deploy/local/rank_start.h"
#include "deploy/secret_files.h"
#include "io/machine/namespaces.h"
#include "io/machine/network_namespace.h"
#include "io/process.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kStartLimit = std::chrono::seconds(30);  // from fork to exec, for a folder on a slow network disk
// A gang that lost a rank is gone within 2 s, the KILL included.
constexpr double kPeerGrace = 1.5;
// For what a rank left behind when it ended, and for a machine that shuts down.
constexpr double kLeftoverGrace = 2, kShutdownGrace = 10;
constexpr auto kKillPause = std::chrono::milliseconds(50);
constexpr auto kStuckAfter = std::chrono::seconds(2);  // since the first KILL; nothing but a device takes as long

Clock::duration seconds(double value) {
    // Beyond a year it is for ever; more would overflow the clock.
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(value, 0.0, 3e7)));
}

class Keeper {
public:
    Keeper(std::string folder, LaunchOrder order)
        : folder_(std::move(folder)),
          order_(std::move(order)),
          log_folder_(order_.gang.log_folder.empty() ? folder_ : order_.gang.log_folder),
          group_(order_.cgroups, order_.cgroup_name()) {
        if (order_.gang.folder.empty()) order_.gang.folder = log_folder_;
        status_.epoch = order_.gang.epoch;
        status_.boot_id = boot_id();
        status_.ranks.resize(order_.gang.ranks.size());
    }

    int run() {
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        ::prctl(PR_SET_NAME, "stoker-keeper");
        watch_signals();
        if (const Status ready = prepare(); !ready) {
            stop(Cause::platform, ready.error().message(), 0);
        } else {
            start();
        }
        while (!over()) turn();
        finish();
        return 0;
    }

private:
    // ---- start
    void watch_signals() {
        sigset_t watched;
        sigemptyset(&watched);
        for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, number);
        ::sigprocmask(SIG_BLOCK, &watched, nullptr);
        signals_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
        ::signal(SIGPIPE, SIG_IGN);
        ::signal(SIGXFSZ, SIG_IGN);
    }

    Status prepare() {
        outer_proc_ = UniqueFd(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
        // Where /proc/self points is our pid as the driver sees it; getpid() is 1 in a namespace of our own.
        std::error_code code;
        const std::string self = std::filesystem::read_symlink("/proc/self", code).string();
        const pid_t pid = code ? ::getpid() : static_cast<pid_t>(std::atoi(self.c_str()));
        TRY_VOID(replace_file(
            folder_ + "/keeper.json",
            to_json({.pid = pid, .start_ticks = start_ticks(pid).value_or(0), .boot_id = boot_id()}).dump(), false));
        if (order_.tree == TreeKind::pid_namespace) TRY_VOID(mount_own_proc());
        if (order_.own_network) TRY_VOID(enter_own_network());
        TRY_VOID(control_.listen(folder_));
        TRY_VOID(replace_file(folder_ + "/hostfile", hostfile_text(order_), false));
        std::filesystem::create_directories(log_folder_, code);
        if (code) return Error(ErrorKind::unavailable, "cannot make the folder " + log_folder_ + ": " + code.message());
        if (order_.user) TRY_VOID(give_folders(*order_.user));
        TRY_VOID(write_secret_files());
        if (order_.tree == TreeKind::cgroup) TRY_VOID(make_groups());
        reserve_room();
        const UniqueFd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
        if (score) (void)(::write(score.get(), "-500", 4) > 0);  // root only; without it we are as likely as any other
        return done();
    }

    Status give_folders(const RunUser& user) {
        ::chmod(folder_.c_str(), 0711);  // to the hostfile; all else in there is ours alone
        ::chmod((folder_ + "/hostfile").c_str(), 0644);
        std::vector<std::string> shared;
        for (const char* name : {"STOKER_CHECKPOINT_DIR", "STOKER_GRAPH_DIR"})
            if (const auto& given = order_.gang.ranks[0].environment; given.contains(name))
                shared.push_back(given.at(name));
        return give_run_folder(user, log_folder_, shared);
    }

    // In the folder of the launch, which goes when nobody needs it any more.
    Status write_secret_files() {
        for (std::size_t rank = 0; rank < order_.gang.ranks.size(); ++rank) {
            auto& environment = order_.gang.ranks[rank].environment;
            const auto names = environment.find(std::string(kSecretFiles));
            if (names == environment.end()) continue;
            const std::vector<std::string_view> list = split(names->second, ',');
            for (std::size_t i = 0; i < list.size(); ++i) {
                const auto found = environment.find(std::string(list[i]));
                if (found == environment.end()) continue;
                const std::string path = fmt::format("{}/secret-{}-{}", folder_, rank, i);
                const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0400));
                const std::string& value = found->second;
                const bool whole =
                    file && ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size()) &&
                    (!order_.user || ::fchown(file.get(), order_.user->uid, order_.user->gid) == 0);
                if (!whole)
                    return Error(ErrorKind::unavailable,
                                 fmt::format("cannot write the file of {}: {}", list[i], std::strerror(errno)));
                found->second = path;
            }
            environment.erase(std::string(kSecretFiles));
        }
        return done();
    }

    // Given up for the last status when the disk is full, which the log of a rank may have done.
    void reserve_room() const {
        const UniqueFd file(::open(reserve().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        const auto bytes = static_cast<off_t>(std::max<std::size_t>(16384, 1024 * status_.ranks.size()));
        if (file) (void)::posix_fallocate(file.get(), 0, bytes);
    }
    std::string reserve() const { return folder_ + "/reserve"; }

    Status make_groups() {
        const Cgroup keepers(order_.cgroups, std::string(kKeeperGroup));
        // Again, because the release of another gang may remove the group while it is empty.
        for (int tries = 0; !(keepers.create() && keepers.join()) && tries < 5; ++tries) {
        }
        TRY_VOID(group_.create());
        for (std::size_t rank = 0; rank < order_.gang.ranks.size(); ++rank) {
            const Cgroup group(order_.cgroups, order_.cgroup_name(rank));
            TRY_VOID(group.create());
            const RankSpec& spec = order_.gang.ranks[rank];
            CgroupLimits limits{
                .memory_bytes = spec.memory_bytes, .cpu_milli = spec.cpu_milli, .processes = order_.max_processes};
            if (order_.isolate_devices) limits.devices = order_.device_files[rank];
            TRY_VOID(group.limit(limits));
        }
        return done();
    }

    void start() {
        StartResult started = start_ranks(order_, folder_, log_folder_, outer_proc_, Clock::now() + kStartLimit);
        ranks_ = std::move(started.ranks);
        if (!started.ok) {
            for (std::size_t i = 0; order_.tree == TreeKind::cgroup && i < ranks_.size(); ++i) {
                if (Cgroup(order_.cgroups, order_.cgroup_name(i)).oom_kills() == 0) continue;
                started.cause = Cause::oom;
                started.detail = "rank " + std::to_string(i) + ": its memory limit is too low to start anything";
            }
            stop(started.cause, started.detail, 0);
            return;
        }
        const std::int64_t now = wall_clock_us();
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
            status_.ranks[i].pid = ranks_[i].outer_pid;
            status_.ranks[i].started_at_us = now;
            logs_.emplace_back(log_path(log_folder_, i), order_.gang.max_log_bytes);
        }
        status_.started = true;
        status_.state = GangState::running;
        save();
        tell_launcher("started\n");
    }

    // The driver waits at the other end of stdout.
    void tell_launcher(std::string_view line) {
        if (std::exchange(told_, true)) return;
        (void)(::write(STDOUT_FILENO, line.data(), line.size()) > 0);
        const UniqueFd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        if (nothing) ::dup2(nothing.get(), STDOUT_FILENO);
    }

    // ---- the loop
    bool over() const { return no_children_ && running_ == 0; }

    void turn() {
        reap_all();
        if (over()) return;
        const auto now = Clock::now();
        if (stopping_ && now >= kill_at_) kill_tree(now);
        if (now >= look_at_logs_) check_logs(now);
        wait_for_news(std::min({look_at_logs_, stopping_ ? kill_at_ : Clock::time_point::max(), now + seconds(60)}));
    }

    void wait_for_news(Clock::time_point until) {
        std::vector<pollfd> waits = {{.fd = signals_.get(), .events = POLLIN, .revents = 0}};
        control_.add_to(waits);
        ::poll(waits.data(), waits.size(), milliseconds_until(until));
        signalfd_siginfo signal{};
        while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal)
            if (signal.ssi_signo == SIGTERM)
                stop(Cause::platform, "the keeper was told to end (SIGTERM), as when a machine shuts down",
                     kShutdownGrace);
        control_.serve([this](const ControlRequest& request) { return obey(request); });
    }

    void reap_all() {
        running_ = 0;
        bool changed = false;
        for (;;) {
            int how = 0;
            rusage usage{};
            const pid_t pid = ::wait4(-1, &how, WNOHANG, &usage);
            if (pid < 0 && errno == EINTR) continue;
            no_children_ = pid < 0;
            if (pid <= 0) break;
            for (std::size_t i = 0; i < ranks_.size(); ++i) {
                if (ranks_[i].pid != pid) continue;  // else an orphan that came to us
                ranks_[i].pid = 0;
                record_end(i, how, usage);
                changed = true;
            }
        }
        for (const StartedRank& rank : ranks_) running_ += rank.pid != 0;
        if (running_ == 0 && !no_children_) end_leftovers();
        // The last status says it all; one more before it would only cost time.
        if (changed && !over()) save();
    }

    void record_end(std::size_t index, int how, const rusage& usage) {
        KeptRank& rank = status_.ranks[index];
        if (!status_.started) return;  // it stood at the barrier: nothing of it ran
        rank.ended_at_us = wall_clock_us();
        rank.ended_monotonic_us = monotonic_clock_us();
        rank.ended_as = ++ended_;
        rank.seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        rank.peak_memory_bytes = std::int64_t{usage.ru_maxrss} * 1024;
        if (WIFEXITED(how)) rank.exit_code = WEXITSTATUS(how);
        if (WIFSIGNALED(how)) rank.signal = WTERMSIG(how);
        const bool failed = rank.exit_code != 0;
        const std::int64_t limit = order_.gang.ranks[index].memory_bytes;
        const bool out_of_memory = failed && order_.tree == TreeKind::cgroup &&
                                   Cgroup(order_.cgroups, order_.cgroup_name(index)).oom_kills() > 0;
        const std::string which = "rank " + std::to_string(index) + ": ";
        if (out_of_memory) {
            rank.cause = Cause::oom;
            rank.detail =
                limit > 0 ? "out of memory: it needed more than its limit of " + std::to_string(limit >> 20) + " MiB"
                          : "out of memory: the machine had no more";
            // Also when a peer, whose connection broke, was seen to fail first.
            if (status_.cause == Cause::user_error || status_.cause == Cause::platform)
                set_cause(Cause::oom, which + rank.detail);
            stop(Cause::oom, which + rank.detail, kPeerGrace);
        } else if (stopping_) {
            rank.cause = status_.cause;
            rank.detail = "ended by Stoker: " + status_.detail;
        } else if (rank.signal == SIGKILL) {
            // A program does not end itself like this: the kernel or a person did, so it is worth another try.
            rank.cause = Cause::platform;
            rank.detail = "ended by SIGKILL, which Stoker did not send";
            stop(Cause::platform, which + rank.detail, kPeerGrace);
        } else if (failed) {
            rank.cause = Cause::user_error;
            rank.detail = rank.exit_code ? "exit code " + std::to_string(*rank.exit_code)
                                         : "ended by " + signal_name(*rank.signal) + ", which Stoker did not send";
            stop(Cause::user_error, which + rank.detail, kPeerGrace);
        } else {
            rank.cause = Cause::ok;
        }
    }

    void set_cause(Cause cause, std::string detail) {
        status_.cause = cause;
        status_.detail = printable(detail, kMaxDetailBytes);
    }

    // ---- ending
    // The first to call decides the cause; a later one can only make the end come sooner.
    void stop(Cause cause, const std::string& detail, double grace_s) {
        const auto at = Clock::now() + seconds(grace_s);
        if (stopping_) {
            kill_at_ = std::min(kill_at_, at);
            return;
        }
        stopping_ = true;
        kill_at_ = at;
        if (status_.state == GangState::running) status_.state = GangState::stopping;
        set_cause(cause, detail);
        for (const StartedRank& rank : ranks_) {
            if (rank.pid == 0) continue;
            ::kill(-rank.pid, SIGTERM);
            ::kill(-rank.pid, SIGCONT);  // one that is stopped could not obey
        }
    }

    // All ranks have ended and something they started has not.
    void end_leftovers() {
        if (std::exchange(leftovers_told_, true)) return;
        for (const pid_t pid : descendants_of(::getpid())) {
            ::kill(pid, SIGTERM);
            ::kill(pid, SIGCONT);
        }
        if (!stopping_) {
            stopping_ = true;
            kill_at_ = Clock::now() + seconds(kLeftoverGrace);
        }
    }

    void kill_tree(Clock::time_point now) {
        if (first_kill_ == Clock::time_point{}) first_kill_ = now;
        if (order_.tree == TreeKind::cgroup) group_.kill();
        const std::vector<pid_t> left = descendants_of(::getpid());
        // Stopped first, so that none forks while the others are killed.
        for (const pid_t pid : left) ::kill(pid, SIGSTOP);
        for (const pid_t pid : left) ::kill(pid, SIGKILL);
        kill_at_ = now + kKillPause;
        if (now - first_kill_ > kStuckAfter && !std::exchange(stuck_told_, true)) tell_stuck(left);
    }

    void tell_stuck(const std::vector<pid_t>& left) {
        std::string which;
        for (std::size_t i = 0; i < std::min<std::size_t>(left.size(), 10); ++i)
            which += (i ? ", " : "") + std::to_string(left[i]) + " (" + process_state(left[i]) + ")";
        status_.detail += (status_.detail.empty() ? "" : "; ") +
                          ("killed, and does not end (D waits for a device or a file server): " + which);
        save();
    }

    void finish() {
        check_logs(Clock::now());
        status_.state = GangState::ended;
        status_.ended_at_us = wall_clock_us();
        status_.ended_monotonic_us = monotonic_clock_us();
        if (status_.cause == Cause::none) status_.cause = Cause::ok;
        // Of a gang that never ran there is nothing to lose, and its launch waits.
        const auto give_up = Clock::now() + seconds(status_.started ? order_.status_retry_s : 1);
        for (;;) {
            const Status saved = replace_file(folder_ + "/status.json", to_json(status_).dump(), true);
            if (saved) break;
            if (saved.error().kind() == ErrorKind::exhausted && ::unlink(reserve().c_str()) == 0) continue;
            std::fprintf(stderr, "%s", saved.error().text().c_str());
            // Without the folder nobody can ask any more.
            if (saved.error().kind() == ErrorKind::not_found || Clock::now() >= give_up) break;
            wait_for_news(std::min(give_up, Clock::now() + std::chrono::milliseconds(500)));
        }
        tell_launcher(status_.started ? "started\n" : "failed\n");
        if (order_.tree != TreeKind::cgroup) return;
        remove_boxes(folder_, order_);
        // A group is busy for a moment after its last process; release() removes what stays.
        for (int tries = 0; !group_.remove() && tries < 50; ++tries) ::poll(nullptr, 0, 2);
    }

    void save() {
        if (const Status saved = replace_file(folder_ + "/status.json", to_json(status_).dump(), false); !saved)
            std::fprintf(stderr, "%s", saved.error().text().c_str());
    }

    void check_logs(Clock::time_point now) {
        double pause = 60;
        for (BoundedLog& log : logs_) pause = std::min(pause, log.check());
        look_at_logs_ = now + seconds(pause);
    }

    // ---- orders
    ControlAnswer obey(const ControlRequest& request) {
        if (request.verb == ControlVerb::status) return {.ok = true, .detail = {}, .status = to_json(status_).dump(0)};
        if (request.epoch < status_.epoch)
            return {.detail = "epoch " + std::to_string(request.epoch) + " is over: epoch " +
                              std::to_string(status_.epoch) + " has given orders",
                    .status = {}};
        status_.epoch = request.epoch;
        if (request.verb == ControlVerb::signal) return deliver(request.signal);
        stop(Cause::cancelled, "cancelled", request.grace_s);
        save();
        return {.ok = true, .detail = {}, .status = {}};
    }

    // Only to those who handle it: a notice must not end a shell or a helper program that has never heard of it.
    ControlAnswer deliver(int number) {
        if (number < 1 || number >= NSIG || number == SIGKILL || number == SIGSTOP)
            return {.detail = "signal " + std::to_string(number) + " is no notice", .status = {}};
        std::size_t handled = 0;
        for (const pid_t pid : descendants_of(::getpid()))
            if (signal_use(pid, number) == SignalUse::handled && ::kill(pid, number) == 0) ++handled;
        if (handled > 0) return {.ok = true, .detail = "told " + std::to_string(handled) + " processes", .status = {}};
        return {.detail = "no process of the gang handles " + signal_name(number) + ", so nothing was sent",
                .status = {}};
    }

    std::string folder_;
    LaunchOrder order_;
    std::string log_folder_;
    Cgroup group_;
    GangStatus status_;
    std::vector<StartedRank> ranks_;  // pid 0: has ended
    std::vector<BoundedLog> logs_;
    ControlServer control_;
    UniqueFd signals_, outer_proc_;
    std::size_t running_ = 0;
    int ended_ = 0;
    bool no_children_ = false, stopping_ = false, leftovers_told_ = false, stuck_told_ = false, told_ = false;
    Clock::time_point kill_at_{}, first_kill_{}, look_at_logs_{};
};

int complain(const Error& error) {
    std::fprintf(stderr, "%s", error.text().c_str());
    return exit_code(error.kind());
}

}  // namespace

int run_keeper(const std::string& given) {
    std::error_code code;
    const std::string folder = std::filesystem::absolute(given, code).lexically_normal().string();
    auto order = read_launch_order(folder);
    if (!order) return complain(order.error());
    if (order->tree == TreeKind::pid_namespace)
        if (const Status entered = enter_new_pid_namespace(); !entered) return complain(entered.error());
    const pid_t keeper = ::fork();
    if (keeper < 0) return complain(Error(ErrorKind::exhausted, std::string("cannot fork: ") + std::strerror(errno)));
    // At once, past destructors and the leak check of a sanitizer build, which hangs after unshare().
    if (keeper > 0) ::_exit(0);

    (void)(::chdir("/") == 0);  // so that no file system stays busy because of us
    // Held to the end of the process; the kernel lets go of it however that comes.
    const UniqueFd lock(::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) ::_exit(3);  // another keeper, or a driver that buries us
    struct stat held {};
    if (::fstat(lock.get(), &held) != 0 || held.st_nlink == 0) ::_exit(3);  // the folder was removed meanwhile
    if (auto status = read_gang_status(folder); status && status->state == GangState::ended) ::_exit(0);
    const int result = Keeper(folder, std::move(*order)).run();
    // Past the destructors of a command that has a terminal to clean up and a catalogue to free.
    ::_exit(result);
}

}  // namespace stoker
