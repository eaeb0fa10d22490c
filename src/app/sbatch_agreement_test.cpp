// Whoever checks a script and then runs it gets one answer: what check accepts run knows, and what check calls unknown
// run refuses in the same words.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "formats/sbatch_values.h"
#include "lint/check.h"
#include "lint/read.h"
#include "workload/import/import_report.h"
#include "workload/import/sbatch_fates.h"

namespace stoker {
namespace {

// The messages of SLM007, which is all that check says about what sbatch reads.
std::vector<std::string> told_by_check(const std::string& script) {
    const auto file = lint::read_file("job.sbatch", script);
    std::vector<std::string> told;
    if (!file) return told;
    lint::CheckOptions options;
    for (const lint::Finding& finding : lint::check_file(*file, options, lint::Knowledge::embedded()))
        if (finding.rule == "SLM007") told.push_back(finding.message);
    return told;
}
std::vector<std::string> told_by_run(const std::string& script) {
    const auto run = import_sbatch(script, "job.sbatch");
    std::vector<std::string> told;
    if (run) return told;
    for (const Problem& problem : run.error().problems()) told.push_back(problem.message);
    return told;
}
std::string script_of(const std::string& line) {
    return "#!/bin/bash\n#SBATCH " + line + "\nsrun hostname\n";
}
void expect_same(const std::string& line) {
    EXPECT_EQ(told_by_check(script_of(line)), told_by_run(script_of(line))) << line;
}
// One that sbatch takes for the option, so that only the name is in question.
std::string right_value(const sbatch::Option& option) {
    for (const char* value : {"1", "1:00", "gpu:1", "2030-01-20T12:00:00", "singleton", "2:8", "END", "TERM", "block",
                              "multithread", "user", "append", "yes", "disable-binding", "off", "low", "ALL", "none"})
        if (sbatch::expected_value(option, value).empty()) return value;
    ADD_FAILURE() << "no right value for --" << option.name;
    return "";
}

TEST(SbatchAgreement, EveryOptionIsTakenByBothUnderEachOfItsNames) {
    for (const sbatch::Option& option : sbatch::options()) {
        const std::string name(option.name), value = right_value(*sbatch::find_option(name).option);
        const bool with_value = option.takes == sbatch::Takes::value;
        EXPECT_EQ(told_by_check(script_of("--" + name + (with_value ? "=" + value : ""))), std::vector<std::string>{});
        expect_same("--" + name + (with_value ? "=" + value : ""));
        expect_same("--" + name + (with_value ? " " + value : "") + " -N1");
        expect_same("--" + name);                // a value may be missing
        expect_same("--" + name + "=" + value);  // or one too many
        if (option.letter != 0) {
            expect_same(std::string("-") + option.letter + (with_value ? value : ""));
            expect_same(std::string("-") + option.letter + " " + value);
        }
    }
}

TEST(SbatchAgreement, BeginningsOfNamesAreAmbiguousToBothOrToNone) {
    std::set<std::string> beginnings;
    for (const sbatch::Option& option : sbatch::options())
        for (std::size_t size = 1; size < option.name.size(); ++size)
            beginnings.insert(std::string(option.name.substr(0, size)));
    for (const std::string& beginning : beginnings) {
        const sbatch::Found found = sbatch::find_option(beginning);
        const std::string value = found ? right_value(*found.option) : "1";
        expect_same("--" + beginning + "=" + value);
    }
}

TEST(SbatchAgreement, WordsThatAreNoOptionsAndWrongValuesAreRefusedInTheSameWords) {
    for (const char* line : {"--gpu-per-node=8",
                             "--job_name=x",
                             "nodes=2",
                             "--cpus=4",
                             "--no-such thing",
                             "-Z",
                             "-l",
                             "--immediate",
                             "--cluster=a",
                             "--time=24h",
                             "--mem=1.5G",
                             "--nodes=4-2",
                             "--ntasks=0",
                             "--ntasks=4,4",
                             "-N2 -- -n 4",
                             "--job-name='a b",
                             "--hold=x",
                             "-N=2",
                             "--mem 4 G",
                             "--exclusive user",
                             "-",
                             "---nodes=1",
                             "@nodes=1",
                             "-N1 x y",
                             "--container-image=a --container-mount-home --container-save=x",
                             "-HQ -vv",
                             "--nodes=1;",
                             "--gres=gpu:a100:x",
                             "--array=3-1",
                             "--signal=B:USR1@99999",
                             "--mail-type=ERROR",
                             "'--nodes=1'",
                             "-N1#x"})
        expect_same(line);
    EXPECT_EQ(told_by_run(script_of("--gpu-per-node=8")),
              std::vector<std::string>{"sbatch has no option called \"gpu-per-node\": it refuses the script "
                                       "(\"Invalid directive\")"});
}

// What is known and not to be had here says so: no option of sbatch falls through.
TEST(SbatchAgreement, EveryOptionHasAFateInARun) {
    for (const sbatch::Option& option : sbatch::options()) {
        if (!option.means.empty()) continue;
        const auto fates = std::count_if(std::begin(sbatch::kFates), std::end(sbatch::kFates),
                                         [&](const sbatch::Fate& fate) { return fate.option == option.name; });
        EXPECT_EQ(fates, 1) << option.name;
    }
    for (const sbatch::Fate& fate : sbatch::kFates) {
        EXPECT_TRUE(sbatch::find_option(fate.option)) << fate.option;
        // A dependency is refused or left out by what it names, and then says why.
        const bool may_be_left_out =
            fate.key == sbatch::SbatchKey::ignored || fate.key == sbatch::SbatchKey::dependency;
        EXPECT_EQ(std::string_view(fate.why).empty(), !may_be_left_out) << fate.option;
    }
}

// Where run still says no to what check takes: a number that Stoker cannot give. The list is whole.
TEST(SbatchAgreement, RunHasBoundsOfItsOwn) {
    for (const char* line : {"--nodes=1K", "--ntasks=100000", "--gres=gpu:99 -n 1", "--nodes=NODES"}) {
        EXPECT_TRUE(told_by_check(script_of(line)).empty()) << line;
        EXPECT_FALSE(told_by_run(script_of(line)).empty()) << line;
    }
}

}  // namespace
}  // namespace stoker
