#include "server/server_log.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "io/worker.h"
#include "server/log_events.h"

namespace stoker {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(1);

// Of "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", the second part.
std::string trace_id_of(const std::string& traceparent) {
    return traceparent.size() == 55 ? traceparent.substr(3, 32) : std::string();
}

std::string cause_text(Cause cause) {
    return cause == Cause::none ? std::string() : std::string(to_string(cause));
}

// The place was taken or lost, rather than that the program ended.
bool is_eviction(Cause cause) {
    switch (cause) {
        case Cause::node_lost:
        case Cause::device_fault:
        case Cause::preempted:
        case Cause::evicted:
        case Cause::lost_contact: return true;
        default: return false;
    }
}

std::string nodes_of(const std::vector<RankPlace>& places) {
    constexpr std::size_t kMostShown = 8;
    std::vector<std::string_view> names;
    for (const RankPlace& place : places)
        if (std::find(names.begin(), names.end(), place.node) == names.end()) names.push_back(place.node);
    std::string out;
    for (std::size_t i = 0; i < std::min(names.size(), kMostShown); ++i)
        out += (i == 0 ? "" : ",") + std::string(names[i]);
    if (names.size() > kMostShown) out += fmt::format(",and {} more", names.size() - kMostShown);
    return out;
}

}  // namespace

void RecordEvents::run_moved(const RunMoved& moved, const Record& record, const State& state) {
    const std::string run = moved.run.text();
    switch (moved.event) {
        case RunEvent::submit:
        case RunEvent::admit:
        case RunEvent::notice: return;  // records of their own say more
        case RunEvent::all_ready: return log_.write(log_event("run.running"), {{"run", run}});
        case RunEvent::retry:
            return log_.write(log_event("run.requeued"),
                              {{"run", run}, {"cause", cause_text(moved.cause)}, {"detail", moved.detail}});
        case RunEvent::back_off_over: return log_.write(log_event("run.waiting"), {{"run", run}});
        default: break;
    }
    const Run* now = state.find(moved.run);
    if (now == nullptr) return;
    if (is_terminal(now->state))
        log_.write(log_event("run.ended"), {{"run", run},
                                            {"state", to_string(now->state)},
                                            {"cause", cause_text(now->cause)},
                                            {"detail", now->detail},
                                            {"seconds", static_cast<double>(now->used_us) / 1e6}});
    else if (moved.event == RunEvent::cancel)
        log_.write(log_event("run.cancelling"), {{"run", run}, {"actor", record.actor.text()}});
}

void RecordEvents::attempt_moved(const AttemptMoved& moved, const State& state) {
    const bool over =
        moved.event == AttemptEvent::end || moved.event == AttemptEvent::gone || moved.event == AttemptEvent::refuse;
    if (!over || !is_eviction(moved.cause)) return;
    const Attempt* attempt = state.find(moved.attempt);
    log_.write(log_event("run.evicted"), {{"run", moved.attempt.run.text()},
                                          {"attempt", moved.attempt.number},
                                          {"node", attempt == nullptr ? std::string() : nodes_of(attempt->places)},
                                          {"cause", cause_text(moved.cause)},
                                          {"detail", moved.detail}});
}

void RecordEvents::node_moved(const NodeMoved& moved) {
    if (moved.state == NodeState::ready) return log_.write(log_event("node.ready"), {{"node", moved.node}});
    if (moved.state == NodeState::lost)
        return log_.write(log_event("node.lost"), {{"node", moved.node}, {"cause", cause_text(moved.cause)}});
    log_.write(log_event("node.state"),
               {{"node", moved.node}, {"state", to_string(moved.state)}, {"cause", cause_text(moved.cause)}});
}

