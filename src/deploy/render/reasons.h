// Why the lines of rendered files are as they are: what stands in their comments, for --explain.
#pragma once

#include <string>
#include <vector>

#include "deploy/deployment.h"

namespace stoker {

struct RenderedReason {
    std::string file;
    std::size_t line = 0;  // of the setting, from 1
    std::string setting, reason;
};
// Each line that a comment stands above, with the comment. What has no comment is what the line says.
std::vector<RenderedReason> reasons_in(const Deployment& deployment);

}  // namespace stoker
