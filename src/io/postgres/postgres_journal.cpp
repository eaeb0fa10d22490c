#include "io/postgres/postgres_journal.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "io/postgres/connection.h"
#include "io/worker.h"

namespace stoker {
namespace {

using Seconds = std::chrono::duration<double>;
using SteadyClock = std::chrono::steady_clock;

constexpr double kLookEveryS = 0.25;  // of who stands by
constexpr std::size_t kRecordsAtOnce = 500;
constexpr std::int64_t kForm = 1;  // of the tables

// Texts are bytes, since a record may have any; stoker_records shows them.
constexpr const char* kTables[] = {
    "SELECT pg_advisory_xact_lock(6085742150811430)",  // two that make them at once
    "CREATE TABLE IF NOT EXISTS stoker_journal(seq bigint PRIMARY KEY, at_us bigint NOT NULL, epoch bigint NOT NULL, "
    "kind bigint NOT NULL, format bigint NOT NULL, object bytea NOT NULL, version bigint NOT NULL, actor bytea NOT "
    "NULL, "
    "cause bytea NOT NULL, operation bytea NOT NULL, trace bytea NOT NULL, body bytea, body_hash bytea NOT NULL, "
    "hash bytea NOT NULL)",
    "CREATE TABLE IF NOT EXISTS stoker_leader(one boolean PRIMARY KEY DEFAULT true CHECK (one), form bigint NOT NULL, "
    "term bigint NOT NULL, holder text NOT NULL, until timestamptz NOT NULL)",
    "CREATE OR REPLACE VIEW stoker_records AS SELECT seq, to_timestamp(at_us / 1e6) AS at, encode(object, 'escape') AS "
    "object, encode(actor, 'escape') AS actor, encode(cause, 'escape') AS cause, encode(body, 'escape') AS body FROM "
    "stoker_journal",
};

constexpr const char* kTakeLead =
    "INSERT INTO stoker_leader(form, term, holder, until) "
    "VALUES ($3, 1, $1, clock_timestamp() + $2 * interval '1 second') ON CONFLICT (one) DO UPDATE SET "
    "term = stoker_leader.term + 1, holder = excluded.holder, until = excluded.until "
    "WHERE stoker_leader.until < clock_timestamp() AND stoker_leader.form = $3 RETURNING term";

constexpr const char* kAppend =
    "WITH leader AS MATERIALIZED (SELECT term FROM stoker_leader WHERE term = $1 FOR SHARE), "
    "tail AS (SELECT coalesce(max(seq), 0) AS seq FROM stoker_journal) "
    "INSERT INTO stoker_journal(seq, at_us, epoch, kind, format, object, version, actor, cause, operation, trace, "
    "body, "
    "body_hash, hash) SELECT r.* FROM leader, tail, unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], "
    "$7::bigint[], $8::bytea[], $9::bigint[], $10::bytea[], $11::bytea[], $12::bytea[], $13::bytea[], $14::bytea[], "
    "$15::bytea[], $16::bytea[]) AS r WHERE tail.seq = $2";

constexpr const char* kRead =
    "SELECT seq, at_us, epoch, kind, format, object, version, actor, cause, operation, trace, body, body_hash, hash "
    "FROM stoker_journal WHERE seq > $1 ORDER BY seq LIMIT $2";

std::vector<PostgresValue> values_of(std::uint64_t term, std::uint64_t before, std::span<const JournalRecord> records) {
    std::vector<std::int64_t> seq, at, epoch, kind, format, version;
    std::vector<std::optional<std::string_view>> object, actor, cause, operation, trace, body, body_hash, hash;
    for (const JournalRecord& record : records) {
        seq.push_back(static_cast<std::int64_t>(record.seq));
        at.push_back(record.at_us);
        epoch.push_back(static_cast<std::int64_t>(record.epoch));
        kind.push_back(record.kind);
        format.push_back(record.format);
        version.push_back(static_cast<std::int64_t>(record.version));
        object.emplace_back(record.object);
        actor.emplace_back(record.actor);
        cause.emplace_back(record.cause);
        operation.emplace_back(record.operation);
        trace.emplace_back(record.trace);
        body.push_back(record.redacted ? std::nullopt : std::optional<std::string_view>(record.body));
        body_hash.emplace_back(record.body_hash);
        hash.emplace_back(record.hash);
    }
    using V = PostgresValue;
    return {V::integer(static_cast<std::int64_t>(term)),
            V::integer(static_cast<std::int64_t>(before)),
            V::integers(seq),
            V::integers(at),
            V::integers(epoch),
            V::integers(kind),
            V::integers(format),
            V::blobs(object),
            V::integers(version),
            V::blobs(actor),
            V::blobs(cause),
            V::blobs(operation),
            V::blobs(trace),
            V::blobs(body),
            V::blobs(body_hash),
            V::blobs(hash)};
}

JournalRecord record_of(const PostgresRows& rows, int row) {
    JournalRecord record;
    record.seq = static_cast<std::uint64_t>(rows.integer(row, 0));
    record.at_us = rows.integer(row, 1);
    record.epoch = static_cast<std::uint64_t>(rows.integer(row, 2));
    record.kind = static_cast<std::uint32_t>(rows.integer(row, 3));
    record.format = static_cast<std::uint32_t>(rows.integer(row, 4));
    record.object = rows.bytes(row, 5);
    record.version = static_cast<std::uint64_t>(rows.integer(row, 6));
    record.actor = rows.bytes(row, 7);
    record.cause = rows.bytes(row, 8);
    record.operation = rows.bytes(row, 9);
    record.trace = rows.bytes(row, 10);
    record.redacted = rows.is_null(row, 11);
    record.body = rows.bytes(row, 11);
    record.body_hash = rows.bytes(row, 12);
    record.hash = rows.bytes(row, 13);
    return record;
}

// Empty: there is none.
Result<JournalHead> last_record(PostgresConnection& connection) {
    TRY(const PostgresRows rows, connection.query("SELECT seq, hash FROM stoker_journal ORDER BY seq DESC LIMIT 1"));
    if (rows.count() == 0) return JournalHead{};
    return JournalHead{.seq = static_cast<std::uint64_t>(rows.integer(0, 0)), .hash = std::string(rows.bytes(0, 1))};
}

class Home final : public PostgresJournal {
public:
    explicit Home(PostgresJournalOptions options) : options_(std::move(options)) {}

