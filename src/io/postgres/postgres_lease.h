// Who of several processes may write something that is in a database. A row names the one by its term; each write shows
// its term and finds the row locked or changed, so a process whose place was taken cannot write any more, however late
// it wakes. Whoever has the place says so each second; when it has not for lease_s seconds of the database's clock,
// whoever stands by takes it with the next term.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "io/postgres/connection.h"

namespace stoker {

inline constexpr int kLeaseS = 5;

// Which database, and who this is: what writes there is told so, whatever it writes.
struct PostgresWriter {
    std::string url;     // connection.h
    std::string name;    // of postgres_name()
    std::string holder;  // who this is, for those who stand by: "host, process 12"
    int lease_s = kLeaseS;
    int patience_s = 30;  // how long the database may be away
    // From a thread of its own: somebody else has the place, or the database was away for longer than patience_s. The
    // process has to end; it may not call back.
    std::function<void(const Error&)> on_lost{};
};
// The row that a lease is: of this table, whose key is of this value, as SQL. It has form, term, holder and until
// beside the key.
struct PostgresLeaseRow {
    std::string table, key, value;
    std::int64_t form = 1;  // of the tables that it guards
};

class PostgresLease {
public:
    PostgresLease(PostgresWriter writer, PostgresLeaseRow row);
    // Whoever stands by need not wait for the end of the lease.
    ~PostgresLease();
    PostgresLease(const PostgresLease&) = delete;
    PostgresLease& operator=(const PostgresLease&) = delete;

    // Waits until it has the place. `waiting` is told who has it meanwhile, once for each; `stop` waits so many seconds
    // and says whether to give up, which is denied then.
    Status take(std::unique_ptr<PostgresConnection>& connection, const std::function<bool(double seconds)>& stop,
                const std::function<void(const std::string& holder)>& waiting);
    std::uint64_t term() const { return term_; }  // 0: it has none
    // Why a write was refused: somebody has taken the place. Nothing: it is still this one's.
    std::optional<Error> lost(PostgresConnection& connection) const;

private:
    Result<bool> try_to_take(PostgresConnection& connection);
    std::optional<std::string> holder_now(PostgresConnection& connection) const;
    Error taken(const std::string& holder) const;
    void keep();

    const PostgresWriter options_;
    const PostgresLeaseRow of_;
    const std::string row_;  // "TABLE WHERE KEY = VALUE"
    std::uint64_t term_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread keeper_;
};

}  // namespace stoker
