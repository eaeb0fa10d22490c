// The second home of a journal: a place that several servers reach, such as a PostgreSQL database (io/postgres). Where
// there is one, a record counts as written when it stands there; the folder's own database is a copy to read from,
// which is brought up to date when it is opened. So a server that takes over on another machine finds all that was
// acknowledged, and going back to the folder alone needs nothing but leaving the home away.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "io/journal_record.h"

namespace stoker {

class Journal;

class JournalHome {
public:
    virtual ~JournalHome() = default;
    virtual std::string name() const = 0;  // for people; without a password
    virtual Result<JournalHead> head() = 0;
    virtual Result<std::string> hash_at(std::uint64_t seq) = 0;  // empty: there is no such record
    // Behind `before`, all or none; done() means that they survive what the home promises to survive. conflict:
    // somebody else writes there now, or it does not end at `before`.
    virtual Status append(const JournalHead& before, std::span<const JournalRecord> records) = 0;
    // Records after `after`, in order, until `use` returns false. Whether each follows from the one before is for the
    // caller to see.
    virtual Status read(std::uint64_t after, const std::function<Result<bool>(const JournalRecord&)>& use) = 0;
    virtual Status redact(std::uint64_t seq) = 0;
};

// What a journal has and its home lacks, checked on the way. The head of both afterwards. conflict: the home has
// another journal, or more.
Result<JournalHead> push_journal(Journal& journal, JournalHome& home);

// Reads all of it and checks the chain; the head when all is well.
Result<JournalHead> verify_home(JournalHome& home);

}  // namespace stoker
