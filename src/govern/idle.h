// What becomes of work that holds machines and does nothing: rules that an operator writes, and the judge that says
// when to tell its owner, when to take the places back, and when that would cost more than it saves. Pure.
//
// Taking work away is a bet: it may have been about to go on. How long something that has been idle for a time t stays
// so is not known; pauses of people have no scale of their own, so the chance that it goes on within the next h is
// taken for h / (t + h) (Lindy's law, a Pareto tail of 1), and each earlier pause of the same work, at least half as
// long, after which it did go on, is one more such chance. Against that chance times what would have to be done again
// stands the idle time that is saved. Both are times of the same machines, so prices cancel out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/table.h"
#include "govern/waste.h"

namespace stoker {

inline constexpr std::size_t kMostIdleRules = 100;
inline constexpr double kUsualIdleAfterS = 30 * 60, kUsualIdleNoticeS = 15 * 60, kUsualIdleHorizonS = 8 * 3600,
                        kUsualIdleHoldS = 7 * 86'400;
// Of work that says nothing of how often it writes checkpoints.
inline constexpr std::int64_t kUnknownCheckpointUs = std::int64_t{30} * 60 * 1'000'000;
// What was measured last stands for now at most so long; older, and nobody knows.
inline constexpr std::int64_t kIdleEvidenceUs = std::int64_t{3} * 60 * 1'000'000;

// How far it may go.
enum class IdleStep : std::uint8_t { leave, tell, park, stop };
constexpr std::array<std::pair<IdleStep, std::string_view>, 4> enum_names(IdleStep) {
    return {{{IdleStep::leave, "leave"}, {IdleStep::tell, "tell"}, {IdleStep::park, "park"}, {IdleStep::stop, "stop"}}};
}

// The first rule that a run is in decides; a list that is empty has everybody in it.
struct IdleRule {
    std::vector<std::string> organisations, projects, users, kinds, classes;
    std::optional<IdleStep> then;  // tell when nothing is said
    std::optional<Seconds> after, notice, horizon, longest_hold, parked_for;
    std::map<std::string, SourcePos> at;

    IdleStep furthest() const { return then.value_or(IdleStep::tell); }
    double after_s() const { return after ? after->value() : kUsualIdleAfterS; }
    double notice_s() const { return notice ? notice->value() : kUsualIdleNoticeS; }
    double horizon_s() const { return horizon ? horizon->value() : kUsualIdleHorizonS; }
    double longest_hold_s() const { return longest_hold ? longest_hold->value() : kUsualIdleHoldS; }
};
using IdleRules = std::vector<IdleRule>;

RecordTable<IdleRule> idle_rule_table();
// What a table cannot say: kinds that there are not, rules that no run reaches.
void check_idle_rules(const IdleRules& rules, Problems& problems);
std::string exact_text(const IdleRules& rules);  // equal when the rules are
// "notebooks: told after 30 min, parked 15 min later"
std::string in_words(const IdleRule& rule);

struct IdleOwner {
    std::string organisation, project, user, kind, run_class;
};
const IdleRule* idle_rule_for(const IdleRules& rules, const IdleOwner& owner);  // null: none is about it

// Since when nothing moved, of the samples up to `until`; nothing: something does, or nobody knows.
std::optional<std::int64_t> idle_since(const WasteSubject& subject);
// Pauses before the last stretch that lasted so long, after which something moved again.
int pauses_before(const WasteSubject& subject, std::int64_t at_least_us);
// Samples put together to pieces of that length, so that a heartbeat of a second is no work.
std::vector<WasteSample> coarser(const std::vector<WasteSample>& samples, std::int64_t piece_us);

struct IdleFacts {
    std::int64_t since_us = 0;  // nothing moved since; 0: it moves, or nobody knows
    int pauses = 0;             // pauses_before(half of that)
    // What would be done again if it were taken away and had to go on: work since its newest checkpoint (all of it,
    // where it writes none), and its start.
    std::int64_t again_us = 0;
    std::int64_t ends_us = 0;        // by its lease or timeout; 0: nothing ends it
    bool goes_on = false;            // from a checkpoint
    std::int64_t told_us = 0;        // its owner, of this stretch; 0: not yet
    std::int64_t kept_until_us = 0;  // somebody asked that it be left alone
};

enum class IdleAct : std::uint8_t { none, tell, park, stop };
struct IdleVerdict {
    IdleAct act = IdleAct::none;
    double wrong = 0;                // the chance that it would have gone on by itself
    double saved_s = 0, lost_s = 0;  // expected, of the time of what it holds
    std::int64_t next_us = 0;        // when it is looked at for its next step; 0: none is to come as things are
    std::string why;                 // of what it is or is not, in words
};
IdleVerdict judge_idle(const IdleRule& rule, const IdleFacts& facts, std::int64_t now_us);

}  // namespace stoker
