#include "io/postgres/connection.h"

#include <dlfcn.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {
namespace {

// Types of src/include/catalog/pg_type.dat.
constexpr std::uint32_t kInt8 = 20, kText = 25, kBytea = 17, kInt8Array = 1016, kByteaArray = 1001;
constexpr int kBinary = 1;

struct Libpq {
    decltype(&PQconnectdbParams) connect = nullptr;
    decltype(&PQconninfoParse) parse = nullptr;
    decltype(&PQconninfoFree) parse_free = nullptr;
    decltype(&PQfreemem) free_memory = nullptr;
    decltype(&PQstatus) status = nullptr;
    decltype(&PQerrorMessage) error = nullptr;
    decltype(&PQfinish) finish = nullptr;
    decltype(&PQsetnonblocking) set_nonblocking = nullptr;
    decltype(&PQsendQueryParams) send = nullptr;
    decltype(&PQflush) flush = nullptr;
    decltype(&PQsocket) socket = nullptr;
    decltype(&PQconsumeInput) consume = nullptr;
    decltype(&PQisBusy) busy = nullptr;
    decltype(&PQgetResult) get = nullptr;
    decltype(&PQresultStatus) result_status = nullptr;
    decltype(&PQresultErrorField) field = nullptr;
    decltype(&PQclear) clear = nullptr;
    decltype(&PQntuples) rows = nullptr;
    decltype(&PQcmdTuples) affected = nullptr;
    decltype(&PQgetvalue) value = nullptr;
    decltype(&PQgetlength) length = nullptr;
    decltype(&PQgetisnull) is_null = nullptr;
    std::string missing{};  // why it cannot be used
};

template <class F>
void find_call(void* library, F& call, const char* name, std::string& missing) {
    call = reinterpret_cast<F>(::dlsym(library, name));
    if (!call && missing.empty()) missing = fmt::format("libpq.so.5 has no {}", name);
}

Libpq load_libpq() {
    Libpq pq;
    void* library = ::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* why = ::dlerror();
        pq.missing = why ? why : "libpq.so.5 cannot be loaded";
        return pq;
    }
    find_call(library, pq.connect, "PQconnectdbParams", pq.missing);
    find_call(library, pq.parse, "PQconninfoParse", pq.missing);
    find_call(library, pq.parse_free, "PQconninfoFree", pq.missing);
    find_call(library, pq.free_memory, "PQfreemem", pq.missing);
    find_call(library, pq.status, "PQstatus", pq.missing);
    find_call(library, pq.error, "PQerrorMessage", pq.missing);
    find_call(library, pq.finish, "PQfinish", pq.missing);
    find_call(library, pq.set_nonblocking, "PQsetnonblocking", pq.missing);
    find_call(library, pq.send, "PQsendQueryParams", pq.missing);
    find_call(library, pq.flush, "PQflush", pq.missing);
    find_call(library, pq.socket, "PQsocket", pq.missing);
    find_call(library, pq.consume, "PQconsumeInput", pq.missing);
    find_call(library, pq.busy, "PQisBusy", pq.missing);
    find_call(library, pq.get, "PQgetResult", pq.missing);
    find_call(library, pq.result_status, "PQresultStatus", pq.missing);
    find_call(library, pq.field, "PQresultErrorField", pq.missing);
    find_call(library, pq.clear, "PQclear", pq.missing);
    find_call(library, pq.rows, "PQntuples", pq.missing);
    find_call(library, pq.affected, "PQcmdTuples", pq.missing);
    find_call(library, pq.value, "PQgetvalue", pq.missing);
    find_call(library, pq.length, "PQgetlength", pq.missing);
    find_call(library, pq.is_null, "PQgetisnull", pq.missing);
    return pq;
}

const Libpq& libpq() {
    static const Libpq loaded = load_libpq();
    return loaded;
}

Status libpq_is_here() {
    if (libpq().missing.empty()) return done();
    return Error(ErrorKind::unsupported,
                 "PostgreSQL's client library cannot be used: " + printable(libpq().missing, 200), {},
                 "apt install libpq5, or dnf install libpq");
}

void put32(std::string& bytes, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((value >> shift) & 0xff);
}

void put64(std::string& bytes, std::int64_t value) {
    put32(bytes, static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32));
    put32(bytes, static_cast<std::uint32_t>(value));
}

