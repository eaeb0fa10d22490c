#include "deploy/slurm/gang_host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/local/measure_file.h"
#include "deploy/slurm/launch_folder.h"
#include "deploy/slurm/submit.h"
#include "deploy/slurm/wire.h"
#include "io/process.h"
#include "io/random_bytes.h"

extern char** environ;

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStartLimit = 300;  // until all ranks are ready: nodes that boot, and file systems that mount
constexpr double kPeerGrace = 1.5;   // a gang that lost a rank is gone within 2 s, the KILL included
constexpr double kStepLimit = 15;    // for srun to leave after the last rank has told its end
constexpr int kLookMs = 100;         // for orders
constexpr std::int64_t kMeasureBytes = 256 << 10;  // of a rank, some minutes: whoever asks does so every second
constexpr int kClaimed = 75;                       // EX_TEMPFAIL: the operation is somebody else's

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

class GangHost {
public:
    GangHost(std::string folder, LaunchOrder order, std::vector<std::string> mounts)
        : folder_(std::move(folder)), mounts_(std::move(mounts)), order_(std::move(order)) {
        status_.epoch = order_.gang.epoch;
        status_.boot_id = boot_id();
        status_.ranks.resize(order_.gang.ranks.size());
        ranks_.resize(order_.gang.ranks.size());
        ::unsetenv(kNoticeVariable);
    }

    int run() {
        ::prctl(PR_SET_NAME, "stoker-gang");
        watch_signals();
        if (const Status ready = begin(); !ready) stop(Cause::platform, ready.error().message(), 0);
        start_by_ = Clock::now() + duration_of(kStartLimit);
        while (!over()) turn();
        return finish();
    }

private:
    struct Rank {
        std::unique_ptr<Wire> wire;
        std::string node;
        int node_rank = 0;
        bool ready = false, started = false, ended = false;
    };

