// A page of data/lint:
//
//   # NET001 rdma-vmss-without-single-placement
//   severity: error
//   kinds: terraform bicep arm az
//   default: on                      (or off)
//   scope: file                      (or bundle: never fires on one file alone)
//   fix: unsafe                      (none, safe)
//   title: an RDMA scale set whose nodes are not in one placement group
//   source: learn.microsoft.com/..., orchestration modes
//   as_of: 2026-11-20
//   cost: what ignoring it costs
//
//   Text.
//
//   ## bad 3: Terraform              (line of the finding in the first file; 3 in FILE for another; 0: anywhere)
//   ```main.tf
//   ...
//   ```
//   ## good: one Uniform set
//   ```main.tf
//   ```
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/embedded.h"
#include "base/text.h"
#include "lint/rule.h"

namespace stoker::lint {

namespace {

constexpr std::string_view kFolder = "lint/";

struct PageReader {
    std::string_view text;
    std::string file;
    std::size_t at = 0;
    std::uint32_t line = 0;

    bool done() const { return at >= text.size(); }
    std::string_view next() {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view result = text.substr(at, end - at);
        at = std::min(end + 1, text.size());
        ++line;
        return result;
    }
    std::string_view peek() const { return text.substr(at, std::min(text.find('\n', at), text.size()) - at); }
    Error error(std::string message) const {
        return Error(ErrorKind::internal, std::move(message), SourcePos{file, line, 1});
    }
};

Result<RulePage> read_head(PageReader& in) {
    RulePage page;
    const std::string_view first = in.next();
    const std::size_t blank = first.find(' ', 2);
    if (!first.starts_with("# ") || blank == std::string_view::npos) return in.error("expected \"# ID slug\"");
    page.id = first.substr(2, blank - 2);
    page.slug = first.substr(blank + 1);
    while (!in.done() && !in.peek().empty()) {
        const std::string_view row = in.next();
        const std::size_t colon = row.find(": ");
        if (colon == std::string_view::npos) return in.error("expected \"name: value\"");
        const std::string_view name = row.substr(0, colon), value = row.substr(colon + 2);
        if (name == "severity") {
            const auto severity = severity_from(value);
            if (!severity) return in.error("severity is error, warning or info");
            page.severity = *severity;
        } else if (name == "kinds") {
            for (const std::string_view word : split(value, ' ')) {
                if (word == "all") {
                    for (int i = 0; i < kKinds; ++i) page.kinds.add(static_cast<Kind>(i));
                    continue;
                }
                const auto kind = kind_from(word);
                if (!kind) return in.error(fmt::format("no kind is called {}", word));
                page.kinds.add(*kind);
            }
        } else if (name == "default") {
            page.on = value == "on";
        } else if (name == "scope") {
            page.needs_bundle = value == "bundle";
        } else if (name == "fix") {
            page.fix = value == "safe" ? FixClass::safe : value == "unsafe" ? FixClass::unsafe : FixClass::none;
        } else if (name == "title") {
            page.title = value;
        } else if (name == "source") {
            page.source = value;
        } else if (name == "as_of") {
            page.as_of = value;
        } else if (name == "cost") {
            page.cost = value;
        } else {
            return in.error(fmt::format("no field is called {}", name));
        }
    }
    return page;
}

Result<RuleExample> read_example(PageReader& in, std::string_view heading) {
    RuleExample example;
    example.bad = heading.starts_with("## bad");
    std::string_view rest = heading.substr(example.bad ? 6 : 7);
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return in.error("expected \"## bad LINE: title\" or \"## good: title\"");
    example.title = trim(rest.substr(colon + 1));
    rest = trim(rest.substr(0, colon));
    if (example.bad) {
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), example.line);
        if (error != std::errc{}) return in.error("expected the line of the finding behind \"bad\"");
        rest = trim(rest.substr(static_cast<std::size_t>(end - rest.data())));
        if (rest.starts_with("in ")) example.path = rest.substr(3);
    }
    while (!in.done() && !in.peek().starts_with("## ")) {
        const std::string_view row = in.next();
        if (!row.starts_with("```")) continue;
        // Four marks where the text itself has three.
        const std::string_view fence = row.substr(0, row.find_first_not_of('`'));
        std::string text;
        while (!in.done() && in.peek() != fence) text += std::string(in.next()) + "\n";
        if (in.done()) return in.error("the block does not end");
        in.next();
        example.files.emplace_back(row.substr(fence.size()), std::move(text));
    }
    if (example.files.empty()) return in.error("an example without a block");
    return example;
}

}  // namespace

Result<RulePage> parse_rule_page(std::string_view text, std::string file) {
    PageReader in{text, std::move(file)};
    TRY(RulePage page, read_head(in));
    while (!in.done()) {
        const std::string_view row = in.next();
        if (row.starts_with("## bad") || row.starts_with("## good")) {
            TRY(RuleExample example, read_example(in, row));
            page.examples.push_back(std::move(example));
        } else if (page.examples.empty()) {
            page.text += std::string(row) + "\n";
        }
    }
    page.text = trim(page.text);
    return page;
}

const std::vector<RulePage>& rule_pages() {
    static const std::vector<RulePage> pages = [] {
        std::vector<RulePage> found;
        const auto files = embedded_files();
        auto it = std::lower_bound(files.begin(), files.end(), kFolder,
                                   [](const EmbeddedFile& file, std::string_view path) { return file.path < path; });
        for (; it != files.end() && it->path.starts_with(kFolder); ++it) {
            if (!it->path.ends_with(".md")) continue;
            PageReader in{it->bytes, std::string(it->path)};
            auto page = read_head(in);
            if (page) found.push_back(std::move(*page));  // a test reads all of them whole
        }
        std::sort(found.begin(), found.end(), [](const RulePage& a, const RulePage& b) { return a.id < b.id; });
        return found;
    }();
    return pages;
}

const RulePage* find_rule_page(std::string_view id) {
    const auto& pages = rule_pages();
    const auto it = std::lower_bound(pages.begin(), pages.end(), id,
                                     [](const RulePage& page, std::string_view wanted) { return page.id < wanted; });
    return it != pages.end() && it->id == id ? &*it : nullptr;
}

RulePage whole_rule_page(std::string_view id) {
    const std::string path = fmt::format("{}{}.md", kFolder, id);
    auto page = parse_rule_page(embedded_bytes(path), path);
    return page ? std::move(*page) : RulePage{};
}

std::vector<std::string> addresses_of_source(std::string_view source) {
    static const std::vector<std::pair<std::string, std::string>> rows = [] {
        std::vector<std::pair<std::string, std::string>> made;
        const EmbeddedFile* file = find_embedded("lint/sources.tsv");
        for (const std::string_view line : split(file ? file->bytes : std::string_view(), '\n'))
            if (const auto cells = split(line, '\t'); cells.size() == 2 && cells[1].starts_with("https://"))
                made.emplace_back(cells[0], cells[1]);
        // The longest first: what is part of another's mark is not named twice.
        std::stable_sort(made.begin(), made.end(),
                         [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
        return made;
    }();
    std::vector<std::pair<std::size_t, std::string>> found;
    std::string left(source);
    for (const auto& [mark, address] : rows)
        for (std::size_t at = left.find(mark); at != std::string::npos; at = left.find(mark, at)) {
            left.replace(at, mark.size(), mark.size(), ' ');
            found.emplace_back(at, address);
        }
    std::sort(found.begin(), found.end());
    std::vector<std::string> addresses;
    for (auto& [at, address] : found)
        if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
            addresses.push_back(std::move(address));
    return addresses;
}

}  // namespace stoker::lint
