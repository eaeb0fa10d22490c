// Every event that a server writes into its log, declared once: docs/reference/log.md comes from this table. Names and
// fields stay; a new field goes to the end.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "io/log.h"

namespace stoker {

inline constexpr auto kLogEvents = [] {
    using enum LogLevel;
    return std::to_array<LogEvent>({
        {"server.started", info, "version, commit, folder, url, pid", "It listens and answers."},
        {"server.stopping", info, "", "It was told to end; what runs goes on."},
        {"server.replaced", info, "pid", "Another process takes its place, and its socket: it ends."},
        {"server.stopped", info, "", "It has ended."},
        {"server.failed", error, "error", "The journal cannot be written: the process ends now."},
        {"engine.ready", info, "runs, live, queued, nodes, epoch, records", "The journal was read."},
        {"engine.recovered", info, "live, operations, nodes",
         "Everything outside was listed once: what is there is known."},
        {"driver.failed", warn, "error", "The engine did not answer the last look at what is there."},
        {"driver.answers", info, "", "It answers again."},
        {"journal.slow", warn, "seconds, commits", "So many commits took more than a second; the last so long."},
        {"journal.lost", warn, "detail", "It is shorter than it was, or another one, and somebody accepted that."},
        {"config.changed", info, "version, note, actor", "A version of the configuration was recorded."},
        {"run.submitted", info, "run, name, kind, ranks, gpus, user, parent, trace",
         "A run was accepted and waits for its place."},
        {"run.starting", info, "run, attempt, nodes, resume_step", "It was given places, and its launch is intended."},
        {"run.running", info, "run", "All its ranks run."},
        {"run.evicted", info, "run, attempt, node, cause, detail", "Its place was taken or lost."},
        {"run.requeued", info, "run, cause, detail", "A try failed; it is tried again after a pause."},
        {"run.waiting", info, "run", "The pause is over: it waits for a place again."},
        {"run.cancelling", info, "run, actor", "Somebody wants it to end."},
        {"run.ended", info, "run, state, cause, detail, seconds", "It will not run again."},
        {"run.notice", info, "run, attempt, cause", "It will be stopped at a deadline, and its ranks are told."},
        {"run.held", debug, "run, held, actor", "It was held back, or let go."},
        {"run.idle", info, "run, act, detail",
         "Nothing moves in it: its owner was told, it was parked or stopped, or somebody keeps it."},
        {"node.seen", debug, "node, gpus", "The engine offers it, or it has changed."},
        {"node.ready", info, "node", "It takes work."},
        {"node.lost", warn, "node, cause", "It does not answer; what ran there is evicted."},
        {"node.state", info, "node, state, cause", "Draining, checking, suspect or quarantined."},
        {"node.checked", info, "node, level, verdict, passed, failed, warned, skipped", "A health check has ended."},
        {"node.removed", info, "node", "It is not offered any more, and nothing runs there."},
        {"driver.refused", warn, "operation, cause, detail", "A call of the engine was refused."},
        {"checkpoint.uploading", debug, "run, step", "A checkpoint goes into its store."},
        {"checkpoint.stored", info, "run, step, bytes", "It is there, whole."},
        {"checkpoint.failed", warn, "run, step, error", "It is not; it is tried again."},
        {"checkpoint.prune_failed", warn, "run, error", "Old checkpoints could not be removed from the store."},
        {"backup.made", info, "name, bytes", "A copy of the journal is in its store."},
        {"backup.failed", warn, "to, error", "It is not; it is tried again."},
        {"secrets.sealed", info, "count",
         "Their key has changed, and so many stored ones are sealed with the new one."},
        {"secrets.failed", warn, "error",
         "Their key has changed, and they could not be sealed; they stay as they are."},
        {"tokens.failed", warn, "account, error",
         "What a gateway settled could not be charged; it is tried again, and nothing is lost."},
        {"webhook.sent", info, "id, tries", "What a budget reached was told to the webhook."},
        {"webhook.failed", warn, "id, tries, error", "Nobody took it; it is not tried again."},
        {"notify.sent", info, "id, to, tries", "Somebody was told that a run has ended."},
        {"notify.failed", warn, "id, to, tries, error", "Nobody took it; it is not tried again."},
        {"image.not_pinned", info, "image, why",
         "The nodes take what its name means when they fetch it: what that is now cannot be asked from here."},
        {"request.done", debug, "method, path, status, ms, request, trace, peer", "A request was answered."},
        {"request.failed", warn, "method, path, status, ms, request, trace, peer", "The same, with 500 or more."},
    });
}();

// A name that is not in the table does not compile.
consteval const LogEvent& log_event(std::string_view name) {
    for (const LogEvent& each : kLogEvents)
        if (each.name == name) return each;
    throw "no event has this name: declare it in kLogEvents";
}

std::string log_reference();  // docs/reference/log.md

}  // namespace stoker
