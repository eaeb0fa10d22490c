// When this breaks, a directive counts as another option, or a right one is called unknown.
#include "lint/shell/directives.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lint/check.h"
#include "lint/read.h"

namespace stoker::lint {
namespace {

const Directive* first(const File& file) {
    return file.script.directives.empty() ? nullptr : &file.script.directives.front();
}

TEST(Directives, ReadsSwitchesQuotesAndPlugins) {
    const auto file =
        read_file("x.sbatch", "#!/bin/bash\n#SBATCH --exclusive --job-name=\"a b\" --container-image=x -H\n");
    ASSERT_EQ(file->script.directives.size(), 4u);
    EXPECT_TRUE(file->script.directives[0].value.absent());
    EXPECT_EQ(file->script.directives[1].value.text, "a b");
    for (const Directive& each : file->script.directives) EXPECT_FALSE(each.malformed) << each.option;
}

// A job of several parts gives each its own nodes: none of them is overruled.
TEST(Directives, KnowsThePartsOfAHeterogeneousJob) {
    const auto file = read_file("x.sbatch", "#!/bin/bash\n#SBATCH -N 2\n#SBATCH hetjob\n#SBATCH -N 3\nsrun x\n");
    ASSERT_EQ(file->script.directives.size(), 3u);
    EXPECT_TRUE(file->script.directives[1].separator);
    for (const Directive& each : file->script.directives) EXPECT_FALSE(each.malformed) << each.option;
    for (const Finding& finding : check_file(*file, {}, Knowledge::embedded()))
        EXPECT_NE(finding.rule, "SLM012") << finding.message;
}

TEST(Directives, ReadsPbsAndSge) {
    const auto pbs = read_file("x.pbs", "#!/bin/bash\n#PBS -l select=2:ngpus=8 # two\n");
    ASSERT_TRUE(first(*pbs));
    EXPECT_EQ(first(*pbs)->option, "l");
    EXPECT_EQ(first(*pbs)->value.text, "select=2:ngpus=8");
    EXPECT_EQ(first(*read_file("x.sh", "#!/bin/bash\n#$ -pe mpi 8\n"))->value.text, "mpi 8");
}

// What sbatch itself says about a directive, where it is installed: it refuses an option before it looks for a
// controller. Those that it takes wait for one, so all are asked at once and stopped together.
TEST(Directives, AgreesWithSbatch) {
    if (std::system("command -v sbatch > /dev/null 2>&1") != 0) GTEST_SKIP() << "no sbatch";
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("stoker_sbatch_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "slurm.conf")
        << "ClusterName=x\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1 Default=YES\n";
    struct Case {
        std::string text;
        bool refused;
    };
    std::vector<Case> cases;
    for (const std::string line :
         {"--nodes=2", "-N2 -n 4", "--gpu-per-node=8", "--time=10:00 -p p", "--job_name=x", "--exclusive", "nodes=2",
          "--cpus-per-task 4", "--no-such=1", "-t 10 # ten", "--mem=0 --requeue", "-Z"}) {
        const std::string text = "#!/bin/bash\n#SBATCH " + line + "\nhostname\n";
        const auto file = read_file("x.sbatch", text);
        bool malformed = false;
        for (const Directive& each : file->script.directives) malformed |= each.malformed;
        cases.push_back({text, malformed});
    }
    cases.push_back({"# licence\n#!/bin/bash\n#SBATCH --nodes=1\nhostname\n", true});  // SLM015
    cases.push_back({"#!/bin/bash\n#SBATCH --nodes=$N\nhostname\n", true});            // SLM016
    std::string command = "cd " + folder.string() + " && export SLURM_CONF=$PWD/slurm.conf; ";
    for (std::size_t k = 0; k < cases.size(); ++k) {
        const std::string name = "job" + std::to_string(k);
        std::ofstream(folder / name) << cases[k].text;
        command += "timeout 4 sbatch --test-only " + name + " > " + name + ".out 2>&1 & ";
    }
    ASSERT_EQ(std::system((command + "wait").c_str()), 0);
    for (std::size_t k = 0; k < cases.size(); ++k) {
        std::ifstream in(folder / ("job" + std::to_string(k) + ".out"));
        const std::string said((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        bool refused = false;
        for (const std::string_view sign : {"unrecognized option", "invalid option", "Invalid directive", "not a valid",
                                            "does not look like a batch script"})
            refused |= said.find(sign) != std::string::npos;
        EXPECT_EQ(cases[k].refused, refused) << cases[k].text << said;
    }
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stoker::lint