void RecordEvents::tell(const Record& record, const State& state) {
    const RecordBody& body = record.body;
    if (const auto* submitted = std::get_if<RunSubmitted>(&body)) {
        const RunSpec& spec = submitted->spec;
        log_.write(log_event("run.submitted"),
                   {{"run", submitted->run.text()},
                    {"name", spec.name},
                    {"kind", to_string(spec.kind)},
                    {"ranks", spec.ranks},
                    {"gpus", std::int64_t{spec.ranks} * spec.per_rank.gpus},
                    {"user", spec.user},
                    {"parent", submitted->parent ? submitted->parent.text() : std::string()},
                    {"trace", trace_id_of(record.trace)}});
    } else if (const auto* run = std::get_if<RunMoved>(&body)) {
        run_moved(*run, record, state);
    } else if (const auto* created = std::get_if<AttemptCreated>(&body)) {
        LogFields fields{{"run", created->attempt.run.text()},
                         {"attempt", created->attempt.number},
                         {"nodes", nodes_of(created->places)}};
        if (!created->resume_from.empty()) fields.emplace_back("resume_step", created->resume_step);
        log_.write(log_event("run.starting"), fields);
    } else if (const auto* attempt = std::get_if<AttemptMoved>(&body)) {
        attempt_moved(*attempt, state);
    } else if (const auto* notice = std::get_if<NoticeGiven>(&body)) {
        log_.write(log_event("run.notice"), {{"run", notice->attempt.run.text()},
                                             {"attempt", notice->attempt.number},
                                             {"cause", cause_text(notice->cause)}});
    } else if (const auto* held = std::get_if<RunHeld>(&body)) {
        log_.write(log_event("run.held"),
                   {{"run", held->run.text()}, {"held", held->held}, {"actor", record.actor.text()}});
    } else if (const auto* answered = std::get_if<OperationAnswered>(&body)) {
        if (answered->answer == Answer::rejected)
            log_.write(log_event("driver.refused"), {{"operation", answered->operation.text()},
                                                     {"cause", cause_text(answered->cause)},
                                                     {"detail", answered->detail}});
    } else if (const auto* seen = std::get_if<NodeSeen>(&body)) {
        log_.write(log_event("node.seen"), {{"node", seen->node.name}, {"gpus", seen->node.devices.size()}});
    } else if (const auto* moved = std::get_if<NodeMoved>(&body)) {
        node_moved(*moved);
    } else if (const auto* checked = std::get_if<NodeChecked>(&body)) {
        const auto parts_that = [&](HealthVerdict verdict) {
            return std::count_if(checked->not_passed.begin(), checked->not_passed.end(),
                                 [&](const HealthCheck& part) { return part.verdict == verdict; });
        };
        log_.write(log_event("node.checked"), {{"node", checked->node},
                                               {"level", to_string(checked->level)},
                                               {"verdict", to_string(checked->verdict)},
                                               {"passed", checked->passed},
                                               {"failed", parts_that(HealthVerdict::fail)},
                                               {"warned", parts_that(HealthVerdict::warn)},
                                               {"skipped", parts_that(HealthVerdict::skipped)}});
    } else if (const auto* removed = std::get_if<NodeRemoved>(&body)) {
        log_.write(log_event("node.removed"), {{"node", removed->node}});
    } else if (const auto* config = std::get_if<ConfigChanged>(&body)) {
        log_.write(log_event("config.changed"),
                   {{"version", config->version}, {"note", config->note}, {"actor", record.actor.text()}});
    } else if (const auto* uploading = std::get_if<CheckpointUploading>(&body)) {
        log_.write(log_event("checkpoint.uploading"), {{"run", uploading->run.text()}, {"step", uploading->step}});
    } else if (const auto* stored = std::get_if<CheckpointStored>(&body)) {
        if (stored->fault.empty())
            log_.write(log_event("checkpoint.stored"),
                       {{"run", stored->run.text()}, {"step", stored->step}, {"bytes", stored->bytes}});
        else
            log_.write(log_event("checkpoint.failed"),
                       {{"run", stored->run.text()}, {"step", stored->step}, {"error", stored->fault}});
    }
}

