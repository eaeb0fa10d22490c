#include "run/state/states.h"

#include <gmock/gmock.h>

#include <set>

namespace stoker {
namespace {

using testing::HasSubstr;

// A row twice, or two rows for one event, would make the first silently win.
TEST(RunStates, EachEventOfAStateStandsOnce) {
    std::set<std::pair<int, int>> seen;
    for (const RunTransition& row : run_transitions())
        EXPECT_TRUE(seen.emplace(row.from ? static_cast<int>(*row.from) : -1, static_cast<int>(row.event)).second);
    seen.clear();
    for (const AttemptTransition& row : attempt_transitions())
        EXPECT_TRUE(seen.emplace(row.from ? static_cast<int>(*row.from) : -1, static_cast<int>(row.event)).second);
}

// From each state that is not an end there is a way out, and from an end there is none: no run can get stuck or revive.
TEST(RunStates, EndsAreFinalAndEverythingElseIsNot) {
    for (const auto& [state, name] : enum_names(RunState{})) {
        std::size_t out = 0, in = 0;
        for (const RunTransition& row : run_transitions()) {
            out += row.from == state ? 1 : 0;
            in += row.to == state ? 1 : 0;
        }
        EXPECT_EQ(out == 0, is_terminal(state)) << name;
        EXPECT_GT(in, 0U) << name;
    }
}

// Whatever runs can be cancelled; what has ended cannot.
TEST(RunStates, CancelIsKnownWhereverSomethingLives) {
    for (const auto& [state, name] : enum_names(RunState{}))
        EXPECT_EQ(next_state(state, RunEvent::cancel).has_value(), !is_terminal(state) && state != RunState::cancelling)
            << name;
}

// The page in the documentation is printed from the tables that are followed.
TEST(RunStates, TheTablesPrintAsMarkdown) {
    const std::string page = states_markdown();
    EXPECT_THAT(page, HasSubstr("| - | submit | queued |"));
    EXPECT_THAT(page, HasSubstr("| ending | gone | ended |"));
    EXPECT_THAT(page, HasSubstr("check failed | quarantined"));
}

}  // namespace
}  // namespace stoker
