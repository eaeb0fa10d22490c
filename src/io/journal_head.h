// The journal's length, kept beside the database: FOLDER/journal-head. A chain of hashes cannot see that its tail is
// missing; whoever knows how long it was can. Written after each commit, in place and without waiting for the disk, so
// it costs a few microseconds; the disk is waited for once a second and at the end. So it may be older than the
// database, after a lost power supply by a second of commits, and is never newer: a database that has less has lost it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace stoker {

struct KeptHead {
    std::uint64_t seq = 0;
    std::string hash;        // of record seq; 32 bytes
    std::string site;        // whose journal it is; empty: nobody said
    std::uint64_t runs = 0;  // so many numbers of runs were given
    bool cut = false;  // somebody cut the journal on purpose: the next start goes on as after a loss that was accepted
};

// not_found: there is none, as beside journals from before. invalid: neither of its two entries is whole.
Result<KeptHead> read_kept_head(const std::string& folder);

class HeadFile {
public:
    // Made when it is missing, which a full disk may prevent: then nothing is kept, and nothing fails.
    static std::unique_ptr<HeadFile> open(const std::string& folder);
    ~HeadFile();
    HeadFile(const HeadFile&) = delete;
    HeadFile& operator=(const HeadFile&) = delete;

    void write(const KeptHead& head);

private:
    explicit HeadFile(int fd) : fd_(fd) {}
    int fd_;
    std::uint64_t writes_ = 0;
    std::chrono::steady_clock::time_point synced_;
};

}  // namespace stoker
