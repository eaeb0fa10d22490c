#include "app/client/again.h"

#include <gmock/gmock.h>

#include "app/commands/commands.h"

namespace stoker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Who goes back to last week's run has to know that the code is this week's, and how to have the old one.
TEST(Again, SaysWhatOfTheCodeIsNotAsItWas) {
    const SourceSpec clean{.file = "", .file_sha256 = "", .commit = std::string(40, 'a'), .dirty_sha256 = ""};
    SourceSpec other = clean, dirty = clean;
    other.commit = std::string(40, 'b');
    dirty.dirty_sha256 = std::string(64, 'd');
    EXPECT_THAT(source_notes("r-1", "/src", clean, clean), IsEmpty());
    EXPECT_THAT(source_notes("r-1", "/src", clean, other),
                ElementsAre(HasSubstr("commit aaaaaaaaaaaa then, commit bbbbbbbbbbbb now"),
                            "git -C /src checkout " + clean.commit + " brings that commit back"));
    EXPECT_THAT(source_notes("r-1", "/my src", dirty, other),
                ElementsAre(HasSubstr("with changes then"), HasSubstr("git -C '/my src' checkout"),
                            HasSubstr("not kept, only its hash: dddddddddddd")));
    EXPECT_THAT(source_notes("r-1", "/src", clean, dirty), ElementsAre(HasSubstr("with changes now")));
    EXPECT_THAT(source_notes("r-1", "/src", SourceSpec{}, clean), ElementsAre(HasSubstr("no git commit then")));
}

// A stored spec that an option quietly changed would be another run under the same promise.
TEST(Again, TakesNoOptionThatChangesTheSpec) {
    const auto args = parse_args(submit_command(), {"--again", "r-5", "--ranks", "2", "--lease", "1h"});
    ASSERT_TRUE(args.ok()) << args.error().text();
    const Status status = check_again(*args, "submit");
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().text(), HasSubstr("--ranks"));
    EXPECT_THAT(status.error().text(), HasSubstr("--lease"));
    EXPECT_TRUE(
        check_again(*parse_args(submit_command(), {"--again", "5", "--name", "x", "--dry-run"}), "submit").ok());
    EXPECT_FALSE(check_again(*parse_args(submit_command(), {"--again", "5", "file.yaml"}), "submit").ok());
}

}  // namespace
}  // namespace stoker
