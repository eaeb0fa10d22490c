// Words that all rules share.
#pragma once

#include <string>
#include <utility>

#include "base/units.h"
#include "observe/evidence.h"

namespace stoker {

inline CauseVerdict cause_silent(std::string missing) {
    return {.kind = CauseVerdict::Kind::silent, .reason = "needs " + std::move(missing), .finding = {}};
}
inline CauseVerdict cause_ruled_out(std::string figure) {
    return {.kind = CauseVerdict::Kind::ruled_out, .reason = std::move(figure), .finding = {}};
}
inline CauseVerdict cause_found(Finding finding) {
    return {.kind = CauseVerdict::Kind::found, .reason = {}, .finding = std::move(finding)};
}
std::string milliseconds_text(double seconds);  // "18 ms", "0.4 ms", "2,310 ms"
std::string percent_text(double share);         // "7 %"

}  // namespace stoker
