#include "io/postgres/postgres_lease.h"

#include <chrono>

#include <fmt/format.h>

#include "base/text.h"
#include "io/postgres/durable.h"
#include "io/worker.h"

namespace stoker {
namespace {

using LeaseClock = std::chrono::steady_clock;

constexpr double kLookEveryS = 0.25;  // of who stands by

}  // namespace

PostgresLease::PostgresLease(PostgresWriter writer, PostgresLeaseRow row)
    : options_(std::move(writer)),
      of_(std::move(row)),
      row_(fmt::format("{} WHERE {} = {}", of_.table, of_.key, of_.value)) {}

PostgresLease::~PostgresLease() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (keeper_.joinable()) keeper_.join();
}

Status PostgresLease::take(std::unique_ptr<PostgresConnection>& connection, const std::function<bool(double)>& stop,
                           const std::function<void(const std::string&)>& waiting) {
    std::string told;
    for (;;) {
        auto mine = try_to_take(*connection);
        if (!mine && !connection->broken()) return mine.error();
        if (mine && *mine) break;
        std::string holder = "nobody that is reached: " + options_.name + " is away";
        if (mine) {
            if (const auto found = holder_now(*connection)) holder = *found;
        } else if (auto again = connect_durably(options_.url)) {
            connection = std::move(*again);
            continue;
        }
        if (holder != told) waiting(told = holder);
        if (stop(kLookEveryS)) return Error(ErrorKind::denied, "told to stop before it led");
    }
    keeper_ = masked_thread("stoker-lead", [this] { keep(); });
    return done();
}

std::optional<Error> PostgresLease::lost(PostgresConnection& connection) const {
    const auto row = connection.query(("SELECT term, holder FROM " + row_).c_str());
    if (!row) return row.error();
    if (row->count() == 1 && row->integer(0, 0) == static_cast<std::int64_t>(term_)) return std::nullopt;
    return taken(row->count() == 0 ? "nobody" : std::string(row->bytes(0, 1)));
}

Error PostgresLease::taken(const std::string& holder) const {
    return Error(ErrorKind::conflict, fmt::format("{} leads now, and this server does not", printable(holder, 120)), {},
                 "start it again: it stands by then");
}

Result<bool> PostgresLease::try_to_take(PostgresConnection& connection) {
    if (connection.broken()) return Error(ErrorKind::unavailable, "no connection");
    const std::string sql = fmt::format(
        "INSERT INTO {0}({1}, form, term, holder, until) VALUES ({2}, $3, 1, $1, clock_timestamp() + $2 * interval '1 "
        "second') ON CONFLICT ({1}) DO UPDATE SET term = {0}.term + 1, holder = excluded.holder, until = "
        "excluded.until WHERE {0}.until < clock_timestamp() AND {0}.form = $3 RETURNING term",
        of_.table, of_.key, of_.value);
    const PostgresValue mine[] = {PostgresValue::text(options_.holder), PostgresValue::integer(options_.lease_s),
                                  PostgresValue::integer(of_.form)};
    TRY(const PostgresRows rows, connection.query(sql.c_str(), mine));
    if (rows.count() == 1) {
        term_ = static_cast<std::uint64_t>(rows.integer(0, 0));
        return true;
    }
    TRY(const PostgresRows form, connection.query(("SELECT form FROM " + row_).c_str()));
    if (form.count() == 1 && form.integer(0, 0) != of_.form)
        return Error(ErrorKind::unsupported,
                     fmt::format("{} has tables of form {}, and this Stoker knows {}", options_.name,
                                 form.integer(0, 0), of_.form),
                     {}, "start the version of Stoker that made them");
    return false;
}

std::optional<std::string> PostgresLease::holder_now(PostgresConnection& connection) const {
    const auto row = connection.query(("SELECT holder FROM " + row_).c_str());
    if (!row || row->count() != 1) return std::nullopt;
    return printable(row->bytes(0, 0), 120);
}

void PostgresLease::keep() {
    std::unique_ptr<PostgresConnection> own;
    auto last = LeaseClock::now();
    const std::string renew = "UPDATE " + of_.table +
                              " SET until = clock_timestamp() + $2 * interval '1 second' WHERE " + of_.key + " = " +
                              of_.value + " AND term = $1";
    const std::string leave =
        "UPDATE " + of_.table + " SET until = '-infinity' WHERE " + of_.key + " = " + of_.value + " AND term = $1";
    const PostgresValue values[] = {PostgresValue::integer(static_cast<std::int64_t>(term_)),
                                    PostgresValue::integer(options_.lease_s)};
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::duration<double>(options_.lease_s / 5.0), [this] { return stopping_; })) {
        lock.unlock();
        std::optional<Error> gone;
        if (!own || own->broken()) {
            auto fresh = connect_durably(options_.url);
            own = fresh ? std::move(*fresh) : nullptr;
        }
        if (own) {
            const auto kept = own->query(renew.c_str(), values);
            if (kept && kept->affected() == 1)
                last = LeaseClock::now();
            else if (kept)
                gone = taken(holder_now(*own).value_or("nobody"));
        }
        if (!gone && LeaseClock::now() - last > std::chrono::seconds(options_.patience_s))
            gone = Error(ErrorKind::unavailable,
                         fmt::format("{} has been away for {} s", options_.name, options_.patience_s), {},
                         "the server ends, and goes on from there when it is started again");
        if (gone) {
            if (options_.on_lost) options_.on_lost(*gone);
            return;
        }
        lock.lock();
    }
    lock.unlock();
    if (!own || own->broken()) {
        auto fresh = connect_durably(options_.url);
        own = fresh ? std::move(*fresh) : nullptr;
    }
    if (own) (void)own->query(leave.c_str(), std::span(values).first(1), 2).ok();
}

}  // namespace stoker
