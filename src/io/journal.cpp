#include "io/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "io/journal_columns.h"
#include "io/sha256.h"

namespace stoker {
namespace {

constexpr std::int64_t kApplicationId = 0x53746f6b;  // "Stok", at offset 68 of the file
constexpr std::int64_t kSchema = 1;
constexpr auto kOrphanedLock = std::chrono::seconds(10);

constexpr std::string_view kSnapshots = R"(
CREATE TABLE snapshot(seq INTEGER PRIMARY KEY, format INTEGER NOT NULL, state BLOB NOT NULL, digest BLOB NOT NULL) STRICT;
)";

// Beside the first schema, which does not know it: a snapshot in pieces has an empty text there, which no digest fits,
// so an older Stoker passes it over.
constexpr std::string_view kPieces = R"(
CREATE TABLE IF NOT EXISTS snapshot_piece(
  seq INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(seq, number)) STRICT;
)";

// Beside the first schema as well. While a process has the journal open, `open_epoch` is there with the epoch that it
// will write; it is in the database itself, not only in the log beside it. So a database without its log tells whether
// it was closed or has lost it.
constexpr std::string_view kMarks = R"(
CREATE TABLE IF NOT EXISTS mark(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
)";

// And what stands in files of its own (journal_archive.cpp), in order, without a gap from record 1 on.
constexpr std::string_view kArchives = R"(
CREATE TABLE IF NOT EXISTS archive(
  first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, last_hash BLOB NOT NULL, name TEXT NOT NULL) STRICT;
)";

std::string big_endian(std::uint64_t value) {
    std::string bytes(8, '\0');
    for (std::size_t i = 8; i-- > 0; value >>= 8) bytes[i] = static_cast<char>(value & 0xff);
    return bytes;
}

// What a record adds to its entry.
struct Frame {
    std::uint64_t seq;
    std::int64_t at_us;
    std::uint64_t epoch;
    std::string_view body_hash;
};

std::string hash_of(const JournalEntry& entry, const Frame& frame, std::string_view previous_hash) {
    std::string bytes;
    bytes.reserve(512);
    bytes += previous_hash;
    for (const std::uint64_t number : {frame.seq, static_cast<std::uint64_t>(frame.at_us), frame.epoch,
                                       std::uint64_t{entry.kind}, std::uint64_t{entry.format}, entry.version})
        bytes += big_endian(number);
    for (const std::string* text : {&entry.object, &entry.actor, &entry.cause, &entry.operation, &entry.trace})
        (bytes += big_endian(text->size())) += *text;
    return sha256(bytes += frame.body_hash);
}

// The folder belongs to one process at a time; the kernel drops the lock when that process ends, however it ends.
Result<int> lock_folder(const std::string& folder) {
    const std::string path = folder + "/lock";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        const ErrorKind kind = errno == EACCES || errno == EROFS ? ErrorKind::denied
                               : errno == ENOSPC                 ? ErrorKind::exhausted
                                                                 : ErrorKind::unavailable;
        return Error(kind, fmt::format("cannot write {}: {}", printable(path), std::strerror(errno)));
    }
    // A process that was just killed may leave a child between fork and exec, which holds the lock until its exec.
    const auto give_up = std::chrono::steady_clock::now() + kOrphanedLock;
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        std::string pid(32, '\0');
        const ssize_t got = ::pread(fd, pid.data(), pid.size(), 0);
        pid.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        pid_t number = 0;
        const bool told = std::from_chars(pid.data(), pid.data() + pid.size(), number).ec == std::errc() && number > 0;
        const bool gone = told && ::kill(number, 0) != 0 && errno == ESRCH;
        if (gone && std::chrono::steady_clock::now() < give_up) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            continue;
        }
        ::close(fd);
        return Error(
            ErrorKind::conflict,
            fmt::format("{} is in use by process {}", printable(folder), pid.empty() ? "?" : printable(pid, 20)), {},
            "stop it, or name another folder");
    }
    const std::string pid = std::to_string(::getpid());
    // The number only helps a person; without it the lock holds all the same.
    if (::ftruncate(fd, 0) == 0) (void)!::pwrite(fd, pid.data(), pid.size(), 0);
    return fd;
}

}  // namespace

