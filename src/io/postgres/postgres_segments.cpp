#include "io/postgres/postgres_segments.h"

#include <fmt/format.h>

#include "io/postgres/durable.h"

namespace stoker {
namespace {

constexpr std::int64_t kSegmentsForm = 1;
constexpr std::int64_t kPiecesAtOnce = 1000;
constexpr std::size_t kLargestText = 1u << 30;

constexpr const char* kSegmentTables[] = {
    "CREATE TABLE IF NOT EXISTS stoker_ledger(gateway bigint NOT NULL, segment bigint NOT NULL, at bigint NOT NULL, "
    "bytes bytea NOT NULL, PRIMARY KEY (gateway, segment, at))",
    "CREATE TABLE IF NOT EXISTS stoker_ledger_writer(gateway bigint PRIMARY KEY, form bigint NOT NULL, term bigint NOT "
    "NULL, holder text NOT NULL, until timestamptz NOT NULL)",
};

// What is there already was written by a call that got no answer.
constexpr const char* kWrite =
    "WITH mine AS MATERIALIZED (SELECT gateway FROM stoker_ledger_writer WHERE gateway = $1 AND term = $2 FOR SHARE) "
    "INSERT INTO stoker_ledger(gateway, segment, at, bytes) SELECT mine.gateway, r.* FROM mine, unnest($3::bigint[], "
    "$4::bigint[], $5::bytea[]) AS r ON CONFLICT DO NOTHING";

constexpr const char* kStands =
    "SELECT count(*) FROM stoker_ledger AS l, unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS r(segment, at, bytes) "
    "WHERE l.gateway = $1 AND l.segment = r.segment AND l.at = r.at AND l.bytes = r.bytes";

PostgresValue number(std::uint64_t value) {
    return PostgresValue::integer(static_cast<std::int64_t>(value));
}

class SegmentRows final : public PostgresSegments {
public:
    SegmentRows(PostgresWriter writer, std::uint64_t gateway)
        : options_(std::move(writer)),
          gateway_(gateway),
          lease_(options_, {.table = "stoker_ledger_writer",
                            .key = "gateway",
                            .value = fmt::format("{}", static_cast<std::int64_t>(gateway)),
                            .form = kSegmentsForm}) {}

    Status start() {
        TRY(connection_, connect_durably(options_.url));
        return make_durable_tables(*connection_, options_.name, kSegmentTables);
    }

    std::string place(std::uint64_t segment) const override {
        return fmt::format("segment {} of gateway {} in {}", segment, gateway_, options_.name);
    }

    Result<std::vector<std::uint64_t>> segments() override {
        return again<std::vector<std::uint64_t>>(
            [this](PostgresConnection& connection) -> Result<std::vector<std::uint64_t>> {
                const PostgresValue whose[] = {number(gateway_)};
                TRY(const PostgresRows rows,
                    connection.query("SELECT segment FROM stoker_ledger WHERE gateway = $1 AND at = 0 ORDER BY segment",
                                     whose, 60));
                std::vector<std::uint64_t> found;
                for (int row = 0; row < rows.count(); ++row)
                    found.push_back(static_cast<std::uint64_t>(rows.integer(row, 0)));
                return found;
            });
    }

    Result<std::string> read(std::uint64_t segment) override {
        std::string text;
        for (;;) {
            TRY(const PostgresRows rows,
                again<PostgresRows>([&](PostgresConnection& connection) -> Result<PostgresRows> {
                    const PostgresValue from[] = {number(gateway_), number(segment), number(text.size()),
                                                  PostgresValue::integer(kPiecesAtOnce)};
                    return connection.query(
                        "SELECT at, bytes FROM stoker_ledger WHERE gateway = $1 AND segment = $2 AND at >= $3 ORDER BY "
                        "at LIMIT $4",
                        from, 60);
                }));
            for (int row = 0; row < rows.count(); ++row) {
                if (static_cast<std::uint64_t>(rows.integer(row, 0)) != text.size() || text.size() > kLargestText)
                    return damaged(segment, text.size());
                text += rows.bytes(row, 1);
            }
            if (rows.count() < kPiecesAtOnce) return text;
        }
    }

    Status claim() override {
        if (lease_.term() > 0) return done();
        std::string holder;
        Status led = lead([](double) { return true; }, [&](const std::string& who) { holder = who; });
        if (led || led.error().kind() != ErrorKind::denied) return led;
        return Error(ErrorKind::conflict,
                     fmt::format("{} writes the ledger of gateway {} in {}", holder, gateway_, options_.name), {},
                     "give each gateway a name of its own (`name:`)");
    }

    Status lead(const std::function<bool(double)>& stop,
                const std::function<void(const std::string&)>& waiting) override {
        return lease_.take(connection_, stop, waiting);
    }

    // A write is there or it is not: what cannot be read was changed by somebody.
    Status cut(std::uint64_t segment, std::uint64_t bytes) override {
        TRY(const std::string text, read(segment));
        return text.size() == bytes ? done() : Status(damaged(segment, bytes));
    }

    Status write(std::span<const SegmentPiece> pieces) override {
        std::vector<std::int64_t> segment, at;
        std::vector<std::optional<std::string_view>> bytes;
        for (const SegmentPiece& piece : pieces) {
            segment.push_back(static_cast<std::int64_t>(piece.segment));
            at.push_back(static_cast<std::int64_t>(piece.at));
            bytes.emplace_back(piece.bytes);
        }
        using V = PostgresValue;
        const V values[] = {number(gateway_), number(lease_.term()), V::integers(segment), V::integers(at),
                            V::blobs(bytes)};
        const V there[] = {values[0], values[2], values[3], values[4]};
        const auto all = static_cast<std::int64_t>(pieces.size());
        bool unanswered = false;
        return again<Done>([&](PostgresConnection& connection) -> Status {
            const auto wrote = connection.query(kWrite, values);
            const bool before = std::exchange(unanswered, true);
            if (!wrote) return wrote.error();
            if (wrote->affected() == all) return done();
            if (before) {
                TRY(const PostgresRows stands, connection.query(kStands, there));
                if (stands.integer(0, 0) == all) return done();
            }
            if (auto lost = lease_.lost(connection)) return *lost;
            return damaged(pieces.front().segment, pieces.front().at);
        });
    }

private:
    template <class T, class F>
    Result<T> again(F&& ask) {
        return ask_patiently<T>(connection_, options_.url, options_.patience_s, std::forward<F>(ask));
    }

    Error damaged(std::uint64_t segment, std::uint64_t at) const {
        return Error(ErrorKind::conflict,
                     fmt::format("{}, byte {}: it is not what was written there", place(segment), at), {},
                     "nothing was changed; restore the table stoker_ledger from a copy");
    }

    const PostgresWriter options_;
    const std::uint64_t gateway_;
    std::unique_ptr<PostgresConnection> connection_;
    PostgresLease lease_;
};

}  // namespace

Result<std::unique_ptr<PostgresSegments>> PostgresSegments::open(PostgresWriter writer, std::uint64_t gateway) {
    auto home = std::make_unique<SegmentRows>(std::move(writer), gateway);
    TRY_VOID(home->start());
    return std::unique_ptr<PostgresSegments>(std::move(home));
}

}  // namespace stoker
