// The target of a request, "/api/v1/runs?state=running", checked and decoded.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker {

struct HttpTarget {
    std::string path;  // decoded; begins with '/', without empty, "." or ".." segments
    std::vector<std::pair<std::string, std::string>> query;  // decoded as forms are: '+' is a blank
};
// Of the form "/path?query" only. invalid: what is wrong with it. encoded_slashes: "%2F" is a slash of the path, and no
// mistake.
Result<HttpTarget> read_http_target(std::string_view target, bool encoded_slashes = false);

}  // namespace stoker