std::string record_hash(const JournalRecord& record, std::string_view previous_hash) {
    return hash_of(record, {record.seq, record.at_us, record.epoch, record.body_hash}, previous_hash);
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string& folder, const Options& options) {
    std::error_code code;
    // Others on the machine may not look: it has the environments of all work, and what that wrote. A folder that was
    // there before stays as it is, its files do not.
    if (options.create && std::filesystem::create_directories(folder, code) && !code) ::chmod(folder.c_str(), 0700);
    if (code)
        return Error(ErrorKind::denied,
                     fmt::format("cannot make the folder {}: {}", printable(folder), code.message()));
    if (!std::filesystem::is_directory(folder, code))
        return Error(ErrorKind::not_found, fmt::format("there is no folder {}", printable(folder)));
    TRY(const int lock, lock_folder(folder));
    for (const char* file : {"/stoker.db", "/stoker.db-wal", "/stoker.db-shm"})
        ::chmod((folder + file).c_str(), 0600);  // made by a Stoker that left it to the umask; or not there
    const bool has_log = std::filesystem::exists(folder + "/stoker.db-wal", code);
    const Result<KeptHead> kept = read_kept_head(folder);
    auto database = Database::open(folder + "/stoker.db", {.create = options.create});
    if (!database) {
        ::close(lock);
        return database.error();
    }
    std::unique_ptr<Journal> journal(new Journal(std::move(*database), lock));
    TRY_VOID(journal->migrate(options));
    TRY_VOID(journal->load_head());
    Status same = journal->compare(kept, has_log);
    if (options.home) {
        TRY_VOID(journal->join(*options.home));
        if (!same && kept) same = journal->compare(kept, true);  // what was lost came back
    }
    if (!same) {
        if (!options.accept_loss) return same.error();
        journal->loss_ = {.kept = kept ? *kept : KeptHead{}, .what = same.error().message()};
    } else if (kept && kept->cut) {
        journal->loss_ = {.kept = *kept, .what = "it was cut"};
    }
    if (kept) journal->set_owner(kept->site, kept->runs);
    return journal;
}

Result<std::unique_ptr<Journal>> Journal::open_read_only(const std::string& folder) {
    const std::string path = folder + "/stoker.db";
    std::error_code code;
    if (!std::filesystem::exists(path, code)) {
        if (code && code != std::errc::no_such_file_or_directory && code != std::errc::not_a_directory)
            return Error(ErrorKind::denied, fmt::format("cannot look at {}: {}", printable(path), code.message()));
        return Error(ErrorKind::not_found, fmt::format("there is no {}", printable(path)), {},
                     "nothing was run there yet, or another folder is meant");
    }
    // Before the database: whoever writes meanwhile makes that longer.
    const Result<KeptHead> kept = read_kept_head(folder);
    // Whoever writes has a log beside it; without one the file is at rest, and reading it the usual way would make one.
    const bool at_rest = !std::filesystem::exists(path + "-wal", code);
    TRY(auto database, Database::open(path, {.create = false, .read_only = true, .immutable = at_rest}));
    std::unique_ptr<Journal> journal(new Journal(std::move(database), -1));
    TRY(const std::int64_t schema, journal->check_file());
    // A server is making it at this moment.
    if (schema == 0 && !(kept && kept->seq > 0))
        return Error(ErrorKind::not_found, fmt::format("{} is empty", printable(path)));
    TRY_VOID(journal->load_head());
    if (const Status same = journal->compare(kept, !at_rest); !same) {
        // A server that began at this moment has a log by now.
        if (at_rest && std::filesystem::exists(path + "-wal", code)) return open_read_only(folder);
        return same.error();
    }
    return journal;
}

Journal::~Journal() {
    insert_.reset();
    if (marked_ && !failed_) (void)database_->execute("DELETE FROM mark WHERE name = 'open_epoch'").ok();
    database_.reset();
    head_file_.reset();
    if (lock_ >= 0) ::close(lock_);
}

// The number of the schema; 0: a new file.
Result<std::int64_t> Journal::check_file() {
    Database& db = *database_;
    TRY(const std::int64_t application, db.integer("PRAGMA application_id"));
    TRY(const std::int64_t schema, db.integer("PRAGMA user_version"));
    TRY(const std::int64_t tables, db.integer("SELECT count(*) FROM sqlite_schema"));
    if (tables > 0 && application != kApplicationId)
        return Error(ErrorKind::invalid, printable(db.path()) + " is a database of another program", {},
                     "name another folder");
    if (schema > 0 && schema <= kSchema) {
        TRY(const std::int64_t ours, db.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'journal'"));
        if (ours == 0)
            return Error(ErrorKind::invalid, printable(db.path()) + " has no journal in it any more", {},
                         "someone or something changed the file: restore a backup");
    }
    if (schema > kSchema)
        return Error(ErrorKind::unsupported,
                     fmt::format("{} was written by a newer Stoker (schema {}, this one knows {})",
                                 printable(db.path()), schema, kSchema),
                     {}, "install that version again; an older one would lose what it does not know");
    return schema;
}

Status Journal::migrate(const Options& options) {
    Database& db = *database_;
    TRY(const std::int64_t schema, check_file());
    TRY(Transaction transaction, Transaction::begin(db));
    if (schema == 0) {
        TRY_VOID(db.execute(kJournalTable));
        TRY_VOID(db.execute(kSnapshots));
        TRY_VOID(db.execute(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId, kSchema)));
    }
    TRY_VOID(db.execute(kPieces));
    TRY_VOID(db.execute(kMarks));
    TRY_VOID(db.execute(kArchives));
    if (options.prepare_tables) {
        TRY_VOID(options.prepare_tables(db));
    }
    return transaction.commit();
}

