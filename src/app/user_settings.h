// What the person who runs stoker said once of himself: where he is, and where data must stay. A workload file that
// says where goes before it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "catalog/catalog.h"

namespace stoker {

struct UserSettings {
    std::string home;                    // a region or a geography; empty: not said
    std::vector<std::string> residency;  // geographies that data may not leave
    std::string evictions;  // of one spot node in an hour, as parse_eviction_rate reads it; empty: not said
};

Result<std::string> user_settings_path();
// Nothing was said: all empty. A file that cannot be read is an error, and names its line.
Result<UserSettings> load_user_settings();
Status save_user_settings(const UserSettings& settings);
// A region as the catalogue spells it, or a geography that some region lies in.
Result<std::string> place_named(const Catalog& catalog, const std::string& word);

}  // namespace stoker
