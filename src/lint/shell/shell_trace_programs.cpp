// Programs that only change text, imitated as far as scripts use them to put a name together: what they would write, or
// nothing.
#include <algorithm>

#include "base/text.h"
#include "lint/pattern.h"
#include "lint/shell/shell_trace.h"

namespace stoker::lint {

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t to = text.find('\n');
        lines.push_back(text.substr(0, to));
        text = to == std::string_view::npos ? std::string_view() : text.substr(to + 1);
    }
    return lines;
}

std::optional<std::size_t> whole_number(std::string_view text) {
    std::size_t value = 0;
    if (text.empty() || text.size() > 6) return std::nullopt;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + static_cast<std::size_t>(c - '0');
    }
    return value;
}

std::string escapes_undone(std::string_view text) {
    std::string out;
    for (std::size_t k = 0; k < text.size(); ++k) {
        if (text[k] != '\\' || k + 1 == text.size()) {
            out += text[k];
            continue;
        }
        const char c = text[++k];
        out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    return out;
}

// 'a-z', '[:upper:]' of tr.
std::optional<std::string> set_of_tr(std::string_view text) {
    std::string out;
    if (text == "[:upper:]" || text == "[A-Z]") text = "A-Z";
    if (text == "[:lower:]" || text == "[a-z]") text = "a-z";
    if (text.starts_with("[:")) return std::nullopt;
    const std::string plain = escapes_undone(text);
    for (std::size_t k = 0; k < plain.size(); ++k) {
        if (k + 2 < plain.size() && plain[k + 1] == '-' && plain[k] <= plain[k + 2]) {
            for (int c = plain[k]; c <= plain[k + 2]; ++c) out += static_cast<char>(c);
            k += 2;
        } else {
            out += plain[k];
        }
    }
    return out;
}

std::optional<std::string> translated(std::string_view text, const std::vector<std::string_view>& words) {
    if (words.size() == 3 && words[1] == "-d") {
        const auto set = set_of_tr(words[2]);
        if (!set) return std::nullopt;
        std::string out;
        for (const char c : text)
            if (set->find(c) == std::string::npos) out += c;
        return out;
    }
    if (words.size() != 3 || words[1].starts_with("-")) return std::nullopt;
    const auto from = set_of_tr(words[1]), to = set_of_tr(words[2]);
    if (!from || !to || to->empty()) return std::nullopt;
    std::string out(text);
    for (char& c : out)
        if (const std::size_t at = from->find(c); at != std::string::npos) c = (*to)[std::min(at, to->size() - 1)];
    return out;
}

// A basic regular expression as an extended one: what has a backslash there has none here, and the other way round.
std::string extended_of(std::string_view basic) {
    std::string out;
    for (std::size_t k = 0; k < basic.size(); ++k) {
        const char c = basic[k];
        const bool special = std::string_view("(){}+?|").find(c) != std::string_view::npos;
        if (c == '\\' && k + 1 < basic.size()) {
            const char next = basic[++k];
            if (std::string_view("(){}+?|").find(next) == std::string_view::npos) out += '\\';
            out += next;
        } else {
            if (special) out += '\\';
            out += c;
        }
    }
    return out;
}

// s/a/b/, s/a/b/g, one or several with ";" between them.
std::optional<std::string> edited_by_sed(std::string_view text, std::string_view script, bool extended) {
    std::string out(text);
    for (int round = 0; !script.empty(); ++round) {
        script = trim(script);
        if (round > 8 || script.size() < 4 || script[0] != 's') return std::nullopt;
        const char mark = script[1];
        std::vector<std::string> parts{""};
        std::size_t k = 2;
        for (; k < script.size() && parts.size() < 3; ++k) {
            if (script[k] == '\\' && k + 1 < script.size()) {
                if (script[k + 1] != mark) parts.back() += '\\';
                parts.back() += script[++k];
            } else if (script[k] == mark) {
                parts.emplace_back();
            } else {
                parts.back() += script[k];
            }
        }
        if (parts.size() < 3) return std::nullopt;
        std::size_t flags = k;
        while (flags < script.size() && script[flags] != ';') ++flags;
        const std::string_view how = trim(script.substr(k, flags - k));
        if (!how.empty() && how != "g") return std::nullopt;
        script = flags < script.size() ? script.substr(flags + 1) : std::string_view();
        const auto pattern = TextPattern::read(extended ? parts[0] : extended_of(parts[0]));
        if (!pattern) return std::nullopt;
        std::string edited;
        for (const std::string_view line : lines_of(out)) {
            const auto done = pattern->replaced(line, parts[1], how == "g", false);
            if (!done) return std::nullopt;
            edited += *done + "\n";
        }
        out = std::move(edited);
    }
    return out;
}

// .pools.gpu.size, .sizes[0], .["a"]: of a text of JSON that is small.
std::optional<std::string> looked_up(std::string_view json, std::string_view path) {
    if (json.size() > (64u << 10)) return std::nullopt;
    File file("lookup.json", std::string(json));
    file.kinds.add(Kind::deepspeed);  // of any kind: plain JSON
    read_json(file);
    if (file.tree.roots.empty() || !file.problems.empty()) return std::nullopt;
    const Node* node = file.tree.roots[0];
    path = trim(path);
    while (!path.empty() && path != ".") {
        if (path.starts_with('.')) path.remove_prefix(1);
        if (path.starts_with('[')) {
            const std::size_t close = path.find(']');
            if (close == std::string_view::npos) return std::nullopt;
            std::string_view key = path.substr(1, close - 1);
            path.remove_prefix(close + 1);
            if (key.size() > 1 && key.front() == '"' && key.back() == '"') {
                node = node->find(key.substr(1, key.size() - 2));
            } else {
                const auto index = whole_number(key);
                if (!index || !node->is_array() || node->count() <= *index) return std::nullopt;
                node = node->first;
                for (std::size_t k = 0; k < *index; ++k) node = node->next;
            }
        } else {
            std::size_t to = 0;
            if (path.starts_with('"')) {
                const std::size_t close = path.find('"', 1);
                if (close == std::string_view::npos) return std::nullopt;
                node = node->find(path.substr(1, close - 1));
                path.remove_prefix(close + 1);
            } else {
                while (to < path.size() &&
                       (path[to] == '_' || path[to] == '-' || (path[to] >= '0' && path[to] <= '9') ||
                        (path[to] >= 'a' && path[to] <= 'z') || (path[to] >= 'A' && path[to] <= 'Z')))
                    ++to;
                if (to == 0) return std::nullopt;
                node = node->find(path.substr(0, to));
                path.remove_prefix(to);
            }
        }
        if (node == nullptr) return std::nullopt;
    }
    if (!node->is_scalar()) return std::nullopt;
    return std::string(node->text);
}

}  // namespace