namespace {

class WatchingLog final : public ServerLog {
public:
    WatchingLog(Engine& engine, std::shared_ptr<Log> log) : engine_(engine), log_(std::move(log)), events_(*log_) {
        say_ready();
        // On the core's thread, after what it tells is shown to readers: nothing here waits.
        watch_ = engine_.watch([this](std::span<const Record> records) {
            (void)engine_.read([&](const EngineView& view) {
                for (const Record& record : records) events_.tell(record, view.state);
            });
        });
        thread_ = masked_thread("stoker-say", [this] { look(); });
    }
    ~WatchingLog() override {
        watch_.reset();
        {
            const std::lock_guard guard(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }

private:
    void say_ready() {
        (void)engine_.read([&](const EngineView& view) {
            recovering_ = true;
            log_->write(log_event("engine.ready"), {{"runs", view.state.runs.size()},
                                                    {"live", view.state.live.size()},
                                                    {"queued", view.state.queue.size()},
                                                    {"nodes", view.state.nodes.size()},
                                                    {"epoch", view.state.epoch},
                                                    {"records", view.state.seq}});
        });
    }

    void look() {
        for (;;) {
            look_once();  // also a last time
            std::unique_lock lock(mutex_);
            if (stopping_) return;
            wake_.wait_for(lock, kLookEvery, [this] { return stopping_; });
        }
    }

    void look_once() {
        if (recovering_)
            (void)engine_.read([&](const EngineView& view) {
                if (view.recovering) return;
                recovering_ = false;
                log_->write(log_event("engine.recovered"), {{"live", view.state.live.size()},
                                                            {"operations", view.state.operations.size()},
                                                            {"nodes", view.state.nodes.size()}});
            });
        const EngineStats stats = engine_.stats();
        // Said once until it changes: a driver that is away for a night is asked every few seconds.
        if (stats.driver_error != driver_error_) {
            if (stats.driver_error.empty())
                log_->write(log_event("driver.answers"), {});
            else
                log_->write(log_event("driver.failed"), {{"error", stats.driver_error}});
            driver_error_ = stats.driver_error;
        }
        if (stats.slow_commits != slow_commits_) {
            log_->write(log_event("journal.slow"),
                        {{"seconds", stats.last_slow_commit_s}, {"commits", stats.slow_commits - slow_commits_}});
            slow_commits_ = stats.slow_commits;
        }
    }

    Engine& engine_;
    const std::shared_ptr<Log> log_;
    RecordEvents events_;  // of the core's thread
    std::shared_ptr<void> watch_;
    // ---- of the thread that looks
    bool recovering_ = true;
    std::string driver_error_;
    std::uint64_t slow_commits_ = 0;

    std::mutex mutex_;  // guards stopping_
    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<ServerLog> ServerLog::start(Engine& engine, std::shared_ptr<Log> log) {
    return std::make_unique<WatchingLog>(engine, std::move(log));
}

std::string log_reference() {
    std::string out =
        "# Log of a server\n\nGenerated by `stoker schema log-reference`. `stoker up` writes one line an event, to "
        "standard error or --log-file, as `TIME LEVEL EVENT field=value ...` or, with --log-format json, as an object "
        "with the keys `at`, `level`, `event` and the fields.\nNames and fields are kept; a field that says nothing is "
        "left out, and new ones may come.\n\n| Event | Level | Fields | Meaning |\n|---|---|---|---|\n";
    const auto row = [&](const LogEvent& event) {
        out +=
            fmt::format("| `{}` | {} | {} | {} |\n", event.name, to_string(event.level), event.fields, event.meaning);
    };
    for (const LogEvent& event : kLogEvents) row(event);
    row({"log.dropped", LogLevel::warn, "lines", "These many lines did not fit into the queue of the log."});
    return out;
}

}  // namespace stoker
