#include "deploy/slurm/rank_host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>

#include "base/text.h"
#include "base/thread_pools.h"
#include "deploy/local/gang_files.h"
#include "deploy/local/log_file.h"
#include "deploy/local/rank_environment.h"
#include "deploy/local/rank_start.h"
#include "deploy/slurm/rank_look.h"
#include "deploy/slurm/wire.h"

extern char** environ;

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kConnectLimit = 30;
// For what a rank left behind when it ended.
constexpr double kLeftoverGrace = 2;
// For what it wrote last: the end is told after that, and waits no longer for it.
constexpr double kLastLook = 1;
constexpr auto kLookEvery = std::chrono::seconds(1);
constexpr auto kKillPause = std::chrono::milliseconds(50);

int number_in(const std::map<std::string, std::string>& environment, const char* key, int otherwise) {
    const auto found = environment.find(key);
    if (found == environment.end()) return otherwise;
    int value = otherwise;
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
    return value;
}

// Slurm shows a rank the GPUs of its own, or those of all ranks on the node.
std::string own_gpus(const std::string& visible, int gpus, int local) {
    if (gpus == 0) return {};
    const auto all = split(visible, ',');
    const auto from = static_cast<std::size_t>(local * gpus), count = static_cast<std::size_t>(gpus);
    if (all.size() < from + count) return visible;
    return join(
        {all.begin() + static_cast<std::ptrdiff_t>(from), all.begin() + static_cast<std::ptrdiff_t>(from + count)},
        ",");
}

class RankHost {
public:
    RankHost(Wire wire, std::map<std::string, std::string> step) : wire_(std::move(wire)), step_(std::move(step)) {
        rank_ = number_in(step_, "SLURM_PROCID", 0);
        local_ = number_in(step_, "SLURM_LOCALID", 0);
        node_rank_ = number_in(step_, "SLURM_NODEID", 0);
    }

