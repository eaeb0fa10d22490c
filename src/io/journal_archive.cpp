// The part of Journal that reads: its records in order, from the archives first. An archive is a database with the same
// table, made once and never changed, so that stoker.db stays as small as what is new.
#include <unistd.h>

#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "io/files.h"
#include "io/journal.h"
#include "io/journal_columns.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Into a record whose room is used again and again.
void take_record(const Statement& row, JournalRecord& record) {
    record.seq = static_cast<std::uint64_t>(row.integer(0));
    record.at_us = row.integer(1);
    record.epoch = static_cast<std::uint64_t>(row.integer(2));
    record.kind = static_cast<std::uint32_t>(row.integer(3));
    record.format = static_cast<std::uint32_t>(row.integer(4));
    record.object = row.text(5);
    record.version = static_cast<std::uint64_t>(row.integer(6));
    record.actor = row.text(7);
    record.cause = row.text(8);
    record.operation = row.text(9);
    record.trace = row.text(10);
    record.redacted = row.is_null(11);
    record.body = row.blob(11);
    record.body_hash = row.blob(12);
    record.hash = row.blob(13);
}

Error broken(const Database& database, std::uint64_t seq, std::string_view what) {
    return Error(
        ErrorKind::invalid, fmt::format("record {} of {} {}", seq, database.path(), what), {},
        "someone or something changed the file. Restore a backup; or see stoker journal verify, and stoker journal "
        "cut, which forgets this record and all after it");
}

std::string archive_folder(const Database& database) {
    return fs::path(database.path()).parent_path().string() + "/archive";
}

}  // namespace

Status Journal::load_archives() {
    parts_.clear();
    TRY(const std::int64_t tables, database_->integer("SELECT count(*) FROM sqlite_schema WHERE name = 'archive'"));
    if (tables == 0) return done();  // of a Stoker that had none
    TRY(Statement rows, database_->prepare("SELECT first_seq, last_seq, last_hash, name FROM archive ORDER BY 1"));
    for (std::uint64_t expected = 1;;) {
        TRY(const bool more, rows.step());
        if (!more) return done();
        Archive archive{.first = static_cast<std::uint64_t>(rows.integer(0)),
                        .last = static_cast<std::uint64_t>(rows.integer(1)),
                        .last_hash = std::string(rows.blob(2)),
                        .name = std::string(rows.text(3))};
        if (archive.first != expected || archive.last < archive.first || archive.name.find('/') != std::string::npos ||
            !archive.name.starts_with("records-"))
            return broken(*database_, expected, "is in no archive that is listed");
        expected = archive.last + 1;
        archive.path = archive_folder(*database_) + "/" + archive.name;
        std::error_code code;
        archive.here = fs::exists(archive.path, code);
        parts_.push_back({.archive = std::move(archive), .database = nullptr});
    }
}

std::vector<Journal::Archive> Journal::archives() const {
    std::vector<Archive> all;
    for (const Part& part : parts_) all.push_back(part.archive);
    return all;
}

Result<Database*> Journal::open_archive(std::size_t which) {
    Part& part = parts_[which];
    if (part.database) return part.database.get();
    const Archive& archive = part.archive;
    std::error_code code;
    if (!fs::exists(archive.path, code))
        return Error(ErrorKind::not_found,
                     fmt::format("records {} to {} are in {}, which is not there", archive.first, archive.last,
                                 printable(archive.path)),
                     {}, "stoker journal compact wrote that file: bring it back from where it was moved to");
    TRY(auto database, Database::open(archive.path, {.create = false, .read_only = true, .immutable = true}));
    TRY(const std::int64_t tables, database->integer("SELECT count(*) FROM sqlite_schema WHERE name = 'journal'"));
    if (tables == 0) return broken(*database, archive.first, "is not there: the archive has no records");
    part.database = std::move(database);
    return part.database.get();
}

