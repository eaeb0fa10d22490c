// Functions that are asked for less often: patterns, rows of CSV, sets, and what asks whether something can be worked
// out.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "lint/hcl/bounds.h"
#include "lint/pattern.h"
#include "lint/shell/shell_trace.h"

namespace stoker::lint {

using namespace evaluation;

namespace {

// The fields of a line of CSV.
std::vector<std::string> fields_of(std::string_view line) {
    std::vector<std::string> fields{""};
    bool quoted = false;
    for (std::size_t k = 0; k < line.size(); ++k) {
        const char c = line[k];
        if (quoted && c == '"' && k + 1 < line.size() && line[k + 1] == '"')
            fields.back() += line[++k];
        else if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            fields.emplace_back();
        else
            fields.back() += c;
    }
    return fields;
}

// The two syntaxes of patterns differ in their names of groups alone.
std::optional<TextPattern> pattern_of(std::string_view text) {
    return TextPattern::read(text);
}

}  // namespace

// What a match of regex() is: its text, a list of its groups, or an object of their names.
const Node* Evaluator::matched(std::string_view text, const std::vector<TextPattern::Group>& groups,
                               const Expression& e) {
    const auto piece = [&](const TextPattern::Group& group) -> Node& {
        Node& made = file_.tree.make(at_hand(), group.matched ? Shape::string : Shape::null, span_of(e));
        made.text = file_.tree.keep(text.substr(group.begin, group.end - group.begin));
        return made;
    };
    if (groups.size() == 1) return &piece(groups[0]);
    const bool named = !groups[1].name.empty();
    Node& result = file_.tree.make(at_hand(), named ? Shape::object : Shape::array, span_of(e));
    for (std::size_t k = 1; k < groups.size(); ++k) {
        Node& made = piece(groups[k]);
        if (named) made.key = file_.tree.keep(groups[k].name);
        file_.tree.append(result, made);
    }
    return &result;
}

const Node* Evaluator::rows_of(const Node* text, const Expression& e) {
    if (!known_scalar(text) || text->text.size() > kMostTextBytes) return nullptr;
    Node& list = file_.tree.make(at_hand(), Shape::array, span_of(e));
    std::vector<std::string> head;
    std::size_t count = 0;
    const bool exact =
        text->source != nullptr && text->source->text().data() <= text->text.data() &&
        text->text.data() + text->text.size() <= text->source->text().data() + text->source->text().size();
    for (const std::string_view raw : split(text->text, '\n')) {
        const std::string_view line = trim(raw);
        if (line.empty()) continue;
        const std::vector<std::string> fields = fields_of(line);
        if (head.empty()) {
            head = fields;
            continue;
        }
        if (fields.size() != head.size() || ++count > kMostItems) return nullptr;
        Node& row = file_.tree.make(at_hand(), Shape::object, span_of(e));
        std::size_t from = 0;
        for (std::size_t k = 0; k < fields.size(); ++k) {
            // Where the field stands, when it is written as it is.
            const std::size_t at = line.find(fields[k], from);
            const bool here = exact && at != std::string_view::npos && !fields[k].empty();
            const auto begin = here ? static_cast<std::uint32_t>(line.data() + at - text->source->text().data()) : 0u;
            Node& field = here ? file_.tree.make(*text->source, Shape::string,
                                                 {begin, begin + static_cast<std::uint32_t>(fields[k].size())})
                               : file_.tree.make(at_hand(), Shape::string, span_of(e));
            if (at != std::string_view::npos) from = at + fields[k].size();
            field.text = file_.tree.keep(fields[k]);
            field.key = file_.tree.keep(head[k]);
            file_.tree.append(row, field);
        }
        file_.tree.append(list, row);
    }
    return &list;
}

// fileset(path, pattern): names below the folder of the file; ** is not followed.
const Node* Evaluator::file_set(const Args& args, const Expression& e) {
    if (!options_.list || args.size() != 2 || !known_scalar(args[0]) || !known_scalar(args[1])) return nullptr;
    std::string folder(args[0]->text), pattern(args[1]->text);
    while (folder.starts_with("./")) folder.erase(0, 2);
    if (folder == "." || folder.empty()) folder.clear();
    if (folder.starts_with('/') || folder.find("..") != std::string::npos || pattern.find("..") != std::string::npos)
        return nullptr;
    const std::size_t slash = pattern.rfind('/');
    const std::string below = slash == std::string::npos ? "" : pattern.substr(0, slash + 1);
    if (below.find('*') != std::string::npos) return nullptr;
    const std::string_view wanted = std::string_view(pattern).substr(below.size());
    Node& list = file_.tree.make(at_hand(), Shape::array, span_of(e));
    std::size_t count = 0;
    for (const std::string& each :
         options_.list((folder.empty() ? "" : folder + "/") + (below.empty() ? "." : below))) {
        if (!shell_pattern_matches(each, wanted)) continue;
        if (++count > kMostDecoded) return nullptr;
        Node& item = file_.tree.make(at_hand(), Shape::string, span_of(e));
        item.text = file_.tree.keep(below + each);
        file_.tree.append(list, item);
    }
    return &list;
}

std::optional<const Node*> Evaluator::more_function(std::string_view name, const Args& args, const Expression& e) {
    const auto is = [&](std::initializer_list<std::string_view> names) {
        return std::any_of(names.begin(), names.end(),
                           [&](std::string_view wanted) { return equals_ignore_case(name, wanted); });
    };
    const Node* first = args.empty() ? nullptr : args[0];
    const auto text = [&](std::size_t k) { return args[k]->text; };
    const bool scalars = !args.empty() && std::all_of(args.begin(), args.end(), known_scalar);
    const auto list_of = [&]() -> Node& { return file_.tree.make(at_hand(), Shape::array, span_of(e)); };
    if (is({"fileset"})) return file_set(args, e);
    if (is({"regex", "regexall"}) && args.size() == 2 && scalars) {
        const auto pattern = pattern_of(text(0));
        if (!pattern) return nullptr;
        if (is({"regex"})) {
            const auto groups = pattern->match(text(1));
            return groups.empty() ? nullptr : matched(text(1), groups, e);
        }
        Node& list = list_of();
        std::size_t from = 0;
        for (std::size_t count = 0; count < kMostItems && from <= text(1).size(); ++count) {
            const auto groups = pattern->match(text(1), from);
            if (groups.empty()) break;
            put_copy(list, matched(text(1), groups, e));
            from = std::max(groups[0].end, groups[0].begin + 1);
        }
        return &list;
    }
    if (is({"replace"}) && args.size() == 3 && scalars && dialect_ == Dialect::hcl && text(1).size() > 2 &&
        text(1).starts_with('/') && text(1).ends_with('/')) {
        const auto pattern = pattern_of(text(1).substr(1, text(1).size() - 2));
        auto done = pattern ? pattern->replaced(text(0), text(2), true, true) : std::nullopt;
        return done ? made(std::move(*done), Shape::string, e) : nullptr;
    }
    if (is({"csvdecode"}) && args.size() == 1) return rows_of(first, e);
    if (is({"strcontains"}) && args.size() == 2 && scalars)
        return made_bool(text(0).find(text(1)) != std::string_view::npos, e);
    if (is({"strrev"}) && scalars) return made(std::string(text(0).rbegin(), text(0).rend()), Shape::string, e);
    if (is({"parseint"}) && args.size() == 2 && scalars && text(1) == "10") return first;
    if (is({"base64decode", "base64ToString"}) && scalars) return first;  // base64 is looked through
    if (is({"padLeft"}) && args.size() >= 2 && scalars && number_in(args[1])) {
        std::string out(text(0));
        const auto width = static_cast<std::size_t>(std::clamp(*number_in(args[1]), 0.0, 256.0));
        while (out.size() < width) out.insert(0, args.size() > 2 ? text(2) : " ");
        return made(std::move(out), Shape::string, e);
    }
    if (is({"indexOf", "lastIndexOf"}) && args.size() == 2 && scalars) {
        const std::string whole = lower(text(0)), part = lower(text(1));
        const std::size_t at = is({"indexOf"}) ? whole.find(part) : whole.rfind(part);
        return made_number(at == std::string::npos ? -1 : static_cast<double>(at), e);
    }
    if (is({"pow"}) && args.size() == 2 && number_in(first) && number_in(args[1]))
        return made_number(std::pow(*number_in(first), *number_in(args[1])), e);
    if (is({"max", "min"}) && !args.empty()) {
        std::vector<double> numbers;
        const auto add = [&](const Node* node) {
            const auto number = number_in(node);
            if (number) numbers.push_back(*number);
            return number.has_value();
        };
        bool all = true;
        for (const Node* arg : args) {
            if (!arg) return nullptr;
            if (arg->is_array())
                for (const Node& item : children(arg)) all = add(settle(&item)) && all;
            else
                all = add(arg) && all;
        }
        if (!all || numbers.empty()) return nullptr;
        return made_number(is({"max"}) ? *std::max_element(numbers.begin(), numbers.end())
                                       : *std::min_element(numbers.begin(), numbers.end()),
                           e);
    }
    if (is({"formatlist"}) && args.size() >= 2 && known_scalar(first)) {
        std::size_t count = 1;
        for (const Node* arg : args) {
            if (!arg) return nullptr;
            if (arg->is_array()) count = std::max(count, arg->count());
        }
        if (count > kMostItems) return nullptr;
        Node& list = list_of();
        for (std::size_t k = 0; k < count; ++k) {
            Args row;
            for (const Node* arg : args) row.push_back(arg->is_array() ? settle(item_at(arg, k)) : arg);
            const Node* item = std::all_of(row.begin(), row.end(), known_scalar) ? formatted(row, e) : nullptr;
            if (!item) return nullptr;
            put_copy(list, item);
        }
        return &list;
    }
    if (!first || first->is_scalar() || !first->known) return std::nullopt;
    std::vector<const Node*> items;
    for (const Node& item : children(first)) items.push_back(settle(&item));
    if (items.size() > kMostItems) return std::nullopt;
    const bool plain = std::all_of(items.begin(), items.end(), known_scalar);
    if (is({"sum"}) && plain) {
        double total = 0;
        for (const Node* item : items) {
            if (!number_in(item)) return nullptr;
            total += *number_in(item);
        }
        return made_number(total, e);
    }
    if (is({"alltrue", "anytrue"})) {
        for (const Node* item : items) {
            const auto yes = truth(item);
            if (!yes) return nullptr;
            if (*yes == is({"anytrue"})) return made_bool(*yes, e);
        }
        return made_bool(is({"alltrue"}), e);
    }
    if (is({"distinct", "toset"}) && plain && first->is_array()) {
        Node& list = list_of();
        std::vector<std::string_view> seen;
        for (const Node* item : items) {
            if (std::find(seen.begin(), seen.end(), item->text) != seen.end()) continue;
            seen.push_back(item->text);
            put_copy(list, item);
        }
        return &list;
    }
    if (is({"setintersection", "setsubtract", "intersection"}) && args.size() == 2 && args[1] && args[1]->is_array() &&
        plain && first->is_array()) {
        Node& list = list_of();
        for (const Node* item : items) {
            bool there = false;
            for (const Node& other : children(args[1])) {
                if (!known_scalar(settle(&other))) return nullptr;
                there |= other.text == item->text;
            }
            if (there != is({"setsubtract"})) put_copy(list, item);
        }
        return &list;
    }
    if (is({"index"}) && args.size() == 2 && known_scalar(args[1]) && plain && first->is_array()) {
        for (std::size_t k = 0; k < items.size(); ++k)
            if (items[k]->text == args[1]->text) return made_number(static_cast<double>(k), e);
        return nullptr;
    }
    if (is({"coalescelist"}))
        for (const Node* arg : args) {
            if (!arg || arg->is_scalar()) return nullptr;
            if (arg->first) return arg;
        }
    if (is({"chunklist"}) && args.size() == 2 && number_in(args[1]) && *number_in(args[1]) >= 1) {
        const auto size = static_cast<std::size_t>(*number_in(args[1]));
        Node& list = list_of();
        for (std::size_t k = 0; k < items.size(); k += size) {
            Node& part = list_of();
            for (std::size_t j = k; j < std::min(items.size(), k + size); ++j) put_copy(part, items[j]);
            file_.tree.append(list, part);
        }
        return &list;
    }
    if (is({"objectKeys"}) && first->is_object()) return function("keys", args, e);
    if (is({"shallowMerge"}) && first->is_array()) return function("merge", Args(items.begin(), items.end()), e);
    if (is({"tryGet"}) && args.size() == 2 && known_scalar(args[1])) {
        const Node* member = first->is_object() ? first->find(args[1]->text) : nullptr;
        if (!member && first->is_object() && first->known) return &file_.tree.make(at_hand(), Shape::null, span_of(e));
        return settle(member_of(first, args[1]->text));
    }
    if (is({"matchkeys"}) && args.size() == 3 && args[1] && args[2] && first->is_array()) {
        Node& list = list_of();
        const Node* key = args[1]->first;
        for (const Node* item : items) {
            if (!key || !known_scalar(settle(key))) return nullptr;
            for (const Node& wanted : children(args[2]))
                if (known_scalar(settle(&wanted)) && wanted.text == key->text) {
                    put_copy(list, item);
                    break;
                }
            key = key->next;
        }
        return &list;
    }
    return std::nullopt;
}

}  // namespace stoker::lint
