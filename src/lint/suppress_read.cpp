// Finds the suppressions that a file holds, and what each of them covers.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lint/suppress.h"

namespace stoker::lint {

namespace {

constexpr std::string_view kMark = "stoker:";
constexpr std::string_view kAnnotation = "stoker/ignore";

bool is_blank_of_comment(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// The words of a comment, without the marks of its language: # // /* */ <!-- --> {{/* */}} ; --
std::string_view without_marks(std::string_view text) {
    static constexpr std::string_view opening[] = {"{{-", "{{", "/*", "<!--", "//", "#", ";", "--"};
    static constexpr std::string_view closing[] = {"-}}", "}}", "*/", "-->"};
    text = trim(text);
    for (bool again = true; again;) {
        again = false;
        for (const std::string_view mark : opening)
            if (text.starts_with(mark)) text = trim(text.substr(mark.size())), again = true;
    }
    for (bool again = true; again;) {
        again = false;
        for (const std::string_view mark : closing)
            if (text.ends_with(mark)) text = trim(text.substr(0, text.size() - mark.size())), again = true;
    }
    return text;
}

bool is_rule_id(std::string_view id) {
    return find_rule_page(id) != nullptr;
}

void split_rules(std::string_view list, std::vector<std::string>& rules) {
    for (const std::string_view part : split(list, ','))
        if (!trim(part).empty()) rules.push_back(upper(trim(part)));
}

// until=... and reason="..." in any order; what else is there is a problem.
void parse_words(std::string_view rest, SuppressionWords& words) {
    while (!(rest = trim(rest)).empty()) {
        const std::size_t equals = rest.find('=');
        const std::string_view name = equals == std::string_view::npos ? rest : rest.substr(0, equals);
        if (equals == std::string_view::npos || (name != "until" && name != "reason")) {
            words.problem = fmt::format("'{}' is not understood: expected until=YYYY-MM-DD or reason=\"...\"",
                                        printable(rest.substr(0, rest.find(' ')), 40));
            return;
        }
        rest.remove_prefix(equals + 1);
        std::string_view value;
        if (rest.starts_with('"')) {
            const std::size_t end = rest.find('"', 1);
            if (end == std::string_view::npos) {
                words.problem = "the reason has no closing quote";
                return;
            }
            value = rest.substr(1, end - 1);
            rest.remove_prefix(end + 1);
        } else {
            value = rest.substr(0, std::min(rest.find_first_of(" \t"), rest.size()));
            rest.remove_prefix(value.size());
        }
        (name == "until" ? words.until : words.reason) = value;
    }
    if (!words.until.empty() && !is_day(words.until))
        words.problem = fmt::format("until={} is no day, such as 2027-01-31", printable(words.until, 40));
}

void judge_rules(SuppressionWords& words) {
    if (!words.problem.empty()) return;
    if (words.rules.empty())
        words.problem = "it names no rule: write ignore[ID], since all findings is too much to ignore";
    for (const std::string& rule : words.rules) {
        if (rule == "SYN001" || rule == "SYN005")
            words.problem = fmt::format("{} cannot be ignored: nothing behind it was checked", rule);
        else if (!is_rule_id(rule))
            words.problem = fmt::format("no rule has the id {}", printable(rule, 40));
        if (!words.problem.empty()) return;
    }
}

// ---- What follows a comment ---------------------------------------------------------------------------------------

const Node* node_behind(const Node& node, const Source& source, std::uint32_t offset) {
    for (const Node& child : children(&node)) {
        if (child.merged || child.source != &source) continue;
        const Span whole = child.whole();
        if (whole.begin >= offset) return &child;
        if (whole.end > offset)
            if (const Node* inside = node_behind(child, source, offset)) return inside;
    }
    return nullptr;
}

std::optional<Span> tree_behind(const File& part, std::uint32_t offset) {
    for (const Node* root : part.tree.roots) {
        if (root->whole().end <= offset) continue;
        if (const Node* found = node_behind(*root, part.source(), offset)) return found->whole();
    }
    return std::nullopt;
}

std::optional<Span> script_behind(const File& part, std::uint32_t offset) {
    std::optional<Span> first;
    const auto offer = [&](Span span) {
        if (span.begin >= offset && (!first || span.begin < first->begin)) first = span;
    };
    const Command* chosen = nullptr;
    for (const Command& command : part.script.commands) {
        const Span before = first.value_or(Span{});
        offer(command.span);
        if (first && *first != before && first->begin == command.span.begin) chosen = &command;
    }
    for (const Assignment& assignment : part.script.assignments) offer(assignment.span);
    for (const Directive& directive : part.script.directives) offer(directive.line);
    if (!first || !chosen || first->begin != chosen->span.begin) return first;
    // A pipeline and a && b are one thing to a person; what it reads from a heredoc is part of it.
    for (const Command& command : part.script.commands) {
        if (command.pipeline != chosen->pipeline && command.list != chosen->list) continue;
        if (command.span.begin < first->begin) continue;
        first->end = std::max(first->end, command.span.end);
        for (const Redirect& redirect : command.redirects) first->end = std::max(first->end, redirect.body.end);
    }
    return first;
}

// The next line with something on it, and those it is continued on.
Span line_behind(std::string_view text, std::uint32_t offset) {
    std::size_t at = text.find('\n', offset);
    while (at != std::string_view::npos) {
        const std::size_t begin = at + 1;
        at = text.find('\n', begin);
        const std::string_view line = trim(text.substr(begin, at - begin));
        if (line.empty() || line.starts_with('#') || line.starts_with("//")) continue;
        std::size_t end = std::min(at, text.size());
        while (at != std::string_view::npos && trim(text.substr(begin, end - begin)).ends_with('\\')) {
            at = text.find('\n', at + 1);
            end = std::min(at, text.size());
        }
        return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
    }
    return {};
}

Span thing_behind(const File& part, std::uint32_t offset) {
    if (const auto found = tree_behind(part, offset)) return *found;
    if (const auto found = script_behind(part, offset)) return *found;
    return line_behind(part.source().text(), offset);
}

// ---- Comments -----------------------------------------------------------------------------------------------------

// What looks like a comment with our mark in it, found without knowing the language.
std::vector<Comment> loose_comments(const File& part) {
    std::vector<Comment> found;
    const std::string_view text = part.source().text();
    for (std::size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at + 1)) {
        const Span line = part.source().line_at(static_cast<std::uint32_t>(at));
        std::size_t begin = at;
        while (begin > line.begin && is_blank_of_comment(text[begin - 1])) --begin;
        while (begin > line.begin && std::string_view("#/*<!-{").find(text[begin - 1]) != std::string_view::npos)
            --begin;
        if (begin == at) continue;  // no mark before it: prose
        const bool own = trim(text.substr(line.begin, begin - line.begin)).empty();
        found.push_back({{static_cast<std::uint32_t>(begin), line.end}, own});
    }
    return found;
}

struct SuppressionFinder {
    const File& part;
    std::vector<Suppression>& out;
    std::vector<std::size_t> open;  // begin without end so far