    int run() {
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        ::prctl(PR_SET_NAME, "stoker-rank");
        watch_signals();
        wire_.say(Json::object()
                      .set("say", "hello")
                      .set("key", step_[kKeyVariable])
                      .set("rank", rank_)
                      .set("node_rank", node_rank_)
                      .set("local", local_)
                      .set("node", step_["SLURMD_NODENAME"]));
        while (!over_) turn();
        if (!started_) return 0;
        look_for_the_last_time();
        kept_.node = step_["SLURMD_NODENAME"];
        GangStatus status;
        status.boot_id = boot_id();
        status.ranks.push_back(kept_);
        Json message = Json::object().set("say", "ended").set("status", to_json(status).dump(0));
        if (outside_) message.set("outside", true);
        wire_.say(message);
        wire_.flush(10);
        return 0;
    }

private:
    void watch_signals() {
        sigset_t watched;
        sigemptyset(&watched);
        for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&watched, number);
        ::sigprocmask(SIG_BLOCK, &watched, nullptr);
        signals_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
        ::signal(SIGPIPE, SIG_IGN);
    }

    void turn() {
        if (child_ != 0 || left_) reap_all();
        if (over_) return;
        const auto now = Clock::now();
        if (stopping_ && now >= kill_at_) kill_tree(now);
        if (log_ && now >= look_at_log_) look_at_log_ = now + duration_of(log_->check());
        auto until = now + std::chrono::seconds(60);
        if (look_ && started_) {
            tell_what_was_seen();
            if (now >= look_at_) {
                look_->begin();
                look_at_ = now + kLookEvery;
            }
            until = std::min(until, look_at_);
        }
        if (log_) until = std::min(until, look_at_log_);
        if (stopping_) until = std::min(until, kill_at_);
        std::array<pollfd, 2> waits{{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                     {.fd = wire_.fd(), .events = POLLIN, .revents = 0}}};
        if (wire_.wants_to_write()) waits[1].events |= POLLOUT;
        ::poll(waits.data(), wire_.open() ? 2 : 1, milliseconds_until(until));
        take_signals();
        if (!wire_.open()) return;
        const bool there = wire_.turn();
        while (const auto message = wire_.next()) hear(message->root());
        // The host has gone before anything ran: nothing will. Later the program goes on, and Slurm ends it with its
        // job.
        if (!there && !started_) over_ = true;
    }

    // Not while older messages wait: orders and ends go first.
    void tell_what_was_seen() {
        if (!wire_.open() || wire_.wants_to_write()) return;
        if (std::string seen = look_->take(); !seen.empty())
            wire_.say(Json::object().set("say", "measured").set("lines", std::move(seen)));
    }
    void look_for_the_last_time() {
        if (!look_) return;
        const auto by = Clock::now() + duration_of(kLastLook);
        const auto wait = [&] {
            while (look_->under_way() && Clock::now() < by) ::poll(nullptr, 0, 2);
        };
        wait();
        look_->begin();
        wait();
        tell_what_was_seen();
    }

    void take_signals() {
        signalfd_siginfo signal{};
        while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
            // What Slurm sends to a step, it sends to each of its processes: all but TERM is not for us.
            if (signal.ssi_signo != SIGTERM) continue;
            // Not from the host, which says it over the wire: the job is ended from outside, and Slurm kills later.
            outside_ = true;
            if (started_)
                stop(86400);
            else
                over_ = true;
        }
    }

    void hear(const Node& message) {
        const std::string word = text_of(message, "say");
        if (word == "order") return take_order(message);
        if (word == "go") return start();
        if (word == "stop") {
            const Node* grace = message.find("grace_s");
            if (!started_)
                over_ = true;
            else
                stop(grace == nullptr ? 0 : grace->number);
        }
        if (word == "signal") {
            wire_.say(Json::object()
                          .set("say", "told")
                          .set("seq", number_of(message, "seq"))
                          .set("count", deliver(static_cast<int>(number_of(message, "number")))));
        }
    }

    void take_order(const Node& message) {
        auto order = parse_launch_order(text_of(message, "order"), "order");
        if (!order) return refuse(Cause::platform, order.error().message());
        order_ = std::move(*order);
        address_ = text_of(message, "address");
        if (address_.empty()) address_ = step_["SLURM_LAUNCH_NODE_IPADDR"];
        port_ = number_of(message, "port");
        local_size_ = number_of(message, "local_size");
        size_ = number_of(message, "size");
        if (order_->gang.folder.empty()) order_->gang.folder = order_->gang.log_folder;
        environment_ = environment_of_rank();
        std::error_code code;
        std::filesystem::create_directories(order_->gang.log_folder, code);
        if (code)
            return refuse(Cause::platform, "cannot make the folder " + order_->gang.log_folder + " on " +
                                               step_["SLURMD_NODENAME"] + ": " + code.message() +
                                               "; the nodes and the server have to share it");
        if (!std::filesystem::is_directory(order_->gang.folder, code))
            return refuse(Cause::user_error,
                          "there is no folder " + printable(order_->gang.folder) + " on " + step_["SLURMD_NODENAME"]);
        const FoundProgram program = find_program(spec().arguments[0], environment_.at("PATH"), order_->gang.folder);
        if (program.path.empty()) return refuse(Cause::user_error, program.problem);
        path_ = program.path;
        wire_.say(Json::object().set("say", "ready"));
    }

    void refuse(Cause cause, const std::string& detail) {
        wire_.say(Json::object()
                      .set("say", "refused")
                      .set("cause", to_string(cause))
                      .set("detail", printable(detail, kMaxDetailBytes / 2)));
    }

    const RankSpec& spec() const { return order_->gang.ranks[0]; }

    std::map<std::string, std::string> environment_of_rank() {
        std::map<std::string, std::string> result = step_;
        if (!result.contains("PATH")) result["PATH"] = "/usr/local/bin:/usr/bin:/bin";
        result.erase(kKeyVariable);
        result.erase(kHostVariable);
        const auto text = [](auto number) { return std::to_string(number); };
        for (const auto& [key, value] : std::initializer_list<std::pair<const char*, std::string>>{
                 {"PYTHONUNBUFFERED", "1"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}})
            result[key] = value;
        for (const auto& [key, value] :
             thread_pool_environment(planned_threads(spec().cpu_milli, spec().gpus), spec().gpus, spec().environment))
            result[key] = value;
        result["CUDA_VISIBLE_DEVICES"] = own_gpus(step_["CUDA_VISIBLE_DEVICES"], spec().gpus, local_);
        if (spec().gpus == 0)
            for (const auto& [key, value] : kKeepMemory) result[key] = value;
        for (const auto& [key, value] : spec().environment) result[key] = value;
        for (const auto& [key, value] : std::initializer_list<std::pair<const char*, std::string>>{
                 {"RANK", text(rank_)},
                 {"WORLD_SIZE", text(size_)},
                 {"LOCAL_RANK", text(local_)},
                 {"LOCAL_WORLD_SIZE", text(local_size_)},
                 {"NODE_RANK", text(node_rank_)},
                 {"GROUP_RANK", text(node_rank_)},
                 {"OMPI_COMM_WORLD_RANK", text(rank_)},
                 {"OMPI_COMM_WORLD_SIZE", text(size_)},
                 {"OMPI_COMM_WORLD_LOCAL_RANK", text(local_)},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", text(local_size_)},
                 {"MASTER_ADDR", address_},
                 {"MASTER_PORT", text(port_)},
                 {"STOKER_OP", order_->operation.text()},
                 {"STOKER_RUN", order_->gang.attempt.run.text()},
                 {"STOKER_ATTEMPT", text(order_->gang.attempt.number)},
                 {"STOKER_EPOCH", text(order_->gang.epoch)}})
            result[key] = value;
        return result;
    }

    void start() {
        if (!order_ || path_.empty() || started_) return;
        auto pipe = make_pipe();
        if (!pipe) return refuse(Cause::platform, pipe.error().message());
        std::vector<std::string> entries;
        for (const auto& [key, value] : environment_) entries.push_back(key + "=" + value);
        look_.emplace(order_->gang, LiveRank{.rank = rank_, .node = step_["SLURMD_NODENAME"]}, parent_, local_ == 0);
        const pid_t parent = ::getpid();
        const pid_t child = ::fork();
        if (child < 0) return refuse(Cause::platform, std::string("cannot fork: ") + std::strerror(errno));
        if (child == 0) enter(pipe->write.get(), parent, entries);
        pipe->write.reset();
        std::array<char, 1000> why{};
        ssize_t got = 0;
        while ((got = ::read(pipe->read.get(), why.data(), why.size() - 1)) < 0 && errno == EINTR) {
        }
        kept_.pid = child;
        kept_.started_at_us = wall_clock_us();
        if (got > 0) {
            reap(child, Clock::now() + std::chrono::seconds(5));
            return refuse(Cause::user_error, why.data());
        }
        child_ = child;
        started_ = true;
        log_.emplace(log_path(order_->gang.log_folder, static_cast<std::size_t>(rank_)), order_->gang.max_log_bytes);
        look_->started(child);
        wire_.say(Json::object().set("say", "started").set("pid", kept_.pid).set("at_us", kept_.started_at_us));
        // In the same group as its parent's when the step was told to end meanwhile.
        if (outside_) stop(86400);
    }

    [[noreturn]] void enter(int report, pid_t parent, const std::vector<std::string>& entries) {
        const auto fail = [&](const std::string& why) {
            (void)(::write(report, why.data(), std::min<std::size_t>(why.size(), 900)) > 0);
            ::_exit(127);
        };
        if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(127);
        ::setsid();
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        const std::string log = log_path(order_->gang.log_folder, static_cast<std::size_t>(rank_));
        const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (out < 0) fail("cannot open the log " + log + ": " + std::strerror(errno));
        const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (nothing >= 0) ::dup2(nothing, 0);
        ::dup2(out, 1);
        ::dup2(out, 2);
        if (::chdir(order_->gang.folder.c_str()) != 0)
            fail("cannot work in the folder " + printable(order_->gang.folder) + ": " + std::strerror(errno));
        for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
        sigset_t empty;
        sigemptyset(&empty);
        ::sigprocmask(SIG_SETMASK, &empty, nullptr);
        std::vector<char*> arguments, environment;
        for (const std::string& each : spec().arguments) arguments.push_back(const_cast<char*>(each.c_str()));
        for (const std::string& each : entries) environment.push_back(const_cast<char*>(each.c_str()));
        arguments.push_back(nullptr);
        environment.push_back(nullptr);
        ::execve(path_.c_str(), arguments.data(), environment.data());
        const int code = errno;
        fail("cannot run " + printable(path_) + ": " +
             (code == ENOEXEC  ? "it is no program of this machine (a script begins with a line like #!/bin/sh)"
              : code == ENOENT ? "its interpreter, named in the first line or inside, does not exist"
                               : std::strerror(code)));
        ::_exit(127);
    }

    void reap_all() {
        for (;;) {
            int how = 0;
            rusage usage{};
            const pid_t pid = ::wait4(-1, &how, WNOHANG, &usage);
            if (pid < 0 && errno == EINTR) continue;
            if (pid <= 0) {
                // No children of any kind are left.
                if (pid < 0 && child_ == 0 && started_) over_ = true;
                break;
            }
            if (pid != child_) continue;
            child_ = 0;
            left_ = true;
            kept_.ended_at_us = wall_clock_us();
            kept_.ended_monotonic_us = monotonic_clock_us();
            kept_.ended_as = 1;
            kept_.seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                            static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
            kept_.peak_memory_bytes = std::int64_t{usage.ru_maxrss} * 1024;
            if (WIFEXITED(how)) kept_.exit_code = WEXITSTATUS(how);
            if (WIFSIGNALED(how)) kept_.signal = WTERMSIG(how);
        }
        if (left_ && !over_ && !leftovers_told_) {
            leftovers_told_ = true;
            for (const pid_t pid : descendants_of(::getpid())) ::kill(pid, SIGTERM);
            const auto at = Clock::now() + duration_of(kLeftoverGrace);
            kill_at_ = stopping_ ? std::min(kill_at_, at) : at;
            stopping_ = true;
        }
    }

    void stop(double grace_s) {
        const auto at = Clock::now() + duration_of(grace_s);
        kill_at_ = stopping_ ? std::min(kill_at_, at) : at;
        if (std::exchange(stopping_, true) || child_ == 0) return;
        ::kill(-child_, SIGTERM);
        ::kill(-child_, SIGCONT);
    }

    void kill_tree(Clock::time_point now) {
        const std::vector<pid_t> left = descendants_of(::getpid());
        // Stopped first, so that none forks while the others are killed.
        for (const pid_t pid : left) ::kill(pid, SIGSTOP);
        for (const pid_t pid : left) ::kill(pid, SIGKILL);
        kill_at_ = now + kKillPause;
    }

    // To each process that handles it; others would die of it.
    int deliver(int number) {
        int count = 0;
        if (number < 1 || number >= NSIG || number == SIGKILL || number == SIGSTOP) return 0;
        for (const pid_t pid : descendants_of(::getpid()))
            if (signal_use(pid, number) == SignalUse::handled && ::kill(pid, number) == 0) ++count;
        return count;
    }

    Wire wire_;
    std::map<std::string, std::string> step_, environment_;
    std::optional<LaunchOrder> order_;  // of this rank alone
    std::string address_, path_;
    std::int64_t port_ = 0, local_size_ = 1, size_ = 1;
    int rank_ = 0, local_ = 0, node_rank_ = 0;
    KeptRank kept_;
    std::optional<BoundedLog> log_;
    std::optional<RankLook> look_;
    const pid_t parent_ = ::getppid();
    UniqueFd signals_;
    pid_t child_ = 0;
    bool started_ = false, over_ = false, left_ = false, leftovers_told_ = false, stopping_ = false, outside_ = false;
    Clock::time_point kill_at_{}, look_at_log_{}, look_at_{};
};

}  // namespace

int run_rank_host() {
    auto step = own_environment();
    // The host runs where srun was run: Slurm knows an address of that node which its others reach.
    std::string host = step[kHostVariable];
    if (const std::string& known = step["SLURM_LAUNCH_NODE_IPADDR"]; !known.empty())
        host = known + host.substr(std::min(host.size(), host.rfind(':')));
    auto wire = Wire::connect(host, kConnectLimit);
    if (!wire) {
        std::fprintf(stderr, "rank %s on %s: %s\n", step["SLURM_PROCID"].c_str(), step["SLURMD_NODENAME"].c_str(),
                     wire.error().message().c_str());
        return 3;
    }
    const int code = RankHost(std::move(*wire), std::move(step)).run();
    ::_exit(code);
}

}  // namespace stoker::slurm
