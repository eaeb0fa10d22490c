#pragma once

#include <string_view>

namespace stoker {

// Ends the source of a price that is reserved by a savings plan, which commits to dollars an hour and not to a size.
inline constexpr std::string_view kSavingsPlan = ", savings plan";

}  // namespace stoker