// Dimensions, whether there are nulls, the type; then the length of the dimension and where it begins.
std::string array_head(std::size_t count, bool nulls, std::uint32_t type) {
    std::string bytes;
    put32(bytes, 1);
    put32(bytes, nulls ? 1 : 0);
    put32(bytes, type);
    put32(bytes, static_cast<std::uint32_t>(count));
    put32(bytes, 1);
    return bytes;
}

std::int64_t steady_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Several lines, of which the first says what is wrong.
std::string first_words(const char* message) {
    std::string text = message ? message : "";
    for (char& c : text)
        if (c == '\n') c = ' ';
    return printable(trim(text), 300);
}

}  // namespace

PostgresValue PostgresValue::integer(std::int64_t value) {
    PostgresValue made;
    made.type_ = kInt8;
    put64(made.bytes_, value);
    return made;
}

PostgresValue PostgresValue::text(std::string_view value) {
    PostgresValue made;
    made.type_ = kText;
    made.bytes_ = value;
    return made;
}

PostgresValue PostgresValue::integers(std::span<const std::int64_t> values) {
    PostgresValue made;
    made.type_ = kInt8Array;
    made.bytes_ = array_head(values.size(), false, kInt8);
    for (const std::int64_t value : values) {
        put32(made.bytes_, 8);
        put64(made.bytes_, value);
    }
    return made;
}

PostgresValue PostgresValue::blobs(std::span<const std::optional<std::string_view>> values) {
    PostgresValue made;
    made.type_ = kByteaArray;
    made.bytes_ =
        array_head(values.size(), std::any_of(values.begin(), values.end(), [](auto& v) { return !v; }), kBytea);
    for (const auto& value : values) {
        put32(made.bytes_, value ? static_cast<std::uint32_t>(value->size()) : 0xffffffffu);
        if (value) made.bytes_ += *value;
    }
    return made;
}

PostgresRows::~PostgresRows() {
    if (result_) libpq().clear(result_);
}

int PostgresRows::count() const {
    return libpq().rows(result_);
}