std::optional<std::string> ShellTrace::file_text(std::string_view name) {
    while (name.starts_with("./")) name.remove_prefix(2);
    if (const auto it = written_.find(name); it != written_.end())
        return it->second.known ? std::optional(it->second.text) : std::nullopt;
    if (!options_.neighbour || name.empty() || name.starts_with('/') || name.starts_with('~')) return std::nullopt;
    auto text = options_.neighbour(std::string(name));
    if (!text || text->size() > (64u << 10) || text->find('\0') != std::string::npos || !spend(text->size()))
        return std::nullopt;
    return text;
}

// The format at `at` and the words behind it, over and over until they are used up.
std::optional<std::string> ShellTrace::formatted(const Fields& words, std::size_t at) {
    if (at >= words.size() || !words[at].known) return std::nullopt;
    const std::string format = words[at].text;
    std::string out;
    std::size_t next = at + 1;
    do {
        const std::size_t before = next;
        for (std::size_t k = 0; k < format.size(); ++k) {
            if (format[k] == '\\' && k + 1 < format.size()) {
                out += escapes_undone(std::string_view(format).substr(k, 2));
                ++k;
            } else if (format[k] != '%') {
                out += format[k];
            } else if (k + 1 < format.size() && format[k + 1] == '%') {
                out += '%';
                ++k;
            } else {
                std::size_t to = k + 1;
                while (to < format.size() &&
                       std::string_view("-0123456789.").find(format[to]) != std::string_view::npos)
                    ++to;
                if (to == format.size() || std::string_view("sdiq").find(format[to]) == std::string_view::npos)
                    return std::nullopt;
                const std::string_view width = std::string_view(format).substr(k + 1, to - k - 1);
                std::string piece;
                if (next < words.size()) {
                    if (!words[next].known) return std::nullopt;
                    piece = words[next++].text;
                } else if (format[to] != 's') {
                    piece = "0";
                }
                if (!width.empty()) {
                    const bool zeros = width[0] == '0';
                    const auto least = whole_number(width);
                    if (!least || *least > 64) return std::nullopt;
                    while (piece.size() < *least) piece.insert(piece.begin(), zeros ? '0' : ' ');
                }
                out += piece;
                k = to;
            }
            if (out.size() > (64u << 10)) return std::nullopt;
        }
        if (next == before) break;
    } while (next < words.size());
    return out;
}

