// Applies the fixes of findings to texts in memory, and proves each by checking again.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lint/finding.h"

namespace stoker::lint {

using Texts = std::map<std::string, std::string, std::less<>>;  // by path
// All findings of these texts, suppressed and baselined ones left out.
using CheckTexts = std::function<std::vector<Finding>(const Texts&)>;

struct FixPolicy {
    bool unsafe = false;                          // --unsafe-fixes
    std::set<std::string, std::less<>> promoted;  // [check.fix] promote: rules whose fixes count as safe
    std::set<std::string, std::less<>> demoted;   // demote: as unsafe
    bool applies(const Finding& finding) const;   // finding.fix is set
};

struct AppliedFix {
    std::string rule, path, title;
    std::uint32_t line = 0;
};
struct DroppedFix {
    std::string rule, path, why;
    std::uint32_t line = 0;
};
struct FixRun {
    Texts texts;
    std::vector<AppliedFix> applied;
    std::vector<DroppedFix> dropped;  // a bug of the rule: the text no longer parsed, or the finding remained
    std::vector<Finding> left;        // of the texts as they are now
    int rounds = 0;
};

inline constexpr int kMostFixRounds = 10;

// Of fixes that overlap, the one of the lower rule id is taken, the other waits for the next round. Fails, naming the
// rules, when they still change the text after the last round.
Result<FixRun> apply_fixes(Texts texts, const CheckTexts& check, const FixPolicy& policy);

// The text with these edits, which must be sorted and must not overlap.
std::string with_edits(std::string_view text, const std::vector<Edit>& edits);

}  // namespace stoker::lint
