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

class PostgresJournal : public JournalHome {
public:
    static Result<std::unique_ptr<PostgresJournal>> open(PostgresWriter writer);

    // Waits until it leads. `waiting` is told who leads meanwhile, once for each; `stop` waits so many seconds and says
    // whether to give up, which is denied then. Before it leads nothing can be appended.
    virtual Status lead(const std::function<bool(double seconds)>& stop,
                        const std::function<void(const std::string& holder)>& waiting) = 0;
    virtual std::uint64_t term() const = 0;
};

}  // namespace stoker
