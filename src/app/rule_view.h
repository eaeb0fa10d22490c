// The rules themselves, for --list, --explain and the reference.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "app/session.h"
#include "base/json.h"
#include "lint/rule.h"

namespace stoker {

// A rule by its id in any case, or by a slug that only it has; null: none.
const lint::RulePage* find_rule(std::string_view word);
std::string rule_text(const lint::RulePage& page, const Style& style);  // a terminal's page
Json rule_json(const lint::RulePage& page);
std::string rules_table(const Style& style, const std::set<std::string, std::less<>>& off);
Json rules_json(const std::set<std::string, std::less<>>& off);

std::string rules_index_markdown();  // docs/reference/rules.md
// docs/reference/rules.md and a page per rule in docs/reference/rules; what it wrote.
Result<std::string> write_rules_reference(const std::string& folder);

}  // namespace stoker
