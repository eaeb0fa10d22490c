// Two texts line by line, as `diff -u` shows them.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

// Empty when they are the same. Where more than a few thousand lines differ, the whole stretch is shown as replaced.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view name_before,
                         std::string_view name_after);

}  // namespace stoker
