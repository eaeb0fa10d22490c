// The health of nodes in the core: checks asked for, what they and the observer say, and what follows (health.h).
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "run/core/core.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

// Looking for what is due costs about a microsecond a node: not with every turn.
constexpr std::int64_t kCheckPassUs = kSecondUs / 5;
// Longer than the deadline of any check: its answer was lost, and it is asked for again.
constexpr std::int64_t kCheckLimitUs = 1800 * kSecondUs;
constexpr double kMostShare = 1000;  // of a step; a rank that hangs costs more than a rule can tell

}  // namespace

bool Core::may_check() const {
    return !recovering_ && (options_.scheduler.health.level || !asked_checks_.empty());
}

// The node is there again, or nobody drains it any more.
void Core::back_to_work(const std::string& name) {
    const auto found = state_.nodes.find(name);
    if (found == state_.nodes.end()) return;
    const Standing standing = standing_of(found->second, options_.scheduler.health.level, now_us_);
    emit(NodeMoved{name, standing.state, standing.cause});
}

// What checks and history say of a node that is at work, written down when it is something else than before.
void Core::judge(const std::string& name) {
    const auto found = state_.nodes.find(name);
    if (found == state_.nodes.end()) return;
    const NodeStatus& node = found->second;
    if (node.state == NodeState::draining || node.state == NodeState::lost) return;
    const Standing standing = standing_of(node, options_.scheduler.health.level, now_us_);
    if (standing == Standing{node.state, node.cause}) return;
    // That it was repaired stays readable while its check is awaited.
    if (standing.state == NodeState::checking && node.state == NodeState::checking) return;
    emit(NodeMoved{name, standing.state, standing.cause});
    changed_ = true;
}

Result<Ack> Core::on(const CheckNode& check) {
    const auto found = state_.nodes.find(check.node);
    if (found == state_.nodes.end()) return Error(ErrorKind::not_found, "there is no node " + printable(check.node));
    if (found->second.state == NodeState::lost)
        return Error(ErrorKind::conflict, printable(check.node) + " is lost; it is checked when it is back");
    AskedCheck& asked = asked_checks_[check.node];
    Ack ack{.repeated = asked.asked_us != 0 && asked.level >= check.level};
    if (!asked.under_way)
        asked.level = std::max(asked.level, check.level);
    else if (check.level > asked.level)
        asked.then_full = true;
    if (asked.asked_us == 0) asked.asked_us = now_us_;
    health_changed_ = true;
    return ack;
}

void Core::ask_for_checks() {
    if (!may_check()) return;
    if (!health_changed_ && (next_check_us_ == 0 || now_us_ < next_check_us_)) return;
    if (now_us_ < checks_after_us_) return;
    health_changed_ = false;
    checks_after_us_ = now_us_ + kCheckPassUs;
    HealthGate& gate = options_.scheduler.health;
    std::erase_if(asked_checks_, [&](const auto& each) {
        const bool over = (each.second.under_way && now_us_ >= each.second.asked_us + kCheckLimitUs) ||
                          !state_.nodes.contains(each.first);
        if (over) gate.under_check.erase(each.first);
        return over;
    });
    ChecksDue due = checks_due(state_, gate.level, asked_checks_, now_us_);
    next_check_us_ = due.next_us;
    for (CheckWanted& want : due.now) {
        asked_checks_[want.node] = {.level = want.level, .under_way = true, .asked_us = now_us_};
        gate.under_check.insert(want.node);
        checks_.push_back(std::move(want));
    }
    for (const auto& [name, asked] : asked_checks_)
        if (asked.under_way && (next_check_us_ == 0 || asked.asked_us + kCheckLimitUs < next_check_us_))
            next_check_us_ = asked.asked_us + kCheckLimitUs;
}

Result<Ack> Core::on(const SawHealth& saw) {
    const std::string& name = saw.check.node;
    const auto asked = asked_checks_.find(name);
    const bool awaited = asked != asked_checks_.end() && asked->second.under_way;
    // What nobody asked for counts where it fails: seen while the node was at work, when nothing may be measured there.
    if (!awaited && saw.report.verdict() != HealthVerdict::fail) return Ack{.repeated = true};
    if (awaited) {
        const bool again = asked->second.then_full;
        asked_checks_.erase(asked);
        if (again) asked_checks_[name] = {.level = HealthLevel::full, .asked_us = now_us_};
        options_.scheduler.health.under_check.erase(name);
    }
    changed_ = health_changed_ = true;
    const auto found = state_.nodes.find(name);
    // It rebooted meanwhile: what was measured is of another time.
    if (found == state_.nodes.end() || found->second.info.boot_id != saw.check.boot_id) return Ack{.repeated = true};
    emit(checked_record(name, saw.check.boot_id, saw.check.level, saw.report));
    judge(name);
    return Ack{};
}

Result<Ack> Core::on(const BlameNode& blame) {
    const Attempt* attempt = state_.find(blame.attempt);
    if (attempt == nullptr) return Error(ErrorKind::not_found, "there is no attempt " + blame.attempt.text());
    std::set<std::string> members;
    for (const RankPlace& place : attempt->places) members.insert(place.node);
    const auto found = state_.nodes.find(blame.node);
    if (members.size() < 2 || !members.contains(blame.node) || found == state_.nodes.end() ||
        !std::isfinite(blame.share) || blame.share <= 0)
        return Error(ErrorKind::invalid,
                     fmt::format("{} slowed nobody in {}", printable(blame.node), blame.attempt.text()));
    // One for an attempt at most, whichever node it names.
    for (const std::string& member : members) {
        const auto node = state_.nodes.find(member);
        if (node == state_.nodes.end() || !node->second.health) continue;
        const auto& blames = node->second.health->blames;
        if (std::any_of(blames.begin(), blames.end(),
                        [&](const NodeBlame& each) { return each.attempt == blame.attempt; }))
            return Ack{.repeated = true};
    }
    NodeBlamed body{.node = blame.node,
                    .attempt = blame.attempt,
                    .members = {members.begin(), members.end()},
                    .share_milli = std::llround(std::min(blame.share, kMostShare) * 1000)};
    if (body.members.size() > kMostBlameMembers) body.members.resize(kMostBlameMembers);
    emit(std::move(body));
    const Standing standing = standing_of(found->second, options_.scheduler.health.level, now_us_);
    if (standing.cause == Cause::node_lemon) judge(blame.node);
    return Ack{};
}

}  // namespace stoker
