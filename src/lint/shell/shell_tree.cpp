#include "lint/shell/shell_tree.h"

#include <algorithm>
#include <string>

#include "lint/shell/shell_parser.h"

namespace stoker::lint {

namespace {

constexpr int kMostTreeDepth = 60;
constexpr std::size_t kMostTreeNodes = 20'000;

// Behind the bracket that closes the one at `at`; quotes are no brackets.
std::uint32_t behind_bracket(std::string_view text, std::uint32_t at, std::uint32_t end, int depth = 0) {
    if (depth > kMostTreeDepth) return end;
    const char open = text[at], close = open == '(' ? ')' : '}';
    int level = 0;
    char quote = 0;
    for (std::uint32_t j = at; j < end; ++j) {
        const char c = text[j];
        if (c == '\\') {
            ++j;
        } else if (quote == '\'') {
            if (c == '\'') quote = 0;
        } else if (c == '"') {
            quote = quote ? '\0' : '"';
        } else if (c == '\'' && quote == 0) {
            quote = '\'';
        } else if (c == '$' && quote == '"' && j + 1 < end && (text[j + 1] == '(' || text[j + 1] == '{') && j > at) {
            const std::uint32_t inner = behind_bracket(text, j + 1, end, depth + 1);
            if (inner >= end) return end;
            j = inner - 1;
        } else if (quote == 0 && c == open) {
            ++level;
        } else if (quote == 0 && c == close && --level == 0) {
            return j + 1;
        }
    }
    return end;
}

class ShellTreeReader {
public:
    ShellTreeReader(std::string_view text, Span range) : s_(text), i_(range.begin), end_(range.end) {}

    ShellTree run() {
        const int root = list({}, 0);
        skip();
        if (!bad_ && i_ >= end_) tree_.root = root;
        return std::move(tree_);
    }

private:
    struct Pending {
        int node;
        std::size_t feed;
        std::string delimiter;
    };

    int make(ShellNode::Kind kind) {
        if (tree_.nodes.size() >= kMostTreeNodes) bad_ = true;
        tree_.nodes.emplace_back().kind = kind;
        return static_cast<int>(tree_.nodes.size()) - 1;
    }
    ShellNode& node(int at) { return tree_.nodes[static_cast<std::size_t>(at)]; }
    char peek(std::uint32_t ahead = 0) const { return i_ + ahead < end_ ? s_[i_ + ahead] : '\0'; }

    void newline() {
        ++i_;
        for (const Pending& pending : pending_) {
            ShellFeed& feed = node(pending.node).feeds[pending.feed];
            feed.body = {i_, end_};
            for (bool found = false; i_ < end_ && !found;) {
                const std::uint32_t line = i_;
                const auto stop = static_cast<std::uint32_t>(std::min<std::size_t>(s_.find('\n', i_), end_));
                i_ = std::min(stop + 1, end_);
                std::uint32_t at = line, to = stop;
                if (to > line && s_[to - 1] == '\r') --to;
                while (feed.strip && at < to && s_[at] == '\t') ++at;
                found = s_.substr(at, to - at) == pending.delimiter;
                if (found) feed.body.end = line;
            }
        }
        pending_.clear();
    }
    void blanks() {
        while (i_ < end_) {
            if (shell_blank(s_[i_]) || s_[i_] == '\r')
                ++i_;
            else if (s_[i_] == '\\' && peek(1) == '\n')
                i_ += 2;
            else if (s_[i_] == '#')
                i_ = static_cast<std::uint32_t>(std::min<std::size_t>(s_.find('\n', i_), end_));
            else
                return;
        }
    }
    void skip() {  // blanks, comments, line ends
        for (blanks(); i_ < end_ && s_[i_] == '\n'; blanks()) newline();
    }
    std::string_view next_word() const {  // a quote that does not end may lead behind the end
        return i_ < end_ ? s_.substr(i_, shell_word_end(s_, i_, end_) - i_) : std::string_view();
    }
    bool take(std::string_view word) {
        skip();
        if (next_word() != word) return false;
        i_ += static_cast<std::uint32_t>(word.size());
        return true;
    }
    bool expect(std::string_view word) {
        if (!take(word)) bad_ = true;
        return !bad_;
    }

