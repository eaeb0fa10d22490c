// When this breaks, the scripts that a VM boots with are not read.
#include <gtest/gtest.h>

#include "lint/read.h"
#include "lint/shell/node_text.h"

namespace stoker::lint {
namespace {

TEST(FindCloudInit, PlacesEachLineOfABlock) {
    const Source source("x.yaml", "a: |\n  one\n  two\n");
    const auto pieces = pieces_of_scalar("one\ntwo\n", source, {3, 17});
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(source.text(pieces[1].host), "two\n");
    EXPECT_EQ(pieces[1].kind, Piece::Kind::verbatim);
    const auto changed = pieces_of_scalar("not there", source, {3, 17});
    EXPECT_EQ(changed.front().kind, Piece::Kind::changed);
}

TEST(FindCloudInit, ReadsCommandsAndFiles) {
    const auto file = read_file(
        "cloud-init.yaml",
        "#cloud-config\nruncmd:\n  - export A=1\n  - [sh, -c, \"export B=2\"]\nwrite_files:\n  - path: /x/run.sh\n"
        "    content: |\n      #!/bin/bash\n      export C=3\n");
    if (file->tree.roots.empty()) GTEST_SKIP() << "the YAML front end is not there yet";
    std::string names;
    for_each_part(*file, [&](const File& part) {
        for (const EnvVar& variable : part.environment) {
            names += variable.name;
            if (variable.name == "C") {
                EXPECT_EQ(part.source().place(variable.span.begin).line, 9u);
            }
        }
    });
    EXPECT_EQ(names, "ABC");
}

}  // namespace
}  // namespace stoker::lint