// A program for each line or group of words that xargs reads: noted as runs of its command.
void ShellTrace::calls_of_xargs(const Fields& words, const ShellNode& node, std::string_view input) {
    std::string mark;
    std::size_t each = 0, at = 1;
    for (; at < words.size() && words[at].known && words[at].text.starts_with('-'); ++at) {
        const std::string_view word = words[at].text;
        const auto value = [&]() -> std::string_view {
            return word.size() > 2 ? word.substr(2) : at + 1 < words.size() ? words[++at].text : std::string_view();
        };
        if (word.starts_with("-I"))
            mark = value();
        else if (word.starts_with("-n") || word.starts_with("-L"))
            each = whole_number(value()).value_or(0);
        else if (word.starts_with("-P"))
            value();
        else if (word != "-r" && word != "-t" && word != "--no-run-if-empty")
            return;
    }
    if (at >= words.size()) return;
    std::vector<std::vector<std::string_view>> groups;
    if (!mark.empty()) {
        for (const std::string_view line : lines_of(input))
            if (!trim(line).empty()) groups.push_back({trim(line)});
    } else {
        groups.emplace_back();
        for (const std::string_view line : lines_of(input))
            for (const std::string_view word : split(line, ' ')) {
                if (word.empty()) continue;
                if (each > 0 && groups.back().size() == each) groups.emplace_back();
                groups.back().push_back(word);
            }
    }
    if (groups.size() > static_cast<std::size_t>(kMostTurns)) groups.resize(kMostTurns);
    for (const auto& group : groups) {
        if (group.empty()) continue;
        Fields made;
        for (std::size_t k = at; k < words.size(); ++k) {
            made.push_back(words[k]);
            if (mark.empty() || words[k].text.find(mark) == std::string::npos) continue;
            made.back().text = replace_all(made.back().text, mark, group[0]);
            made.back().at = {}, made.back().source = nullptr;
        }
        if (mark.empty())
            for (const std::string_view word : group) {
                TracedText& last = made.emplace_back();
                last.text = word;
                last.word = words.back().word;
            }
        note(node, made);
    }
}