    const Source& source() const { return part.source(); }

    // Only comments, blank lines and the shebang before it.
    bool in_first_block(const std::vector<Comment>& comments, std::uint32_t offset) const {
        std::uint32_t at = 0;
        const std::string_view text = source().text();
        if (text.starts_with("\xEF\xBB\xBF")) at = 3;
        std::size_t next = 0;
        while (at < offset) {
            while (at < offset && is_blank_of_comment(text[at])) ++at;
            if (at >= offset) break;
            while (next < comments.size() && comments[next].span.end <= at) ++next;
            if (next < comments.size() && comments[next].span.begin <= at) {
                at = comments[next].span.end;
            } else if (text[at] == '#' || text.substr(at).starts_with("---")) {
                at = source().line_at(at).end;
            } else {
                return false;
            }
        }
        return true;
    }

    Suppression said_at(Span place, SuppressionWords& words) {
        Suppression found;
        found.rules = std::move(words.rules);
        found.until = std::move(words.until);
        found.reason = std::move(words.reason);
        found.problem = std::move(words.problem);
        found.source = &source();
        found.at = place;
        return found;
    }

    void add(const std::vector<Comment>& comments, const Comment& comment) {
        const std::string_view text = source().text(comment.span);
        SuppressionWords words = parse_suppression(text);
        if (words.form == SuppressionWords::Form::none) return;
        Suppression found = said_at(comment.span, words);
        found.list = {comment.span.begin + static_cast<std::uint32_t>(words.list_begin),
                      comment.span.begin + static_cast<std::uint32_t>(words.list_end)};
        found.is_comment = true;
        found.own_line = comment.own_line;
        Span covers;
        switch (words.form) {
            case SuppressionWords::Form::file:
                covers = {0, static_cast<std::uint32_t>(source().text().size())};
                if (!in_first_block(comments, comment.span.begin) && found.problem.empty())
                    found.problem = "ignore-file has to stand in the first comment of the file";
                break;
            case SuppressionWords::Form::begin: covers = {comment.span.end, comment.span.end}; break;
            case SuppressionWords::Form::end:
                if (open.empty()) {
                    found.problem = "ignore-end without ignore-begin";
                    break;
                }
                out[open.back()].covers.end = source().in_outermost({comment.span.begin, comment.span.begin}).begin;
                open.pop_back();
                return;
            default:
                covers = comment.own_line ? thing_behind(part, comment.span.end) : source().line_at(comment.span.begin);
        }
        found.covers = source().in_outermost(covers);
        if (words.form == SuppressionWords::Form::file && !source().outer()) found.covers.end = UINT32_MAX;
        // A line of an embedded text is a line of the file too, quotes and indent included.
        if (words.form == SuppressionWords::Form::ignore && !comment.own_line)
            found.covers = source().outermost().line_at(source().in_outermost(comment.span).begin);
        if (words.form == SuppressionWords::Form::begin) open.push_back(out.size());
        out.push_back(std::move(found));
    }

