// PostgreSQL behind two small types. libpq is loaded when it is first asked for (libpq.so.5), so a machine without it
// runs everything else. Only this folder includes libpq-fe.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct pg_conn;
struct pg_result;

namespace stoker {

// One parameter of a statement, in the binary form of its type; PostgreSQL 15 documentation, 34.3 and
// src/backend/utils/adt/arrayfuncs.c (array_recv).
class PostgresValue {
public:
    static PostgresValue integer(std::int64_t value);
    static PostgresValue text(std::string_view value);
    static PostgresValue integers(std::span<const std::int64_t> values);
    static PostgresValue blobs(std::span<const std::optional<std::string_view>> values);  // none: NULL

private:
    friend class PostgresConnection;
    std::uint32_t type_ = 0;
    std::string bytes_;
};

class PostgresRows {
public:
    PostgresRows(PostgresRows&& other) noexcept : result_(std::exchange(other.result_, nullptr)) {}
    PostgresRows& operator=(PostgresRows&&) = delete;
    ~PostgresRows();

    int count() const;
    std::int64_t affected() const;
    std::int64_t integer(int row, int column) const;  // of a bigint
    std::string_view bytes(int row, int column) const;
    bool is_null(int row, int column) const;

private:
    friend class PostgresConnection;
    explicit PostgresRows(pg_result* result) : result_(result) {}
    pg_result* result_;
};

// One thread. A call that failed as unavailable or timed_out leaves it broken: what was asked for may have been done.
class PostgresConnection {
public:
    // `url` as libpq takes it: postgresql://user@host:port/database?..., with passwords from PGPASSFILE or PGPASSWORD.
    // At most `limit_s` for each address that the name has.
    static Result<std::unique_ptr<PostgresConnection>> open(const std::string& url, int limit_s = 5);
    PostgresConnection(const PostgresConnection&) = delete;
    PostgresConnection& operator=(const PostgresConnection&) = delete;
    ~PostgresConnection();

    // One statement; columns come back in binary form.
    Result<PostgresRows> query(const char* sql, std::span<const PostgresValue> values = {}, double limit_s = 10);
    bool broken() const { return broken_; }

private:
    explicit PostgresConnection(pg_conn* handle) : handle_(handle) {}
    Status wait(bool to_write, std::int64_t until_ms);
    Error failed(pg_result* result);

    pg_conn* handle_;
    bool broken_ = false;
};

// "postgresql://host:port/database", without user and password. invalid: it is no such address, or `given_openly` has a
// password in it.
Result<std::string> postgres_name(const std::string& url, bool given_openly);

}  // namespace stoker
