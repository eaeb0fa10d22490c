#include "server/event_view.h"

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/json.h"

namespace stoker::api {
namespace {

Event event_of(const JournalRecord& record) {
    return {.seq = record.seq,
            .at_us = record.at_us,
            .object = record.object,
            .kind = std::string(name_of_kind(record.kind)),
            .actor = record.actor,
            .cause = record.cause,
            .trace = record.trace,
            .operation = record.operation,
            .body = record.redacted ? std::string() : shown_body(record.kind, record.body)};
}

}  // namespace

Status read_events(const EngineView& view, std::uint64_t after, std::size_t most, RunId run, std::vector<Event>& out) {
    if (view.journal == nullptr) return Error(ErrorKind::unsupported, "events are read from a running server only");
    if (after >= view.state.seq || most == 0) return done();
    if (!run)
        return view.journal->read(after, [&](const JournalRecord& record) -> Result<bool> {
            out.push_back(event_of(record));
            return out.size() < most;
        });
    TRY(const auto numbers, view.journal->numbers_of("run/" + run.text(), after, most));
    for (const std::uint64_t seq : numbers)
        TRY_VOID(view.journal->read(seq - 1, [&](const JournalRecord& record) -> Result<bool> {
            out.push_back(event_of(record));
            return false;
        }));
    return done();
}

std::string as_json(const Event& event) {
    Json head = Json::object();
    head.set("seq", static_cast<std::int64_t>(event.seq))
        .set("at", rfc3339(event.at_us))
        .set("object", event.object)
        .set("kind", event.kind)
        .set("actor", event.actor);
    if (!event.cause.empty()) head.set("cause", event.cause);
    if (!event.operation.empty()) head.set("operation", event.operation);
    if (!event.trace.empty()) head.set("trace", event.trace);
    std::string text = head.dump(0);
    if (event.body.empty()) return text;
    text.pop_back();  // the brace
    return text + ",\"body\":" + event.body + "}";
}

std::string as_server_sent(const Event& event) {
    return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.seq, event.kind, as_json(event));
}

}  // namespace stoker::api
