// What a person does to a journal that no server is to do by itself: check it, copy it, start from a copy, cut it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/journal.h"

namespace stoker {

// Every hash, every body and every rule of what may follow what; the head when all is well. Works beside a server.
// Archives that are there are read as well; `away`: those that are not.
struct VerifiedJournal : JournalHead {
    std::vector<Journal::Archive> archives, away;
};
Result<VerifiedJournal> verify_journal(const std::string& folder);

// An online copy into a file that must not exist. Works beside a server.
Result<JournalHead> back_up_journal(const std::string& folder, const std::string& file);

// Makes `folder`, which may hold no journal, from a copy. It gets a name of its own (FOLDER/site), so that it can be
// told apart from the original if that still runs; what carries the old name stays ours. The new name.
Result<std::string> restore_journal(const std::string& file, const std::string& folder);

// Moves records that are not younger than `at_us` into a file of FOLDER/archive, when no server runs. Everything is
// verified before, and a start needs none of them after: it has a snapshot. Nothing is lost: the records are read where
// they are.
struct CompactedJournal {
    Journal::Archive archive;
    std::uint64_t bytes_before = 0, bytes_now = 0, archive_bytes = 0;  // of stoker.db, and of the archive
};
Result<CompactedJournal> compact_journal(const std::string& folder, std::int64_t at_us);

// Removes record `at` and all after it, when no server runs. The whole file as it was is kept beside it; its name.
Result<std::string> cut_journal(const std::string& folder, std::uint64_t at);

}  // namespace stoker
