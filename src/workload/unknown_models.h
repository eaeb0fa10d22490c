// What to write for a model that the catalogue has not, by what kind of thing its name says it is.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace stoker {

// Empty: nothing more than for any name. `served`: it answers requests, and learns nothing.
std::string remedy_for_unknown_model(std::string_view name, bool served);

// What is said of it, and what to do. Of another kind than what the catalogue has, the nearest name is no help.
std::pair<Error, std::string> of_unknown_model(std::string_view name, const Error& not_found, bool served);

}  // namespace stoker
