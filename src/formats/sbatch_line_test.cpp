// When this breaks, an option of a script is read with another value than sbatch reads, or not at all.
#include "formats/sbatch_line.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker::sbatch {
namespace {

// "name=value@begin-end", faults in front; what a reader of the line would say.
std::string parts_of_line(const std::string& line) {
    std::string out;
    LineReader reader(line, static_cast<std::uint32_t>(directive_prefix(line).size()),
                      static_cast<std::uint32_t>(line.size()));
    for (Argument argument; reader.next(argument);) {
        static const char* const faults[] = {"", "no option ", "unknown ", "no value ", "surplus ", "open "};
        if (!out.empty()) out += ", ";
        out += faults[static_cast<int>(argument.fault)];
        out += argument.found ? argument.found.option->name : argument.name;
        if (argument.has_value) out += "=" + std::string(argument.value);
        out += "@" + std::to_string(argument.begin) + "-" + std::to_string(argument.end);
    }
    return out;
}

TEST(SbatchLine, ReadsWordsAsSbatchDoes) {
    EXPECT_EQ(parts_of_line("#SBATCH --nodes=2 -n 4"), "nodes=2@8-17, ntasks=4@18-22");
    EXPECT_EQ(parts_of_line("#SBATCH -N2#x -n3"), "nodes=2@8-11");
    EXPECT_EQ(parts_of_line("#SBATCH --job-name=a'b c'd -H"), "job-name=ab cd@8-26, hold@27-29");
    EXPECT_EQ(parts_of_line("#SBATCH \"--job-name=a b\" -t 5\r"), "job-name=a b@8-24, time=5@25-29");
    EXPECT_EQ(parts_of_line("#SBATCH --job-name=a\\ b\\#"), "job-name=a b#@8-25");
    EXPECT_EQ(parts_of_line("#SBATCH --job-name='a b"), "open job-name='a b@8-23");
    EXPECT_EQ(parts_of_line("#SBATCH '' -N3"), "");
    EXPECT_EQ(parts_of_line("#SBATCH --job-name='' -N3"), "job-name=@8-21, nodes=3@22-25");
    EXPECT_EQ(parts_of_line("#SBATCH"), "");
}

TEST(SbatchLine, AValueIsTheNextWordOrFollowsTheLetter) {
    EXPECT_EQ(parts_of_line("#SBATCH --mem 4 G"), "mem=4@8-15, no option G@16-17");
    EXPECT_EQ(parts_of_line("#SBATCH -N=2"), "nodes==2@8-12");
    EXPECT_EQ(parts_of_line("#SBATCH -HQ -QN2"), "hold@8-10, quiet@10-11, quiet@12-14, nodes=2@14-16");
    EXPECT_EQ(parts_of_line("#SBATCH -koff -k"), "no-kill=off@8-13, no-kill@14-16");
    EXPECT_EQ(parts_of_line("#SBATCH --exclusive user"), "exclusive@8-19, no option user@20-24");
    EXPECT_EQ(parts_of_line("#SBATCH --exclusive=user"), "exclusive=user@8-24");
    EXPECT_EQ(parts_of_line("#SBATCH --hold=x --time"), "surplus hold=x@8-16, no value time@17-23");
    EXPECT_EQ(parts_of_line("#SBATCH -HZ"), "hold@8-10, unknown Z@10-11");
}

TEST(SbatchLine, WhatIsNoOption) {
    EXPECT_EQ(parts_of_line("#SBATCH nodes=2"), "no option nodes=2@8-15");
    EXPECT_EQ(parts_of_line("#SBATCH --nope=2"), "unknown nope=2@8-16");
    EXPECT_EQ(parts_of_line("#SBATCH -N2 -- -n 4"), "nodes=2@8-11, no option -n@15-17, no option 4@18-19");
    EXPECT_EQ(parts_of_line("#SBATCH -"), "no option -@8-9");
    EXPECT_EQ(parts_of_line("#SBATCH --container-image=a --container-mount-home -N1"),
              "container-image=a@8-27, container-mount-home@28-50, nodes=1@51-54");
    EXPECT_EQ(parts_of_line("#SBATCH hetjob"), "hetjob@8-14");
}

// sbatch looks for the seven letters and then for words, whether a blank stands between them or not.
TEST(SbatchLine, NoBlankIsNeededBehindTheFirstWord) {
    EXPECT_EQ(parts_of_line("#SBATCH--nodes=3"), "nodes=3@7-16");
    EXPECT_EQ(parts_of_line("#SBATCHES 3"), "no option ES@7-9, no option 3@10-11");
    EXPECT_TRUE(directive_prefix("# SBATCH -N1").empty());
    EXPECT_TRUE(directive_prefix("##SBATCH -N1").empty());
}

}  // namespace
}  // namespace stoker::sbatch