Status Journal::load_head() {
    head_ = {.seq = 0, .hash = first_hash()};
    TRY(const std::int64_t tables, database_->integer("SELECT count(*) FROM sqlite_schema WHERE name = 'journal'"));
    if (tables == 0) return done();  // looked at before its first writer has made them
    TRY_VOID(load_archives());
    TRY(Statement last, database_->prepare("SELECT seq, hash, at_us, epoch FROM journal ORDER BY seq DESC LIMIT 1"));
    TRY(const bool any, last.step());
    if (any) {
        head_ = {.seq = static_cast<std::uint64_t>(last.integer(0)), .hash = std::string(last.blob(1))};
        last_at_us_ = last.integer(2);
        epoch_ = static_cast<std::uint64_t>(last.integer(3));
    }
    if (lock_ < 0) return done();
    TRY(Statement insert, database_->prepare(fmt::format("INSERT INTO journal({}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                                                         kJournalColumns)));
    insert_ = std::move(insert);
    return done();
}

Status Journal::append(std::span<const JournalEntry> entries, std::int64_t at_us,
                       const std::function<Status(Database&, std::uint64_t)>& project) {
    if (!insert_) return Error(ErrorKind::denied, "the journal was opened for looking only");
    if (failed_)
        return Error(ErrorKind::unavailable, "the journal could not be written before; nothing more is accepted", {},
                     "restart the server");
    // What is written to files that nobody can open any more is not kept.
    if (struct stat held{}; ::fstat(lock_, &held) == 0 && held.st_nlink == 0) {
        failed_ = true;
        return Error(ErrorKind::unavailable,
                     fmt::format("{} was deleted while it was in use; nothing more is accepted",
                                 printable(std::filesystem::path(database_->path()).parent_path().string())),
                     {}, "restore a backup, or start anew");
    }
    for (const JournalEntry& entry : entries)
        if (entry.body.size() > kMaxBodyBytes)
            return Error(ErrorKind::exhausted,
                         fmt::format("a record of {} bytes, at most {} are kept", entry.body.size(), kMaxBodyBytes));
    const auto write = [&]() -> Status {
        TRY_VOID(begin_writing());
        TRY(Transaction transaction, Transaction::begin(*database_));
        JournalHead head = head_;
        const std::int64_t at = std::max(at_us, last_at_us_);
        std::vector<JournalRecord> records;
        for (const JournalEntry& entry : entries) {
            const std::uint64_t seq = head.seq + 1;
            const std::string body_hash = sha256(entry.body);
            std::string hash = hash_of(entry, {seq, at, epoch_, body_hash}, head.hash);
            TRY_VOID(insert_record(*insert_, entry, {seq, at, epoch_, false, body_hash, hash}));
            if (home_) {
                JournalRecord& record = records.emplace_back();
                static_cast<JournalEntry&>(record) = entry;
                record.seq = seq, record.at_us = at, record.epoch = epoch_;
                record.body_hash = body_hash, record.hash = hash;
            }
            head = {.seq = seq, .hash = std::move(hash)};
        }
        if (project) {
            TRY_VOID(project(*database_, head_.seq + 1));
        }
        // There first: the folder is never ahead of it, and what it misses after a crash it gets from there.
        if (!records.empty()) TRY_VOID(home_->append(head_, records));
        TRY_VOID(transaction.commit());
        head_ = std::move(head);
        last_at_us_ = at;
        if (!entries.empty()) keep_head();
        return done();
    };
    Status status = write();
    if (!status) failed_ = true;
    return status;
}

Status Journal::save_snapshot(const Snapshot& snapshot) {
    TRY(Transaction transaction, Transaction::begin(*database_));
    TRY(Statement insert,
        database_->prepare("INSERT OR REPLACE INTO snapshot(seq, format, state, digest) VALUES(?,?,?,?)"));
    const std::string digest = sha256(big_endian(snapshot.seq) + snapshot.state);
    insert.bind(1, static_cast<std::int64_t>(snapshot.seq))
        .bind(2, std::int64_t{snapshot.format})
        .bind_blob(3, snapshot.state)
        .bind_blob(4, digest);
    TRY_VOID(insert.run());
    TRY_VOID(database_->execute(
        "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT 2)"));
    return transaction.commit();
}

namespace {

std::string digest_of_pieces(std::uint64_t seq, const std::vector<std::string>& piece_digests) {
    std::string all = big_endian(seq) + big_endian(piece_digests.size());
    for (const std::string& each : piece_digests) all += each;
    return sha256(all);
}

// The text of a snapshot in pieces, and the digest that it must have.
Status read_pieces(Database& database, Snapshot& snapshot, std::string& digest) {
    TRY(Statement rows, database.prepare("SELECT number, bytes FROM snapshot_piece WHERE seq = ? ORDER BY number"));
    rows.bind(1, static_cast<std::int64_t>(snapshot.seq));
    std::vector<std::string> digests;
    for (;;) {
        TRY(const bool more, rows.step());
        if (!more) break;
        if (static_cast<std::size_t>(rows.integer(0)) != digests.size()) return done();  // a gap: no digest fits
        digests.push_back(sha256(rows.blob(1)));
        snapshot.state += rows.blob(1);
    }
    if (!digests.empty()) digest = digest_of_pieces(snapshot.seq, digests);
    return done();
}

}  // namespace

Status Journal::add_snapshot_piece(std::uint64_t seq, std::uint64_t number, std::string_view bytes) {
    // What a server that was killed, or a journal that was cut, left under numbers that come again.
    if (number == 0) TRY_VOID(database_->execute(fmt::format("DELETE FROM snapshot_piece WHERE seq >= {}", seq)));
    TRY(Statement insert,
        database_->prepare("INSERT OR REPLACE INTO snapshot_piece(seq, number, bytes) VALUES(?,?,?)"));
    insert.bind(1, static_cast<std::int64_t>(seq)).bind(2, static_cast<std::int64_t>(number)).bind_blob(3, bytes);
    TRY_VOID(insert.run());
    // As much goes as comes: removing all at once would take as long as writing all at once.
    TRY(Statement remove,
        database_->prepare("DELETE FROM snapshot_piece WHERE rowid IN (SELECT rowid FROM snapshot_piece WHERE seq <> ? "
                           "AND seq NOT IN (SELECT seq FROM snapshot) LIMIT 2)"));
    remove.bind(1, static_cast<std::int64_t>(seq));
    return remove.run();
}

Status Journal::finish_snapshot(std::uint64_t seq, std::uint32_t format, const std::vector<std::string>& digests) {
    TRY(Statement insert,
        database_->prepare("INSERT OR REPLACE INTO snapshot(seq, format, state, digest) VALUES(?,?,?,?)"));
    const std::string digest = digest_of_pieces(seq, digests);
    insert.bind(1, static_cast<std::int64_t>(seq))
        .bind(2, std::int64_t{format})
        .bind_blob(3, std::string_view())
        .bind_blob(4, digest);
    TRY_VOID(insert.run());
    return database_->execute(
        "DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT 2)");
}

Result<std::optional<Snapshot>> Journal::newest_snapshot() {
    if (head_.seq == 0) return std::optional<Snapshot>();
    TRY(Statement rows,
        database_->prepare("SELECT seq, format, state, digest FROM snapshot WHERE seq <= ? ORDER BY seq DESC"));
    rows.bind(1, static_cast<std::int64_t>(head_.seq));
    for (;;) {
        TRY(const bool more, rows.step());
        if (!more) return std::optional<Snapshot>();
        Snapshot snapshot{.seq = static_cast<std::uint64_t>(rows.integer(0)),
                          .format = static_cast<std::uint32_t>(rows.integer(1)),
                          .state = std::string(rows.blob(2))};
        std::string digest;
        if (snapshot.state.empty()) {
            TRY_VOID(read_pieces(*database_, snapshot, digest));
        } else {
            digest = sha256(big_endian(snapshot.seq) + snapshot.state);
        }
        if (digest == rows.blob(3)) return std::optional(std::move(snapshot));
    }
}

Status Journal::redact(std::uint64_t seq) {
    TRY(Statement update, database_->prepare("UPDATE journal SET body = NULL WHERE seq = ?"));
    update.bind(1, static_cast<std::int64_t>(seq));
    if (home_) TRY_VOID(home_->redact(seq));
    return update.run();
}

}  // namespace stoker
