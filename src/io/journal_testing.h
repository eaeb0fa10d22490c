// What tests of the journal append.
#pragma once

#include <string>
#include <vector>

#include "io/journal_record.h"

namespace stoker {

// One record about each of the runs `from`, `from` + 1, ...
inline std::vector<JournalEntry> journal_entries(int from, int count, const std::string& actor = "user/u-1") {
    std::vector<JournalEntry> list;
    for (int i = from; i < from + count; ++i)
        list.push_back({.kind = 7,
                        .object = "run/r-" + std::to_string(i),
                        .version = 1,
                        .actor = actor,
                        .cause = "",
                        .operation = "",
                        .trace = "",
                        .body = "{\"n\":" + std::to_string(i) + "}"});
    return list;
}

}  // namespace stoker