    ~Home() override {
        {
            const std::lock_guard guard(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        if (keeper_.joinable()) keeper_.join();
        // Whoever stands by need not wait for the lease to end.
        if (term_ > 0 && connection_ && !connection_->broken()) {
            const PostgresValue mine[] = {PostgresValue::integer(static_cast<std::int64_t>(term_))};
            (void)connection_->query("UPDATE stoker_leader SET until = '-infinity' WHERE term = $1", mine, 2).ok();
        }
    }

    Status start() {
        TRY(connection_, connect());
        // What the database acknowledges must survive it.
        TRY(const PostgresRows safe, connection_->query("SELECT current_setting('fsync')"));
        if (safe.bytes(0, 0) != "on")
            return Error(ErrorKind::unsupported,
                         options_.name + " runs with fsync = off and forgets what it acknowledged", {},
                         "set fsync = on in postgresql.conf and restart PostgreSQL");
        TRY_VOID(make_tables().while_doing("making the tables in " + options_.name));
        return done();
    }

    std::string name() const override { return options_.name; }
    std::uint64_t term() const override { return term_; }

    Status lead(const std::function<bool(double)>& stop,
                const std::function<void(const std::string&)>& waiting) override {
        std::string told;
        for (;;) {
            auto mine = take_lead();
            if (!mine && !connection_->broken()) return mine.error();
            if (mine && *mine) break;
            std::string holder = "nobody that is reached: " + options_.name + " is away";
            if (mine) {
                if (const auto found = holder_now()) holder = *found;
            } else if (auto again = connect()) {
                connection_ = std::move(*again);
                continue;
            }
            if (holder != told) waiting(told = holder);
            if (stop(kLookEveryS)) return Error(ErrorKind::denied, "told to stop before it led");
        }
        keeper_ = masked_thread("stoker-lead", [this] { keep_leading(); });
        return done();
    }

    Result<JournalHead> head() override {
        return again<JournalHead>(
            [this](PostgresConnection& connection) -> Result<JournalHead> { return last_record(connection); });
    }

    Result<std::string> hash_at(std::uint64_t seq) override {
        return again<std::string>([seq](PostgresConnection& connection) -> Result<std::string> {
            const PostgresValue which[] = {PostgresValue::integer(static_cast<std::int64_t>(seq))};
            TRY(const PostgresRows rows, connection.query("SELECT hash FROM stoker_journal WHERE seq = $1", which));
            return rows.count() == 0 ? std::string() : std::string(rows.bytes(0, 0));
        });
    }

    Status append(const JournalHead& before, std::span<const JournalRecord> records) override {
        const std::vector<PostgresValue> values = values_of(term_, before.seq, records);
        return again<Done>([&](PostgresConnection& connection) -> Status {
            // Whether a call that got no answer was carried out shows here, the next time round.
            if (unanswered_) {
                TRY(const JournalHead last, last_record(connection));
                unanswered_ = false;
                if (last.hash == records.back().hash) return done();
            }
            unanswered_ = true;
            auto wrote = connection.query(kAppend, values);
            if (!wrote) {
                unanswered_ = connection.broken();
                return wrote.error();
            }
            unanswered_ = false;
            if (wrote->affected() == static_cast<std::int64_t>(records.size())) return done();
            return why_refused(connection, before);
        });
    }

    Status read(std::uint64_t after, const std::function<Result<bool>(const JournalRecord&)>& use) override {
        for (;;) {
            TRY(const PostgresRows rows,
                again<PostgresRows>([after](PostgresConnection& connection) -> Result<PostgresRows> {
                    const PostgresValue from[] = {PostgresValue::integer(static_cast<std::int64_t>(after)),
                                                  PostgresValue::integer(kRecordsAtOnce)};
                    return connection.query(kRead, from, 60);
                }));
            for (int row = 0; row < rows.count(); ++row) {
                const JournalRecord record = record_of(rows, row);
                after = record.seq;
                TRY(const bool more, use(record));
                if (!more) return done();
            }
            if (rows.count() < static_cast<int>(kRecordsAtOnce)) return done();
        }
    }

    Status redact(std::uint64_t seq) override {
        return again<Done>([&](PostgresConnection& connection) -> Status {
            const PostgresValue which[] = {PostgresValue::integer(static_cast<std::int64_t>(seq)),
                                           PostgresValue::integer(static_cast<std::int64_t>(term_))};
            TRY(const PostgresRows rows,
                connection.query("UPDATE stoker_journal SET body = NULL WHERE seq = $1 AND EXISTS (SELECT 1 FROM "
                                 "stoker_leader WHERE term = $2)",
                                 which));
            if (rows.affected() == 1) return done();
            return why_refused(connection, {});
        });
    }

private:
    Result<std::unique_ptr<PostgresConnection>> connect() {
        TRY(auto connection, PostgresConnection::open(options_.url));
        // What a database or a role was set to differently would lose the last commits at a power loss.
        TRY_VOID(
            connection->query("SELECT set_config('synchronous_commit', 'on', false) WHERE "
                              "current_setting('synchronous_commit') IN ('off', 'local')"));
        TRY_VOID(connection->query("SET default_transaction_isolation = 'read committed'"));
        TRY_VOID(connection->query("SET client_min_messages = 'warning'"));
        return connection;
    }

    Status make_tables() {
        TRY_VOID(connection_->query("BEGIN"));
        for (const char* sql : kTables) {
            const auto made = connection_->query(sql);
            if (made) continue;
            (void)connection_->query("ROLLBACK").ok();
            return made.error();
        }
        TRY_VOID(connection_->query("COMMIT"));
        return done();
    }

    // Once more on a new connection, until patience ends, while the database is away.
    template <class T, class F>
    Result<T> again(F&& ask) {
        const auto give_up = SteadyClock::now() + std::chrono::seconds(options_.patience_s);
        for (;;) {
            if (!connection_->broken()) {
                Result<T> answer = ask(*connection_);
                if (answer || !connection_->broken() || SteadyClock::now() > give_up) return answer;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            auto fresh = connect();
            if (fresh)
                connection_ = std::move(*fresh);
            else if (SteadyClock::now() > give_up)
                return fresh.error();
        }
    }

    Error why_refused(PostgresConnection& connection, const JournalHead& before) {
        const auto row = connection.query("SELECT term, holder FROM stoker_leader");
        if (!row) return row.error();
        if (row->count() == 0 || row->integer(0, 0) != static_cast<std::int64_t>(term_))
            return taken(row->count() == 0 ? "nobody" : std::string(row->bytes(0, 1)));
        return Error(ErrorKind::conflict,
                     fmt::format("{} does not end at record {} any more: somebody wrote past the server", options_.name,
                                 before.seq),
                     {}, "restart the server: it reads what is there");
    }

    Error taken(const std::string& holder) const {
        return Error(ErrorKind::conflict, fmt::format("{} leads now, and this server does not", printable(holder, 120)),
                     {}, "start it again: it stands by then");
    }

    Result<bool> take_lead() {
        if (connection_->broken()) return Error(ErrorKind::unavailable, "no connection");
        const PostgresValue mine[] = {PostgresValue::text(options_.holder), PostgresValue::integer(options_.lease_s),
                                      PostgresValue::integer(kForm)};
        TRY(const PostgresRows rows, connection_->query(kTakeLead, mine));
        if (rows.count() != 1) {
            TRY(const PostgresRows form, connection_->query("SELECT form FROM stoker_leader"));
            if (form.count() == 1 && form.integer(0, 0) != kForm)
                return Error(ErrorKind::unsupported,
                             fmt::format("{} has tables of form {}, and this Stoker knows {}", options_.name,
                                         form.integer(0, 0), kForm),
                             {}, "start the version of Stoker that made them");
            return false;
        }
        term_ = static_cast<std::uint64_t>(rows.integer(0, 0));
        return true;
    }

    std::optional<std::string> holder_now() {
        const auto row = connection_->query("SELECT holder FROM stoker_leader");
        if (!row || row->count() != 1) return std::nullopt;
        return printable(row->bytes(0, 0), 120);
    }

    void keep_leading() {
        std::unique_ptr<PostgresConnection> own;
        auto last = SteadyClock::now();
        const PostgresValue values[] = {PostgresValue::integer(static_cast<std::int64_t>(term_)),
                                        PostgresValue::integer(options_.lease_s)};
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, Seconds(options_.lease_s / 5.0), [this] { return stopping_; })) {
            lock.unlock();
            std::optional<Error> lost;
            if (!own || own->broken()) {
                auto fresh = connect();
                own = fresh ? std::move(*fresh) : nullptr;
            }
            if (own) {
                const auto kept = own->query(
                    "UPDATE stoker_leader SET until = clock_timestamp() + $2 * interval '1 second' WHERE term = $1",
                    values);
                if (kept && kept->affected() == 1) {
                    last = SteadyClock::now();
                } else if (kept) {
                    const auto row = own->query("SELECT holder FROM stoker_leader");
                    lost = taken(row && row->count() == 1 ? std::string(row->bytes(0, 0)) : "nobody");
                }
            }
            if (!lost && SteadyClock::now() - last > std::chrono::seconds(options_.patience_s))
                lost = Error(ErrorKind::unavailable,
                             fmt::format("{} has been away for {} s", options_.name, options_.patience_s), {},
                             "the server ends, and goes on from there when it is started again");
            if (lost) {
                if (options_.on_lost) options_.on_lost(*lost);
                return;
            }
            lock.lock();
        }
    }

    PostgresJournalOptions options_;
    std::unique_ptr<PostgresConnection> connection_;  // of whoever appends and reads: one thread
    bool unanswered_ = false;
    std::uint64_t term_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread keeper_;
};

}  // namespace

Result<std::unique_ptr<PostgresJournal>> PostgresJournal::open(PostgresJournalOptions options) {
    auto home = std::make_unique<Home>(std::move(options));
    TRY_VOID(home->start());
    return std::unique_ptr<PostgresJournal>(std::move(home));
}

}  // namespace stoker