    static bool ends(std::string_view word, std::initializer_list<std::string_view> stops) {
        return std::find(stops.begin(), stops.end(), word) != stops.end();
    }
    int list(std::initializer_list<std::string_view> stops, int depth) {
        const int result = make(ShellNode::Kind::sequence);
        if (depth > kMostTreeDepth) bad_ = true;
        while (!bad_) {
            skip();
            if (i_ >= end_ || peek() == ')' || (peek() == ';' && (peek(1) == ';' || peek(1) == '&'))) break;
            if (ends(next_word(), stops)) break;
            const std::uint32_t before = i_;
            const int one = joined(depth);
            if (bad_ || i_ == before) {
                bad_ = true;
                break;
            }
            node(result).kids.push_back(one);
            blanks();
            if ((peek() == ';' && peek(1) != ';' && peek(1) != '&') || (peek() == '&' && peek(1) != '&')) ++i_;
        }
        return result;
    }
    int joined(int depth) {
        int left = piped(depth);
        for (blanks(); !bad_ && i_ + 1 < end_; blanks()) {
            const bool both = peek() == '&' && peek(1) == '&', either = peek() == '|' && peek(1) == '|';
            if (!both && !either) break;
            i_ += 2;
            skip();
            const int right = piped(depth);
            const int made = make(both ? ShellNode::Kind::both : ShellNode::Kind::either);
            node(made).kids = {left, right};
            left = made;
        }
        return left;
    }
    int piped(int depth) {
        if (next_word() == "!") {
            ++i_;
            blanks();
            const int inner = piped(depth + 1);
            const int made = make(ShellNode::Kind::negated);
            node(made).kids = {inner};
            return made;
        }
        const int first = command(depth + 1);
        blanks();
        if (peek() != '|' || peek(1) == '|' || bad_) return first;
        std::vector<int> parts = {first};
        while (!bad_ && peek() == '|' && peek(1) != '|') {
            i_ += peek(1) == '&' ? 2 : 1;
            skip();
            parts.push_back(command(depth + 1));
            blanks();
        }
        const int made = make(ShellNode::Kind::pipeline);
        node(made).kids = std::move(parts);
        return made;
    }
    bool feed(int at) {
        std::uint32_t j = i_;
        while (j < end_ && s_[j] >= '0' && s_[j] <= '9' && j - i_ < 2) ++j;
        const bool both = j == i_ && peek() == '&' && peek(1) == '>';
        if (!both && (j >= end_ || (s_[j] != '<' && s_[j] != '>'))) return false;
        if (j + 1 < end_ && s_[j + 1] == '(' && !both) return false;
        const bool error_only = j > i_ && s_[i_] == '2';
        i_ = both ? i_ + 1 : j;
        const std::uint32_t begin = i_;
        for (const std::string_view op : {"<<<", "<<-", "<<", ">>", "<&", ">&", ">|", "<>", "<", ">"})
            if (s_.substr(i_, op.size()) == op) {
                i_ += static_cast<std::uint32_t>(op.size());
                break;
            }
        ShellFeed made;
        made.op = error_only ? std::string_view("2>") : s_.substr(begin, i_ - begin);
        blanks();
        const std::uint32_t to = shell_word_end(s_, i_, end_);
        made.target = {i_, to};
        i_ = to;
        if (made.op == "<<" || made.op == "<<-") {
            made.strip = made.op == "<<-";
            made.op = "<<";
            Pending pending{at, node(at).feeds.size(), {}};
            for (const char c : s_.substr(made.target.begin, made.target.size())) {
                if (c == '\'' || c == '"' || c == '\\')
                    made.literal = true;
                else
                    pending.delimiter += c;
            }
            pending_.push_back(std::move(pending));
        }
        node(at).feeds.push_back(made);
        return true;
    }
    void feeds(int at) {
        for (blanks(); i_ < end_ && feed(at); blanks()) {
        }
    }
    int command(int depth) {
        if (depth > kMostTreeDepth) bad_ = true;
        if (bad_) return make(ShellNode::Kind::simple);
        if (peek() == '(') {
            if (peek(1) == '(') {
                const std::uint32_t behind = behind_bracket(s_, i_, end_);
                if (behind > i_ + 3 && s_[behind - 2] == ')') {
                    const int made = make(ShellNode::Kind::arithmetic);
                    node(made).words = {{i_ + 2, behind - 2}};
                    i_ = behind;
                    return made;
                }
            }
            ++i_;
            const int body = list({}, depth + 1);
            if (peek() != ')') bad_ = true;
            ++i_;
            return wrapped(ShellNode::Kind::subshell, body);
        }
        const std::string_view word = next_word();
        if (word == "{") {
            ++i_;
            const int body = list({"}"}, depth + 1);
            expect("}");
            return wrapped(ShellNode::Kind::group, body);
        }
        if (word == "if") return choice(depth);
        if (word == "while" || word == "until") {
            i_ += 5;
            const int condition = list({"do"}, depth + 1);
            const int body = done(depth);
            const int made = wrapped(ShellNode::Kind::loop, condition);
            node(made).kids.push_back(body);
            node(made).until = word == "until";
            return made;
        }
        if (word == "for" || word == "select") return each(word, depth);
        if (word == "case") return cases(depth);
        if (word == "[[") {
            i_ += 2;
            const int made = make(ShellNode::Kind::test);
            for (skip(); i_ < end_ && !bad_; skip()) {
                if (next_word() == "]]") break;
                std::uint32_t to = shell_word_end(s_, i_, end_);
                if (to == i_) to += (s_[i_] == '&' || s_[i_] == '|') ? 2 : 1;
                node(made).words.push_back({i_, std::min(to, end_)});
                i_ = to;
            }
            expect("]]");
            feeds(made);
            return made;
        }
        if (word == "function") {
            i_ += 8;
            blanks();
            return function(next_word(), depth);
        }
        return simple(depth);
    }
    int wrapped(ShellNode::Kind kind, int body) {
        const int made = make(kind);
        node(made).kids = {body};
        feeds(made);
        return made;
    }
    int function(std::string_view name, int depth) {
        i_ += static_cast<std::uint32_t>(name.size());
        blanks();
        if (peek() == '(') {
            ++i_;
            blanks();
            if (peek() != ')') bad_ = true;
            ++i_;
        }
        skip();
        const int body = command(depth + 1);
        const int made = make(ShellNode::Kind::function);
        node(made).name = name;
        node(made).kids = {body};
        return made;
    }
    int choice(int depth) {
        i_ += 2;
        std::vector<int> kids;
        for (bool more = true; more && !bad_;) {
            kids.push_back(list({"then"}, depth + 1));
            if (!expect("then")) break;
            kids.push_back(list({"elif", "else", "fi"}, depth + 1));
            more = take("elif");
        }
        if (!bad_ && take("else")) kids.push_back(list({"fi"}, depth + 1));
        expect("fi");
        const int made = make(ShellNode::Kind::choice);
        node(made).kids = std::move(kids);
        feeds(made);
        return made;
    }
    int done(int depth) {
        if (!expect("do")) return -1;
        const int body = list({"done"}, depth + 1);
        expect("done");
        return body;
    }
    int each(std::string_view keyword, int depth) {
        i_ += static_cast<std::uint32_t>(keyword.size());
        blanks();
        std::vector<Span> words;
        if (peek() == '(' && peek(1) == '(') {
            const std::uint32_t behind = behind_bracket(s_, i_, end_);
            if (behind < i_ + 4) bad_ = true;
            for (std::uint32_t from = i_ + 2, k = 0; k < 3 && !bad_; ++k) {
                const auto to = static_cast<std::uint32_t>(
                    std::min<std::size_t>(k < 2 ? s_.find(';', from) : behind - 2, behind - 2));
                words.push_back({std::min(from, to), to});
                from = to + 1;
            }
            i_ = behind;
            blanks();
            if (peek() == ';') ++i_;
            const int body = done(depth);
            const int made = wrapped(ShellNode::Kind::counting, body);
            node(made).words = std::move(words);
            return made;
        }
        const std::string_view name = next_word();
        i_ += static_cast<std::uint32_t>(name.size());
        bool listed = false;
        if (name.empty()) bad_ = true;
        if (take("in")) {
            listed = true;
            for (blanks(); i_ < end_ && s_[i_] != '\n' && s_[i_] != ';' && !bad_; blanks()) {
                const std::uint32_t to = shell_word_end(s_, i_, end_);
                if (to == i_) bad_ = true;
                words.push_back({i_, to});
                i_ = to;
            }
        }
        blanks();
        if (peek() == ';') ++i_;
        const int body = done(depth);
        const int made = wrapped(ShellNode::Kind::each, body);
        node(made).name = name;
        node(made).words = std::move(words);
        node(made).listed = listed;
        return made;
    }
    int cases(int depth) {
        i_ += 4;
        blanks();
        const Span subject{i_, shell_word_end(s_, i_, end_)};
        i_ = subject.end;
        std::vector<int> kids;
        std::vector<std::vector<Span>> patterns;
        expect("in");
        while (!bad_) {
            if (take("esac")) break;
            if (i_ >= end_) bad_ = true;
            if (peek() == '(') ++i_;
            std::vector<Span> one;
            while (!bad_) {
                blanks();
                const std::uint32_t to = shell_word_end(s_, i_, end_);
                if (to == i_) bad_ = true;
                one.push_back({i_, to});
                i_ = to;
                blanks();
                if (peek() != '|') break;
                ++i_;
            }
            if (peek() != ')') bad_ = true;
            ++i_;
            kids.push_back(list({"esac"}, depth + 1));
            patterns.push_back(std::move(one));
            if (peek() == ';' && peek(1) == ';')
                i_ += peek(2) == '&' ? 3 : 2;
            else if (peek() == ';' && peek(1) == '&')
                i_ += 2;
        }
        const int made = make(ShellNode::Kind::cases);
        node(made).words = {subject};
        node(made).kids = std::move(kids);
        node(made).patterns = std::move(patterns);
        feeds(made);
        return made;
    }
    int simple(int depth) {
        const int made = make(ShellNode::Kind::simple);
        for (blanks(); i_ < end_ && !bad_; blanks()) {
            if (feed(made)) continue;
            const char c = peek();
            if (c == '(' && node(made).words.size() == 1) {
                const std::string_view name = s_.substr(node(made).words[0].begin, node(made).words[0].size());
                i_ -= static_cast<std::uint32_t>(i_ - node(made).words[0].begin);
                return function(name, depth);
            }
            const std::uint32_t to = shell_word_end(s_, i_, end_);
            if (to == i_) break;
            node(made).words.push_back({i_, to});
            i_ = to;
        }
        if (node(made).words.empty() && node(made).feeds.empty()) bad_ = true;
        return made;
    }

