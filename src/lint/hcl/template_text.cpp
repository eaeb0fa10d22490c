// templatefile(): what a template comes to with the values it is given; its branches and loops are followed.
#include <algorithm>

#include "base/text.h"
#include "lint/hcl/bounds.h"

namespace stoker::lint {

using namespace evaluation;

namespace {

constexpr int kMostTemplateDepth = 20;

}  // namespace

// The expression at `at`, which ends at "}" or "~}": behind it afterwards. Null where it has no value.
const Node* Evaluator::piece_of_template(std::string_view text, std::size_t& at) {
    ExpressionReader reader(file_, expressions_, Dialect::hcl, text);
    reader.fix_span(holder_);
    reader.at = static_cast<std::uint32_t>(at);
    const Expression* e = reader.expression(0);
    const std::size_t from = e ? reader.at : at;
    const std::size_t end = text.find('}', from);
    at = end == std::string_view::npos ? text.size() : end + 1;
    if (!e || !trim(text.substr(from, at - from)).ends_with('}')) return nullptr;
    return evaluate(*e, 1);
}

// Text through the directive that ends it; `emits`: else it is passed over. False: it cannot be followed.
bool Evaluator::render(std::string_view text, std::size_t& at, bool emits, std::string& out, int depth) {
    if (depth > kMostTemplateDepth) return false;
    const auto cut = [&](bool before) {  // "~" takes the blanks on its side away
        if (before) {
            while (!out.empty() && (out.back() == ' ' || out.back() == '\t')) out.pop_back();
            if (out.ends_with('\n')) out.pop_back();
        } else {
            std::size_t to = at;
            while (to < text.size() && (text[to] == ' ' || text[to] == '\t')) ++to;
            if (to < text.size() && text[to] == '\n') ++to;
            at = to;
        }
    };
    while (at < text.size()) {
        if (!spend() || out.size() > kMostTextBytes) return false;
        const std::size_t mark = std::min(text.find_first_of("$%", at), text.size());
        if (emits) out += text.substr(at, mark - at);
        at = mark;
        if (at >= text.size()) break;
        const char c = text[at];
        if (text.substr(at + 1, 2) == std::string(1, c) + "{") {  // $${ and %%{
            if (emits) (out += c) += '{';
            at += 3;
            continue;
        }
        if (text.substr(at + 1, 1) != "{") {
            if (emits) out += c;
            ++at;
            continue;
        }
        const std::size_t begin = at;
        std::size_t inside = at + 2;
        const bool cuts_before = inside < text.size() && text[inside] == '~';
        if (cuts_before) ++inside;
        std::size_t close = text.find('}', inside);
        if (close == std::string_view::npos) return false;
        if (c == '$') {
            if (!emits) {
                at = close + 1;
                continue;
            }
            std::size_t behind = inside;
            const Node* value = piece_of_template(text, behind);
            at = behind;
            open_holes_ += !known_scalar(value);
            out += known_scalar(value) ? value->text : text.substr(begin, behind - begin);
            continue;
        }
        const std::string_view directive = trim(text.substr(inside, close - inside));
        const std::string_view word = directive.substr(0, directive.find_first_of(" \t~"));
        if (word == "else" || word == "endif" || word == "endfor") return true;  // whoever asked looks at it
        if (emits && cuts_before) cut(true);
        if (word == "if") {
            std::size_t behind = text.find("if", inside) + 2;
            const Node* condition = emits ? piece_of_template(text, behind) : nullptr;
            const auto yes = truth(condition);
            if (emits && !yes) return false;
            at = emits ? behind : close + 1;
            for (bool branch = true;; branch = false) {
                if (emits && text.substr(0, at).ends_with("~}")) cut(false);
                if (!render(text, at, emits && *yes == branch, out, depth + 1)) return false;
                const std::size_t end = text.find('}', at);
                if (at >= text.size() || end == std::string_view::npos) return false;
                const bool other = text.substr(at, end - at).find("else") != std::string_view::npos;
                if (emits && text.substr(at, 3) == "%{~") cut(true);
                at = end + 1;
                if (!other) break;
            }
            if (emits && text.substr(0, at).ends_with("~}")) cut(false);
        } else if (word == "for") {
            const std::size_t in = text.find(" in ", inside);
            if (in == std::string_view::npos || in > close) return false;
            std::string_view names = trim(text.substr(text.find("for", inside) + 3, in - text.find("for", inside) - 3));
            std::string_view key;
            if (const std::size_t comma = names.find(','); comma != std::string_view::npos) {
                key = trim(names.substr(0, comma));
                names = trim(names.substr(comma + 1));
            }
            std::size_t behind = in + 4;
            const Node* over = emits ? piece_of_template(text, behind) : nullptr;
            if (!emits) behind = close + 1;
            if (emits && (!over || over->is_scalar() || over->count() > kMostItems)) return false;
            const bool cuts_inside = text.substr(0, behind).ends_with("~}");
            at = behind;
            std::size_t number = 0;
            for (const Node& item : children(over)) {
                at = behind;
                if (cuts_inside) cut(false);
                Node& name = file_.tree.make(at_hand(), Shape::string, holder_);
                name.text = over->is_object() ? item.key : file_.tree.keep(std::to_string(number));
                ++number;
                const std::size_t before = bindings_.size();
                bindings_.push_back({names, settle(&item)});
                if (!key.empty()) bindings_.push_back({key, &name});
                const bool good = render(text, at, true, out, depth + 1);
                bindings_.resize(before);
                if (!good) return false;
                if (text.substr(at, 3) == "%{~") cut(true);
            }
            if (number == 0) {
                std::string none;
                if (!render(text, at, false, none, depth + 1)) return false;
            }
            const std::size_t end = text.find('}', at);
            if (at >= text.size() || end == std::string_view::npos) return false;
            at = end + 1;
            if (emits && text.substr(0, at).ends_with("~}")) cut(false);
        } else {
            return false;
        }
    }
    return true;
}

// What is not known of it stays as it is written.
const Node* Evaluator::rendered(const Node* text, const Node* values, const Expression& e) {
    if (!text || !values || !values->is_object() || text->text.size() > kMostTextBytes) return text;
    if (text->text.find("${") == std::string_view::npos && text->text.find("%{") == std::string_view::npos) return text;
    const auto outer = std::move(bindings_);
    bindings_.clear();
    for (const Node& value : children(values)) {
        const Node* settled = settle(&value);
        if (settled && (settled->known || !settled->is_scalar())) bindings_.push_back({value.key, settled});
    }
    const bool outer_places = std::exchange(at_holder_, true);
    std::string out;
    std::size_t at = 0;
    const bool good = render(text->text, at, true, out, 0) && at >= text->text.size();
    at_holder_ = outer_places;
    bindings_ = outer;
    if (!good || out == text->text) return text;
    const Node* node = made(std::move(out), Shape::string, e);
    return node ? node : text;
}

// Not known while a hole is open, but filled as far as it goes. Null where a branch or a loop cannot be followed.
const Node* Evaluator::filled_heredoc(const Expression& e) {
    std::string out;
    std::size_t at = 0;
    const std::size_t open = open_holes_;
    const bool outer_places = std::exchange(at_holder_, true);
    const bool good = render(e.node->text, at, true, out, 0) && at >= e.node->text.size();
    at_holder_ = outer_places;
    const Node* node = good ? made(std::move(out), Shape::string, e) : nullptr;
    if (!node) return nullptr;
    Node& filled = const_cast<Node&>(*node);  // made just now
    filled.style = Style::heredoc;
    filled.known = open == open_holes_;
    return node;
}

}  // namespace stoker::lint
