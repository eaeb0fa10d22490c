// What the files of Journal agree on and nobody else sees.
#pragma once

#include <string>
#include <string_view>

#include "io/sha256.h"

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

// What the first record follows from.
inline std::string first_hash() {
    return std::string(kDigestBytes, '\0');
}

}  // namespace stoker
