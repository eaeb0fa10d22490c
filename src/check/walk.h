// Which files a check looks at.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

struct WalkedFile {
    std::string path;    // as people name it: relative to where they are, with forward slashes; "-": stdin
    std::string root;    // the argument it was found under; a file that was named: its folder
    bool named = false;  // on the command line itself
};
struct Walk {
    std::vector<WalkedFile> files;    // sorted by path, each once
    std::vector<Problem> unreadable;  // what was named and cannot be read, and folders that cannot be listed
};

struct WalkOptions {
    std::vector<std::string> exclude;  // globs, written as for a .gitignore in `exclude_root`
    std::string exclude_root;          // an absolute path that ends with a slash
    std::size_t most_files = 1'000'000;
};
// Folders are walked without following links; .gitignore is honoured in them, also those of the folders above within
// one repository. What is named is taken whatever .gitignore says.
Walk walk_paths(const std::vector<std::string>& paths, const WalkOptions& options);

// A name that can only be something that is no configuration: pictures, archives, weights, programs in other languages.
bool never_configuration(std::string_view name);
// The same path, however it was spelled: "./a//b/../c" is "a/c".
std::string tidy_path(const std::string& path);

}  // namespace stoker