Result<std::string> Journal::hash_at(std::uint64_t seq) {
    Database* database = database_.get();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].archive.last == seq) return parts_[i].archive.last_hash;
        if (seq < parts_[i].archive.first || seq > parts_[i].archive.last) continue;
        TRY(database, open_archive(i));
    }
    TRY(Statement row, database->prepare("SELECT hash FROM journal WHERE seq = ?"));
    row.bind(1, static_cast<std::int64_t>(seq));
    TRY(const bool found, row.step());
    return found ? std::string(row.blob(0)) : std::string();
}

// Up to record `until`, which must be there.
Status Journal::read_from(Database& database, std::uint64_t& after, std::uint64_t until, std::string& previous,
                          const std::function<Result<bool>(const JournalRecord&)>& use, bool& go_on) {
    TRY(Statement rows, database.prepare(fmt::format("SELECT {} FROM journal WHERE seq > ? AND seq <= ? ORDER BY seq",
                                                     kJournalColumns)));
    rows.bind(1, static_cast<std::int64_t>(after)).bind(2, static_cast<std::int64_t>(until));
    JournalRecord record;
    while (go_on) {
        TRY(const bool more, rows.step());
        if (!more) break;
        take_record(rows, record);
        if (record.seq != after + 1) return broken(database, after + 1, "is missing");
        if (!record.redacted && sha256(record.body) != record.body_hash)
            return broken(database, record.seq, "has another body than when it was written");
        if (record_hash(record, previous) != record.hash)
            return broken(database, record.seq, "does not follow from the one before");
        TRY(go_on, use(record));
        previous = record.hash;
        after = record.seq;
    }
    return done();
}

Status Journal::read(std::uint64_t after, const std::function<Result<bool>(const JournalRecord&)>& use) {
    // Somebody may have archived since it was opened for looking.
    if (lock_ < 0) TRY_VOID(load_archives());
    std::string previous = first_hash();
    if (after > 0) {
        TRY(previous, hash_at(after));
        if (previous.empty()) return broken(*database_, after, "is missing");
    }
    bool go_on = true;
    for (std::size_t i = 0; i < parts_.size() && go_on; ++i) {
        if (parts_[i].archive.last <= after) continue;
        TRY(Database * database, open_archive(i));
        TRY_VOID(read_from(*database, after, parts_[i].archive.last, previous, use, go_on));
        if (go_on && after != parts_[i].archive.last) return broken(*database, after + 1, "is missing");
        if (go_on && previous != parts_[i].archive.last_hash)
            return broken(*database, after, "is not the one that was archived");
    }
    // What a server writes meanwhile belongs to it.
    constexpr auto kAll = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return go_on ? read_from(*database_, after, kAll, previous, use, go_on) : done();
}

Result<JournalHead> Journal::verify() {
    JournalHead head{.seq = 0, .hash = first_hash()};
    TRY_VOID(read(0, [&](const JournalRecord& record) -> Result<bool> {
        head = {.seq = record.seq, .hash = record.hash};
        return true;
    }));
    if (head.seq != head_.seq || head.hash != head_.hash) return broken(*database_, head_.seq, "is missing");
    return head;
}

Result<std::vector<std::uint64_t>> Journal::numbers_of(std::string_view object, std::uint64_t after, std::size_t most) {
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i <= parts_.size() && numbers.size() < most; ++i) {
        Database* database = database_.get();
        if (i < parts_.size()) {
            if (parts_[i].archive.last <= after) continue;
            TRY(database, open_archive(i));
        }
        TRY(Statement rows,
            database->prepare("SELECT seq FROM journal WHERE object = ? AND seq > ? ORDER BY seq LIMIT ?"));
        rows.bind(1, object)
            .bind(2, static_cast<std::int64_t>(after))
            .bind(3, static_cast<std::int64_t>(most - numbers.size()));
        for (;;) {
            TRY(const bool more, rows.step());
            if (!more) break;
            numbers.push_back(static_cast<std::uint64_t>(rows.integer(0)));
        }
    }
    return numbers;
}

Result<std::uint64_t> Journal::last_until(std::int64_t at_us) {
    TRY(Statement row, database_->prepare("SELECT max(seq) FROM journal WHERE at_us <= ?"));
    row.bind(1, at_us);
    TRY([[maybe_unused]] const bool any, row.step());
    return static_cast<std::uint64_t>(row.integer(0));
}