    std::string_view s_;
    std::uint32_t i_, end_;
    bool bad_ = false;
    ShellTree tree_;
    std::vector<Pending> pending_;
};

}  // namespace

ShellTree shell_tree(std::string_view text, Span range) {
    return ShellTreeReader(text, range).run();
}

std::uint32_t shell_word_end(std::string_view text, std::uint32_t at, std::uint32_t end) {
    const std::uint32_t begin = at;
    while (at < end) {
        const char c = text[at];
        if (c == '\\') {
            at += 2;
        } else if (c == '\'') {
            at = static_cast<std::uint32_t>(std::min<std::size_t>(text.find('\'', at + 1), end)) + 1;
        } else if (c == '"') {
            for (++at; at < end && text[at] != '"';) {
                if (text[at] == '\\')
                    at += 2;
                else if (text[at] == '$' && at + 1 < end && (text[at + 1] == '(' || text[at + 1] == '{'))
                    at = behind_bracket(text, at + 1, end);
                else
                    ++at;
            }
            ++at;
        } else if (c == '`') {
            for (++at; at < end && text[at] != '`'; ++at)
                if (text[at] == '\\') ++at;
            ++at;
        } else if (c == '$' && at + 1 < end && text.substr(at, 3) == "${{") {
            at = static_cast<std::uint32_t>(std::min<std::size_t>(text.find("}}", at), end - std::min(end, 2u))) + 2;
        } else if (c == '$' && at + 1 < end && (text[at + 1] == '(' || text[at + 1] == '{')) {
            at = behind_bracket(text, at + 1, end);
        } else if (c == '$' && at + 1 < end && text[at + 1] == '\'') {
            for (at += 2; at < end && text[at] != '\''; ++at)
                if (text[at] == '\\') ++at;
            ++at;
        } else if (c == '(' && at > begin &&
                   (text[at - 1] == '=' || std::string_view("@!+?*").find(text[at - 1]) != std::string_view::npos)) {
            at = behind_bracket(text, at, end);  // name=( ... ), @( ... )
        } else if ((c == '<' || c == '>') && at == begin && at + 1 < end && text[at + 1] == '(') {
            at = behind_bracket(text, at + 1, end);
        } else if (kWordChars[static_cast<unsigned char>(c)] == 1) {
            break;
        } else {
            ++at;
        }
    }
    return std::min(at, end);
}

}  // namespace stoker::lint
