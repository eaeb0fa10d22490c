#include "run/state/load_state.h"

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {

Status apply_entry(State& state, const JournalRecord& entry) {
    TRY(RecordBody body, decode_body(entry.kind, entry.format, entry.body, entry.seq));
    if (state.object_of(body) != entry.object || state.version_of(body) != entry.version)
        return Error(ErrorKind::invalid,
                     fmt::format("record {} is version {} of {}, expected version {} of {}", entry.seq, entry.version,
                                 printable(entry.object), state.version_of(body), state.object_of(body)));
    auto actor = Actor::parse(entry.actor);
    if (!actor) {
        Error error = actor.error();
        return std::move(error).while_doing(fmt::format("reading who wrote record {}", entry.seq));
    }
    return state.apply(Record{.seq = entry.seq,
                              .at_us = entry.at_us,
                              .epoch = entry.epoch,
                              .actor = std::move(*actor),
                              .trace = entry.trace,
                              .body = std::move(body)});
}

Result<std::uint64_t> load_state(Journal& journal, State& state) {
    std::uint64_t snapshot_seq = 0;
    TRY(const auto snapshot, journal.newest_snapshot());
    if (snapshot && snapshot->format == kStateFormat) {
        TRY(state, decode_state(snapshot->state));
        if (state.seq != snapshot->seq)
            return Error(ErrorKind::invalid, fmt::format("the snapshot at record {} says that it ends at record {}",
                                                         snapshot->seq, state.seq));
        snapshot_seq = snapshot->seq;
    }
    TRY_VOID(journal.read(state.seq, [&](const JournalRecord& entry) -> Result<bool> {
        if (entry.redacted)
            return Error(ErrorKind::invalid,
                         fmt::format("the body of record {} was erased and no snapshot covers it", entry.seq));
        TRY_VOID(apply_entry(state, entry));
        return true;
    }));
    return snapshot_seq;
}

}  // namespace stoker
