// Segments in a PostgreSQL database: what was written is a row each time, and who writes is told by a lease
// (postgres_lease.h). Several writers share the tables, each under a number of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "io/postgres/postgres_lease.h"
#include "io/segment_home.h"

namespace stoker {

class PostgresSegments : public SegmentHome {
public:
    // Those of this gateway.
    static Result<std::unique_ptr<PostgresSegments>> open(PostgresWriter writer, std::uint64_t gateway);

    // As claim(), and waits for whoever writes now (postgres_lease.h).
    virtual Status lead(const std::function<bool(double seconds)>& stop,
                        const std::function<void(const std::string& holder)>& waiting) = 0;
};

}  // namespace stoker
