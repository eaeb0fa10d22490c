// Links between the pages of the documentation lead somewhere.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

// The line without what stands between backticks, where brackets are code.
std::string without_code(std::string_view line) {
    std::string text;
    bool code = false;
    for (char c : line) {
        if (c == '`') code = !code;
        if (!code) text += c;
    }
    return text;
}

// "guide.md" of `guide.md#step "a title"`; empty when the target lies outside the tree or on the same page.
std::string file_of(std::string_view target) {
    if (target.starts_with('<')) target = target.substr(1, target.find('>') - 1);
    target = target.substr(0, target.find_first_of(" #?"));
    std::size_t scheme = target.find(':');
    if (scheme != std::string_view::npos && target.find('/') > scheme) return {};
    return std::string(target);
}

// The files that a Markdown page links to, as written: inline links, images, and definitions like `[name]: file`.
std::vector<std::string> linked_files(std::string_view page) {
    std::vector<std::string> files;
    auto add = [&files](std::string_view target) {
        if (std::string file = file_of(target); !file.empty()) files.push_back(file);
    };
    bool fenced = false;
    while (!page.empty()) {
        std::size_t end = std::min(page.find('\n'), page.size());
        std::string_view raw = page.substr(0, end);
        page.remove_prefix(std::min(end + 1, page.size()));

        std::string_view start = raw.substr(std::min(raw.find_first_not_of(' '), raw.size()));
        if (start.starts_with("```") || start.starts_with("~~~")) fenced = !fenced;
        if (fenced) continue;

        std::string line = without_code(raw);
        if (line.starts_with('[') && line.find("]: ") != std::string::npos) {
            add(std::string_view(line).substr(line.find("]: ") + 3));
        }
        for (std::size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at + 1)) {
            std::size_t close = line.find(')', at);
            if (close != std::string::npos) add(std::string_view(line).substr(at + 2, close - at - 2));
        }
    }
    return files;
}

// Links that no file answers to. A link that starts with a slash is meant from the top of the tree.
std::vector<std::string> dead_links(const fs::path& root, const fs::path& page) {
    std::ifstream stream(page, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    std::vector<std::string> dead;
    for (const std::string& file : linked_files(text)) {
        fs::path target = file.starts_with('/') ? root / file.substr(1) : page.parent_path() / file;
        if (!fs::exists(target)) dead.push_back(file);
    }
    return dead;
}

std::vector<fs::path> pages_of(const fs::path& root) {
    std::vector<fs::path> pages;
    if (fs::exists(root / "README.md")) pages.push_back(root / "README.md");
    if (fs::exists(root / "docs")) {
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "docs")) {
            if (entry.path().extension() == ".md") pages.push_back(entry.path());
        }
    }
    return pages;
}

// Every relative link in README.md and docs/ leads to a file or folder.
TEST(Docs, LinksLeadToFiles) {
    fs::path root = STOKER_SOURCE_DIR;
    for (const fs::path& page : pages_of(root)) {
        for (const std::string& link : dead_links(root, page)) {
            ADD_FAILURE() << fs::relative(page, root).string() << ": nothing at " << link;
        }
    }
}

// All the ways to write a link are seen; code, web addresses and links within the page are passed over.
TEST(Docs, LinksAreFoundInMarkdown) {
    using Files = std::vector<std::string>;
    EXPECT_EQ(linked_files("See [a](a.md) and [b](b/c.md#part \"title\"), ![p](p.png)"),
              (Files{"a.md", "b/c.md", "p.png"}));
    EXPECT_EQ(linked_files("[ref]: guides/x.md\n"), Files{"guides/x.md"});
    EXPECT_EQ(linked_files("[w](https://example.org/a.md) [m](mailto:a@b.c) [s](#here)"), Files{});
    EXPECT_EQ(linked_files("`v[0](x)`\n```\n[no](no.md)\n```\n[yes](yes.md)\n"), Files{"yes.md"});
}

// A dead link is told from a living one, in a tree made up for the purpose.
TEST(Docs, DeadLinksAreFound) {
    fs::path root = fs::path(testing::TempDir()) / ("stoker_docs_test_" + std::to_string(getpid()));
    fs::create_directories(root / "docs" / "guides");
    std::ofstream(root / "README.md") << "[d](docs/a.md) [x](docs/missing.md)\n";
    std::ofstream(root / "docs" / "a.md") << "[up](../README.md) [dir](guides) [top](/docs/a.md) [x](/a.md)\n";
    EXPECT_EQ(pages_of(root).size(), 2u);
    EXPECT_EQ(dead_links(root, root / "README.md"), std::vector<std::string>{"docs/missing.md"});
    EXPECT_EQ(dead_links(root, root / "docs" / "a.md"), std::vector<std::string>{"/a.md"});
    fs::remove_all(root);
}

}  // namespace
