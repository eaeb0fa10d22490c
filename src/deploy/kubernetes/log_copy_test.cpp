#include "deploy/kubernetes/log_copy.h"

#include <gmock/gmock.h>

namespace stoker::kubernetes {
namespace {

// After a break the server repeats the second that it broke in: nobody reads a line twice, and none is missing.
TEST(KubeLogLines, ALineIsTakenOnceAcrossAnswers) {
    LogLines lines("", 0);
    EXPECT_EQ(lines.take("2026-11-21T10:00:13.7Z a\n2026-11-21T10:00:13.736746455Z b\n2026-11-21T10:00:13.7367464"),
              "a\nb\n");
    lines.begin_again();
    EXPECT_EQ(
        lines.take("2026-11-21T10:00:13.7Z a\n2026-11-21T10:00:13.736746455Z b\n2026-11-21T10:00:13.736746455Z c\n"),
        "c\n");
    lines.begin_again();
    EXPECT_EQ(lines.take("2026-11-21T10:00:13.736746455Z b\n2026-11-21T10:00:13.736746455Z c\n2026-11-21T10:00:14Z \n"),
              "\n");
    EXPECT_EQ(lines.take("2026-11-21T10:00:15Z no end"), "");
    EXPECT_EQ(lines.take_rest(), "no end");
}

// Sixty-four ranks on a node that is gone would ask for their logs two hundred times a second.
TEST(KubeLogPause, WhoDoesNotAnswerIsAskedLessOften) {
    using std::chrono::milliseconds;
    LogPause pause;
    EXPECT_EQ(pause.after(false), milliseconds(300));
    EXPECT_EQ(pause.after(false), milliseconds(600));
    for (int i = 0; i < 10; ++i) (void)pause.after(false);
    EXPECT_EQ(pause.after(false), milliseconds(5000));
    EXPECT_EQ(pause.after(true), milliseconds(300));
    EXPECT_EQ(pause.after(false), milliseconds(600));
}

// The next server goes on where this one stopped.
TEST(KubeLogLines, WhereItStoppedIsKept) {
    LogLines first("", 0);
    EXPECT_EQ(first.take("2026-11-21T10:00:13Z a\n2026-11-21T10:00:13Z b\n"), "a\nb\n");
    LogLines next(first.last_time(), first.at_last_time());
    EXPECT_EQ(next.take("2026-11-21T10:00:13Z a\n2026-11-21T10:00:13Z b\n2026-11-21T10:00:13Z c\n"), "c\n");
}

// What a server that was killed left in the engine's folder is known by its name.
TEST(KubeLogLines, WhoseMarkAFileIs) {
    const OperationId id{.site = "k3x7q", .seq = 1};
    EXPECT_EQ(operation_of_mark(id.text() + "-3.at"), id);
    EXPECT_EQ(operation_of_mark(id.text() + "-pod-3.at"), id);
    for (const char* other : {"", ".at", "x.at", "k3x7q-222223.at", "k3x7q-222223-3.at.tmp", "rank-0.out"})
        EXPECT_EQ(operation_of_mark(other), std::nullopt) << other;
}

}  // namespace
}  // namespace stoker::kubernetes