    void find_comments() {
        // Kinds whose front end keeps none, and texts that no front end could read.
        const bool unread = part.tree.roots.empty() && part.script.empty();
        const std::vector<Comment> loose =
            part.comments.empty() && unread ? loose_comments(part) : std::vector<Comment>();
        const std::vector<Comment>& comments = part.comments.empty() ? loose : part.comments;
        for (const Comment& comment : comments)
            if (source().text(comment.span).find(kMark) != std::string_view::npos) add(comments, comment);
        for (const std::size_t at : open) {
            if (out[at].problem.empty()) out[at].problem = "ignore-begin without ignore-end";
        }
    }

    void covers(const Node& node, const Node& said, SuppressionWords words) {
        Suppression found = said_at(said.span, words);
        found.covers = source().in_outermost(node.span);
        out.push_back(std::move(found));
    }

    // metadata: {annotations: {stoker/ignore: "K8S003", stoker/ignore-reason: "..."}} covers the object around it.
    void find_in_values(const Node& node, std::size_t depth) {
        if (depth > 1000) return;
        if (const Node* annotations = node.at({"metadata", "annotations"})) {
            const Node* ignore = annotations->find(kAnnotation);
            if (ignore && ignore->is_scalar() && ignore->source == &source()) {
                SuppressionWords words;
                split_rules(ignore->text, words.rules);
                if (const Node* reason = annotations->find("stoker/ignore-reason")) words.reason = reason->text;
                if (const Node* until = annotations->find("stoker/ignore-until")) words.until = until->text;
                if (!words.until.empty() && !is_day(words.until))
                    words.problem = fmt::format("stoker/ignore-until: {} is no day", printable(words.until, 40));
                judge_rules(words);
                covers(node, *ignore, std::move(words));
            }
        }
        // A resource of an ARM template has a place for comments, where JSON has none.
        if (const Node* comments = node.find("comments"); comments && comments->is_scalar() &&
                                                          comments->source == &source() && node.find("apiVersion") &&
                                                          trim(comments->text).starts_with(kMark))
            covers(node, *comments, parse_suppression(comments->text));
        for (const Node& child : children(&node))
            if (!child.is_scalar() && !child.merged) find_in_values(child, depth + 1);
    }
};

}  // namespace

bool is_day(std::string_view text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
    int parts[3] = {0, 0, 0}, part = 0;
    for (const char c : text) {
        if (c == '-')
            ++part;
        else if (c >= '0' && c <= '9')
            parts[part] = parts[part] * 10 + (c - '0');
        else
            return false;
    }
    return part == 2 && parts[1] >= 1 && parts[1] <= 12 && parts[2] >= 1 && parts[2] <= 31;
}

SuppressionWords parse_suppression(std::string_view comment) {
    using Form = SuppressionWords::Form;
    SuppressionWords words;
    std::string_view text = without_marks(comment);
    if (!text.starts_with(kMark)) return words;
    text = trim(text.substr(kMark.size()));
    if (!text.starts_with("ignore")) return words;
    text.remove_prefix(6);
    words.form = Form::ignore;
    for (const auto& [name, form] :
         {std::pair<std::string_view, Form>{"-file", Form::file}, {"-begin", Form::begin}, {"-end", Form::end}}) {
        if (!text.starts_with(name)) continue;
        text.remove_prefix(name.size());
        words.form = form;
        break;
    }
    // ignored, ignore-me: words of somebody else.
    if (!text.empty() && text[0] != '[' && !is_blank_of_comment(text[0])) return {};
    text = trim(text);
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos) {
            words.problem = "the list of rules has no closing bracket";
            return words;
        }
        const std::string_view list = text.substr(1, end - 1);
        words.list_begin = static_cast<std::size_t>(list.data() - comment.data());
        words.list_end = words.list_begin + list.size();
        split_rules(list, words.rules);
        text.remove_prefix(end + 1);
    }
    if (words.form == Form::end) return words;
    parse_words(text, words);
    judge_rules(words);
    return words;
}

std::vector<Suppression> find_suppressions(const File& file) {
    std::vector<Suppression> found;
    const std::string_view text = file.source().text();
    if (text.find("stoker") == std::string_view::npos) return found;
    const bool annotated = text.find(kAnnotation) != std::string_view::npos;
    for_each_part(file, [&](const File& part) {
        SuppressionFinder finder{part, found, {}};
        finder.find_comments();
        if (!(annotated && part.kinds.any({Kind::k8s, Kind::helm})) && !part.kinds.any({Kind::arm})) return;
        for (const Node* root : part.tree.roots) finder.find_in_values(*root, 0);
    });
    return found;
}

}  // namespace stoker::lint
