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

struct PostgresSegmentsOptions {
    std::string url;     // connection.h
    std::string name;    // of postgres_name()
    std::string holder;  // who this is, for those who stand by
    std::uint64_t writer = 0;
    int lease_s = kLeaseS;
    int patience_s = 30;
    std::function<void(const Error&)> on_lost{};  // postgres_lease.h
};

class PostgresSegments : public SegmentHome {
public:
    static Result<std::unique_ptr<PostgresSegments>> open(PostgresSegmentsOptions options);

    // As claim(), and waits for whoever writes now (postgres_lease.h).
    virtual Status lead(const std::function<bool(double seconds)>& stop,
                        const std::function<void(const std::string& holder)>& waiting) = 0;
};

}  // namespace stoker
