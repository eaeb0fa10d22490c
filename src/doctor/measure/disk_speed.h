// How fast a folder's disk is: one large file written and read, and many small ones. Bounded in bytes and in time; the
// files have no name while they are used (O_TMPFILE, or removed as soon as they are open), so that nothing is left
// behind however the program ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace stoker {

struct DiskTest {
    std::string folder;
    std::int64_t bytes = std::int64_t{64} << 20;  // at most, of the large file
    double seconds = 1;                           // at most, of all together; a third for each part
    int small_files = 2000;                       // at most
};
struct DiskSpeed {
    double write_bytes_per_s = 0;  // until it is on the disk: fdatasync counts
    double read_bytes_per_s = 0;
    double small_files_per_s = 0;  // created, written with 4 KiB, read and removed; nothing synced
    std::int64_t written = 0, read = 0;
    int small_files = 0;
    bool direct = false;      // O_DIRECT: past the page cache
    bool in_memory = false;   // tmpfs, ramfs: the figures are the memory's, and its processor's
    std::string note;         // what the figures are not: "tmpfs is memory", "the page cache may have answered"
    std::string file_system;  // "ext4"; hexadecimal where it has no name here
};
struct DiskRoom {
    std::int64_t free_bytes = 0, total_bytes = 0;  // free: for users other than root
};

Result<DiskRoom> room_of_disk(const std::string& folder);
// timed_out: the disk did not answer in time (a network file system whose server is gone blocks whoever asks). The
// thread that waits for it is left behind; while it waits the next test of any disk is refused at once.
Result<DiskSpeed> measure_disk(const DiskTest& test, std::chrono::steady_clock::time_point deadline);

}  // namespace stoker
