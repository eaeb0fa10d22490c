// A PostgreSQL database as the second home of a journal, and who of several servers writes there (postgres_lease.h).
//
// Needs a database of its own, or a schema that search_path names; its tables are made when they are missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "io/journal_home.h"
#include "io/postgres/postgres_lease.h"

namespace stoker {

struct PostgresJournalOptions {
    std::string url;     // connection.h
    std::string name;    // of postgres_name()
    std::string holder;  // who this is, for those who stand by: "host, process 12"
    int lease_s = kLeaseS;
    int patience_s = 30;  // how long an append waits for a database that is away
    // From a thread of its own: somebody else leads, or the database was away for longer than patience_s. The process
    // has to end; it may not call back.
    std::function<void(const Error&)> on_lost{};
};

class PostgresJournal : public JournalHome {
public:
    static Result<std::unique_ptr<PostgresJournal>> open(PostgresJournalOptions options);

    // Waits until it leads. `waiting` is told who leads meanwhile, once for each; `stop` waits so many seconds and says
    // whether to give up, which is denied then. Before it leads nothing can be appended.
    virtual Status lead(const std::function<bool(double seconds)>& stop,
                        const std::function<void(const std::string& holder)>& waiting) = 0;
    virtual std::uint64_t term() const = 0;
};

}  // namespace stoker
