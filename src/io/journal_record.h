// What stands in a journal: records, and how far it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stoker {

// What a record says. Numbers of kinds are never used again for something else.
struct JournalEntry {
    std::uint32_t kind = 0;
    std::uint32_t format = 1;   // of the body
    std::string object;         // "run/r-7"
    std::uint64_t version = 0;  // of the object after this record: the one before, plus 1
    std::string actor;          // "user/u-3", "core/scheduler"
    std::string cause;          // a code; empty for facts
    std::string operation;      // the id of the effect this belongs to, or empty
    std::string trace;          // W3C traceparent, or empty
    std::string body;           // canonical JSON, at most kMaxBodyBytes
};
inline constexpr std::size_t kMaxBodyBytes = 1 << 20;

struct JournalRecord : JournalEntry {
    std::uint64_t seq = 0;
    std::int64_t at_us = 0;   // wall clock, UTC; never less than the record's before
    std::uint64_t epoch = 0;  // of the server that wrote it
    bool redacted = false;    // the body is gone, its hash is not
    std::string body_hash, hash;
};

struct Snapshot {
    std::uint64_t seq = 0;  // the last record it includes
    std::uint32_t format = 0;
    std::string state;
};

struct JournalHead {
    std::uint64_t seq = 0;
    std::string hash;  // of record seq; 32 zero bytes for an empty journal
};

}  // namespace stoker
