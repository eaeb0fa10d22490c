// The part of Journal that keeps records from being lost unseen: the database held against the head beside it, and
// copies that are whole.
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "io/journal.h"

namespace stoker {

// A database without its log and without the head beside it: was it closed, or is it the copy of one file of three?
Status Journal::compare(const Result<KeptHead>& kept, bool has_log) {
    const auto lost = [&](std::string what) {
        return Error(ErrorKind::invalid, std::move(what), {},
                     "put back the folder as it was, stoker.db with stoker.db-wal and journal-head, or start from a "
                     "copy with stoker journal restore; stoker up --accept-loss goes on with what is there");
    };
    const std::string path = printable(database_->path());
    if (!kept && kept.error().kind() != ErrorKind::not_found) return lost(kept.error().message());
    if (kept && kept->seq > head_.seq)
        return lost(fmt::format("{} ends at record {}, and had {}: the newest {} records are gone", path, head_.seq,
                                kept->seq, kept->seq - head_.seq));
    if (kept && kept->seq > 0) {
        TRY(const std::string hash, hash_at(kept->seq));
        if (hash != kept->hash)
            return lost(
                fmt::format("record {} of {} is not the one that was written: it is another journal, or an "
                            "older copy that went on",
                            kept->seq, path));
    }
    if (kept || has_log) return done();
    TRY(const std::int64_t marks, database_->integer("SELECT count(*) FROM sqlite_schema WHERE name = 'mark'"));
    if (marks == 0) return done();
    TRY(const std::int64_t open_epoch, database_->integer("SELECT value FROM mark WHERE name = 'open_epoch'"));
    // A Stoker that knows no marks may have used it since.
    if (open_epoch == 0 || static_cast<std::uint64_t>(open_epoch) < epoch_) return done();
    return lost(
        fmt::format("{} was copied while it was in use, or has lost {}-wal, where the newest records were: one "
                    "file is no copy of a journal (stoker journal backup makes one)",
                    path, path));
}

// In the database itself, so that it is in a copy of that file alone.
Status Journal::begin_writing() {
    if (marked_) return done();
    TRY_VOID(
        database_->execute(fmt::format("INSERT OR REPLACE INTO mark(name, value) VALUES('open_epoch', {})", epoch_)));
    marked_ = true;
    head_file_ = HeadFile::open(std::filesystem::path(database_->path()).parent_path().string());
    TRY([[maybe_unused]] const std::int64_t busy, database_->integer("PRAGMA wal_checkpoint(TRUNCATE)"));
    return done();
}

void Journal::keep_head(bool cut) {
    if (head_file_) head_file_->write({.seq = head_.seq, .hash = head_.hash, .site = site_, .runs = runs_, .cut = cut});
}

Status Journal::admit_cut() {
    TRY_VOID(begin_writing());
    TRY_VOID(load_head());
    keep_head(true);
    return done();
}

Status Journal::back_up(const std::string& file) {
    std::error_code code;
    if (std::filesystem::exists(file, code))
        return Error(ErrorKind::conflict, printable(file) + " exists already", {}, "name a file that does not");
    // The copy is whole, and nobody has it open.
    const auto close_copy = [&]() -> Status {
        TRY(const auto copy, Database::open(file, {.create = false}));
        TRY(const std::int64_t marks, copy->integer("SELECT count(*) FROM sqlite_schema WHERE name = 'mark'"));
        return marks == 0 ? done() : copy->execute("DELETE FROM mark");
    };
    if (insert_) {
        TRY_VOID(database_->copy_to(file));
        return close_copy();
    }
    // Beside a server that goes on writing: the state of one moment, or the copy would begin anew with each of its
    // writes.
    TRY_VOID(database_->execute("BEGIN"));
    TRY_VOID(database_->integer("SELECT count(*) FROM snapshot"));
    const Status copied = database_->copy_to(file);
    TRY_VOID(database_->execute("COMMIT"));
    if (!copied) return copied;
    return close_copy();
}

}  // namespace stoker
