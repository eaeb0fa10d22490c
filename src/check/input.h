// One file on its way from the disk to the rules.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "check/walk.h"
#include "lint/read.h"

namespace stoker {

struct CheckInput {
    std::string path, root;
    std::shared_ptr<const lint::File> file;  // null: of no kind
    std::string skipped;                     // why it is of no kind
    std::optional<Problem> unreadable;
    bool calls = false;  // local modules, whose files were forgotten
};

// How a text is read, beside what it says itself.
struct ReadChoice {
    ReadChoice() = default;
    ReadChoice(std::nullopt_t) {}
    ReadChoice(std::optional<lint::Kind> wanted, std::string assumed = {}) : kind(wanted), size(std::move(assumed)) {}
    std::optional<lint::Kind> kind;  // --kind
    std::string size;                // --size
    std::function<std::vector<Problem>(const std::string&, std::string_view)>
        workload_problems;  // of lint::ReadOptions
};

// Reads and parses one. What was found on a walk and cannot be read is skipped; what was named is `unreadable`.
CheckInput read_input(const WalkedFile& walked, const ReadChoice& choice);
// The same file with another text, which is not on the disk. `place`: where it is on the disk, when `path` does not say
// so from here; for what it names beside it.
std::shared_ptr<const lint::File> parse_input(const std::string& path, const std::string& root, std::string text,
                                              const ReadChoice& choice, const std::string& place = {});

// What the files of the local modules that a file calls take, as text.
std::size_t bytes_of_calls(const CheckInput& input);
// Drops those files: of a large tree they would be most of what is kept. parse_input() of the same text has them again.
void forget_calls(CheckInput& input);

// For ReadOptions::list, under the same conditions as neighbour_reader().
std::function<std::vector<std::string>(const std::string&)> folder_lister(const std::string& path,
                                                                          const std::string& root);
// For ReadOptions::neighbour: files beside the one at `path`, or anywhere below `root`; regular ones of bounded size.
std::function<std::optional<std::string>(const std::string&)> neighbour_reader(const std::string& path,
                                                                               const std::string& root);

}  // namespace stoker
