#include "deploy/kubernetes/look_script.h"

#include <gtest/gtest.h>

#include <chrono>

#include "io/files.h"
#include "io/run_program.h"

namespace stoker::kubernetes {
namespace {

// The two scripts of a pod in one folder, with a shell of this machine.
class LookScript : public ::testing::Test {
protected:
    static void replace_all(std::string& text, const std::string& from, const std::string& to) {
        for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
            text.replace(at, from.size(), to);
    }
    std::string run(std::string script) const {
        replace_all(script, kMeasureFolder, folder_.path());
        const auto ran = run_program({.arguments = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}},
                                     std::chrono::steady_clock::now() + std::chrono::minutes(1));
        EXPECT_TRUE(ran.ok() && ran->complaint.empty()) << (ran ? ran->complaint : ran.error().text());
        return ran ? ran->output : std::string();
    }
    std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

    // A rank that begins, writes `lines` and ends.
    std::string rank(const std::string& number, const std::string& lines) const {
        return "LOCAL_RANK=" + number + " RANK=" + number + "\n" + look_functions(measure_) + "mark_lines\n" +
               "printf '" + lines + "' >>" + file(number == "0" ? "steps.jsonl" : "steps.rank-" + number + ".jsonl") +
               "\n";
    }
    // What looks at them, told to end when all of its parts are there: it says first all that there is.
    std::string look() const {
        return "export JOB_COMPLETION_INDEX=0\n( " + measures_script(measure_, 2) +
               ") & beside=$!\nuntil [ $(wc -w </proc/$beside/task/$beside/children) -ge 3 ]; do sleep 0.02; done\n"
               "for each in " +
               file("from-*") +
               "; do\n"
               "  until [ ! -e $each ] || [ -e " +
               file("follows-") +
               "${each##*-} ]; do sleep 0.02; done\n"
               "done\n"
               "kill -TERM $beside; wait $beside\n";
    }

    const ScratchFolder folder_ = ScratchFolder::make("look-script").value();
    const MeasureSpec measure_{.lines = file("steps.jsonl")};
};

// A rank that was quicker than the container that looks at it loses no step by that.
TEST_F(LookScript, WhatWasWrittenBeforeAnybodyLookedIsSaid) {
    const std::string said = run(rank("0", "one\\ntwo\\n") + rank("1", "three\\n") + look());
    const std::size_t first = said.find("S 0 one\n"), second = said.find("S 0 two\n");
    EXPECT_NE(second, std::string::npos) << said;
    EXPECT_LT(first, second) << said;  // lines of another rank may stand between
    EXPECT_NE(said.find("S 1 three\n"), std::string::npos) << said;
}

// What an earlier attempt left in the same file is not said again, however much it is.
TEST_F(LookScript, WhatWasThereBeforeTheRankIsNot) {
    for (const std::size_t before : {4U, 65535U, 65536U, 200'000U}) {
        ASSERT_TRUE(replace_file(file("steps.jsonl"), std::string(before - 1, 'x') + "\n", false).ok());
        const std::string said = run("rm -f " + file("f*-*") + "\n" + rank("0", "one\\n") + rank("1", "") + look());
        EXPECT_EQ(said, "S 0 one\n") << before;
    }
}

// The container that looks is started again: nothing comes twice.
TEST_F(LookScript, OneThatIsStartedAgainRepeatsNothing) {
    EXPECT_EQ(run(rank("0", "one\\n") + rank("1", "") + look() + look()), "S 0 one\n");
}

// A gang that ended before its ranks began leaves nobody waiting for them.
TEST_F(LookScript, WithoutARankItEnds) {
    EXPECT_EQ(run(look()), "");
}

}  // namespace
}  // namespace stoker::kubernetes
