#include "lint/python/python_tokens.h"

#include <algorithm>

namespace stoker::lint {

namespace {

constexpr std::size_t kMostPyTokens = 400'000;

bool py_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool py_name_char(char c) {
    return py_name_start(c) || (c >= '0' && c <= '9');
}

class PyLexer {
public:
    PyLexer(std::string_view text, Span part) : text_(text.substr(0, part.end)), at_(part.begin) {}

    PyTokens run() {
        new_line();
        while (at_ < text_.size() && tokens_.all.size() < kMostPyTokens) step();
        end_line();
        return std::move(tokens_);
    }

private:
    void step() {
        const char c = text_[at_];
        if (c == '\n') {
            ++at_;
            if (depth_ == 0) {
                end_line();
                new_line();
            }
        } else if (c == ' ' || c == '\t' || c == '\r') {
            ++at_;
        } else if (c == '\\') {
            at_ += at_ + 2 < text_.size() && text_[at_ + 1] == '\r' ? 3 : 2;
        } else if (c == '#') {
            at_ = static_cast<std::uint32_t>(std::min(text_.find('\n', at_), text_.size()));
        } else if (c == ';' && depth_ == 0) {
            const std::uint32_t indent = line_.indent;
            ++at_;
            end_line();
            line_ = {static_cast<std::uint32_t>(tokens_.all.size()), 0, indent};
        } else if (c == '"' || c == '\'') {
            quoted(at_, "");
        } else if (py_name_start(c)) {
            word();
        } else if ((c >= '0' && c <= '9')) {
            const std::uint32_t begin = at_;
            while (at_ < text_.size() && (py_name_char(text_[at_]) || text_[at_] == '.')) ++at_;
            tokens_.all.push_back({PyToken::Kind::number, {begin, at_}, {}});
        } else {
            sign();
        }
    }

    void new_line() {
        std::uint32_t indent = 0;
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
            indent = text_[at_] == '\t' ? (indent / 8 + 1) * 8 : indent + 1;
            ++at_;
        }
        line_ = {static_cast<std::uint32_t>(tokens_.all.size()), 0, indent};
    }
    void end_line() {
        line_.last = static_cast<std::uint32_t>(tokens_.all.size());
        if (line_.last > line_.first) tokens_.lines.push_back(line_);
    }
    void word() {
        const std::uint32_t begin = at_;
        while (at_ < text_.size() && py_name_char(text_[at_])) ++at_;
        const std::string_view name = text_.substr(begin, at_ - begin);
        if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') && name.size() <= 2 &&
            name.find_first_not_of("fFrRbBuU") == std::string_view::npos)
            return quoted(begin, name);
        tokens_.all.push_back({PyToken::Kind::name, {begin, at_}, {}});
    }
    void quoted(std::uint32_t begin, std::string_view prefix) {
        const char quote = text_[at_];
        const bool three = text_.substr(at_, 3) == std::string_view(quote == '"' ? "\"\"\"" : "'''");
        const std::uint32_t size = three ? 3 : 1;
        at_ += size;
        PyToken token{PyToken::Kind::text, {begin, begin}, {at_, at_}};
        token.formatted = prefix.find_first_of("fF") != std::string_view::npos;
        token.raw = prefix.find_first_of("rR") != std::string_view::npos;
        while (at_ < text_.size()) {
            if (text_[at_] == '\\') {
                at_ = std::min<std::uint32_t>(at_ + 2, static_cast<std::uint32_t>(text_.size()));
                continue;
            }
            if (!three && text_[at_] == '\n') break;
            if (text_[at_] == quote && (!three || text_.substr(at_, 3) == std::string(3, quote))) break;
            ++at_;
        }
        token.body.end = at_;
        at_ = std::min<std::uint32_t>(at_ + size, static_cast<std::uint32_t>(text_.size()));
        token.span.end = at_;
        tokens_.all.push_back(token);
    }
    void sign() {
        static constexpr std::string_view kLong[] = {
            "**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "+=", "-=", "*=",
            "/=",  "%=",  "|=",  "&=",  "^=",  "->", ":=", "**", "//", "<<", ">>", "@="};
        std::uint32_t size = 1;
        for (const std::string_view each : kLong)
            if (text_.substr(at_, each.size()) == each) {
                size = static_cast<std::uint32_t>(each.size());
                break;
            }
        const char c = text_[at_];
        if (c == '(' || c == '[' || c == '{') ++depth_;
        if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
        tokens_.all.push_back({PyToken::Kind::op, {at_, at_ + size}, {}});
        at_ += size;
    }

    std::string_view text_;
    std::uint32_t at_;
    int depth_ = 0;
    PyLine line_;
    PyTokens tokens_;
};

}  // namespace

PyTokens python_tokens(std::string_view text, Span part) {
    return PyLexer(text, part).run();
}

}  // namespace stoker::lint
