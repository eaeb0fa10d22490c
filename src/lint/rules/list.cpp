// All rules. A rule is one line in one of the lists below, one .cpp beside this file and one page in data/lint.
#include <algorithm>
#include <vector>

#include "lint/rule.h"

namespace stoker::lint {

#define FILE_RULE(name, id) void check_##name(const File& file, Report& report);
#define BUNDLE_RULE(name, id) void check_##name(const Bundle& bundle, Report& report);
#include "lint/rules/list_cloud.inc"
#include "lint/rules/list_containers.inc"
#include "lint/rules/list_scripts.inc"
#undef FILE_RULE
#undef BUNDLE_RULE

std::span<const Rule> all_rules() {
    static const std::vector<Rule> rules = [] {
        std::vector<Rule> list;
#define FILE_RULE(name, id) list.push_back({id, check_##name, nullptr});
#define BUNDLE_RULE(name, id) list.push_back({id, nullptr, check_##name});
#include "lint/rules/list_cloud.inc"
#include "lint/rules/list_containers.inc"
#include "lint/rules/list_scripts.inc"
#undef FILE_RULE
#undef BUNDLE_RULE
        std::sort(list.begin(), list.end(), [](const Rule& a, const Rule& b) { return a.id < b.id; });
        return list;
    }();
    return rules;
}

}  // namespace stoker::lint
