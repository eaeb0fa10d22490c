// read and mapfile in a script that is followed.
#include <algorithm>

#include "lint/shell/shell_trace.h"

namespace stoker::lint {

// read -r a b: a line of what is read.
void ShellTrace::read_fields(const Fields& words, const ShellNode& node, std::string_view separators, Status& status) {
    std::vector<std::string_view> names;
    std::string_view list;
    std::string own(separators);
    char line_end = '\n';
    for (std::size_t k = 1; k < words.size(); ++k) {
        const std::string_view word = words[k].text;
        if (word.starts_with('-') && word.size() > 1) {
            if (word.ends_with('a') && k + 1 < words.size())
                list = words[++k].text;
            else if (word.ends_with('d') && k + 1 < words.size())
                line_end = words[k + 1].text.empty() ? '\0' : words[k + 1].text[0], ++k;
            else if (word.find_first_of("pntu") != std::string_view::npos && k + 1 < words.size())
                ++k;
            continue;
        }
        names.push_back(word);
    }
    if (names.empty() && list.empty()) names.push_back("REPLY");
    Feed own_feed;
    const bool here = feed_of(node, own_feed);
    Feed* const feed = here ? &own_feed : input_.get();
    if (feed == nullptr || !feed->text.known) {
        for (const std::string_view name : names) set_unknown(name);
        if (!list.empty()) set_unknown(list);
        status = Status::unknown;
        return;
    }
    const std::string& all_text = feed->text.text;
    if (feed->at >= all_text.size()) {
        status = Status::no;
        return;
    }
    const std::size_t to = std::min(all_text.find(line_end, feed->at), all_text.size());
    const bool exact = feed->text.source != nullptr && feed->text.at.size() == all_text.size();
    const auto part = [&](std::size_t from, std::size_t end) {
        TracedText piece;
        piece.text = all_text.substr(from, end - from);
        piece.assumed = feed->text.assumed;
        if (exact) {
            piece.source = feed->text.source;
            piece.at = {feed->text.at.begin + static_cast<std::uint32_t>(from),
                        feed->text.at.begin + static_cast<std::uint32_t>(end)};
        }
        return piece;
    };
    std::size_t at = feed->at;
    const auto is_blank = [&](char c) {
        return (c == ' ' || c == '\t' || c == '\n') && own.find(c) != std::string::npos;
    };
    const auto is_mark = [&](char c) { return own.find(c) != std::string::npos; };
    std::vector<TracedText> fields;
    const std::size_t most = list.empty() ? names.size() : 1000;
    std::size_t end = to;
    while (end > at && is_blank(all_text[end - 1])) --end;
    while (at < end && is_blank(all_text[at])) ++at;
    while (fields.size() + 1 < most && at < end) {
        std::size_t stop = at;
        while (stop < end && !is_mark(all_text[stop])) ++stop;
        fields.push_back(part(at, stop));
        at = stop;
        while (at < end && is_blank(all_text[at])) ++at;
        if (at < end && is_mark(all_text[at])) {
            ++at;
            while (at < end && is_blank(all_text[at])) ++at;
        }
    }
    if (at < end) fields.push_back(part(at, end));
    feed->at = to + 1;
    spend(to);
    if (!list.empty()) {
        Variable& variable = made(list);
        variable = {};
        variable.list = true;
        variable.items = fields;
        status = Status::yes;
        return;
    }
    for (std::size_t k = 0; k < names.size(); ++k) set(names[k], k < fields.size() ? fields[k] : TracedText{});
    status = Status::yes;
}

// mapfile -t list
void ShellTrace::read_lines(const Fields& words, const ShellNode& node) {
    std::string_view name = "MAPFILE";
    for (std::size_t k = 1; k < words.size(); ++k)
        if (!words[k].text.starts_with('-')) name = words[k].text;
    Feed own;
    const bool here = feed_of(node, own);
    const Feed* const feed = here ? &own : input_.get();
    Variable& variable = made(name);
    variable = {};
    variable.list = true;
    if (feed == nullptr || !feed->text.known) {
        variable.open = true;
        return;
    }
    const bool exact = feed->text.source != nullptr && feed->text.at.size() == feed->text.text.size();
    for (std::string_view rest = feed->text.text; !rest.empty();) {
        const std::size_t end = rest.find('\n');
        const std::string_view line = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
        TracedText item;
        item.text = line;
        if (exact) {
            const auto from = feed->text.at.begin + static_cast<std::uint32_t>(line.data() - feed->text.text.data());
            item.source = feed->text.source;
            item.at = {from, from + static_cast<std::uint32_t>(line.size())};
        }
        if (!spend(line.size() + 32)) return;
        variable.items.push_back(std::move(item));
    }
}

}  // namespace stoker::lint
