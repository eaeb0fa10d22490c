// What begins a rank in its container, in words that every /bin/sh knows: images need nothing of ours in them.
#pragma once

#include <string>
#include <string_view>

#include "deploy/driver.h"

namespace stoker::kubernetes {

inline constexpr const char* kOrdersFolder =
    "/etc/stoker";  // downward API: the file `orders` is the annotation kOrders
inline constexpr std::string_view kRefused = "stoker: refused: ";

// Looks whether the programs of a pod's ranks are there; says what is not, and fails. Words that all ranks share are
// arguments of both scripts.
std::string check_script(const GangSpec& gang, int per_pod);
// Waits for "go", starts the program, hands on signals, and ends as it ends.
std::string rank_script(const GangSpec& gang, int per_pod);
std::string shell_quoted(const std::string& text);

}  // namespace stoker::kubernetes
