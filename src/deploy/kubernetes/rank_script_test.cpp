// What begins a rank in its container, run with a shell of this machine: so it shares its processes with everything
// here.
#include "deploy/kubernetes/rank_script.h"

#include <gtest/gtest.h>

#include <chrono>

#include "deploy/local/launcher.h"
#include "deploy/shared_words.h"
#include "io/files.h"
#include "io/run_program.h"

namespace stoker::kubernetes {
namespace {

// A checkpoint signal reaches what the program started too, and nothing that is somebody else's: in a pod that shares
// its processes (shareProcessNamespace, hostPID) that would be its neighbours.
TEST(RankScript, ASignalReachesTheProcessesOfTheRankAndNoOthers) {
    const ScratchFolder folder = ScratchFolder::make("rank-script").value();
    const std::string at = folder.path() + "/";
    const GangSpec gang{.ranks = {{.arguments = {"sh"}}}};
    std::string script = rank_script(gang, 1);
    const std::string orders = kOrdersFolder;
    for (std::size_t found = 0; (found = script.find(orders, found)) != std::string::npos; found += at.size())
        script.replace(found, orders.size(), at);
    // Each says that it is up, and when it is told; the rank ends when both of its own were.
    const auto listener = [&](const std::string& name, const std::string& until) {
        return "trap ': >" + at + "told-" + name + "' USR1; : >" + at + "up-" + name + "; until [ -e " + at + until +
               " ]; do sleep 0.02; done";
    };
    const std::string program =
        "( " + listener("child", "told-child") + " ) & " + listener("program", "told-program") + "; wait; exit 7";
    const std::string test = "sh -c " + shell_quoted(listener("stranger", "over")) + " & stranger=$!\n" +
                             "printf go >" + at + "orders\n" + "( until [ -e " + at + "up-child ] && [ -e " + at +
                             "up-program ] && [ -e " + at + "up-stranger ]; do sleep 0.02; done\n" +
                             "printf 'go 1:10' >" + at + "new; mv " + at + "new " + at + "orders ) &\n" +
                             "JOB_COMPLETION_INDEX=0 LOCAL_RANK=0 sh -c " + shell_quoted(script) + " rank sh -c " +
                             shell_quoted(program) + "\ncode=$?\n: >" + at + "over\nwait $stranger\nexit $code\n";
    const auto ran = run_program({.arguments = {"sh", "-c", test}, .environment = {"PATH=/usr/bin:/bin"}},
                                 std::chrono::steady_clock::now() + std::chrono::minutes(1));
    ASSERT_TRUE(ran.ok()) << ran.error().text();
    EXPECT_EQ(ran->exit_code, 7) << ran->complaint;
    for (const char* name : {"told-program", "told-child"}) EXPECT_TRUE(path_exists(at + name)) << name;
    EXPECT_FALSE(path_exists(at + "told-stranger"));
}

// The fourth rank of the third pod: its number under each of its names, and what it alone is given.
TEST(RankScript, ARankIsToldItsNumberAndWhatIsItsOwn) {
    const ScratchFolder folder = ScratchFolder::make("rank-script").value();
    GangSpec gang;
    for (int i = 0; i < 24; ++i) {
        const std::string number = std::to_string(i);
        gang.ranks.push_back(
            {.arguments = {"program"}, .environment = {{"RANK", number}, {"SLURM_PROCID", number}, {"SEED", "1"}}});
    }
    gang.ranks[19].environment["SEED"] = "two words";
    EXPECT_EQ(shared_environment(gang), (std::map<std::string, std::string>()));
    std::string script = rank_script(gang, 8);
    const std::string orders = kOrdersFolder;
    for (std::size_t found = 0; (found = script.find(orders, found)) != std::string::npos;
         found += folder.path().size())
        script.replace(found, orders.size(), folder.path());
    const std::string test = "printf go >" + folder.path() + "/orders\nJOB_COMPLETION_INDEX=2 LOCAL_RANK=3 sh -c " +
                             shell_quoted(script) + " rank sh -c 'echo $RANK $SLURM_PROCID $NODE_RANK $SEED'\n";
    const auto ran = run_program({.arguments = {"sh", "-c", test}, .environment = {"PATH=/usr/bin:/bin"}},
                                 std::chrono::steady_clock::now() + std::chrono::minutes(1));
    ASSERT_TRUE(ran.ok()) << ran.error().text();
    EXPECT_EQ(ran->output, "19 19 2 two words\n");
}

}  // namespace
}  // namespace stoker::kubernetes
