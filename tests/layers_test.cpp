// The picture of the modules stays true: whoever includes upward, or sideways, fails here.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Layers = std::map<std::string, std::vector<std::string>>;

// What each module may include; what those may include comes with them.
const Layers layers = {
    {"base", {}},
    {"io", {"base"}},
    {"catalog", {"base"}},
    {"sizing", {"catalog"}},
    {"plan", {"sizing"}},
    {"lint", {"sizing"}},
    {"govern", {"io", "catalog"}},
    {"observe", {"io", "catalog"}},
    {"deploy", {"plan", "io"}},
    {"run", {"deploy", "govern", "observe"}},
    {"serve", {"govern", "observe"}},
    {"app", {"run", "serve", "lint"}},
};

void add_reachable(const std::string& module, std::set<std::string>& reached) {
    if (!reached.insert(module).second) return;
    for (const std::string& lower : layers.at(module)) add_reachable(lower, reached);
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

// "base/result.h" of a line `#include "base/result.h"`; empty for every other line.
std::string included_file(std::string_view line) {
    auto skip_spaces = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
    skip_spaces();
    if (!line.starts_with('#')) return {};
    line.remove_prefix(1);
    skip_spaces();
    if (!line.starts_with("include")) return {};
    line.remove_prefix(7);
    skip_spaces();
    if (!line.starts_with('"')) return {};
    line.remove_prefix(1);
    return std::string(line.substr(0, line.find('"')));
}

// What is wrong with a file at `path`, given relative to src/.
std::vector<std::string> problems(const std::string& path, std::string_view text) {
    std::vector<std::string> found;
    std::string module = path.substr(0, path.find('/'));
    if (!layers.contains(module)) return {path + ": " + module + " is not a module of the table"};

    std::set<std::string> allowed;
    add_reachable(module, allowed);
    std::vector<std::string_view> lines = lines_of(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        std::string file = included_file(lines[i]);
        if (file.empty()) continue;
        std::string place = path + ":" + std::to_string(i + 1) + ": ";
        std::string target = file.substr(0, file.find('/'));
        if (file.find('/') == std::string::npos || file.starts_with('.')) {
            found.push_back(place + "\"" + file + "\" should be written from src/, like \"base/result.h\"");
        } else if (!layers.contains(target)) {
            found.push_back(place + "\"" + file + "\" is in no module of the table");
        } else if (!allowed.contains(target)) {
            found.push_back(place + module + " may not include " + target);
        }
    }

    const std::string_view reason = "Longer than 500 lines because";
    if (lines.size() > 500 && text.find(reason) == std::string_view::npos) {
        found.push_back(path + ": " + std::to_string(lines.size()) + " lines, and no comment \"" + std::string(reason) +
                        " ...\"");
    }
    return found;
}

// A tree that keeps the rules has no problem.
TEST(Layers, HoldInTheSourceTree) {
    fs::path src = fs::path(STOKER_SOURCE_DIR) / "src";
    std::size_t files = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(src)) {
        std::string extension = entry.path().extension().string();
        if (extension != ".h" && extension != ".cpp") continue;
        std::ifstream stream(entry.path(), std::ios::binary);
        std::string text{std::istreambuf_iterator<char>(stream), {}};
        for (const std::string& problem : problems(fs::relative(entry.path(), src).string(), text)) {
            ADD_FAILURE() << problem;
        }
        ++files;
    }
    EXPECT_GT(files, 0u);
}

// Most types of our own live in one namespace, and two of one name in one program are undefined behaviour that no
// compiler reports: whichever destructor the linker keeps runs for both.
TEST(Layers, EveryTypeOfAHeaderHasANameOfItsOwn) {
    const std::regex type("^(?:struct|class|enum class) (\\w+)\\b[^;]*\\{"), space("^namespace ([\\w:]+) \\{");
    fs::path src = fs::path(STOKER_SOURCE_DIR) / "src";
    std::map<std::string, std::string> seen;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(src)) {
        if (entry.path().extension() != ".h") continue;
        std::ifstream stream(entry.path());
        std::string in = "";
        for (std::string line; std::getline(stream, line);) {
            std::smatch match;
            if (std::regex_search(line, match, space)) in = match[1];
            if (!std::regex_search(line, match, type)) continue;
            const auto [at, fresh] = seen.emplace(in + "::" + match[1].str(), entry.path().string());
            EXPECT_TRUE(fresh || at->second == entry.path().string())
                << at->first << " is declared in " << at->second << " and in " << entry.path().string();
        }
    }
    EXPECT_GT(seen.size(), 100u);
}

// The table itself has the twelve modules, and the topmost reaches all of them.
TEST(Layers, AppReachesEveryModule) {
    std::set<std::string> reached;
    add_reachable("app", reached);
    EXPECT_EQ(layers.size(), 12u);
    EXPECT_EQ(reached.size(), 12u);
}

// Downward includes, also over several layers, system headers and comments are fine.
TEST(Layers, AllowDownwardIncludes) {
    EXPECT_TRUE(problems("plan/rank.cpp",
                         "#include \"plan/rank.h\"\n\n#include <vector>\n#  include \"base/result.h\"\n"
                         "#include \"catalog/catalog.h\"\n// #include \"serve/gateway.h\"\n")
                    .empty());
    EXPECT_TRUE(problems("app/main.cpp", "#include \"lint/rules/all.h\"\n#include \"io/clock.h\"\n").empty());
}

// An include against the arrows is found, with its line.
TEST(Layers, RefuseUpwardAndSidewaysIncludes) {
    EXPECT_EQ(problems("base/json.h", "#pragma once\n#include \"plan/plan.h\"\n"),
              std::vector<std::string>{"base/json.h:2: base may not include plan"});
    EXPECT_EQ(problems("run/run.cpp", "#include \"serve/gateway.h\""),
              std::vector<std::string>{"run/run.cpp:1: run may not include serve"});
    EXPECT_EQ(problems("plan/rank.cpp", "#include \"io/clock.h\"\n").size(), 1u);
}

// Folders and includes that the table does not know are found.
TEST(Layers, RefuseUnknownModules) {
    EXPECT_EQ(problems("util/misc.cpp", ""),
              std::vector<std::string>{"util/misc.cpp: util is not a module of the table"});
    EXPECT_EQ(problems("plan/rank.cpp", "#include \"util/misc.h\"\n").size(), 1u);
    EXPECT_EQ(problems("plan/rank.cpp", "#include \"rank.h\"\n").size(), 1u);
    EXPECT_EQ(problems("plan/rank.cpp", "#include \"../base/json.h\"\n").size(), 1u);
}

// A long file must say why.
TEST(Layers, LongFilesGiveAReason) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += "int x;\n";
    EXPECT_TRUE(problems("base/long.cpp", text).empty());
    EXPECT_EQ(problems("base/long.cpp", text + "int y;\n").size(), 1u);
    EXPECT_TRUE(problems("base/long.cpp", text + "// Longer than 500 lines because it is a table.\n").empty());
}

}  // namespace
