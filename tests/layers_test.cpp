// The picture of the modules stays true: whoever includes upward, or sideways, fails here.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

// A row of src/layers.tsv.
struct Room {
    std::set<std::string> uses, test_uses;
    std::string job;
};
using Layers = std::map<std::string, Room, std::less<>>;

std::string read_text(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
    return parts;
}

// The table; what is wrong with it goes into `problems`. A room may use only those above it, so there is no circle.
Layers read_layers(const std::string& text, std::vector<std::string>& problems) {
    Layers layers;
    for (const std::string& line : split(text, '\n')) {
        if (line.starts_with('#') || line.starts_with("room\t")) continue;
        const std::vector<std::string> cells = split(line, '\t');
        if (cells.size() != 5) {
            problems.push_back("not five cells: " + line);
            continue;
        }
        Room room;
        room.job = cells[4];
        for (const auto& [cell, to] : {std::pair{1, &room.uses}, std::pair{2, &room.test_uses}}) {
            if (cells[cell] == "-") continue;
            for (const std::string& used : split(cells[cell], ' ')) {
                to->insert(used);
                if (!layers.contains(used)) problems.push_back(cells[0] + ": " + used + " does not stand above it");
            }
        }
        if (!layers.emplace(cells[0], room).second) problems.push_back(cells[0] + " stands twice");
    }
    return layers;
}

Layers layers_of_the_tree() {
    std::vector<std::string> problems;
    Layers layers = read_layers(read_text(fs::path(STOKER_SOURCE_DIR) / "src/layers.tsv"), problems);
    for (const std::string& problem : problems) ADD_FAILURE() << "src/layers.tsv: " << problem;
    return layers;
}

// The room of a file in `folder`: the one with the longest name that fits. Empty: none.
std::string room_of(const Layers& layers, std::string folder) {
    while (!folder.empty() && !layers.contains(folder)) {
        const std::size_t slash = folder.rfind('/');
        folder.resize(slash == std::string::npos ? 0 : slash);
    }
    return folder;
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
}

// What only tests include: x_test.cpp, testing.h, x_testing.h, test_x.h, x_test_y.h.
bool for_tests(const std::string& path) {
    const std::vector<std::string> words = split(fs::path(path).stem().string(), '_');
    return std::any_of(words.begin(), words.end(),
                       [](const std::string& word) { return word == "test" || word == "testing"; });
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

// A room and one that it includes; taken by its tests alone: true.
using Taken = std::map<std::pair<std::string, std::string>, bool>;

// What is wrong with a file at `path`, given relative to src/. What it includes goes into `taken`.
std::vector<std::string> problems(const Layers& layers, const std::string& path, std::string_view text,
                                  Taken* taken = nullptr) {
    std::vector<std::string> found;
    const std::string here = room_of(layers, folder_of(path));
    if (here.empty()) return {path + ": in no room of src/layers.tsv"};

    const Room& room = layers.find(here)->second;
    const bool test = for_tests(path);
    std::vector<std::string_view> lines = lines_of(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        std::string file = included_file(lines[i]);
        if (file.empty()) continue;
        std::string place = path + ":" + std::to_string(i + 1) + ": ";
        const std::string target = room_of(layers, folder_of(file));
        if (file.find('/') == std::string::npos || file.starts_with('.')) {
            found.push_back(place + "\"" + file + "\" should be written from src/, like \"base/result.h\"");
        } else if (target.empty()) {
            found.push_back(place + "\"" + file + "\" is in no room of src/layers.tsv");
        } else if (target != here) {
            if (!room.uses.contains(target) && !(test && room.test_uses.contains(target)))
                found.push_back(place + here + " may not include " + target);
            if (taken != nullptr) {
                bool& by_tests = taken->try_emplace({here, target}, true).first->second;
                by_tests = by_tests && test;
            }
        }
    }

    const std::string_view reason = "Longer than 500 lines because";
    if (lines.size() > 500 && text.find(reason) == std::string_view::npos) {
        found.push_back(path + ": " + std::to_string(lines.size()) + " lines, and no comment \"" + std::string(reason) +
                        " ...\"");
    }
    return found;
}

// A tree that keeps the rules has no problem, and grants nothing that nobody takes.
TEST(Layers, HoldInTheSourceTree) {
    const Layers layers = layers_of_the_tree();
    fs::path src = fs::path(STOKER_SOURCE_DIR) / "src";
    std::set<std::string> inhabited;
    Taken taken;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(src)) {
        std::string extension = entry.path().extension().string();
        if (extension != ".h" && extension != ".cpp") continue;
        const std::string path = fs::relative(entry.path(), src).string();
        for (const std::string& problem : problems(layers, path, read_text(entry.path()), &taken)) {
            ADD_FAILURE() << problem;
        }
        inhabited.insert(room_of(layers, folder_of(path)));
    }
    for (const auto& [name, room] : layers) {
        EXPECT_TRUE(inhabited.contains(name)) << "src/layers.tsv: " << name << " has no files";
        for (const std::string& used : room.uses) {
            const auto found = taken.find({name, used});
            EXPECT_TRUE(found != taken.end() && !found->second)
                << "src/layers.tsv: " << name << " is granted " << used << ", which no code of it includes";
        }
        for (const std::string& used : room.test_uses)
            EXPECT_TRUE(taken.contains({name, used}) && !room.uses.contains(used))
                << "src/layers.tsv: the tests of " << name << " are granted " << used << " for nothing";
    }
}

