// Segments as files of a folder, each pre-written with zeros: what is overwritten costs no change of a file's metadata.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/segment_home.h"

namespace stoker {

struct SegmentFolderOptions {
    std::string folder;            // is made when it is claimed
    std::uint64_t usual_room = 0;  // of the segment after the next, which is made ahead of its time
    bool sync = true;              // false: for measurements
};
std::unique_ptr<SegmentHome> segment_folder(SegmentFolderOptions options);

std::string segment_name(std::uint64_t number);

}  // namespace stoker
