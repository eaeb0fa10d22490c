#include "base/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/document_reader.h"
#include "base/text.h"

namespace stoker {

std::string_view to_string(NodeKind kind) {
    switch (kind) {
        case NodeKind::null: return "nothing";
        case NodeKind::boolean: return "true or false";
        case NodeKind::number: return "a number";
        case NodeKind::string: return "text";
        case NodeKind::sequence: return "a list";
        case NodeKind::mapping: return "a mapping";
    }
    return "nothing";
}

const Node* Node::find(std::string_view key) const {
    for (const Member& member : members)
        if (member.key == key) return member.value.get();
    return nullptr;
}

Result<Document> Document::parse(std::string_view text, std::string file, const ReadLimits& limits) {
    const bool is_json =
        file.size() >= 5 && equals_ignore_case(std::string_view(file).substr(file.size() - 5), ".json");
    return is_json ? parse_json(text, std::move(file), limits) : parse_yaml(text, std::move(file), limits);
}

namespace document_reader {
namespace {

SourcePos place_of(std::string_view text, std::size_t offset, FileName file) {
    const std::string_view before = text.substr(0, offset);
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
    return {file, static_cast<std::uint32_t>(lines + 1), static_cast<std::uint32_t>(offset - line_start + 1)};
}

// UTF-16 and UTF-32 by their byte order mark, or by the zero byte beside the ASCII letter that every such file begins
// with.
bool looks_like_utf16(std::string_view text) {
    using namespace std::string_view_literals;
    if (text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv)) return true;
    return text.size() >= 2 && (text[0] == '\0') != (text[1] == '\0');
}

}  // namespace

Result<std::string_view> check_text(std::string_view text, FileName file, const ReadLimits& limits) {
    if (text.size() > limits.max_bytes) {
        return Error(
            ErrorKind::invalid,
            fmt::format("the file has {} bytes, more than the {} that are read", text.size(), limits.max_bytes),
            SourcePos{file, 0, 0});
    }
    if (looks_like_utf16(text)) {
        return Error(ErrorKind::invalid, "the file is in UTF-16 or UTF-32, and UTF-8 is expected",
                     SourcePos{file, 1, 1}, "save it as UTF-8");
    }
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
        const auto byte = static_cast<unsigned>(static_cast<unsigned char>(text[bad]));
        return Error(ErrorKind::invalid, fmt::format("the byte 0x{:02X} is not valid UTF-8 here", byte),
                     place_of(text, bad, file), "save the file as UTF-8");
    }
    return text;
}

Status check_unique_keys(const std::vector<Member>& members) {
    const auto duplicate = [&](std::size_t first, std::size_t second) {
        return Error(ErrorKind::invalid,
                     fmt::format("the key '{}' is already set at {}:{}", printable(members[second].key, 60),
                                 members[first].key_pos.line, members[first].key_pos.column),
                     members[second].key_pos, "keep one of the two");
    };
    if (members.size() <= 12) {
        for (std::size_t i = 1; i < members.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (members[i].key == members[j].key) return duplicate(j, i);
        return done();
    }
    // Comparing each with each would let a megabyte of keys take hours.
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const int compared = members[a].key.compare(members[b].key);
        return compared != 0 ? compared < 0 : a < b;
    });
    std::size_t first = 0, second = members.size();
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (members[order[i]].key != members[order[i - 1]].key || order[i] > second) continue;
        first = order[i - 1];
        second = order[i];
    }
    if (second < members.size()) return duplicate(first, second);
    return done();
}

Error too_many_nodes(SourcePos pos, const ReadLimits& limits) {
    return Error(ErrorKind::invalid, fmt::format("the document has more than {} values", limits.max_nodes), pos);
}

Error too_deep(SourcePos pos, const ReadLimits& limits) {
    return Error(ErrorKind::invalid, fmt::format("nested deeper than {} levels", limits.max_depth), pos);
}

}  // namespace document_reader
}  // namespace stoker
