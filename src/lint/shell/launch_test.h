// The launches of a script, for the tests of what finds them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lint/read.h"

namespace stoker::lint {

struct SeenLaunch {
    Launcher launcher = Launcher::python;
    std::string nodes, per_node, program;
};
inline std::vector<const Launch*> launches(const File& file) {
    std::vector<const Launch*> all;
    for_each_part(file, [&](const File& part) {
        for (const Launch& launch : part.launches) all.push_back(&launch);
    });
    return all;
}
inline SeenLaunch one_launch(const std::string& line) {
    const auto file = read_file("run.sh", "#!/bin/bash\n" + line + "\n");
    const auto all = launches(*file);
    EXPECT_EQ(all.size(), 1u) << line;
    if (all.size() != 1) return {};
    return {all[0]->launcher, std::string(all[0]->nodes.text), std::string(all[0]->per_node.text),
            std::string(all[0]->program.text)};
}

}  // namespace stoker::lint
