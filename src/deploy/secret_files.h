// Values that ranks get as files: how an engine is told which of their variables these are.
#pragma once

#include <string_view>

namespace stoker {

// Of a rank's environment: names of variables with commas between, whose values become files that only its work reads;
// the variable then names the file. The work itself does not see this one.
inline constexpr std::string_view kSecretFiles = "STOKER_SECRET_FILES";

}  // namespace stoker
