// The command line: options in every spelling, and errors that name the way out.
#include "app/args.h"

#include <gtest/gtest.h>

#include <set>

namespace stoker {
namespace {

const CliCommand& command(const char* name) {
    const CliCommand* found = find_command(name);
    EXPECT_NE(found, nullptr) << name;
    return *found;
}

TEST(Args, OptionsMayStandAnywhereAndInEverySpelling) {
    const auto args = parse_args(command("plan"), {"--show=rejected", "job.yaml", "-ojson", "--top", "3", "-q"});
    ASSERT_TRUE(args.ok()) << args.error().text();
    EXPECT_EQ(args->positional, std::vector<std::string>{"job.yaml"});
    EXPECT_EQ(args->get("show"), "rejected");
    EXPECT_EQ(args->get("output"), "json");
    EXPECT_EQ(args->get("top"), "3");
    EXPECT_TRUE(args->has("quiet"));
}

TEST(Args, RepeatedOptionsKeepTheirOrder) {
    const auto args = parse_args(command("plan"), {"job.yaml", "--skus", "a.json", "--skus", "b.json"});
    ASSERT_TRUE(args.ok());
    EXPECT_EQ(args->all("skus"), (std::vector<std::string>{"a.json", "b.json"}));
}

TEST(Args, AfterTwoDashesEverythingIsAName) {
    const auto args = parse_args(command("plan"), {"--", "--odd.yaml"});
    ASSERT_TRUE(args.ok());
    EXPECT_EQ(args->positional, std::vector<std::string>{"--odd.yaml"});
}

TEST(Args, ALoneDashIsStdin) {
    const auto args = parse_args(command("plan"), {"-"});
    ASSERT_TRUE(args.ok());
    EXPECT_EQ(args->positional, std::vector<std::string>{"-"});
}

// A typing error gets the nearest name, so that nobody has to read the help for a missing letter.
TEST(Args, TypingErrorsNameTheNearest) {
    const auto option = parse_args(command("plan"), {"job.yaml", "--shwo", "all"});
    ASSERT_FALSE(option.ok());
    EXPECT_NE(option.error().text().find("--show"), std::string::npos) << option.error().text();
    const auto choice = parse_args(command("plan"), {"job.yaml", "--show", "rejectd"});
    ASSERT_FALSE(choice.ok());
    EXPECT_NE(choice.error().text().find("did you mean rejected"), std::string::npos) << choice.error().text();
    const auto word = parse_args(command("catalog"), {"gpu"});
    ASSERT_FALSE(word.ok());
    EXPECT_NE(word.error().text().find("did you mean gpus"), std::string::npos) << word.error().text();
}

TEST(Args, UsageErrorsExitWith2) {
    for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                  {"a", "b"},
                                                  {"a", "--hours"},
                                                  {"a", "--hours", "1", "--hours", "2"},
                                                  {"a", "--quiet=yes"},
                                                  {"a", "--x"}}) {
        const auto args = parse_args(command("cost"), words);
        ASSERT_FALSE(args.ok());
        EXPECT_EQ(exit_code(args.error().kind()), 2);
    }
}

// -qo json was read as a value for --quiet.
TEST(Args, SwitchesMayShareADash) {
    const auto args = parse_args(command("plan"), {"job.yaml", "-qo", "json"});
    ASSERT_TRUE(args.ok()) << args.error().text();
    EXPECT_TRUE(args->has("quiet"));
    EXPECT_EQ(args->get("output"), "json");
    EXPECT_FALSE(parse_args(command("plan"), {"job.yaml", "-qx"}).ok());
}

// --top 1.5 was cut to 1 without a word.
TEST(Args, NumbersAreCheckedAndNamed) {
    const auto args = parse_args(command("plan"), {"job.yaml", "--top", "1.5", "--threads", "many"});
    ASSERT_TRUE(args.ok());
    EXPECT_EQ(args->whole_number("no-such", 7, 1, 9).value(), 7);
    for (const char* name : {"top", "threads"}) {
        const auto count = args->whole_number(name, 5, 1, 1000);
        ASSERT_FALSE(count.ok());
        EXPECT_NE(count.error().text().find(std::string("--") + name), std::string::npos) << count.error().text();
    }
}

// What a terminal would obey must not come back out of a message.
TEST(Args, MessagesShowNoControlCharacters) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--\x1b[31m"}, {"a", "\x1b[31m"}, {"-o", "\x1b"}}) {
        const auto args = parse_args(command("plan"), words);
        ASSERT_FALSE(args.ok());
        EXPECT_EQ(args.error().text().find('\x1b'), std::string::npos);
    }
}

TEST(Args, HelpNeedsNothingElse) {
    EXPECT_TRUE(parse_args(command("cost"), {"--help"}).ok());
}

// Help, completions and parsing come from one table: no name may stand in it twice, and each command can be run.
TEST(Commands, TablesAreSound) {
    std::set<std::string> names;
    for (const CliCommand& each : all_commands()) {
        EXPECT_TRUE(names.insert(each.name).second) << each.name;
        EXPECT_NE(each.run, nullptr) << each.name;
        EXPECT_FALSE(each.summary.empty()) << each.name;
        EXPECT_TRUE(each.usage.starts_with("stoker " + each.name)) << each.usage;
        EXPECT_FALSE(each.examples.empty()) << each.name;
        std::set<std::string> options;
        for (const OptionSpec& option : each.options)
            EXPECT_TRUE(options.insert(option.name).second) << each.name << " --" << option.name;
        for (const OptionSpec& option : common_options())
            EXPECT_TRUE(options.insert(option.name).second) << each.name << " --" << option.name;
    }
}

TEST(Commands, CompletionsAndManPagesKnowEveryCommand) {
    for (const char* shell : {"bash", "zsh", "fish"}) {
        const std::string script = completion_script(shell);
        for (const CliCommand& each : all_commands())
            EXPECT_NE(script.find(each.name), std::string::npos) << shell << " " << each.name;
    }
    for (const CliCommand& each : all_commands()) EXPECT_NE(man_page(each).find(".TH"), std::string::npos) << each.name;
}

}  // namespace
}  // namespace stoker
