// Which paths a .gitignore leaves out, as git itself decides it (gitignore(5)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// `pattern` against a path with forward slashes: * and ? stop at a slash, ** does not, [a-z] [!a] [[:digit:]] \x.
bool glob_matches(std::string_view pattern, std::string_view path);

// The patterns of one file, for the folder it stands in.
class IgnoreFile {
public:
    // `folder` is the path of its folder as paths are given below, "" for the root, without a slash at the end.
    IgnoreFile(std::string folder, std::string_view text);

    enum class Verdict : unsigned char { none, ignored, kept };  // kept: a pattern with ! says so
    // The last pattern that matches decides. `path` is below `folder`.
    Verdict judge(std::string_view path, bool is_folder) const;

private:
    struct Pattern {
        std::string glob;
        bool negated = false, folders_only = false, anchored = false;
    };
    std::string folder_;
    std::vector<Pattern> patterns_;
};

}  // namespace stoker
