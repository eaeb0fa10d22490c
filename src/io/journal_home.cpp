// The part of Journal that keeps a folder and its second home the same.
#include "io/journal_home.h"

#include <fmt/format.h>

#include "base/text.h"
#include "io/journal.h"
#include "io/journal_columns.h"

namespace stoker {
namespace {

constexpr std::size_t kRecordsAtOnce = 1000;
constexpr std::size_t kBytesAtOnce = 16u << 20;

// Why `record` does not stand behind `previous`; empty: it does.
std::string_view why_broken(const JournalRecord& record, std::uint64_t before, const std::string& previous) {
    if (record.seq != before + 1) return "is missing";
    if (!record.redacted && sha256(record.body) != record.body_hash) return "has another body than when it was written";
    if (record_hash(record, previous) != record.hash) return "does not follow from the one before";
    return {};
}

Error broken_home(const JournalHome& home, const JournalRecord& record, std::uint64_t before, std::string_view why) {
    return Error(ErrorKind::invalid,
                 fmt::format("record {} of {} {}", why == "is missing" ? before + 1 : record.seq, home.name(), why), {},
                 "restore that database from a backup");
}

Error another_journal(const JournalHome& home, std::uint64_t seq) {
    return Error(ErrorKind::conflict,
                 fmt::format("record {} in {} is not the one of this folder: they are two journals", seq, home.name()),
                 {}, "name another folder, or another database");
}

}  // namespace

// Called while it opens.
Status Journal::join(JournalHome& home) {
    TRY(const JournalHead there, home.head());
    if (there.seq < head_.seq) {
        if (there.seq > 0) {
            TRY(const std::string here, hash_at(there.seq));
            if (std::string_view(here) != there.hash) return another_journal(home, there.seq);
        }
        return Error(ErrorKind::conflict,
                     fmt::format("{} has {} records and the folder {}", home.name(), there.seq, head_.seq), {},
                     there.seq == 0 ? "stoker journal push URL copies the folder's journal into it"
                                    : "it was restored from an older copy: stoker journal push URL adds what it lacks");
    }
    if (head_.seq > 0) {
        TRY(const std::string same, home.hash_at(head_.seq));
        if (std::string_view(same) != head_.hash) return another_journal(home, head_.seq);
    }
    TRY_VOID(pull(home, there));
    home_ = &home;
    return done();
}

Status Journal::pull(JournalHome& home, const JournalHead& until) {
    if (until.seq == head_.seq) return done();
    TRY_VOID(begin_writing());
    std::vector<JournalRecord> waiting;
    std::size_t bytes = 0;
    JournalHead head = head_;
    const auto keep = [&]() -> Status {
        if (waiting.empty()) return done();
        TRY(Transaction transaction, Transaction::begin(*database_));
        for (const JournalRecord& record : waiting) TRY_VOID(insert_record(*insert_, record));
        TRY_VOID(transaction.commit());
        head_ = head;
        last_at_us_ = waiting.back().at_us;
        epoch_ = waiting.back().epoch;
        keep_head();
        waiting.clear();
        bytes = 0;
        return done();
    };
    TRY_VOID(home.read(head_.seq, [&](const JournalRecord& record) -> Result<bool> {
        if (const auto why = why_broken(record, head.seq, head.hash); !why.empty())
            return broken_home(home, record, head.seq, why);
        head = {.seq = record.seq, .hash = record.hash};
        waiting.push_back(record);
        bytes += record.body.size();
        if (waiting.size() >= kRecordsAtOnce || bytes >= kBytesAtOnce) TRY_VOID(keep());
        return record.seq < until.seq;
    }));
    TRY_VOID(keep());
    marked_ = false;  // with the epoch that is known by now
    TRY_VOID(begin_writing());
    if (head_.seq < until.seq)
        return Error(ErrorKind::invalid, fmt::format("record {} of {} is missing", head_.seq + 1, home.name()), {},
                     "restore that database from a backup");
    return done();
}

Result<JournalHead> push_journal(Journal& journal, JournalHome& home) {
    TRY(JournalHead there, home.head());
    if (there.seq > journal.head().seq)
        return Error(
            ErrorKind::conflict,
            fmt::format("{} has {} records and the folder only {}", home.name(), there.seq, journal.head().seq), {},
            "stoker journal pull URL brings them here");
    if (there.seq > 0) {
        std::string here;
        TRY_VOID(journal.read(there.seq - 1, [&](const JournalRecord& record) -> Result<bool> {
            here = record.hash;
            return false;
        }));
        if (here != there.hash) return another_journal(home, there.seq);
    } else {
        there.hash = first_hash();
    }
    std::vector<JournalRecord> waiting;
    std::size_t bytes = 0;
    const auto send = [&]() -> Status {
        if (waiting.empty()) return done();
        TRY_VOID(home.append(there, waiting));
        there = {.seq = waiting.back().seq, .hash = waiting.back().hash};
        waiting.clear();
        bytes = 0;
        return done();
    };
    TRY_VOID(journal.read(there.seq, [&](const JournalRecord& record) -> Result<bool> {
        waiting.push_back(record);
        bytes += record.body.size();
        if (waiting.size() >= kRecordsAtOnce || bytes >= kBytesAtOnce) TRY_VOID(send());
        return true;
    }));
    TRY_VOID(send());
    return there;
}

Result<JournalHead> verify_home(JournalHome& home) {
    TRY(const JournalHead until, home.head());
    JournalHead head{.seq = 0, .hash = first_hash()};
    if (until.seq == 0) return head;
    TRY_VOID(home.read(0, [&](const JournalRecord& record) -> Result<bool> {
        if (const auto why = why_broken(record, head.seq, head.hash); !why.empty())
            return broken_home(home, record, head.seq, why);
        head = {.seq = record.seq, .hash = record.hash};
        return record.seq < until.seq;
    }));
    if (head.seq < until.seq || head.hash != until.hash)
        return Error(ErrorKind::invalid, fmt::format("record {} of {} is missing", head.seq + 1, home.name()));
    return head;
}

}  // namespace stoker
