// One file on its way from the disk to the rules.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/check/walk.h"
#include "base/result.h"
#include "lint/read.h"

namespace stoker {

struct CheckInput {
    std::string path, root;
    std::shared_ptr<const lint::File> file;  // null: of no kind
    std::string skipped;                     // why it is of no kind
    std::optional<Problem> unreadable;
};

// Reads and parses one. What was found on a walk and cannot be read is skipped; what was named is `unreadable`.
CheckInput read_input(const WalkedFile& walked, std::optional<lint::Kind> kind);
// The same file with another text, which is not on the disk. `place`: where it is on the disk, when `path` does not say
// so from here; for what it names beside it.
std::shared_ptr<const lint::File> parse_input(const std::string& path, const std::string& root, std::string text,
                                              std::optional<lint::Kind> kind, const std::string& place = {});

// For ReadOptions::neighbour: files beside the one at `path`, or anywhere below `root`; regular ones of bounded size.
std::function<std::optional<std::string>(const std::string&)> neighbour_reader(const std::string& path,
                                                                               const std::string& root);

}  // namespace stoker
