#include "io/postgres/postgres_journal.h"

#include <fmt/format.h>

#include "io/postgres/connection.h"
#include "io/postgres/durable.h"

namespace stoker {
namespace {

constexpr std::size_t kRecordsAtOnce = 500;
constexpr std::int64_t kForm = 1;  // of the tables

// Texts are bytes, since a record may have any; stoker_records shows them.
constexpr const char* kTables[] = {
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
    explicit Home(PostgresWriter writer)
        : options_(std::move(writer)),
          lease_(options_, {.table = "stoker_leader", .key = "one", .value = "true", .form = kForm}) {}

    Status start() {
        TRY(connection_, connect_durably(options_.url));
        return make_durable_tables(*connection_, options_.name, kTables);
    }

    std::string name() const override { return options_.name; }
    std::uint64_t term() const override { return lease_.term(); }

    Status lead(const std::function<bool(double)>& stop,
                const std::function<void(const std::string&)>& waiting) override {
        return lease_.take(connection_, stop, waiting);
    }

    Result<JournalHead> head() override {
        return again<JournalHead>(
            [](PostgresConnection& connection) -> Result<JournalHead> { return last_record(connection); });
    }

    Result<std::string> hash_at(std::uint64_t seq) override {
        return again<std::string>([seq](PostgresConnection& connection) -> Result<std::string> {
            const PostgresValue which[] = {PostgresValue::integer(static_cast<std::int64_t>(seq))};
            TRY(const PostgresRows rows, connection.query("SELECT hash FROM stoker_journal WHERE seq = $1", which));
            return rows.count() == 0 ? std::string() : std::string(rows.bytes(0, 0));
        });
    }

    Status append(const JournalHead& before, std::span<const JournalRecord> records) override {
        const std::vector<PostgresValue> values = values_of(lease_.term(), before.seq, records);
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
                                           PostgresValue::integer(static_cast<std::int64_t>(lease_.term()))};
            TRY(const PostgresRows rows,
                connection.query("UPDATE stoker_journal SET body = NULL WHERE seq = $1 AND EXISTS (SELECT 1 FROM "
                                 "stoker_leader WHERE term = $2)",
                                 which));
            if (rows.affected() == 1) return done();
            return why_refused(connection, {});
        });
    }

private:
    template <class T, class F>
    Result<T> again(F&& ask) {
        return ask_patiently<T>(connection_, options_.url, options_.patience_s, std::forward<F>(ask));
    }

    Error why_refused(PostgresConnection& connection, const JournalHead& before) {
        if (auto lost = lease_.lost(connection)) return *lost;
        return Error(ErrorKind::conflict,
                     fmt::format("{} does not end at record {} any more: somebody wrote past the server", options_.name,
                                 before.seq),
                     {}, "restart the server: it reads what is there");
    }

    const PostgresWriter options_;
    std::unique_ptr<PostgresConnection> connection_;  // of whoever appends and reads: one thread
    bool unanswered_ = false;
    PostgresLease lease_;
};

}  // namespace

Result<std::unique_ptr<PostgresJournal>> PostgresJournal::open(PostgresWriter writer) {
    auto home = std::make_unique<Home>(std::move(writer));
    TRY_VOID(home->start());
    return std::unique_ptr<PostgresJournal>(std::move(home));
}

}  // namespace stoker
