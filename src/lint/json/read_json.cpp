// JSON with comments and trailing commas, as people write it: DeepSpeed files, ARM templates, dashboards, settings.
// ARM strings may hold line ends; DeepSpeed files are read by hjson, which also takes # comments and a missing comma
// at the end of a line.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lint/read.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostJsonProblems = 20;

class JsonTreeReader {
public:
    explicit JsonTreeReader(File& file)
        : file_(file),
          text_(file.source().text()),
          arm_(file.kinds.has(Kind::arm)),
          hjson_(file.kinds.has(Kind::deepspeed)),
          strict_(!arm_ && !hjson_) {}

    void read() {
        if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
        skip();
        if (at_ >= text_.size()) return;
        Node* root = value(0);
        if (root) file_.tree.roots.push_back(root);
        if (failed_) return;
        skip();
        if (at_ < text_.size()) fail("expected the end of the file");
    }

private:
    void fail(std::string message, std::string_view rule = "SYN001") { fail_at(at_, std::move(message), rule); }
    void fail_at(std::size_t at, std::string message, std::string_view rule = "SYN001") {
        if (failed_) return;
        failed_ = true;
        const auto begin = static_cast<std::uint32_t>(std::min(at, text_.size()));
        const auto end = static_cast<std::uint32_t>(std::min(at + 1, text_.size()));
        file_.problems.push_back({rule, {begin, end}, std::move(message), &file_.source()});
    }
    Span span(std::size_t begin) const { return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)}; }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    void skip() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
                ++at_;
            } else if ((c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') || (c == '#' && hjson_)) {
                const std::size_t begin = at_;
                at_ = std::min(text_.find('\n', at_), text_.size());
                comment(begin);
            } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
                const std::size_t begin = at_;
                const std::size_t end = text_.find("*/", at_ + 2);
                at_ = end == std::string_view::npos ? text_.size() : end + 2;
                comment(begin);
            } else {
                return;
            }
        }
    }
    void comment(std::size_t begin) {
        const std::size_t before = text_.substr(0, begin).find_last_not_of(" \t");
        file_.comments.push_back({span(begin), before == std::string_view::npos || text_[before] == '\n'});
    }

    Node* value(int depth) {
        if (depth > static_cast<int>(kMostDepth))
            return fail("nested more than 1,000 deep: it is not read", "SYN005"), nullptr;
        const std::size_t begin = at_;
        switch (peek()) {
            case '{': return container(depth, true);
            case '[': return container(depth, false);
            case '"': {
                std::string_view decoded;
                if (!string(decoded)) return nullptr;
                Node& node = file_.tree.make(file_.source(), Shape::string, span(begin));
                node.style = Style::double_quoted;
                node.text = decoded;
                // "[concat(...)]" is an expression, "[[" is the text "[".
                if (arm_ && decoded.size() > 2 && decoded.front() == '[' && decoded.back() == ']') {
                    if (decoded[1] == '[')
                        node.text.remove_prefix(1);
                    else
                        node.known = false;
                }
                return &node;
            }
            default: return word(begin);
        }
    }

    static bool is_json_number(std::string_view text) {
        std::size_t at = 0;
        const auto digits = [&] {
            const std::size_t first = at;
            while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
            return at - first;
        };
        if (text.starts_with('-')) ++at;
        const std::size_t whole = at;
        if (const std::size_t size = digits(); size == 0 || (size > 1 && text[whole] == '0')) return false;
        if (at < text.size() && text[at] == '.' && (++at, digits() == 0)) return false;
        if (at < text.size() && (text[at] | 0x20) == 'e') {
            ++at;
            if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
            if (digits() == 0) return false;
        }
        return at == text.size();
    }

    Node* word(std::size_t begin) {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '+' ||
                c == '.' || c == '_')
                ++at_;
            else
                break;
        }
        const std::string_view word = text_.substr(begin, at_ - begin);
        Shape shape = Shape::number;
        if (word == "true" || word == "false")
            shape = Shape::boolean;
        else if (word == "null")
            shape = Shape::null;
        else if (word.empty() ||
                 !((word[0] >= '0' && word[0] <= '9') || word[0] == '-' || word[0] == '+' || word[0] == '.')) {
            if (!hjson_ || word.empty()) {
                at_ = begin;
                fail(at_ >= text_.size() ? "the file ends where a value is expected"
                                         : fmt::format("expected a value, not \"{}\"",
                                                       printable(word.empty() ? text_.substr(begin, 1) : word, 40)));
                return nullptr;
            }
            shape = Shape::string;
        }
        if (strict_ && shape == Shape::number && !is_json_number(word)) {
            fail_at(begin, fmt::format("{} is no number of JSON", printable(word, 40)));
            return nullptr;
        }
        Node& node = file_.tree.make(file_.source(), shape, span(begin));
        node.text = word;
        return &node;
    }

    // True when a control character stands there as it is: it is told.
    bool holds_control(std::size_t begin, std::size_t end) {
        if (!strict_) return false;
        for (std::size_t at = begin; at < end; ++at)
            if (static_cast<unsigned char>(text_[at]) < 0x20) {
                fail_at(at, fmt::format("the control character U+{:04X} must be written as an escape",
                                        static_cast<unsigned>(text_[at])));
                return true;
            }
        return false;
    }

    // At a quote. `decoded` points into the text where nothing is escaped.
    bool string(std::string_view& decoded) {
        const std::size_t begin = ++at_;
        const std::size_t stop = text_.find_first_of("\"\\\n", at_);
        if (stop != std::string_view::npos && text_[stop] == '"') {
            if (holds_control(begin, stop)) return false;
            decoded = text_.substr(begin, stop - begin);
            at_ = stop + 1;
            return true;
        }
        std::string out;
        for (;;) {
            const std::size_t end = text_.find_first_of("\"\\\n", at_);
            if (end == std::string_view::npos)
                return fail_at(begin - 1, "the string does not end: a closing quote is missing"), false;
            if (holds_control(at_, end)) return false;
            out.append(text_.substr(at_, end - at_));
            at_ = end;
            if (text_[end] == '"') break;
            if (text_[end] == '\n') {
                if (!arm_)
                    return fail_at(begin - 1, "the string does not end on its line: a closing quote is missing"), false;
                out += '\n';
                ++at_;
                continue;
            }
            ++at_;
            const char c = peek();
            if (at_ < text_.size()) ++at_;  // a text may end behind a backslash
            switch (c) {
                case 'n': out += '\n'; break;
                case 't': out += '\t'; break;
                case 'r': out += '\r'; break;
                case 'b': out += '\b'; break;
                case 'f': out += '\f'; break;
                case 'u':
                    if (const std::size_t first = at_; unicode(out), strict_ && escape_cut_)
                        return fail_at(first - 2, "\\u needs four hexadecimal digits"), false;
                    break;
                case '"':
                case '\\':
                case '/': out += c; break;
                default:
                    if (!hjson_ && !arm_)
                        return fail_at(at_ - 2, "no such escape in JSON: \\ stands before one of \"\\/bfnrtu"), false;
                    out += c;
            }
        }
        ++at_;
        decoded = file_.tree.keep(std::move(out));
        return true;
    }
    std::uint32_t four() {
        std::uint32_t code = 0;
        escape_cut_ = true;
        for (int i = 0; i < 4 && at_ < text_.size(); ++i) {
            const char c = text_[at_];
            const char small = static_cast<char>(c | 0x20);
            if (c >= '0' && c <= '9')
                code = code * 16 + static_cast<std::uint32_t>(c - '0');
            else if (small >= 'a' && small <= 'f')
                code = code * 16 + static_cast<std::uint32_t>(small - 'a' + 10);
            else
                break;
            ++at_;
            if (i == 3) escape_cut_ = false;
        }
        return code;
    }
    void unicode(std::string& out) {
        std::uint32_t code = four();
        if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
            const std::size_t before = at_;
            at_ += 2;
            const std::uint32_t low = four();
            if (low >= 0xDC00 && low < 0xE000)
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            else
                at_ = before;
        }
        append_utf8(out, code >= 0xD800 && code < 0xE000 ? U'\uFFFD' : static_cast<char32_t>(code));
    }

    Node* container(int depth, bool object) {
        const std::size_t begin = at_++;
        const char close = object ? '}' : ']';
        Node& node = file_.tree.make(file_.source(), object ? Shape::object : Shape::array, {});
        node.span.begin = static_cast<std::uint32_t>(begin);
        std::size_t members = 0;
        for (;;) {
            skip();
            if (peek() == close) break;
            if (at_ >= text_.size()) {
                fail_at(begin, object ? "the object does not end: \"}\" is missing"
                                      : "the list does not end: \"]\" is missing");
                break;
            }
            std::string_view key;
            Span key_span;
            if (object) {
                const std::size_t key_begin = at_;
                if (peek() == '"') {
                    if (!string(key)) break;
                } else if (hjson_) {
                    while (at_ < text_.size() && text_[at_] != ':' && text_[at_] != '\n' && text_[at_] != ' ') ++at_;
                    key = text_.substr(key_begin, at_ - key_begin);
                }
                if (at_ == key_begin) {
                    fail("expected a key in quotes");
                    break;
                }
                key_span = span(key_begin);
                skip();
                if (peek() != ':') {
                    fail("expected \":\" behind the key");
                    break;
                }
                ++at_;
                skip();
            }
            Node* item = value(depth + 1);
            if (item) {
                item->key = key;
                item->key_span = key_span;
                file_.tree.append(node, *item);
                ++members;
            }
            if (!item || failed_) break;
            const std::size_t after = at_;
            skip();
            if (peek() == ',') {
                ++at_;
            } else if (at_ < text_.size() && peek() != close) {
                if (hjson_ && text_.substr(after, at_ - after).find('\n') != std::string_view::npos) continue;
                fail_at(after, fmt::format("expected \",\" or \"{}\"", close));
                break;
            }
        }
        if (!failed_) ++at_;
        node.span.end = static_cast<std::uint32_t>(at_);
        if (object && members > 1) find_doubles(node, members);
        return &node;
    }

    void find_doubles(const Node& node, std::size_t members) {
        if (members <= 8) {
            for (const Node* a = node.first; a; a = a->next)
                for (const Node* b = node.first; b != a; b = b->next)
                    if (a->key == b->key) {
                        tell_double(*a);
                        break;
                    }
            return;
        }
        keys_.clear();
        for (const Node& child : children(&node)) keys_.push_back(&child);
        std::stable_sort(keys_.begin(), keys_.end(), [](const Node* a, const Node* b) { return a->key < b->key; });
        for (std::size_t i = 1; i < keys_.size(); ++i)
            if (keys_[i]->key == keys_[i - 1]->key) tell_double(*keys_[i]);
    }
    void tell_double(const Node& node) {
        // DeepSpeed refuses such a file: DSP010 says so. Of templates and dashboards nobody reads the last one on
        // purpose.
        if (!file_.kinds.any({Kind::k8s, Kind::compose, Kind::azureml})) return;
        if (file_.problems.size() < kMostJsonProblems)
            file_.problems.push_back({"SYN002", node.key_span,
                                      fmt::format("the key \"{}\" is here twice: most readers take the last one only",
                                                  printable(node.key, 60)),
                                      &file_.source()});
    }

    File& file_;
    std::string_view text_;
    std::size_t at_ = 0;
    bool arm_, hjson_;
    bool strict_;  // comments and commas apart, as RFC 8259 has it
    bool failed_ = false;
    bool escape_cut_ = false;  // the last \\u had fewer than four digits
    std::vector<const Node*> keys_;
};

}  // namespace

void read_json(File& file) {
    JsonTreeReader(file).read();
}

}  // namespace stoker::lint
