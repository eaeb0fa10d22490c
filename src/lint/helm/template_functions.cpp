#include "lint/helm/template_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "lint/helm/render_template.h"

namespace stoker::lint {

namespace {

bool plain_yaml(const Node& node) {
    const std::string_view text = node.text;
    if (node.shape == Shape::number || node.shape == Shape::boolean) return true;
    if (text.empty() || !((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z') || text[0] == '/'))
        return false;
    for (const std::string_view word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
        if (equals_ignore_case(text, word)) return false;
    return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") ==
           std::string_view::npos;
}

std::string json_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else
            out += c;
    }
    return out + '"';
}

std::string json_of(const Node& node, int depth = 0) {
    if (depth > 60) return "null";
    if (node.is_scalar())
        return node.shape == Shape::null     ? "null"
               : node.shape == Shape::string ? json_text(node.text)
                                             : std::string(node.text);
    std::string out(node.is_object() ? "{" : "[");
    for (const Node& child : children(&node)) {
        if (&child != node.first) out += ',';
        if (node.is_object()) out += json_text(child.key) + ":";
        out += json_of(child, depth + 1);
    }
    return out + (node.is_object() ? "}" : "]");
}

}  // namespace

std::string yaml_of(const Node& node, int indent) {
    if (node.is_scalar())
        return node.shape == Shape::null ? "null" : plain_yaml(node) ? std::string(node.text) : json_text(node.text);
    if (!node.first) return node.is_object() ? "{}" : "[]";
    if (indent > 60) return "null";
    std::string out;
    const std::string pad(static_cast<std::size_t>(indent) * 2, ' ');
    for (const Node& child : children(&node)) {
        if (!out.empty()) out += '\n';
        const bool deep = !child.is_scalar() && child.first;
        if (node.is_object()) {
            out += pad +
                   (plain_yaml(child) || child.key.find_first_of(":#{}[],&*!|>'\"%@` ") == std::string_view::npos
                        ? std::string(child.key)
                        : json_text(child.key)) +
                   ":";
            out += deep ? "\n" + yaml_of(child, child.is_array() ? indent : indent + 1) : " " + yaml_of(child, 0);
        } else if (deep) {
            std::string inner = yaml_of(child, indent + 1);
            inner[pad.size()] = '-';
            out += inner;
        } else {
            out += pad + "- " + yaml_of(child, 0);
        }
    }
    return out;
}

namespace helm {

const Node* Values::text(std::string value) const {
    Node& made = scratch.tree.make(scratch.source(), Shape::string, {0, 0});
    made.text = scratch.tree.keep(value);
    return &made;
}
const Node* Values::number(double value) const {
    Node& made = scratch.tree.make(scratch.source(), Shape::number, {0, 0});
    made.text = scratch.tree.keep(std::floor(value) == value && std::abs(value) < 1e15
                                      ? std::to_string(static_cast<std::int64_t>(value))
                                      : fmt::format("{}", value));
    return &made;
}
const Node* Values::boolean(bool value) const {
    Node& made = scratch.tree.make(scratch.source(), Shape::boolean, {0, 0});
    made.text = value ? "true" : "false";
    return &made;
}
const Node* Values::nothing() const {
    return &scratch.tree.make(scratch.source(), Shape::null, {0, 0});
}
Node& Values::list(Shape shape) const {
    return scratch.tree.make(scratch.source(), shape, {0, 0});
}
void Values::put(Node& parent, const Node& value, std::string_view key) const {
    Node& made = scratch.tree.make(scratch.source(), value.shape, {0, 0});
    made.style = value.style, made.text = value.text, made.known = value.known;
    made.first = value.first, made.last = value.last;
    made.key = key;
    scratch.tree.append(parent, made);
}

bool is_true(const Node& value) {
    if (!value.is_scalar()) return value.first != nullptr;
    if (value.shape == Shape::null) return false;
    if (value.shape == Shape::boolean) return value.text == "true";
    if (value.shape == Shape::number) return value.text != "0" && value.text != "0.0";
    return !value.text.empty();
}

std::string text_of(const Node& value) {
    if (value.is_scalar()) return value.shape == Shape::null ? "" : std::string(value.text);
    return json_of(value);
}

namespace {

std::optional<double> number_of(const Node* node) {
    if (!node || !node->is_scalar() || node->text.empty())
        return node && node->shape == Shape::null ? std::optional(0.0) : std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(node->text.data(), node->text.data() + node->text.size(), value);
    return error == std::errc{} && end == node->text.data() + node->text.size() ? std::optional(value) : std::nullopt;
}

std::optional<std::string> printed(const std::vector<const Node*>& args) {
    std::string out;
    std::size_t next = 1;
    const std::string pattern = text_of(*args[0]);
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            out += pattern[i];
            continue;
        }
        while (++i < pattern.size() && std::string_view("0123456789+-.# ").find(pattern[i]) != std::string_view::npos) {
        }
        if (i >= pattern.size()) return std::nullopt;
        if (pattern[i] == '%') {
            out += '%';
            continue;
        }
        if (next >= args.size()) return std::nullopt;
        const std::string text = text_of(*args[next++]);
        out += pattern[i] == 'q' ? json_text(text) : text;
    }
    return out;
}

std::string indented(std::string_view text, std::size_t by) {
    std::string out;
    const std::string pad(std::min<std::size_t>(by, 100), ' ');
    for (const std::string_view line : split(text, '\n')) {
        if (!out.empty()) out += '\n';
        out += pad;
        out += line;
    }
    return out;
}

bool same(const Node& a, const Node& b) {
    return a.is_scalar() && b.is_scalar() && a.text == b.text && (a.shape == Shape::null) == (b.shape == Shape::null);
}

}  // namespace

const Node* call_function(std::string_view name, const std::vector<const Node*>& args, const Values& make) {
    for (const Node* arg : args)
        if (!arg) return nullptr;
    const auto is = [&](std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    const std::size_t n = args.size();
    const Node* last = n ? args[n - 1] : nullptr;
    if (is({"dict"})) {
        Node& made = make.list(Shape::object);
        for (std::size_t i = 0; i + 1 < n; i += 2)
            make.put(made, *args[i + 1], make.scratch.tree.keep(text_of(*args[i])));
        return &made;
    }
    if (is({"list", "tuple"})) {
        Node& made = make.list(Shape::array);
        for (const Node* arg : args) make.put(made, *arg);
        return &made;
    }
    if (n == 0) return nullptr;
    if (is({"and", "or"})) {
        for (const Node* arg : args)
            if (is_true(*arg) == (name == "or")) return arg;
        return last;
    }
    if (is({"coalesce"})) {
        for (const Node* arg : args)
            if (is_true(*arg)) return arg;
        return make.nothing();
    }
    if (is({"print"})) {
        std::string out;
        for (const Node* arg : args) out += text_of(*arg);
        return make.text(out);
    }
    if (is({"printf"})) {
        auto out = printed(args);
        return out ? make.text(std::move(*out)) : nullptr;
    }
    if (n == 1) {
        if (is({"quote"})) return make.text(last->shape == Shape::null ? "" : json_text(text_of(*last)));
        if (is({"squote"})) return make.text("'" + replace_all(text_of(*last), "'", "''") + "'");
        if (is({"toYaml"})) return make.text(yaml_of(*last));
        if (is({"toJson", "toRawJson", "mustToJson"})) return make.text(json_of(*last));
        if (is({"toString"})) return make.text(text_of(*last));
        if (is({"upper"})) return make.text(upper(text_of(*last)));
        if (is({"lower"})) return make.text(lower(text_of(*last)));
        if (is({"trim"})) return make.text(std::string(trim(text_of(*last))));
        if (is({"not"})) return make.boolean(!is_true(*last));
        if (is({"empty"})) return make.boolean(!is_true(*last));
        if (is({"len"})) return make.number(static_cast<double>(last->is_scalar() ? last->text.size() : last->count()));
        if (is({"int", "int64", "float64", "floor", "ceil"})) {
            const auto value = number_of(last);
            return value ? make.number(is({"float64"}) ? *value
                                       : is({"ceil"})  ? std::ceil(*value)
                                                       : std::floor(*value))
                         : nullptr;
        }
        if (is({"first"})) return last->first ? last->first : nullptr;
        if (is({"last"})) return last->last ? last->last : nullptr;
        if (is({"keys"}) && last->is_object()) {
            Node& made = make.list(Shape::array);
            for (const Node& child : children(last)) make.put(made, *make.text(std::string(child.key)));
            return &made;
        }
        return call_rarer_function(name, args, make);
    }
    if (is({"default"}) && n == 2) return is_true(*args[1]) ? args[1] : args[0];
    if (is({"required"}) && n == 2) return is_true(*args[1]) ? args[1] : nullptr;
    if (is({"ternary"}) && n == 3) return is_true(*args[2]) ? args[0] : args[1];
    if (is({"indent", "nindent"}) && n == 2) {
        const auto by = number_of(args[0]);
        if (!by || *by < 0) return nullptr;
        return make.text((name == "nindent" ? "\n" : "") + indented(text_of(*args[1]), static_cast<std::size_t>(*by)));
    }
    if (is({"eq"}))
        return make.boolean(
            std::any_of(args.begin() + 1, args.end(), [&](const Node* arg) { return same(*args[0], *arg); }));
    if (is({"ne"})) return make.boolean(!same(*args[0], *args[1]));
    if (is({"hasKey"}) && args[0]->is_object()) return make.boolean(args[0]->find(text_of(*args[1])) != nullptr);
    if (is({"get", "index"})) {
        const Node* at = args[0];
        for (std::size_t i = 1; i < n && at; ++i) {
            if (at->is_object()) {
                at = at->find(text_of(*args[i]));
            } else if (const auto number = number_of(args[i]); at->is_array() && number) {
                const Node* item = at->first;
                for (double k = 0; k < *number && item; ++k) item = item->next;
                at = item;
            } else {
                return nullptr;
            }
        }
        return at ? at : make.nothing();
    }
    if (is({"contains"})) return make.boolean(text_of(*args[1]).find(text_of(*args[0])) != std::string::npos);
    if (is({"hasPrefix"})) return make.boolean(text_of(*args[1]).starts_with(text_of(*args[0])));
    if (is({"hasSuffix"})) return make.boolean(text_of(*args[1]).ends_with(text_of(*args[0])));
    if (is({"trunc"}) && number_of(args[0]))
        return make.text(text_of(*args[1]).substr(0, static_cast<std::size_t>(std::abs(*number_of(args[0])))));
    if (is({"trimSuffix", "trimPrefix"})) {
        std::string text = text_of(*args[1]);
        const std::string mark = text_of(*args[0]);
        if (name == "trimSuffix" && text.ends_with(mark)) text.resize(text.size() - mark.size());
        if (name == "trimPrefix" && text.starts_with(mark)) text.erase(0, mark.size());
        return make.text(std::move(text));
    }
    if (is({"replace"}) && n == 3) {
        const std::string from = text_of(*args[0]);
        return from.empty() ? args[2] : make.text(replace_all(text_of(*args[2]), from, text_of(*args[1])));
    }
    if (is({"join"}) && args[1]->is_array()) {
        std::string out;
        for (const Node& item : children(args[1])) out += (out.empty() ? "" : text_of(*args[0])) + text_of(item);
        return make.text(std::move(out));
    }
    if (is({"add", "sub", "mul", "div", "mod", "max", "min", "gt", "lt", "ge", "le"})) {
        auto value = number_of(args[0]);
        for (std::size_t i = 1; i < n && value; ++i) {
            const auto next = number_of(args[i]);
            if (!next || (is({"div", "mod"}) && *next == 0)) return nullptr;
            if (name == "gt") return make.boolean(*value > *next);
            if (name == "lt") return make.boolean(*value < *next);
            if (name == "ge") return make.boolean(*value >= *next);
            if (name == "le") return make.boolean(*value <= *next);
            value = name == "add"   ? *value + *next
                    : name == "sub" ? *value - *next
                    : name == "mul" ? *value * *next
                    : name == "div" ? std::trunc(*value / *next)
                    : name == "mod" ? std::fmod(*value, *next)
                    : name == "max" ? std::max(*value, *next)
                                    : std::min(*value, *next);
        }
        return value ? make.number(*value) : nullptr;
    }
    return call_rarer_function(name, args, make);
}

}  // namespace helm

}  // namespace stoker::lint
