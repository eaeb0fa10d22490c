// What the files of Journal agree on and nobody else sees.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "io/journal_record.h"
#include "io/sha256.h"
#include "io/sqlite.h"

namespace stoker {

// Of the database, and of each archive.
inline constexpr std::string_view kJournalTable = R"(
CREATE TABLE journal(
  seq       INTEGER PRIMARY KEY,
  at_us     INTEGER NOT NULL,
  epoch     INTEGER NOT NULL,
  kind      INTEGER NOT NULL,
  format    INTEGER NOT NULL,
  object    TEXT NOT NULL,
  version   INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  cause     TEXT NOT NULL,
  operation TEXT NOT NULL,
  trace     TEXT NOT NULL,
  body      BLOB,
  body_hash BLOB NOT NULL,
  hash      BLOB NOT NULL
) STRICT;
CREATE INDEX journal_object ON journal(object, seq);
)";
inline constexpr std::string_view kJournalColumns =
    "seq, at_us, epoch, kind, format, object, version, actor, cause, operation, trace, body, body_hash, hash";

// The row of kJournalColumns for which `insert` has the places. Texts live until it has run.
struct RecordFrame {
    std::uint64_t seq;
    std::int64_t at_us;
    std::uint64_t epoch;
    bool redacted;
    std::string_view body_hash, hash;
};
inline Status insert_record(Statement& insert, const JournalEntry& entry, const RecordFrame& frame) {
    insert.bind(1, static_cast<std::int64_t>(frame.seq))
        .bind(2, frame.at_us)
        .bind(3, static_cast<std::int64_t>(frame.epoch))
        .bind(4, std::int64_t{entry.kind})
        .bind(5, std::int64_t{entry.format})
        .bind(6, std::string_view(entry.object))
        .bind(7, static_cast<std::int64_t>(entry.version))
        .bind(8, std::string_view(entry.actor))
        .bind(9, std::string_view(entry.cause))
        .bind(10, std::string_view(entry.operation))
        .bind(11, std::string_view(entry.trace));
    if (frame.redacted)
        insert.bind_null(12);
    else
        insert.bind_blob(12, entry.body);
    insert.bind_blob(13, frame.body_hash).bind_blob(14, frame.hash);
    return insert.run();
}
inline Status insert_record(Statement& insert, const JournalRecord& record) {
    return insert_record(insert, record,
                         {record.seq, record.at_us, record.epoch, record.redacted, record.body_hash, record.hash});
}

// What the first record follows from.
inline std::string first_hash() {
    return std::string(kDigestBytes, '\0');
}

}  // namespace stoker
