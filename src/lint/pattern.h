// Regular expressions of the files that are checked (regex() of Terraform, s/// of sed, =~ of bash), bounded in work
// and in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::lint {

class TextPattern {
public:
    // Nothing where it is none, or longer than any that people write.
    static std::optional<TextPattern> read(std::string_view expression);

    struct Group {
        std::size_t begin = 0, end = 0;
        bool matched = false;
        std::string_view name;  // of (?P<name>...)
    };
    // The first match from `from` on, as its groups; the whole is the first of them. Empty: there is none, or it took
    // too long.
    std::vector<Group> match(std::string_view text, std::size_t from = 0) const;
    // With `$1`, `${name}` (dollar) or `\1`, `&` (sed) in `with` filled in; the first match, or all.
    std::optional<std::string> replaced(std::string_view text, std::string_view with, bool all, bool dollar) const;

private:
    std::shared_ptr<void> code_;
};

}  // namespace stoker::lint