std::optional<TracedText> ShellTrace::program(const Fields& words, const ShellNode& node) {
    static constexpr std::string_view kKnown[] = {"echo", "printf", "cat",      "tr",      "sed", "cut", "head", "tail",
                                                  "awk",  "jq",     "basename", "dirname", "seq", "rev", "xargs"};
    const std::string_view name = words[0].text;
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) return std::nullopt;
    std::vector<std::string_view> texts;
    TracedText out;
    for (const TracedText& word : words) {
        texts.push_back(word.text);
        out.assumed |= word.assumed;
        out.known &= word.known;
    }
    const auto said = [&](std::optional<std::string> text) -> std::optional<TracedText> {
        if (!text) out.known = false;
        if (text) out.text = std::move(*text);
        return out;
    };
    if (name == "printf") {
        if (words.size() > 3 && texts[1] == "-v") {
            const auto text = formatted(words, 3);
            TracedText value;
            value.known = text.has_value();
            if (text) value.text = *text;
            if (!node.words.empty()) {
                value.at = node.words[std::min<std::size_t>(3, node.words.size() - 1)];
                value.source = unit_->source;
            }
            set(texts[2], std::move(value));
            return TracedText{};
        }
        auto text = formatted(words, words.size() > 1 && texts[1] == "--" ? 2 : 1);
        // A list of lines, where each line is a word.
        if (text && words.size() == 3 && (texts[1] == "%s" || texts[1] == "%s\n" || texts[1] == "%s\\n")) {
            out.at = words[2].at;
            out.source = words[2].source;
        }
        return said(std::move(text));
    }
    if (name == "echo") {
        std::size_t k = 1;
        bool ends = true, escapes = false;
        for (; k < texts.size() && (texts[k] == "-n" || texts[k] == "-e" || texts[k] == "-ne" || texts[k] == "-en");
             ++k) {
            ends &= texts[k].find('n') == std::string_view::npos;
            escapes |= texts[k].find('e') != std::string_view::npos;
        }
        std::string text;
        if (k + 1 == texts.size()) {
            out.at = words[k].at;
            out.source = words[k].source;
        }
        for (std::size_t from = k; from < texts.size(); ++from) {
            if (from > k) text += ' ';
            text += texts[from];
        }
        if (escapes) text = escapes_undone(text);
        if (ends) {
            text += '\n';
            // The place stands for the text without its line end, which is taken away where it is captured.
            if (out.at.size() + 1 == text.size()) ++out.at.end;
        }
        return said(std::move(text));
    }
    if (name == "basename" || name == "dirname") {
        if (texts.size() < 2) return said(std::nullopt);
        std::string_view path = texts[1];
        const std::size_t slash = path.rfind('/');
        if (name == "dirname")
            return said(std::string(slash == std::string_view::npos ? "." : path.substr(0, slash)) + "\n");
        if (slash != std::string_view::npos) path = path.substr(slash + 1);
        if (texts.size() > 2 && path.ends_with(texts[2])) path.remove_suffix(texts[2].size());
        return said(std::string(path) + "\n");
    }
    if (name == "seq") {
        const auto first = texts.size() > 2 ? whole_number(texts[1]) : std::optional<std::size_t>(1);
        const auto last = texts.size() > 1 && texts.size() < 4 ? whole_number(texts.back()) : std::nullopt;
        if (!first || !last || *last > *first + 64) return said(std::nullopt);
        std::string text;
        for (std::size_t k = *first; k <= *last; ++k) text += std::to_string(k) + "\n";
        return said(std::move(text));
    }
    // The others read: a file, or what comes to them.
    Feed own;
    const bool here = feed_of(node, own);
    const Feed* const feed = here ? &own : input_.get();
    std::optional<std::string> input;
    if (feed != nullptr && feed->text.known) {
        input = feed->text.text.substr(std::min(feed->at, feed->text.text.size()));
        out.assumed |= feed->text.assumed;
    }
    const std::size_t own_words = name == "cat"                                                     ? 1
                                  : name == "sed" || name == "jq" || name == "awk" || name == "cut" ? 2
                                                                                                    : 99;
    std::vector<std::string_view> plain = {texts[0]};
    for (std::size_t k = 1; k < texts.size(); ++k)
        if (name != "jq" && name != "sed" && name != "cat")
            plain.push_back(texts[k]);
        else if (!texts[k].starts_with('-') || texts[k] == "-")
            plain.push_back(texts[k]);
        else if (name == "sed" && texts[k] != "-e" && texts[k] != "-E" && texts[k] != "-r")
            return said(std::nullopt);
        else if (name == "jq" && texts[k] != "-r" && texts[k] != "--raw-output" && texts[k] != "-er" &&
                 texts[k] != "-re")
            return said(std::nullopt);
    if (name != "cut" && name != "awk" && plain.size() > own_words) {
        if (plain.size() != own_words + 1) return said(std::nullopt);
        if (plain.back() != "-") input = file_text(plain.back());
    }
    if (!input || !spend(input->size())) return said(std::nullopt);
    if (name == "cat") {
        if (feed != nullptr && plain.size() == 1) {
            out.at = feed->text.at;
            out.source = feed->text.source;
        }
        return said(std::move(input));
    }
    if (name == "tr") return said(translated(*input, texts));
    if (name == "sed") {
        const bool extended =
            std::any_of(texts.begin(), texts.end(), [](auto word) { return word == "-E" || word == "-r"; });
        return said(plain.size() > 1 ? edited_by_sed(*input, plain[1], extended) : std::nullopt);
    }
    if (name == "jq") {
        auto found = plain.size() > 1 ? looked_up(*input, plain[1]) : std::nullopt;
        if (found) *found += "\n";
        return said(std::move(found));
    }
    if (name == "xargs") {  // blanks gone; a program behind it is its own matter
        if (texts.size() > 1) return calls_of_xargs(words, node, *input), std::nullopt;
        return said(std::string(trim(*input)) + "\n");
    }
    const std::vector<std::string_view> lines = lines_of(*input);
    std::string text;
    if (name == "head" || name == "tail") {
        std::size_t count = 10;
        if (texts.size() > 1) {
            std::string_view number = texts.back();
            while (number.starts_with('-') || number.starts_with('n')) number.remove_prefix(1);
            const auto given = whole_number(number);
            if (!given || texts.size() > 3) return said(std::nullopt);
            count = *given;
        }
        count = std::min(count, lines.size());
        for (std::size_t k = 0; k < count; ++k) {
            text += lines[name == "head" ? k : lines.size() - count + k];
            text += '\n';
        }
        return said(std::move(text));
    }
    if (name == "cut" || name == "awk") {
        char mark = name == "cut" ? '\t' : '\0';
        std::optional<std::size_t> field;
        std::string_view what;
        for (std::size_t k = 1; k < texts.size(); ++k) {
            std::string_view word = texts[k];
            const auto value = [&]() -> std::string_view {
                return word.size() > 2 ? word.substr(2) : ++k < texts.size() ? texts[k] : std::string_view();
            };
            if (word.starts_with("-d") || word.starts_with("-F")) {
                const std::string_view given = value();
                if (given.size() != 1) return said(std::nullopt);
                mark = given[0];
            } else if (word.starts_with("-f")) {
                field = whole_number(value());
            } else {
                what = word;
            }
        }
        if (name == "awk") {
            std::string inner(what);
            std::erase(inner, ' ');
            if (!inner.starts_with("{print$") || !inner.ends_with('}')) return said(std::nullopt);
            field = whole_number(std::string_view(inner).substr(7, inner.size() - 8));
        } else if (!what.empty()) {
            return said(std::nullopt);
        }
        if (!field || *field == 0) return said(std::nullopt);
        for (std::string_view line : lines) {
            std::size_t number = 0;
            std::string_view found;
            while (number < *field && !line.empty()) {
                if (mark == '\0') line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
                const std::size_t to =
                    std::min(mark == '\0' ? line.find_first_of(" \t") : line.find(mark), line.size());
                found = line.substr(0, to);
                line.remove_prefix(std::min(to + 1, line.size()));
                ++number;
            }
            text += number == *field ? found : std::string_view();
            text += '\n';
        }
        return said(std::move(text));
    }
    return said(std::nullopt);
}

}  // namespace stoker::lint
