// What a running server makes of its configuration, for the API.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

// One setting as it is in force.
struct ConfigSetting {
    std::string key, value;        // in words: "3 nodes: a, b, c"
    std::string source;            // default, configuration, command_line
    bool live = true;              // a change holds at once; else after a restart
    bool pending_restart = false;  // the configuration says something else since the start
};

struct ConfigOutcome {
    std::vector<std::string> applied;        // keys whose change is in force
    std::vector<std::string> needs_restart;  // keys that hold after the next start only
    std::vector<std::string> overridden;     // keys of the text that an option of stoker up goes before
};

class ConfigControl {
public:
    virtual ~ConfigControl() = default;
    // Whether this server could be that: every problem with its place in the text, whose file is called "config".
    virtual Status check(const std::string& text) = 0;
    // Makes the newest version be in force as far as it can be without a restart.
    virtual Result<ConfigOutcome> apply() = 0;
    virtual std::vector<ConfigSetting> settings() = 0;
};

}  // namespace stoker