// The page shows the table that holds.
TEST(Layers, TheArchitecturePageHasTheTable) {
    std::vector<std::pair<std::size_t, std::string>> rows;
    for (const std::string& line : split(read_text(fs::path(STOKER_SOURCE_DIR) / "src/layers.tsv"), '\n')) {
        if (line.starts_with('#') || line.starts_with("room\t")) continue;
        const std::vector<std::string> cells = split(line, '\t');
        ASSERT_EQ(cells.size(), 5u) << line;
        std::string uses = cells[1] == "-" ? "–" : cells[1];
        for (std::size_t at = 0; (at = uses.find(' ', at)) != std::string::npos; at += 2) uses.replace(at, 1, ", ");
        rows.emplace_back(rows.size(), "| `" + cells[0] + "` | " + cells[4] + " | " + uses + " |\n");
    }
    std::string table = "| room | its job | may include |\n| --- | --- | --- |\n";
    for (const auto& [at, row] : rows) table += row;
    EXPECT_NE(read_text(fs::path(STOKER_SOURCE_DIR) / "docs/architecture.md").find(table), std::string::npos)
        << "tools/layers.py --write brings docs/architecture.md up to date";
}

// Types of our own live in few namespaces, and two of one name in one program are undefined behaviour that no
// compiler reports: whichever destructor the linker keeps runs for both.
TEST(Layers, EveryTypeOfAHeaderHasANameOfItsOwn) {
    const std::regex type("^(?:struct|class|enum class) (\\w+)\\b(?!::)[^;]*\\{");
    fs::path src = fs::path(STOKER_SOURCE_DIR) / "src";
    std::map<std::string, std::string> seen;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(src)) {
        if (entry.path().extension() != ".h") continue;
        std::ifstream stream(entry.path());
        std::string space;  // the namespace that the header opened last
        for (std::string line; std::getline(stream, line);) {
            if (line.starts_with("namespace ")) space = line;
            std::smatch match;
            if (!std::regex_search(line, match, type)) continue;
            const auto [at, fresh] = seen.emplace(space + std::string(match[1]), entry.path().string());
            EXPECT_TRUE(fresh || at->second == entry.path().string())
                << match[1] << " is declared in " << at->second << " and in " << entry.path().string();
        }
    }
    EXPECT_GT(seen.size(), 100u);
}

