#include "lint/helm/template_parts.h"

#include "base/text.h"

namespace stoker::lint::helm {

namespace {

constexpr int kMostBlocks = 60;  // within one another

constexpr std::string_view kBlank = " \t\r\n";

class PartReader {
public:
    explicit PartReader(std::string_view text) : text_(text) {}

    std::optional<std::vector<Part>> read() {
        std::vector<Part> parts;
        std::string_view end;
        if (!list(parts, end, 0) || !end.empty()) return std::nullopt;
        return parts;
    }

private:
    static std::uint32_t at32(std::size_t at) { return static_cast<std::uint32_t>(at); }

    // Parts up to "end" or "else", which are left in `end` with what follows "else".
    bool list(std::vector<Part>& parts, std::string_view& end, int depth) {
        if (depth > kMostBlocks) return false;
        for (;;) {
            std::size_t open = text_.find("{{", at_);
            const std::size_t until = open == std::string_view::npos ? text_.size() : open;
            std::size_t stop = until;
            if (open != std::string_view::npos && text_.substr(open + 2, 1) == "-" && open + 3 < text_.size() &&
                kBlank.find(text_[open + 3]) != std::string_view::npos)
                while (stop > at_ && kBlank.find(text_[stop - 1]) != std::string_view::npos) --stop;
            if (stop > at_) {
                Part& made = parts.emplace_back();
                made.span = {at32(at_), at32(stop)};
            }
            if (open == std::string_view::npos) return at_ = text_.size(), end = {}, true;
            std::size_t close = end_of(open + 2);
            if (close == std::string_view::npos) return false;
            std::string_view inside = text_.substr(open + 2, close - open - 2);
            at_ = close + 2;
            if (inside.size() > 1 && inside[0] == '-' && kBlank.find(inside[1]) != std::string_view::npos)
                inside.remove_prefix(1);
            if (inside.size() > 1 && inside.back() == '-' &&
                kBlank.find(inside[inside.size() - 2]) != std::string_view::npos) {
                inside.remove_suffix(1);
                while (at_ < text_.size() && kBlank.find(text_[at_]) != std::string_view::npos) ++at_;
            }
            inside = trim(inside);
            if (inside.empty() || inside.starts_with("/*")) continue;
            const std::string_view word = inside.substr(0, std::min(inside.find_first_of(" \t\r\n("), inside.size()));
            const std::string_view rest = trim(inside.substr(word.size()));
            const Span span{at32(open), at32(close + 2)};
            if (word == "end" || word == "else") {
                end = word == "end" ? inside : (rest.empty() ? std::string_view("else") : inside);
                return depth > 0;
            }
            Part& made = parts.emplace_back();
            made.span = span;
            made.words = inside;
            made.kind = Part::Kind::output;
            if (word == "template") made.kind = Part::Kind::call, made.words = rest;
            if (word == "break" || word == "continue") return false;
            const bool block = word == "if" || word == "with" || word == "range" || word == "define" || word == "block";
            if (!block) continue;
            if (word == "block") return false;
            made.words = rest;
            made.kind = word == "if"      ? Part::Kind::choice
                        : word == "with"  ? Part::Kind::with
                        : word == "range" ? Part::Kind::range
                                          : Part::Kind::define;
            if (word == "define") made.name = rest.size() > 1 ? rest.substr(1, rest.size() - 2) : rest;
            Part whole = std::move(made);
            parts.pop_back();
            if (!body(whole, depth)) return false;
            parts.push_back(std::move(whole));
        }
    }

    bool body(Part& block, int depth) {
        std::string_view end;
        if (!list(block.inner, end, depth + 1)) return false;
        if (end == "end") return true;
        if (end == "else") return list(block.otherwise, end, depth + 1) && end == "end";
        if (!end.starts_with("else ")) return false;
        std::string_view rest = trim(end.substr(5));  // else if ..., else with ...
        Part next;
        next.span = block.span;
        next.kind = rest.starts_with("with") ? Part::Kind::with : Part::Kind::choice;
        if (!rest.starts_with("if") && !rest.starts_with("with")) return false;
        next.words = trim(rest.substr(rest.starts_with("with") ? 4 : 2));
        if (!body(next, depth + 1)) return false;
        block.otherwise.push_back(std::move(next));
        return true;
    }

    // Of "}}", not the ones within quotes.
    std::size_t end_of(std::size_t at) const {
        if (trim(text_.substr(at, 4)).starts_with("/*") || text_.substr(at, 4).find("/*") != std::string_view::npos) {
            const std::size_t comment = text_.find("*/", at);
            return comment == std::string_view::npos ? comment : text_.find("}}", comment);
        }
        for (char quote = 0; at < text_.size(); ++at) {
            const char c = text_[at];
            if (quote) {
                if (c == '\\' && quote == '"')
                    ++at;
                else if (c == quote)
                    quote = 0;
            } else if (c == '"' || c == '`') {
                quote = c;
            } else if (c == '}' && text_.substr(at, 2) == "}}") {
                return at;
            }
        }
        return std::string_view::npos;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<Part>> parts_of(std::string_view text) {
    return PartReader(text).read();
}

}  // namespace stoker::lint::helm
