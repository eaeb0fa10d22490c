// What is kept in a database as it is on a disk: what was acknowledged survives it, and it may be away for a while.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/result.h"
#include "io/postgres/connection.h"

namespace stoker {

// What the database or a role was set to differently would lose the last commits at a power loss.
Result<std::unique_ptr<PostgresConnection>> connect_durably(const std::string& url);

// In one transaction. unsupported: the database runs with fsync = off. `name` as of postgres_name().
Status make_durable_tables(PostgresConnection& connection, const std::string& name,
                           std::span<const char* const> statements);

// Once more on a new connection, until patience ends, while the database is away.
template <class T, class F>
Result<T> ask_patiently(std::unique_ptr<PostgresConnection>& connection, const std::string& url, int patience_s,
                        F&& ask) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(patience_s);
    for (;;) {
        if (!connection->broken()) {
            Result<T> answer = ask(*connection);
            if (answer || !connection->broken() || std::chrono::steady_clock::now() > give_up) return answer;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        auto fresh = connect_durably(url);
        if (fresh)
            connection = std::move(*fresh);
        else if (std::chrono::steady_clock::now() > give_up)
            return fresh.error();
    }
}

}  // namespace stoker
