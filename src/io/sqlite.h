// SQLite behind four small types. Only this folder includes sqlite3.h. One Database belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stoker {

class Database;

// A prepared statement: bind from 1, step through the rows, read columns from 0. Texts and blobs that were bound must
// live until the step.
class Statement {
public:
    Statement(Statement&& other) noexcept;
    Statement& operator=(Statement&& other) noexcept;
    ~Statement();

    Statement& bind(int at, std::int64_t value);
    Statement& bind(int at, std::string_view text);
    Statement& bind_blob(int at, std::string_view bytes);
    Statement& bind_null(int at);

    Result<bool> step();  // true: there is a row
    Status run();         // for statements without rows; resets
    void reset();

    std::int64_t integer(int column) const;
    std::string_view text(int column) const;  // valid until the next step
    std::string_view blob(int column) const;
    bool is_null(int column) const;

private:
    friend class Database;
    Statement(Database& database, sqlite3_stmt* statement) : database_(&database), statement_(statement) {}
    Database* database_;
    sqlite3_stmt* statement_;
    int bad_bind_ = 0;  // the first error code of a bind; told by the next step
};

struct DatabaseOptions {
    bool create = true;
    bool read_only = false;
    // With read_only: nobody writes, so nothing is locked and no file is made beside it.
    bool immutable = false;
    // FULL loses nothing that was committed, also at power loss; NORMAL may lose the last commits then.
    bool synchronous_full = true;
};

class Database {
public:
    static Result<std::unique_ptr<Database>> open(const std::string& path, const DatabaseOptions& options = {});
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;
    ~Database();

    Result<Statement> prepare(std::string_view sql);
    Status execute(std::string_view sql);  // one or more statements without parameters
    Result<std::int64_t> integer(std::string_view sql);
    // An online copy that a reader can open; readers and the writer go on meanwhile.
    Status copy_to(const std::string& path);
    // Gives the room of what was removed back to the disk, all or nothing.
    Status shrink();
    const std::string& path() const { return path_; }

    // What a failed call means: exhausted (disk full), conflict (locked), invalid (not a database, damaged), denied,
    // unavailable (I/O).
    Error error(std::string_view doing) const;

private:
    friend class Statement;
    Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
    sqlite3* handle_;
    std::string path_;
};

// Rolled back unless committed.
class Transaction {
public:
    static Result<Transaction> begin(Database& database);
    Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();
    Status commit();

private:
    explicit Transaction(Database& database) : database_(&database) {}
    Database* database_;
};

}  // namespace stoker