std::int64_t PostgresRows::affected() const {
    const std::string_view digits = libpq().affected(result_);
    std::int64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

std::int64_t PostgresRows::integer(int row, int column) const {
    std::uint64_t value = 0;
    for (const char c : bytes(row, column)) value = value << 8 | static_cast<unsigned char>(c);
    return static_cast<std::int64_t>(value);
}

std::string_view PostgresRows::bytes(int row, int column) const {
    return {libpq().value(result_, row, column), static_cast<std::size_t>(libpq().length(result_, row, column))};
}

bool PostgresRows::is_null(int row, int column) const {
    return libpq().is_null(result_, row, column) != 0;
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::open(const std::string& url, int limit_s) {
    TRY_VOID(libpq_is_here());
    // A peer that is gone without a word is noticed by TCP, not only by our own limit.
    const std::string limit = std::to_string(std::max(limit_s, 2)), user_limit = std::to_string(limit_s * 1000);
    const char* names[] = {"dbname",          "connect_timeout",           "tcp_user_timeout",
                           "keepalives_idle", "fallback_application_name", nullptr};
    const char* values[] = {url.c_str(), limit.c_str(), user_limit.c_str(), "10", "stoker", nullptr};
    std::unique_ptr<PostgresConnection> connection(new PostgresConnection(libpq().connect(names, values, 1)));
    if (!connection->handle_ || libpq().status(connection->handle_) != CONNECTION_OK)
        return Error(ErrorKind::unavailable,
                     "PostgreSQL does not answer: " +
                         first_words(connection->handle_ ? libpq().error(connection->handle_) : "out of memory"),
                     {}, "psql with the same address shows whether it is reached");
    libpq().set_nonblocking(connection->handle_, 1);
    return connection;
}

PostgresConnection::~PostgresConnection() {
    if (handle_) libpq().finish(handle_);
}

Status PostgresConnection::wait(bool to_write, std::int64_t until_ms) {
    for (;;) {
        const std::int64_t left = until_ms - steady_ms();
        pollfd socket{.fd = libpq().socket(handle_),
                      .events = static_cast<short>(POLLIN | (to_write ? POLLOUT : 0)),
                      .revents = 0};
        const int ready = left <= 0 ? 0 : ::poll(&socket, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
        if (ready > 0) return done();
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0 && steady_ms() < until_ms) continue;
        broken_ = true;
        return Error(ErrorKind::timed_out, "PostgreSQL took too long to answer");
    }
}

Error PostgresConnection::failed(pg_result* result) {
    const char* code = result ? libpq().field(result, PG_DIAG_SQLSTATE) : nullptr;
    const std::string_view state = code ? code : "";
    if (libpq().status(handle_) != CONNECTION_OK || state.empty() || state.starts_with("08") ||
        state.starts_with("57P"))
        broken_ = true;
    // Classes of https://www.postgresql.org/docs/15/errcodes-appendix.html
    const ErrorKind kind = broken_                                                 ? ErrorKind::unavailable
                           : state.starts_with("53")                               ? ErrorKind::exhausted
                           : state.starts_with("28") || state == "42501"           ? ErrorKind::denied
                           : state.starts_with("40") || state.starts_with("23")    ? ErrorKind::conflict
                           : state.starts_with("25") || state.starts_with("57014") ? ErrorKind::unavailable
                                                                                   : ErrorKind::internal;
    const char* said = result ? libpq().field(result, PG_DIAG_MESSAGE_PRIMARY) : nullptr;
    return Error(kind, "PostgreSQL: " + first_words(said ? said : libpq().error(handle_)));
}

Result<PostgresRows> PostgresConnection::query(const char* sql, std::span<const PostgresValue> values, double limit_s) {
    if (broken_) return Error(ErrorKind::unavailable, "the connection to PostgreSQL is broken");
    std::vector<Oid> types;
    std::vector<const char*> bytes;
    std::vector<int> lengths, formats(values.size(), kBinary);
    for (const PostgresValue& value : values) {
        types.push_back(value.type_);
        bytes.push_back(value.bytes_.data());
        lengths.push_back(static_cast<int>(value.bytes_.size()));
    }
    const std::int64_t until_ms = steady_ms() + static_cast<std::int64_t>(limit_s * 1000);
    if (libpq().send(handle_, sql, static_cast<int>(values.size()), types.data(), bytes.data(), lengths.data(),
                     formats.data(), kBinary) == 0)
        return failed(nullptr);
    for (;;) {
        const int flushed = libpq().flush(handle_);
        if (flushed < 0) return failed(nullptr);
        if (flushed == 0) break;
        TRY_VOID(wait(true, until_ms));
        if (libpq().consume(handle_) == 0) return failed(nullptr);
    }
    std::optional<PostgresRows> rows;
    std::optional<Error> error;
    for (;;) {
        while (libpq().busy(handle_) != 0) {
            TRY_VOID(wait(false, until_ms));
            if (libpq().consume(handle_) == 0) return failed(nullptr);
        }
        PGresult* result = libpq().get(handle_);
        if (!result) break;
        const ExecStatusType status = libpq().result_status(result);
        const bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
        if (!good && !error) error = failed(result);
        if (good && !rows)
            rows.emplace(PostgresRows(result));
        else
            libpq().clear(result);
    }
    if (error) return *error;
    if (!rows) return failed(nullptr);
    return std::move(*rows);
}

Result<std::string> postgres_name(const std::string& url, bool given_openly) {
    if (!url.starts_with("postgres://") && !url.starts_with("postgresql://"))
        return Error(ErrorKind::invalid, "'" + printable(url, 80) + "' is no address of a PostgreSQL database", {},
                     "postgresql://user@host:5432/database");
    TRY_VOID(libpq_is_here());
    char* why = nullptr;
    PQconninfoOption* const options = libpq().parse(url.c_str(), &why);
    if (!options) {
        const std::string said = first_words(why);
        if (why) libpq().free_memory(why);
        return Error(ErrorKind::invalid, "the address of the database: " + said, {},
                     "postgresql://user@host:5432/database");
    }
    std::string host = "local socket", port, database;
    bool password = false;
    for (const PQconninfoOption* option = options; option->keyword; ++option) {
        const std::string_view word = option->keyword;
        if (!option->val || *option->val == '\0') continue;
        if (word == "host") host = option->val;
        if (word == "port") port = std::string(":") + option->val;
        if (word == "dbname") database = option->val;
        if (word == "password") password = true;
    }
    libpq().parse_free(options);
    if (password && given_openly)
        return Error(ErrorKind::invalid,
                     "the address has a password, and everybody on this machine reads the arguments", {},
                     "put the password into ~/.pgpass or PGPASSWORD, or the address into STOKER_JOURNAL");
    return printable(fmt::format("postgresql://{}{}/{}", host, port, database), 200);
}

}  // namespace stoker
