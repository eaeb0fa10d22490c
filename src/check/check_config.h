// stoker.toml: how a project wants to be checked.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lint/apply_fixes.h"
#include "lint/suppress.h"

namespace stoker {

struct CheckConfig {
    std::string file;    // "" when there is none
    std::string folder;  // absolute, without a slash at the end; paths in the file are below it
    std::optional<std::string> profile, fail_on, as_of, baseline;
    std::vector<std::string> select, ignore, exclude;
    std::map<std::string, lint::Severity, std::less<>> severity;
    std::set<std::string, std::less<>> switched_off;  // severity "off"
    lint::CheckOptions options;                       // thresholds and targets
    lint::FixPolicy fix;
    std::vector<lint::ConfigSuppression> suppressions;  // `path` as written
};

// Everything that is wrong is told together, each at its line and column.
Result<CheckConfig> parse_check_config(std::string_view text, const std::string& file);
// stoker.toml in `folder` or the nearest folder above it; not above the repository that `folder` is in.
std::optional<std::string> find_check_config(const std::string& folder);

// Rules that do not run: those that are off by default and not in the profile, what is not selected, what is ignored.
// A word is an id, the beginning of ids (NET, SKU0), or a slug that only one rule has.
Result<std::set<std::string, std::less<>>> rules_off(const std::vector<std::string>& select,
                                                     const std::vector<std::string>& ignore,
                                                     const std::string& profile);
const std::vector<std::string>& check_profiles();
// Whether a rule that is off by default is on in this profile.
bool in_profile(std::string_view rule, std::string_view profile);

}  // namespace stoker