    void watch_signals() {
        sigset_t watched;
        sigemptyset(&watched);
        for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&watched, number);
        ::sigprocmask(SIG_BLOCK, &watched, nullptr);
        signals_ = UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
        ::signal(SIGPIPE, SIG_IGN);
    }

    Status begin() {
        save();
        int port = 0;
        TRY(listener_, listen_anywhere(port, static_cast<int>(ranks_.size()) + 16));
        TRY(held_port_, listen_anywhere(master_port_, 0));
        key_ = random_hex(16);
        return start_step(port);
    }

    // The hosts of the ranks, on all nodes of the job.
    Status start_step(int port) {
        std::error_code code;
        std::string program = std::filesystem::read_symlink("/proc/self/exe", code).string();
        if (code) program = variable("STOKER_PROGRAM");
        // What is mounted into a container has to be there.
        if (!order_.gang.image.empty()) std::filesystem::create_directories(order_.gang.log_folder, code);
        std::vector<std::string> words =
            step_words(order_.gang, folder_, program, variable("SLURM_CPUS_PER_TASK"), mounts_);
        char host[256] = "";
        ::gethostname(host, sizeof host - 1);
        std::vector<std::string> environment;
        for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
            // "a100:1": of GPUs of a type srun (22.05) then shows tasks none; so each sees its node's, and takes its
            // share.
            if (!std::string_view(*entry).starts_with("SLURM_GPUS_PER_TASK=") || std::strchr(*entry, ':') == nullptr)
                environment.emplace_back(*entry);
        environment.push_back(fmt::format("{}={}:{}", kHostVariable, host, port));
        environment.push_back(fmt::format("{}={}", kKeyVariable, key_));
        std::vector<char*> arguments, entries;
        for (std::string& each : words) arguments.push_back(each.data());
        for (std::string& each : environment) entries.push_back(each.data());
        arguments.push_back(nullptr);
        entries.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawnattr_init(&attributes);
        ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        sigset_t none;
        sigemptyset(&none);
        ::posix_spawnattr_setsigmask(&attributes, &none);
        // In a group of its own: what Slurm or a person sends to the job's script is for us.
        ::posix_spawnattr_setpgroup(&attributes, 0);
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
        const int failed =
            ::posix_spawnp(&step_, arguments[0], &actions, &attributes, arguments.data(), entries.data());
        ::posix_spawn_file_actions_destroy(&actions);
        ::posix_spawnattr_destroy(&attributes);
        if (failed == 0) return done();
        step_ = 0;
        return Error(ErrorKind::unavailable, std::string("cannot run srun: ") + std::strerror(failed));
    }

    bool over() const { return step_ == 0; }

    void turn() {
        const auto now = Clock::now();
        if (!go_ && !stopping_ && now >= start_by_)
            stop(Cause::platform, fmt::format("not all ranks were ready within {:.0f} s: {}", kStartLimit, missing()),
                 0);
        if (give_up_at_ != Clock::time_point{} && now >= give_up_at_) {
            ::kill(-step_, SIGTERM);
            give_up_at_ = now + duration_of(kStepLimit);
            if (std::exchange(told_step_, true)) ::kill(-step_, SIGKILL);
        }
        if (notice_at_ != Clock::time_point{} && now >= notice_at_) give_notice();
        hear_all(kLookMs);
        obey_orders();
        int how = 0;
        if (step_ > 0 && ::waitpid(step_, &how, WNOHANG) == step_) {
            step_ = 0;
            // What the ranks said last may still be on the way.
            const auto until = Clock::now() + std::chrono::seconds(2);
            while (!all_told() && Clock::now() < until) hear_all(20);
            step_exit_ = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
        }
    }

    bool all_told() const {
        return std::all_of(ranks_.begin(), ranks_.end(),
                           [](const Rank& rank) { return !rank.started || rank.ended || !rank.wire; });
    }

    std::string missing() const {
        std::string list;
        for (std::size_t i = 0; i < ranks_.size() && list.size() < 200; ++i)
            if (!ranks_[i].ready) list += fmt::format("{}rank {}", list.empty() ? "" : ", ", i);
        return list;
    }

    void hear_all(int wait_ms) {
        std::vector<pollfd> waits = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                     {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
        std::vector<Wire*> wires;
        for (const auto& wire : strangers_) wires.push_back(wire.get());
        for (const Rank& rank : ranks_)
            if (rank.wire) wires.push_back(rank.wire.get());
        for (const Wire* wire : wires)
            waits.push_back({.fd = wire->fd(),
                             .events = static_cast<short>(POLLIN | (wire->wants_to_write() ? POLLOUT : 0)),
                             .revents = 0});
        ::poll(waits.data(), waits.size(), wait_ms);
        take_signals();
        while (listener_) {
            UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!socket) break;
            if (strangers_.size() < 2 * ranks_.size() + 64)
                strangers_.push_back(std::make_unique<Wire>(std::move(socket)));
        }
        for (auto& wire : strangers_) {
            const bool there = wire->turn();
            if (const auto hello = wire->next()) greet(wire, hello->root());
            if (wire && !there) wire.reset();
        }
        std::erase(strangers_, nullptr);
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
            if (!ranks_[i].wire) continue;
            const bool there = ranks_[i].wire->turn();
            while (const auto message = ranks_[i].wire->next()) hear(i, message->root());
            if (!there) lose(i);
        }
    }

    void take_signals() {
        signalfd_siginfo signal{};
        while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
            if (signal.ssi_signo == SIGUSR1) give_notice();
            if (signal.ssi_signo == SIGTERM) {
                if (!stopping_) mark_outside();
                stop(Cause::platform, "Slurm ended its job", 86400);
            }
        }
    }

    // Before a time limit or a preemption (--signal=B:USR1): checkpoint and go on.
    void give_notice() {
        notice_at_ = {};
        for (const Rank& rank : ranks_)
            if (rank.wire && rank.started)
                rank.wire->say(Json::object().set("say", "signal").set("number", SIGUSR1).set("seq", 0));
        (void)replace_file(folder_ + "/notice", std::to_string(wall_clock_us()) + "\n", false).ok();
    }

    void mark_outside() {  // whoever sees the status saved anew asks Slurm while it still knows
        if (!std::exchange(outside_, true) && replace_file(folder_ + "/outside", "\n", false).ok()) save();
    }

    // A connection that knows the key becomes the rank that it says.
    void greet(std::unique_ptr<Wire>& wire, const Node& hello) {
        const auto rank = static_cast<std::size_t>(number_of(hello, "rank"));
        if (text_of(hello, "say") != "hello" || text_of(hello, "key") != key_ || rank >= ranks_.size() ||
            ranks_[rank].wire) {
            wire.reset();
            return;
        }
        ranks_[rank].wire = std::move(wire);
        ranks_[rank].node = text_of(hello, "node");
        ranks_[rank].node_rank = static_cast<int>(number_of(hello, "node_rank"));
        status_.ranks[rank].node = ranks_[rank].node;
        if (stopping_) return tell_to_stop(rank);
        if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& each) { return each.wire != nullptr; }))
            send_orders();
    }

    void send_orders() {
        std::set<int> nodes;
        for (const Rank& rank : ranks_) nodes.insert(rank.node_rank);
        const std::string address =
            nodes.size() == 1 ? "127.0.0.1" : "";  // else this node's, which Slurm has told them
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
            LaunchOrder one = order_;
            one.gang.ranks = {order_.gang.ranks[i]};
            one.device_files = {{}};
            const auto local_size = std::count_if(
                ranks_.begin(), ranks_.end(), [&](const Rank& rank) { return rank.node_rank == ranks_[i].node_rank; });
            ranks_[i].wire->say(Json::object()
                                    .set("say", "order")
                                    .set("order", to_json(one).dump(0))
                                    .set("address", address)
                                    .set("port", master_port_)
                                    .set("size", ranks_.size())
                                    .set("local_size", static_cast<std::int64_t>(local_size)));
        }
    }

    void hear(std::size_t index, const Node& message) {
        Rank& rank = ranks_[index];
        const std::string word = text_of(message, "say");
        if (word == "ready") {
            rank.ready = true;
            if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& each) { return each.ready; }) && !stopping_)
                open_barrier();
        } else if (word == "refused") {
            stop(parse_cause(text_of(message, "cause")).value_or(Cause::platform),
                 fmt::format("rank {}: {}", index, text_of(message, "detail")), 0);
        } else if (word == "started") {
            rank.started = true;
            status_.ranks[index].pid = number_of(message, "pid");
            status_.ranks[index].started_at_us = number_of(message, "at_us");
            // One status for all of them, not one for each.
            if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& each) { return each.started; })) {
                status_.started = true;  // and from here on the time of the run counts
                if (notice_after_s_ > 0) notice_at_ = Clock::now() + duration_of(notice_after_s_);
                if (!stopping_) status_.state = GangState::running;
                save();
            }
        } else if (word == "measured") {
            measures_.add(text_of(message, "lines"));
        } else if (word == "told") {
            told_ += number_of(message, "count");
            if (--told_left_ == 0) answer_signal();
        } else if (word == "ended") {
            const Node* outside = message.find("outside");
            if (outside != nullptr && outside->boolean && !stopping_) mark_outside();
            if (auto kept = parse_gang_status(text_of(message, "status"), "status"); kept && !kept->ranks.empty())
                record_end(index, std::move(kept->ranks[0]));
        }
    }

    void open_barrier() {
        go_ = true;
        held_port_.reset();
        for (const Rank& rank : ranks_) rank.wire->say(Json::object().set("say", "go"));
    }

    void record_end(std::size_t index, KeptRank kept) {
        if (std::exchange(ranks_[index].ended, true)) return;
        kept.ended_as = ++ended_;
        kept.node = ranks_[index].node;
        const std::string which = "rank " + std::to_string(index) + ": ";
        if (stopping_) {
            kept.cause = status_.cause;
            kept.detail = "ended by Stoker: " + status_.detail;
        } else if (outside_) {
            kept.cause = Cause::platform;
            kept.detail = "Slurm ended its job";
            stop(Cause::platform, kept.detail, 86400);
        } else if (kept.signal == SIGKILL) {
            kept.cause = Cause::platform;
            kept.detail = "ended by SIGKILL, which Stoker did not send";
            mark_outside();  // the memory limit of its step, or a person: Slurm may know
            stop(Cause::platform, which + kept.detail, kPeerGrace);
        } else if (kept.exit_code != 0) {
            kept.cause = Cause::user_error;
            kept.detail = kept.exit_code ? "exit code " + std::to_string(*kept.exit_code)
                                         : "ended by " + signal_name(*kept.signal) + ", which Stoker did not send";
            first_exit_ = kept.exit_code ? *kept.exit_code : 128 + *kept.signal;
            // Slurm's TERM reaches the program as soon as us: the state of the job says whether it was that.
            if (first_exit_ == 128 + SIGTERM) mark_outside();
            stop(Cause::user_error, which + kept.detail, kPeerGrace);
        } else {
            kept.cause = Cause::ok;
        }
        // The end came before its start was told.
        kept.pid = kept.pid == 0 ? status_.ranks[index].pid : kept.pid;
        status_.ranks[index] = std::move(kept);
        if (static_cast<std::size_t>(ended_) == ranks_.size())
            give_up_at_ = Clock::now() + duration_of(kStepLimit);
        else if (status_.started)  // all starts are told before the first end
            save();
    }

    // Its connection is gone: its host was killed or its node is lost, and what it ran with it. The others wait in
    // vain.
    void lose(std::size_t index) {
        ranks_[index].wire.reset();
        if (ranks_[index].ended || stopping_) return;
        const bool ran = ranks_[index].started;
        if (ran) mark_outside();  // Slurm may know why
        const char* how = ran ? "left no word of its end" : "ended before its program was run";
        stop(Cause::platform, fmt::format("rank {} on {} {}", index, ranks_[index].node, how), ran ? kPeerGrace : 0);
    }

    // The first to call decides the cause; a later one can only make the end come sooner.
    void stop(Cause cause, const std::string& detail, double grace_s) {
        const auto at = Clock::now() + duration_of(grace_s);
        if (!stopping_) {
            stopping_ = true;
            if (status_.state == GangState::running) status_.state = GangState::stopping;
            status_.cause = cause;
            status_.detail = printable(detail, kMaxDetailBytes);
            stop_at_ = at;
        }
        stop_at_ = std::min(stop_at_, at);
        for (std::size_t i = 0; i < ranks_.size(); ++i) tell_to_stop(i);
        // Of a gang that never began no rank tells an end.
        if (!go_ && step_ > 0 && give_up_at_ == Clock::time_point{})
            give_up_at_ = Clock::now() + duration_of(ranks_.empty() ? 0 : 2);
    }

    void tell_to_stop(std::size_t index) const {
        if (!ranks_[index].wire) return;
        const double left = std::chrono::duration<double>(stop_at_ - Clock::now()).count();
        ranks_[index].wire->say(Json::object().set("say", "stop").set("grace_s", std::max(0.0, left)));
    }

    // ---- orders
    void obey_orders() {
        const auto order = read_order(folder_);
        if (!order || order->number <= obeyed_) return;
        obeyed_ = order->number;
        const ControlRequest& request = order->request;
        if (request.epoch < status_.epoch)
            return answer(false,
                          fmt::format("epoch {} is over: epoch {} has given orders", request.epoch, status_.epoch));
        status_.epoch = request.epoch;
        if (request.verb == ControlVerb::stop) {
            stop(Cause::cancelled, "cancelled", request.grace_s);
            save();
            return answer(true, "");
        }
        told_ = told_left_ = 0;
        told_number_ = request.signal;
        if (request.signal < 1 || request.signal >= NSIG || request.signal == SIGKILL || request.signal == SIGSTOP)
            return answer(false, fmt::format("signal {} is no notice", request.signal));
        for (const Rank& rank : ranks_) {
            if (!rank.wire || !rank.started || rank.ended) continue;
            ++told_left_;
            rank.wire->say(Json::object().set("say", "signal").set("number", request.signal).set("seq", order->number));
        }
        if (told_left_ == 0) answer(false, "no rank runs");
    }
    void answer_signal() {
        if (told_ > 0) return answer(true, fmt::format("told {} processes", told_));
        answer(false, "no process of the gang handles " + signal_name(told_number_) + ", so nothing was sent");
    }
    void answer(bool ok, const std::string& detail) const {
        (void)write_answer(folder_, {.number = obeyed_, .ok = ok, .detail = detail}).ok();
    }

    void save() const {
        if (const Status saved = replace_file(folder_ + "/status.json", to_json(status_).dump(), false); !saved)
            std::fprintf(stderr, "%s", saved.error().text().c_str());
    }

    int finish() {
        // A rank without a word of its end: its host was killed, or its node is gone.
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
            KeptRank& kept = status_.ranks[i];
            if (!ranks_[i].started || ranks_[i].ended) continue;
            mark_outside();
            kept.ended_as = ++ended_;
            kept.ended_at_us = wall_clock_us();
            kept.cause = Cause::platform;
            kept.detail = "it left no word of its end on " + ranks_[i].node;
            if (status_.cause == Cause::none) {
                status_.cause = Cause::platform;
                status_.detail = fmt::format("rank {}: {}", i, kept.detail);
            }
        }
        if (status_.cause == Cause::none && !status_.started) {
            status_.cause = Cause::platform;
            const std::string said = end_of_file(folder_ + "/batch.out", 1500);
            status_.detail = printable(
                fmt::format("srun ended with {} before the ranks ran{}{}", step_exit_, said.empty() ? "" : ": ", said),
                kMaxDetailBytes);
        }
        if (status_.cause == Cause::none) status_.cause = Cause::ok;
        status_.state = GangState::ended;
        status_.ended_at_us = wall_clock_us();
        status_.ended_monotonic_us = monotonic_clock_us();
        const auto give_up = Clock::now() + duration_of(status_.started ? order_.status_retry_s : 10);
        for (;;) {
            const Status saved = replace_file(folder_ + "/status.json", to_json(status_).dump(), true);
            if (saved || saved.error().kind() == ErrorKind::not_found || Clock::now() >= give_up) break;
            ::poll(nullptr, 0, 500);
        }
        return status_.cause == Cause::ok ? 0 : first_exit_;
    }

    std::string folder_;
    std::vector<std::string> mounts_;
    LaunchOrder order_;
    MeasureFile measures_{order_.gang.log_folder, kMeasureBytes* static_cast<std::int64_t>(order_.gang.ranks.size())};
    GangStatus status_;
    std::vector<Rank> ranks_;
    std::vector<std::unique_ptr<Wire>> strangers_;  // have not said hello
    UniqueFd signals_, listener_, held_port_;
    std::string key_;
    pid_t step_ = 0;
    const double notice_after_s_ = std::strtod(variable(kNoticeVariable).c_str(), nullptr);
    int master_port_ = 0, ended_ = 0, first_exit_ = 1, step_exit_ = 0, told_number_ = 0;
    std::int64_t obeyed_ = 0, told_ = 0, told_left_ = 0;
    bool go_ = false, stopping_ = false, outside_ = false, told_step_ = false;
    Clock::time_point start_by_{}, stop_at_{}, give_up_at_{}, notice_at_{};
};

}  // namespace

int run_gang_host(const std::string& folder, std::vector<std::string> mounts) {
    const auto complain = [](const Error& error) {
        std::fprintf(stderr, "%s", error.text().c_str());
        return exit_code(error.kind());
    };
    const auto order = read_launch_order(folder);
    if (!order) return complain(order.error());
    const auto claimed = make_claim(
        folder,
        fmt::format("job {}{} on {}", variable("SLURM_JOB_ID"),
                    variable("SLURM_RESTART_COUNT").empty() ? "" : ", restart " + variable("SLURM_RESTART_COUNT"),
                    variable("SLURMD_NODENAME")));
    if (!claimed) return complain(claimed.error());
    if (!*claimed) {
        std::fprintf(stderr, "%s was begun before, by %s; nothing is started\n", order->operation.text().c_str(),
                     claim_of(folder).c_str());
        return kClaimed;
    }
    const int code = GangHost(folder, *order, std::move(mounts)).run();
    ::_exit(code);
}

}  // namespace stoker::slurm
