#include <gtest/gtest.h>

#include "app/args.h"
#include "app/session.h"

namespace stoker {
namespace {

// The keeper can be started by its name and is offered to nobody.
TEST(KeeperCommand, IsInternal) {
    const CliCommand* keeper = find_command("keeper");
    ASSERT_NE(keeper, nullptr);
    EXPECT_EQ(overview_text().find("keeper"), std::string::npos);
    EXPECT_EQ(reference_markdown().find("keeper"), std::string::npos);
    for (const char* shell : {"bash", "zsh", "fish"})
        EXPECT_EQ(completion_script(shell).find("keeper"), std::string::npos);
}

// A person who tries it without a gang gets an error, and no process stays behind.
TEST(KeeperCommand, RefusesAFolderWithoutAGang) {
    Session session;
    Args args;
    args.positional = {"/nonexistent"};
    const auto output = find_command("keeper")->run(session, args);
    ASSERT_TRUE(output.ok());
    EXPECT_NE(output->exit, 0);
}

}  // namespace
}  // namespace stoker