Layers small_house() {
    std::vector<std::string> problems;
    Layers layers = read_layers(
        "# a comment\nroom\tuses\ttest_uses\tlinks\tjob\n"
        "base\t-\t-\t-\tvalues\nio\tbase\t-\t-\tdoors\nrun/state\tbase\tio\t-\twhat is\n"
        "run/core\tbase run/state\t-\t-\tdecides\napp\tbase run/core\t-\t-\twiring\n",
        problems);
    EXPECT_TRUE(problems.empty());
    return layers;
}

// What is granted, system headers and comments are fine; so is a folder inside a room.
TEST(Layers, AllowWhatIsGranted) {
    EXPECT_TRUE(problems(small_house(), "run/core/core.cpp",
                         "#include \"run/core/core.h\"\n\n#include <vector>\n#  include \"base/result.h\"\n"
                         "#include \"run/state/state.h\"\n// #include \"app/session.h\"\n")
                    .empty());
    EXPECT_TRUE(problems(small_house(), "app/commands/plan.cpp", "#include \"app/session.h\"\n").empty());
}

// An include against the arrows is found with its line, and so is one over a room: nothing comes with a grant.
TEST(Layers, RefuseWhatIsNotGranted) {
    EXPECT_EQ(problems(small_house(), "base/json.h", "#pragma once\n#include \"io/files.h\"\n"),
              std::vector<std::string>{"base/json.h:2: base may not include io"});
    EXPECT_EQ(problems(small_house(), "run/state/state.cpp", "#include \"run/core/core.h\""),
              std::vector<std::string>{"run/state/state.cpp:1: run/state may not include run/core"});
    EXPECT_EQ(problems(small_house(), "app/main.cpp", "#include \"run/state/state.h\""),
              std::vector<std::string>{"app/main.cpp:1: app may not include run/state"});
}

// A grant for tests is for tests.
TEST(Layers, TestsMayTakeWhatIsTheirs) {
    for (const char* test : {"run/state/state_test.cpp", "run/state/testing.h", "run/state/test_folder.h"})
        EXPECT_TRUE(problems(small_house(), test, "#include \"io/files.h\"\n").empty()) << test;
    EXPECT_EQ(problems(small_house(), "run/state/state.cpp", "#include \"io/files.h\"\n").size(), 1u);
    EXPECT_EQ(problems(small_house(), "run/state/latest.cpp", "#include \"io/files.h\"\n").size(), 1u);
}

// Folders and includes that the table does not know are found; so is a file between the rooms of a module.
TEST(Layers, RefuseUnknownRooms) {
    EXPECT_EQ(problems(small_house(), "util/misc.cpp", ""),
              std::vector<std::string>{"util/misc.cpp: in no room of src/layers.tsv"});
    EXPECT_EQ(problems(small_house(), "run/run.cpp", "").size(), 1u);
    EXPECT_EQ(problems(small_house(), "app/rank.cpp", "#include \"util/misc.h\"\n").size(), 1u);
    EXPECT_EQ(problems(small_house(), "app/rank.cpp", "#include \"rank.h\"\n").size(), 1u);
    EXPECT_EQ(problems(small_house(), "app/rank.cpp", "#include \"../base/json.h\"\n").size(), 1u);
}

// A table in which an arrow points up, or to nowhere, or a row stands twice, is none.
TEST(Layers, ATableThatDoesNotHoldIsRefused) {
    std::vector<std::string> problems;
    read_layers("base\tio\t-\t-\tx\nio\t-\t-\t-\tx\nio\t-\tnowhere\t-\tx\nshort\t-\n", problems);
    EXPECT_EQ(problems.size(), 4u);
}

// A long file must say why.
TEST(Layers, LongFilesGiveAReason) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += "int x;\n";
    EXPECT_TRUE(problems(small_house(), "base/long.cpp", text).empty());
    EXPECT_EQ(problems(small_house(), "base/long.cpp", text + "int y;\n").size(), 1u);
    EXPECT_TRUE(
        problems(small_house(), "base/long.cpp", text + "// Longer than 500 lines because it is a table.\n").empty());
}

}  // namespace
