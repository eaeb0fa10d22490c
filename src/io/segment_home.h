// Where segments are kept: runs of bytes that grow at their end and are never changed, written by one process. A folder
// of files, or a database.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

struct SegmentPiece {
    std::uint64_t segment = 0;  // its number
    std::uint64_t at = 0;       // 0: it begins with this piece
    std::uint64_t room = 0;     // bytes that it will have at most
    std::string_view bytes;
};

class SegmentHome {
public:
    virtual ~SegmentHome() = default;

    // Of one, for people.
    virtual std::string place(std::uint64_t segment) const = 0;
    // Their numbers, in order. not_found: there is no such home.
    virtual Result<std::vector<std::uint64_t>> segments() = 0;
    // Nothing but zeros may follow what was written.
    virtual Result<std::string> read(std::uint64_t segment) = 0;
    // This process writes from now on; once more says nothing new. conflict: another one does.
    virtual Status claim() = 0;
    // What stands behind the first `bytes` of the last one was never acknowledged.
    virtual Status cut(std::uint64_t segment, std::uint64_t bytes) = 0;
    // All of it is durable when this returns; of one that failed, nobody can say. One thread.
    virtual Status write(std::span<const SegmentPiece> pieces) = 0;
};

}  // namespace stoker