// Each is checked on its way.
Status Journal::copy_records(const std::string& path, std::uint64_t first, std::uint64_t last) {
    TRY(const auto database, Database::open(path));
    {
        TRY(Transaction transaction, Transaction::begin(*database));
        TRY_VOID(database->execute(kJournalTable));
        TRY(Statement insert, database->prepare(fmt::format(
                                  "INSERT INTO journal({}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", kJournalColumns)));
        TRY(std::string previous, first > 1 ? hash_at(first - 1) : Result<std::string>(first_hash()));
        std::uint64_t after = first - 1;
        bool go_on = true;
        TRY_VOID(read_from(
            *database_, after, last, previous,
            [&](const JournalRecord& record) -> Result<bool> {
                TRY_VOID(insert_record(insert, record));
                return true;
            },
            go_on));
        if (after != last) return broken(*database_, after + 1, "is missing");
        TRY_VOID(transaction.commit());
    }
    // One file, whole by itself.
    return database->execute("PRAGMA journal_mode=DELETE");
}

Result<Journal::Archive> Journal::archive_until(std::uint64_t last) {
    if (!insert_) return Error(ErrorKind::denied, "the journal was opened for looking only");
    const std::uint64_t first = archived() + 1;
    if (last < first || last >= head_.seq)
        return Error(ErrorKind::invalid,
                     fmt::format("records {} to {} can be archived, not up to {}", first, head_.seq - 1, last));
    Archive archive{.first = first, .last = last, .name = fmt::format("records-{}-{}.db", first, last), .here = true};
    const std::string folder = archive_folder(*database_);
    archive.path = folder + "/" + archive.name;
    std::error_code code;
    fs::create_directories(folder, code);
    if (code)
        return Error(ErrorKind::denied,
                     fmt::format("cannot make the folder {}: {}", printable(folder), code.message()));
    fs::permissions(folder, fs::perms::owner_all, code);
    // What one that was killed has left: its records are still here, and are copied again.
    std::vector<fs::path> left;
    for (const auto& entry : fs::directory_iterator(folder, code))
        if (entry.path().filename().string().starts_with(fmt::format("records-{}-", first)))
            left.push_back(entry.path());
    for (const fs::path& path : left) fs::remove(path, code);
    const std::string part = archive.path + ".part";
    if (const Status copied = copy_records(part, first, last); !copied) {
        for (const char* end : {"", "-wal", "-shm", "-journal"}) fs::remove(part + end, code);
        return copied.error();
    }
    fs::rename(part, archive.path, code);
    if (code) return Error(ErrorKind::unavailable, fmt::format("cannot write {}: {}", archive.path, code.message()));
    TRY_VOID(sync_folder(folder));
    TRY_VOID(sync_folder(fs::path(folder).parent_path().string()));
    TRY(archive.last_hash, hash_at(last));
    // The head beside the database may be a second old, and is asked for by what stays.
    TRY_VOID(begin_writing());
    keep_head();
    {
        TRY(Transaction transaction, Transaction::begin(*database_));
        TRY(Statement add,
            database_->prepare("INSERT INTO archive(first_seq, last_seq, last_hash, name) VALUES(?,?,?,?)"));
        add.bind(1, static_cast<std::int64_t>(first))
            .bind(2, static_cast<std::int64_t>(last))
            .bind_blob(3, archive.last_hash)
            .bind(4, std::string_view(archive.name));
        TRY_VOID(add.run());
        TRY_VOID(database_->execute(fmt::format("DELETE FROM journal WHERE seq <= {}", last)));
        TRY_VOID(database_->execute("DELETE FROM snapshot_piece WHERE seq NOT IN (SELECT seq FROM snapshot)"));
        TRY_VOID(transaction.commit());
    }
    TRY_VOID(load_archives());
    TRY_VOID(database_->shrink().while_doing("giving back the room of what was archived, which is safe where it is"));
    return archive;
}

}  // namespace stoker
