// When this breaks, a script that sbatch takes is refused, or an option means another one than on the cluster.
#include "formats/sbatch_options.h"

#include <getopt.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace stoker::sbatch {
namespace {

TEST(SbatchOptions, KnowsShortAndShortenedNames) {
    EXPECT_EQ(find_option("cpus-per-task").option->letter, 'c');
    EXPECT_EQ(find_option("cpus-per-t").option->name, "cpus-per-task");
    EXPECT_EQ(find_option("ntasks").option, find_letter('n'));
    EXPECT_EQ(find_option("j").option->name, "job-name");
    EXPECT_EQ(find_option("cluster").option->name, "clusters");
    for (const char* none : {"no-such-thing", "n", "ntask", "ntasks-per", "immediate", "", "Nodes", "gpu-per-node"})
        EXPECT_FALSE(find_option(none)) << none;
    EXPECT_EQ(find_letter('Z'), nullptr);
    EXPECT_EQ(find_letter('\0'), nullptr);
    EXPECT_EQ(find_letter('\xff'), nullptr);
}

// Slurm had a --tasks until 18.08. Since 19.05 it is the beginning of --tasks-per-node, and sbatch takes it for that.
TEST(SbatchOptions, TasksIsShortForTasksPerNode) {
    for (const char* name : {"tasks", "task", "tasks-per-n"}) {
        ASSERT_TRUE(find_option(name));
        EXPECT_EQ(find_option(name).named->name, "tasks-per-node");
        EXPECT_EQ(find_option(name).option->name, "ntasks-per-node");
    }
}

// A name that a later Slurm has brought makes no beginning ambiguous that all others take; one that is gone has none.
TEST(SbatchOptions, NamesOfSomeVersionsDoNotChangeWhatOthersMean) {
    EXPECT_EQ(find_option("res").option->name, "reservation");
    EXPECT_EQ(find_option("tres-p").option->name, "tres-per-task");
    EXPECT_FALSE(find_option("tres"));
    EXPECT_EQ(find_option("workdir").option->name, "chdir");
    EXPECT_FALSE(find_option("workd"));
}

// getopt_long of this machine's libc is what sbatch calls: every beginning of every name means the same to it.
TEST(SbatchOptions, BeginningsAreThoseOfGetopt) {
    std::vector<const Option*> rows;
    std::vector<std::string> names;
    for (const Option& option : options())
        if (option.age == Age::always) rows.push_back(&option), names.emplace_back(option.name);
    std::vector<option> table;
    int chosen = -1;
    for (std::size_t k = 0; k < rows.size(); ++k)
        table.push_back({names[k].c_str(),
                         rows[k]->takes == Takes::value   ? required_argument
                         : rows[k]->takes == Takes::maybe ? optional_argument
                                                          : no_argument,
                         nullptr, static_cast<int>(1000 + k)});
    table.push_back({});
    std::set<std::string> asked;
    for (const std::string& name : names)
        for (std::size_t size = 1; size <= name.size(); ++size) asked.insert(name.substr(0, size));
    ASSERT_GT(asked.size(), 600u);
    opterr = 0;
    for (const std::string& beginning : asked) {
        std::string word = "--" + beginning, value = "x", program = "sbatch";
        char* arguments[] = {program.data(), word.data(), value.data(), nullptr};
        optind = 0;
        chosen = getopt_long(3, arguments, "+", table.data(), nullptr);
        const Found found = find_option(beginning);
        if (found && found.named->age != Age::always) continue;  // --extra is a whole name since 23.02
        if (chosen < 1000)
            EXPECT_FALSE(found) << beginning;
        else
            EXPECT_EQ(found.named, rows[static_cast<std::size_t>(chosen - 1000)]) << beginning;
    }
}

std::string said_by(const std::string& command) {
    std::string said;
    FILE* pipe = popen(("{ " + command + "; } 2>&1 < /dev/null").c_str(), "r");
    for (char buffer[4096]; pipe && fgets(buffer, sizeof buffer, pipe);) said += buffer;
    if (pipe) pclose(pipe);
    return said;
}

// What sbatch itself says, where it is installed: it lists the names that a beginning could be, and says of each
// whether a value belongs to it, before it looks for a controller.
TEST(SbatchOptions, TheTableIsThatOfSbatch) {
    if (std::system("command -v sbatch > /dev/null 2>&1") != 0) GTEST_SKIP() << "no sbatch";
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("stoker_sbatch_table_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "slurm.conf")
        << "ClusterName=x\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1 Default=YES\n";
    const std::string start = "export SLURM_CONF=" + (folder / "slurm.conf").string() + "; ";
    // One word too many stops sbatch in any case: it is refused once the option is read.
    std::string command = start + "for o in";
    std::vector<const Option*> asked;
    for (const Option& option : options())
        if (option.name != "help" && option.name != "usage" && option.name != "version" &&
            option.name != "autocomplete" && option.age == Age::always)
            asked.push_back(&option), command += " " + std::string(option.name);
    command +=
        "; do echo \"= $o\"; sbatch --$o; sbatch --$o=x --zzz; done; for c in a b c d e f g h i j k l m n o p q r s t "
        "u "
        "v w x y z; do echo \"= ambiguous\"; sbatch --$c; done";
    // An option without a value would go on to the controller: it gets a word that is refused.
    std::string::size_type at = command.find("sbatch --$o;");
    command.replace(at, 12, "case $o in *) sbatch --$o --zzz --zzz;; esac;");
    const std::string said = said_by(command);
    std::size_t from = 0;
    for (const Option* option : asked) {
        const std::string head = "= " + std::string(option->name) + "\n";
        from = said.find(head, from);
        ASSERT_NE(from, std::string::npos) << option->name;
        const std::string part = said.substr(from, said.find("\n= ", from) - from);
        EXPECT_EQ(part.find("unrecognized option '--" + std::string(option->name)), std::string::npos) << part;
        EXPECT_EQ(part.find("doesn't allow an argument") != std::string::npos, option->takes == Takes::nothing) << part;
    }
    // Of the names that it offers for a beginning none is missing here.
    std::size_t listed = 0;
    for (std::size_t quote = said.find(" '--"); quote != std::string::npos; quote = said.find(" '--", quote + 1)) {
        const std::string name = said.substr(quote + 4, said.find('\'', quote + 4) - quote - 4);
        if (name.size() < 2 || name == "zzz") continue;
        const Found found = find_option(name);
        EXPECT_TRUE(found && found.named->name == name) << name;
        ++listed;
    }
    EXPECT_GT(listed, 80u);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stoker::sbatch
