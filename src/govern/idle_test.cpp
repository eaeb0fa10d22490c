#include "govern/idle.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/document.h"

namespace stoker {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kMin = 60'000'000, kHour = 60 * kMin;
constexpr std::int64_t kNow = 1000 * kHour;

IdleRule rule(IdleStep then) {
    IdleRule r;
    r.then = then;
    return r;
}
// Idle for so long, with so much to do again.
IdleFacts idle_for(std::int64_t us, std::int64_t again_us, bool goes_on = true) {
    return {.since_us = kNow - us, .again_us = again_us, .goes_on = goes_on};
}
// Minutes of a run that holds 8 cores: b busy, i idle, d waits for data, . nothing known.
WasteSubject minutes(const std::string& text, int gpus = 0) {
    WasteSubject subject{.began_us = kNow, .running_us = kNow, .cores = 8, .gpus = gpus};
    std::int64_t at = kNow;
    for (const char c : text) {
        if (c != '.')
            subject.samples.push_back({.from_us = at,
                                       .to_us = at + kMin,
                                       .cores = c == 'b' ? 7.5 : 0.1,
                                       .bytes_per_s = 0,
                                       .blocked = c == 'd' ? 1 : 0});
        at += kMin;
    }
    subject.until_us = at;
    return subject;
}
std::string so_many(std::size_t n, char c) {
    return std::string(n, c);
}

// Somebody whose notebook pauses would lose it if a pause were counted from the start of the run.
TEST(Idle, IsCountedFromTheLastThingThatMoved) {
    EXPECT_EQ(idle_since(minutes(so_many(10, 'b') + so_many(20, 'i'))), kNow + 10 * kMin);
    EXPECT_EQ(idle_since(minutes(so_many(20, 'i') + "b" + so_many(5, 'i'))), kNow + 21 * kMin);
    EXPECT_EQ(idle_since(minutes(so_many(20, 'i') + "b")), std::nullopt);
    EXPECT_EQ(idle_since(minutes(so_many(20, 'i') + "d")), std::nullopt) << "who waits for data is not idle";
    EXPECT_EQ(pauses_before(minutes(so_many(20, 'i') + "b" + so_many(5, 'i') + "b" + so_many(30, 'i')), 10 * kMin), 1);
}

// A collector that was down must not take somebody's machine.
TEST(Idle, WhatNobodyMeasuredIsBusy) {
    EXPECT_EQ(idle_since(minutes(so_many(20, 'i') + so_many(10, '.'))), std::nullopt) << "nobody looked lately";
    EXPECT_EQ(idle_since(minutes(so_many(20, 'i') + so_many(10, '.') + so_many(4, 'i'))), kNow + 30 * kMin);
    EXPECT_EQ(idle_since(minutes("")), std::nullopt);
    EXPECT_EQ(idle_since(minutes(so_many(20, 'i'), 1)), std::nullopt) << "a GPU that nobody measures may work";
    WasteSubject waits = minutes(so_many(20, 'i'));
    waits.running_us = 0;
    EXPECT_EQ(idle_since(waits), std::nullopt) << "it has not begun";
}

// The heartbeat of a notebook server is a second of work, and would keep its GPU for ever.
TEST(Idle, AHeartbeatIsNoWork) {
    WasteSubject subject{.began_us = kNow, .running_us = kNow, .until_us = kNow + 10 * kMin, .cores = 2};
    for (std::int64_t s = 0; s < 600; ++s)
        subject.samples.push_back(
            {.from_us = kNow + s * 1'000'000, .to_us = kNow + (s + 1) * 1'000'000, .cores = s % 30 == 0 ? 0.9 : 0.0});
    EXPECT_NE(idle_since(subject), kNow);
    subject.samples = coarser(subject.samples, kMin);
    EXPECT_EQ(subject.samples.size(), 10U + (kNow % kMin == 0 ? 0 : 1));
    EXPECT_EQ(idle_since(subject), kNow);
    // A hole stays one.
    const auto apart =
        coarser({{.from_us = 0, .to_us = kMin, .cores = 0}, {.from_us = 9 * kMin, .to_us = 10 * kMin}}, kMin);
    ASSERT_EQ(apart.size(), 2U);
    EXPECT_EQ(apart[0].to_us, kMin);
    EXPECT_FALSE(apart[1].cores.has_value());
}

// Nobody is to lose work without having been told, nor before the notice is over.
TEST(Idle, FirstTellThenParkThenNothingMore) {
    const IdleRule park = rule(IdleStep::park);
    IdleFacts facts = idle_for(29 * kMin, 10 * kMin);
    IdleVerdict verdict = judge_idle(park, facts, kNow);
    EXPECT_EQ(verdict.act, IdleAct::none);
    EXPECT_EQ(verdict.next_us, kNow + kMin);
    facts = idle_for(30 * kMin, 10 * kMin);
    EXPECT_EQ(judge_idle(park, facts, kNow).act, IdleAct::tell);
    facts.told_us = kNow - 14 * kMin;
    EXPECT_EQ(judge_idle(park, facts, kNow).act, IdleAct::none);
    facts.told_us = kNow - 15 * kMin;
    EXPECT_EQ(judge_idle(park, facts, kNow).act, IdleAct::park);
    EXPECT_EQ(judge_idle(rule(IdleStep::tell), facts, kNow).act, IdleAct::none);
    EXPECT_EQ(judge_idle(rule(IdleStep::leave), idle_for(50 * kHour, 0), kNow).act, IdleAct::none);
    facts.since_us = 0;
    EXPECT_EQ(judge_idle(park, facts, kNow).act, IdleAct::none) << "it moves again";
}

// Five hours of work that are not written down cost more than an idle half hour; after long enough they do not.
TEST(Idle, IsTakenOnlyWhereThatSavesMoreThanItMayLose) {
    const IdleRule stop = rule(IdleStep::stop);
    const auto after = [&](std::int64_t idle, std::int64_t again) {
        IdleFacts facts = idle_for(idle, again, false);
        facts.told_us = facts.since_us + 30 * kMin;
        return judge_idle(stop, facts, kNow);
    };
    EXPECT_EQ(after(kHour, 5 * kHour).act, IdleAct::none);
    EXPECT_THAT(after(kHour, 5 * kHour).why, HasSubstr("89 % that it goes on by itself"));
    EXPECT_EQ(after(5 * kHour, 5 * kHour).act, IdleAct::stop);
    EXPECT_EQ(after(kHour, 10 * kMin).act, IdleAct::stop);
    IdleFacts facts = idle_for(kHour, 10 * kMin, false);
    facts.told_us = facts.since_us + 30 * kMin;
    EXPECT_EQ(judge_idle(rule(IdleStep::park), facts, kNow).act, IdleAct::none) << "it cannot go on from anywhere";
    // Of a lease that ends in a minute nothing is left to save.
    facts.goes_on = true;
    facts.ends_us = kNow + kMin;
    EXPECT_LT(judge_idle(stop, facts, kNow).saved_s, 61);
}

// The formulas of the header, by numbers that were worked out by hand.
TEST(Idle, TheChanceIsLindys) {
    IdleFacts facts = idle_for(2 * kHour, kHour);
    facts.told_us = kNow - kHour;
    IdleVerdict verdict = judge_idle(rule(IdleStep::park), facts, kNow);
    EXPECT_NEAR(verdict.wrong, 0.8, 1e-9);                         // 8 / (2 + 8)
    EXPECT_NEAR(verdict.saved_s, 2 * 3600 * std::log(5.0), 1e-6);  // t ln(1 + 8/2)
    EXPECT_NEAR(verdict.lost_s, 0.8 * 3600, 1e-6);
    facts.pauses = 1;
    verdict = judge_idle(rule(IdleStep::park), facts, kNow);
    EXPECT_NEAR(verdict.wrong, 0.96, 1e-9);
    EXPECT_NEAR(verdict.saved_s, 3600 * std::log(5.0), 1e-6);
}

// Whatever the times: longer idle never makes it less likely to be taken, more at stake never more.
TEST(Idle, TheBetIsMonotonous) {
    const IdleRule stop = rule(IdleStep::stop);
    for (const int pauses : {0, 1, 5})
        for (std::int64_t again = 0; again < 20 * kHour; again += kHour) {
            bool taken = false;
            for (std::int64_t idle = kHour; idle < 200 * kHour; idle += 3 * kHour) {
                IdleFacts facts = idle_for(idle, again, false);
                facts.told_us = kNow - kHour;
                facts.pauses = pauses;
                const bool now = judge_idle(stop, facts, kNow).act == IdleAct::stop;
                EXPECT_TRUE(now || !taken) << pauses << " " << again << " " << idle;
                taken = taken || now;
                facts.again_us += kHour;
                EXPECT_TRUE(now || judge_idle(stop, facts, kNow).act != IdleAct::stop);
            }
        }
}

// Who keeps a run is not told every minute, and cannot be overruled before the time is over.
TEST(Idle, WhatIsKeptIsLeftAlone) {
    IdleFacts facts = idle_for(9 * kHour, 0);
    facts.kept_until_us = kNow + kHour;
    EXPECT_EQ(judge_idle(rule(IdleStep::stop), facts, kNow).act, IdleAct::none);
    EXPECT_EQ(judge_idle(rule(IdleStep::stop), facts, kNow).next_us, kNow + kHour);
    facts.kept_until_us = kNow - 1;
    EXPECT_EQ(judge_idle(rule(IdleStep::stop), facts, kNow).act, IdleAct::tell);
}

IdleRules read(const std::string& yaml, Problems& problems) {
    const auto document = Document::parse_yaml(yaml, "server.yaml");
    EXPECT_TRUE(document.ok());
    IdleRules rules;
    for (const auto& item : document->root().items) rules.push_back(idle_rule_table().read(*item, problems));
    check_idle_rules(rules, problems);
    return rules;
}

TEST(Idle, TheFirstRuleThatARunIsInDecides) {
    Problems problems;
    const IdleRules rules = read(
        "- {kinds: [notebook], then: stop, after: 1h}\n"
        "- {projects: [hospital/imaging], then: leave}\n"
        "- {then: park, parked_for: 14d}\n",
        problems);
    ASSERT_THAT(problems, IsEmpty());
    EXPECT_EQ(idle_rule_for(rules, {"hospital", "imaging", "anna", "notebook", "guaranteed"}), &rules[0]);
    EXPECT_EQ(idle_rule_for(rules, {"hospital", "imaging", "anna", "train", "guaranteed"}), &rules[1]);
    EXPECT_EQ(idle_rule_for(rules, {"hospital", "genomics", "anna", "train", "guaranteed"}), &rules[2]);
    EXPECT_EQ(idle_rule_for({}, {"hospital", "genomics", "anna", "train", "guaranteed"}), nullptr);
    EXPECT_EQ(in_words(rules[0]),
              "notebook: told after 1 h, parked 15 min later at the earliest, or ended where it "
              "writes no checkpoints");
}

TEST(Idle, WhatARuleCannotMeanIsToldWithItsPlace) {
    Problems problems;
    (void)read("- {then: park}\n- {kinds: [train], then: tell, parked_for: 1d}\n- {kinds: [gaming]}\n", problems);
    std::string text;
    for (const Problem& each : problems) text += std::to_string(each.pos.line) + " " + each.message + "\n";
    EXPECT_THAT(text, HasSubstr("2 idle: no run comes to this rule: the one in line 1 is about all runs"));
    EXPECT_THAT(text, HasSubstr("2 idle: parked_for: this rule parks nothing"));
    EXPECT_THAT(text, HasSubstr("3 idle: there is no gaming in kinds"));
}

}  // namespace
}  // namespace stoker
