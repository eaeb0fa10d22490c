#include "io/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <limits>

namespace stoker {
namespace {

ErrorKind kind_of_code(int code) {
    switch (code & 0xff) {
        case SQLITE_FULL:
        case SQLITE_TOOBIG:
        case SQLITE_NOMEM: return ErrorKind::exhausted;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_CONSTRAINT: return ErrorKind::conflict;
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT:
        case SQLITE_FORMAT: return ErrorKind::invalid;
        case SQLITE_PERM:
        case SQLITE_READONLY:
        case SQLITE_AUTH: return ErrorKind::denied;
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR: return ErrorKind::unavailable;
        default: return ErrorKind::internal;
    }
}

int length_of(std::string_view bytes) {
    return bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ? -1
                                                                                    : static_cast<int>(bytes.size());
}

// https://www.sqlite.org/uri.html; what would be read as a part of the address is escaped.
std::string immutable_uri(const std::string& path) {
    std::string uri = "file:";
    for (const char c : path) {
        if (c == '?' || c == '#' || c == '%') {
            constexpr std::string_view kHex = "0123456789abcdef";
            const auto byte = static_cast<unsigned char>(c);
            uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
        } else {
            uri += c;
        }
    }
    return uri + "?immutable=1";
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)), bad_bind_(other.bad_bind_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
    std::swap(database_, other.database_);
    std::swap(statement_, other.statement_);
    std::swap(bad_bind_, other.bad_bind_);
    return *this;
}

Statement::~Statement() {
    sqlite3_finalize(statement_);
}

Statement& Statement::bind(int at, std::int64_t value) {
    const int code = sqlite3_bind_int64(statement_, at, value);
    if (bad_bind_ == 0) bad_bind_ = code;
    return *this;
}

Statement& Statement::bind(int at, std::string_view text) {
    const int size = length_of(text);
    // A null pointer would bind NULL, and an empty view may hold one.
    const int code = size < 0 ? SQLITE_TOOBIG
                              : sqlite3_bind_text(statement_, at, text.empty() ? "" : text.data(), size, SQLITE_STATIC);
    if (bad_bind_ == 0) bad_bind_ = code;
    return *this;
}

Statement& Statement::bind_blob(int at, std::string_view bytes) {
    const int size = length_of(bytes);
    const int code = size < 0
                         ? SQLITE_TOOBIG
                         : sqlite3_bind_blob(statement_, at, bytes.empty() ? "" : bytes.data(), size, SQLITE_STATIC);
    if (bad_bind_ == 0) bad_bind_ = code;
    return *this;
}

Statement& Statement::bind_null(int at) {
    const int code = sqlite3_bind_null(statement_, at);
    if (bad_bind_ == 0) bad_bind_ = code;
    return *this;
}

Result<bool> Statement::step() {
    if (bad_bind_ != 0) {
        const int code = std::exchange(bad_bind_, 0);
        return Error(kind_of_code(code), std::string("cannot bind a value: ") + sqlite3_errstr(code));
    }
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return database_->error("cannot use the database");
}

Status Statement::run() {
    const Result<bool> stepped = step();
    reset();
    if (!stepped) return stepped.error();
    return done();
}

void Statement::reset() {
    sqlite3_reset(statement_);
    bad_bind_ = 0;
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

std::string_view Statement::text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return data == nullptr ? std::string_view()
                           : std::string_view(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

std::string_view Statement::blob(int column) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return data == nullptr ? std::string_view()
                           : std::string_view(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

bool Statement::is_null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, const DatabaseOptions& options) {
    // For its owner only, as are then the files that SQLite makes beside it: what is in there names secrets.
    if (options.create && !options.read_only) {
        const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (made >= 0) ::close(made);
    }
    sqlite3* handle = nullptr;
    const int flags = (options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                      (options.create && !options.read_only ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX |
                      SQLITE_OPEN_EXRESCODE | (options.immutable ? SQLITE_OPEN_URI : 0);
    const int code =
        sqlite3_open_v2(options.immutable ? immutable_uri(path).c_str() : path.c_str(), &handle, flags, nullptr);
    std::unique_ptr<Database> database(new Database(handle, path));
    if (code != SQLITE_OK) return database->error("cannot open");
    sqlite3_busy_timeout(handle, 5000);
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
    if (!options.read_only) {
        TRY_VOID(database->execute("PRAGMA journal_mode=WAL"));
        TRY_VOID(database->execute(options.synchronous_full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
    }
    TRY_VOID(database->execute("PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF; PRAGMA cache_size=-4096"));
    return database;
}

Database::~Database() {
    sqlite3_close(handle_);
}

Result<Statement> Database::prepare(std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(handle_, sql.data(), length_of(sql), SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
        SQLITE_OK)
        return error("cannot prepare a statement");
    return Statement(*this, statement);
}

Status Database::execute(std::string_view sql) {
    const std::string text(sql);
    if (sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error("cannot use");
    return done();
}

Result<std::int64_t> Database::integer(std::string_view sql) {
    TRY(Statement statement, prepare(sql));
    TRY(const bool row, statement.step());
    return row ? statement.integer(0) : std::int64_t{0};
}

Status Database::copy_to(const std::string& path) {
    TRY(const std::unique_ptr<Database> target, Database::open(path));
    sqlite3_backup* backup = sqlite3_backup_init(target->handle_, "main", handle_, "main");
    if (backup == nullptr) return target->error("cannot back up to");
    int code = SQLITE_OK;
    do {
        code = sqlite3_backup_step(backup, 1024);
    } while (code == SQLITE_OK);
    sqlite3_backup_finish(backup);
    if (code != SQLITE_DONE) return target->error("cannot back up to");
    return done();
}

Status Database::shrink() {
    // VACUUM attaches a file of its own.
    sqlite3_limit(handle_, SQLITE_LIMIT_ATTACHED, 1);
    const Status shrunk = execute("VACUUM");
    sqlite3_limit(handle_, SQLITE_LIMIT_ATTACHED, 0);
    TRY_VOID(shrunk);
    TRY([[maybe_unused]] const std::int64_t busy, integer("PRAGMA wal_checkpoint(TRUNCATE)"));
    return done();
}

Error Database::error(std::string_view doing) const {
    const int code = handle_ == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(handle_);
    std::string message =
        std::string(doing) + " " + path_ + ": " + (handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_));
    return Error(kind_of_code(code), std::move(message));
}

Result<Transaction> Transaction::begin(Database& database) {
    TRY_VOID(database.execute("BEGIN IMMEDIATE"));
    return Transaction(database);
}

Transaction::~Transaction() {
    // After some errors SQLite has rolled back by itself; this one then fails, which is as good.
    if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Status Transaction::commit() {
    TRY_VOID(database_->execute("COMMIT"));
    database_ = nullptr;
    return done();
}

}  // namespace stoker
