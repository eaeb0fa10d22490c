// Keeps a log bounded that somebody else appends to. The writer has the file open, so it cannot be renamed under it:
// its older content goes to FILE.1 and is cut off in whole blocks, which loses nothing; where the file system cannot,
// all of it is copied and the file emptied, and a line may fall between the two. The newest half of the bound at least
// is always there.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace stoker {

class UniqueFd;

class BoundedLog {
public:
    // most: of both files together; 0: no bound.
    BoundedLog(std::string path, std::int64_t most);
    // Seconds until the next look is due: soon when the log grows fast.
    double check();

private:
    Status rotate(std::int64_t size);
    Result<bool> move_blocks(const UniqueFd& from, const UniqueFd& to) const;
    Result<bool> copy_and_empty(const UniqueFd& from, const UniqueFd& to, std::int64_t size) const;
    std::string path_;
    std::int64_t most_, last_size_ = 0;
    double pause_;
};

}  // namespace stoker
