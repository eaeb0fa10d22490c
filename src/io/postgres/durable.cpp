#include "io/postgres/durable.h"

namespace stoker {

Result<std::unique_ptr<PostgresConnection>> connect_durably(const std::string& url) {
    TRY(auto connection, PostgresConnection::open(url));
    TRY_VOID(
        connection->query("SELECT set_config('synchronous_commit', 'on', false) WHERE "
                          "current_setting('synchronous_commit') IN ('off', 'local')"));
    TRY_VOID(connection->query("SET default_transaction_isolation = 'read committed'"));
    TRY_VOID(connection->query("SET client_min_messages = 'warning'"));
    return connection;
}

Status make_durable_tables(PostgresConnection& connection, const std::string& name,
                           std::span<const char* const> statements) {
    TRY(const PostgresRows safe, connection.query("SELECT current_setting('fsync')"));
    if (safe.bytes(0, 0) != "on")
        return Error(ErrorKind::unsupported, name + " runs with fsync = off and forgets what it acknowledged", {},
                     "set fsync = on in postgresql.conf and restart PostgreSQL");
    const auto make_all = [&]() -> Status {
        TRY_VOID(connection.query("BEGIN"));
        // Two that make them at once.
        TRY_VOID(connection.query("SELECT pg_advisory_xact_lock(6085742150811430)"));
        for (const char* sql : statements) TRY_VOID(connection.query(sql));
        TRY_VOID(connection.query("COMMIT"));
        return done();
    };
    Status made = make_all();
    if (!made) (void)connection.query("ROLLBACK").ok();
    return std::move(made).while_doing("making the tables in " + name);
}

}  // namespace stoker
