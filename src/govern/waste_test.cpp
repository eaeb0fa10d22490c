#include "govern/waste.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::int64_t kMinute = 60'000'000;

// Minutes of a run that holds 8 cores: b busy, i idle, d waits for data, s steps, . nothing known, from minute 2 on.
WasteSubject run(const std::string& minutes, int gpus = 0) {
    WasteSubject subject{.began_us = 0, .running_us = 2 * kMinute, .cores = 8, .gpus = gpus};
    std::int64_t at = subject.running_us;
    for (const char c : minutes) {
        WasteSample sample{.from_us = at, .to_us = at + kMinute};
        if (c != '.') {
            sample.cores = c == 'b' ? 7.5 : 0.1;
            sample.bytes_per_s = 0;
            sample.blocked = c == 'd' ? 1 : 0;
            sample.stepped = c == 's';
        }
        if (c != '.') subject.samples.push_back(sample);
        at += kMinute;
    }
    subject.until_us = at;
    return subject;
}
std::string words(const WasteSubject& subject) {
    std::string text;
    for (const WastePiece& piece : judge_waste(subject)) {
        for (const auto& [cause, name] : enum_names(WasteCause{}))
            if (cause == piece.cause) text += std::string(text.empty() ? "" : ", ") + std::string(name);
        text += " " + std::to_string(piece.from_us / kMinute) + "-" + std::to_string(piece.to_us / kMinute);
    }
    return text;
}
std::string times(std::size_t n, char c) {
    return std::string(n, c);
}

TEST(Waste, WhatWorksWastesOnlyItsStart) {
    EXPECT_EQ(words(run(times(30, 'b'))), "deployment 0-2");
    EXPECT_EQ(words(run(times(5, 'b') + times(9, 'i') + times(5, 'b'))), "deployment 0-2");  // a pause
    EXPECT_EQ(words(run(times(90, 's'))), "deployment 0-2");  // steps on a device, with idle processors
    WasteSubject never{.began_us = 0, .running_us = 0, .until_us = 5 * kMinute, .cores = 8};
    EXPECT_EQ(words(never), "deployment 0-5");
}

TEST(Waste, IdleTimeHasACause) {
    EXPECT_EQ(words(run(times(5, 'b') + times(20, 'i') + times(5, 'b'))), "deployment 0-2, no work 7-27");
    EXPECT_EQ(words(run(times(5, 'b') + times(20, 'i'))), "deployment 0-2, no work 7-27");
    EXPECT_EQ(words(run(times(5, 'b') + times(90, 'i'))), "deployment 0-2, forgotten 7-97");
    EXPECT_EQ(words(run(times(5, 'b') + times(90, 'i') + "b")), "deployment 0-2, no work 7-97");
    EXPECT_EQ(words(run("bb" + times(3, 'd') + "bb")), "deployment 0-2, waiting for data 4-7");
}

// A collector that was down must not make somebody lose a machine.
TEST(Waste, WhatIsNotKnownIsBusy) {
    EXPECT_EQ(words(run(times(90, '.'))), "deployment 0-2");
    EXPECT_EQ(words(run(times(8, 'i') + times(20, '.') + times(8, 'i'))), "deployment 0-2");
    WasteSubject gpu = run(times(90, 'i'), 8);
    EXPECT_EQ(words(gpu), "deployment 0-2");  // its GPUs may work beside an idle host
    for (WasteSample& sample : gpu.samples) sample.gpus = 7.5;
    EXPECT_EQ(words(gpu), "deployment 0-2");
    for (WasteSample& sample : gpu.samples) sample.gpus = 0;
    EXPECT_EQ(words(gpu), "deployment 0-2, forgotten 2-92");
}

TEST(Waste, PiecesLieWithinWhatWasHeld) {
    WasteSubject subject = run(times(90, 'i'));
    subject.until_us = 50 * kMinute;
    EXPECT_EQ(words(subject), "deployment 0-2, no work 2-50");
    subject.until_us = 0;
    EXPECT_EQ(words(subject), "");
}

}  // namespace
}  // namespace stoker
