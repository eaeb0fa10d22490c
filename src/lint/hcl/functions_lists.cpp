// Functions over lists, objects and texts; lambdas and functions that users write.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "lint/hcl/bounds.h"

namespace stoker::lint {

using namespace evaluation;

namespace {

struct Names {
    std::string_view name;
    bool operator()(std::initializer_list<std::string_view> names) const {
        return std::any_of(names.begin(), names.end(),
                           [&](std::string_view wanted) { return equals_ignore_case(name, wanted); });
    }
};

std::string_view without(std::string_view text, std::string_view letters, bool front, bool back) {
    while (front && !text.empty() && letters.find(text.front()) != std::string_view::npos) text.remove_prefix(1);
    while (back && !text.empty() && letters.find(text.back()) != std::string_view::npos) text.remove_suffix(1);
    return text;
}

// "10.0.0.0/8" as its first address and the length of its prefix.
std::optional<std::pair<std::uint32_t, int>> ipv4_range(std::string_view text) {
    std::uint32_t address = 0, part = 0;
    int dots = 0;
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    for (const char c : text.substr(0, slash)) {
        if (c == '.') {
            address = address << 8 | part, part = 0, ++dots;
        } else if (c < '0' || c > '9' || (part = part * 10 + static_cast<std::uint32_t>(c - '0')) > 255) {
            return std::nullopt;
        }
    }
    int length = 0;
    const auto [end, error] = std::from_chars(text.data() + slash + 1, text.data() + text.size(), length);
    if (dots != 3 || error != std::errc{} || end != text.data() + text.size() || length < 0 || length > 32)
        return std::nullopt;
    return std::pair(address << 8 | part, length);
}

std::string ipv4_text(std::uint32_t address, int length) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += std::to_string(address >> shift & 255) + (shift ? "." : "/");
    return text + std::to_string(length);
}

}  // namespace

std::optional<const Node*> Evaluator::text_function(std::string_view name, const Args& args, const Expression& e) {
    const Names is{name};
    if (args.empty() || !std::all_of(args.begin(), args.end(), known_scalar)) return std::nullopt;
    const std::string_view text = args[0]->text;
    const auto number = [&](std::size_t i) { return i < args.size() ? number_in(args[i]) : std::nullopt; };
    const auto give = [&](std::string_view value) -> const Node* {
        return value == text ? args[0] : made(std::string(value), Shape::string, e);
    };
    if (is({"trimspace"}) || (is({"trim"}) && args.size() == 1)) return give(trim(text));
    if (is({"trim"}) && args.size() == 2) return give(without(text, args[1]->text, true, true));
    if (is({"chomp"})) return give(without(text, "\r\n", false, true));
    if (is({"trimprefix"}) && args.size() == 2)
        return give(text.starts_with(args[1]->text) ? text.substr(args[1]->text.size()) : text);
    if (is({"trimsuffix"}) && args.size() == 2)
        return give(text.ends_with(args[1]->text) ? text.substr(0, text.size() - args[1]->text.size()) : text);
    if (is({"basename"}) && args.size() == 1) return give(text.substr(text.rfind('/') + 1));
    if (is({"dirname"}) && args.size() == 1) {
        const std::size_t slash = text.rfind('/');
        return give(slash == std::string_view::npos ? std::string_view(".") : text.substr(0, slash));
    }
    if (is({"substr", "substring"}) && number(1)) {
        const double from = *number(1) < 0 ? static_cast<double>(text.size()) + *number(1) : *number(1);
        if (from < 0 || from > static_cast<double>(text.size())) return nullptr;
        const double length = number(2).value_or(-1);
        return give(text.substr(static_cast<std::size_t>(from),
                                length < 0 ? std::string_view::npos : static_cast<std::size_t>(length)));
    }
    if (is({"title"})) {
        std::string out(text);
        bool word = true;
        for (char& c : out) {
            if (word && c >= 'a' && c <= 'z') c = static_cast<char>(c - 0x20);
            word = c == ' ' || c == '-' || c == '_';
        }
        return made(std::move(out), Shape::string, e);
    }
    if (is({"abs"}) && number(0)) return made_number(std::abs(*number(0)), e);
    if (is({"ceil"}) && number(0)) return made_number(std::ceil(*number(0)), e);
    if (is({"floor"}) && number(0)) return made_number(std::floor(*number(0)), e);
    if (is({"cidrsubnet", "cidrSubnet"}) && number(1) && number(2)) {
        const auto range = ipv4_range(text);
        const int wanted = static_cast<int>(*number(1));
        const int length = dialect_ == Dialect::hcl && range ? range->second + wanted : wanted;
        if (!range || *number(2) < 0 || length < range->second || length > 32 || length == 0) return nullptr;
        const std::uint32_t mask = range->second == 0 ? 0 : ~std::uint32_t{0} << (32 - range->second);
        const auto index = static_cast<std::uint64_t>(*number(2)) << (32 - length);
        return made(ipv4_text((range->first & mask) + static_cast<std::uint32_t>(index), length), Shape::string, e);
    }
    // Ranges one behind the other, each as long as it is said to be, at the next place where it may begin.
    if (is({"cidrsubnets"}) && args.size() > 1) {
        const auto range = ipv4_range(text);
        if (!range) return nullptr;
        const std::uint32_t mask = range->second == 0 ? 0 : ~std::uint32_t{0} << (32 - range->second);
        std::uint64_t next = range->first & mask;
        Node& list = file_.tree.make(at_hand(), Shape::array, span_of(e));
        for (std::size_t k = 1; k < args.size(); ++k) {
            if (!number(k)) return nullptr;
            const int length = range->second + static_cast<int>(*number(k));
            if (length < range->second || length > 32 || length == 0) return nullptr;
            const std::uint64_t size = std::uint64_t{1} << (32 - length);
            next = (next + size - 1) / size * size;
            Node& item = file_.tree.make(at_hand(), Shape::string, span_of(e));
            item.text = file_.tree.keep(ipv4_text(static_cast<std::uint32_t>(next), length));
            file_.tree.append(list, item);
            next += size;
        }
        return &list;
    }
    return std::nullopt;
}

std::optional<const Node*> Evaluator::list_function(std::string_view name, const Args& args, const Expression& e) {
    const Names is{name};
    const Node* first = args.empty() ? nullptr : args[0];
    const auto list_of = [&](Shape shape) -> Node& { return file_.tree.make(at_hand(), shape, span_of(e)); };
    if (is({"createObject"})) {
        Node& object = list_of(Shape::object);
        for (std::size_t i = 0; i + 1 < args.size(); i += 2) {
            if (!known_scalar(args[i]) || !args[i + 1]) return nullptr;
            put_copy(object, args[i + 1], args[i]->text);
        }
        return &object;
    }
    if (!first || first->is_scalar() || !first->known) return std::nullopt;
    if (is({"values", "objectValues"}) && first->is_object()) {
        Node& list = list_of(Shape::array);
        for (const Node& item : children(first)) put_copy(list, settle(&item));
        return &list;
    }
    if (is({"items"}) && first->is_object()) {
        Node& list = list_of(Shape::array);
        for (const Node& item : children(first)) {
            Node& pair = file_.tree.make(*item.source, Shape::object, item.span);
            Node& key = file_.tree.make(*item.source, Shape::string, item.key_span);
            key.text = item.key, key.key = "key";
            file_.tree.append(pair, key);
            put_copy(pair, settle(&item), "value");
            file_.tree.append(list, pair);
        }
        return &list;
    }
    if (is({"zipmap"}) && args.size() == 2 && args[1] && args[1]->is_array()) {
        Node& object = list_of(Shape::object);
        const Node* value = args[1]->first;
        for (const Node& key : children(first)) {
            if (!known_scalar(settle(&key)) || !value) return nullptr;
            put_copy(object, settle(value), key.text);
            value = value->next;
        }
        return &object;
    }
    if (!first->is_array()) return std::nullopt;
    if (is({"last"})) return settle(first->last);
    if (is({"setproduct"})) return product_of(args, e);
    const auto size = static_cast<double>(first->count());
    double from = 0, to = size;
    if (is({"slice"}) && args.size() == 3 && number_in(args[1]) && number_in(args[2]))
        from = *number_in(args[1]), to = *number_in(args[2]);
    else if (is({"skip"}) && args.size() == 2 && number_in(args[1]))
        from = *number_in(args[1]);
    else if (is({"take"}) && args.size() == 2 && number_in(args[1]))
        to = std::min(size, *number_in(args[1]));
    else if (!is({"reverse", "compact", "sort", "setunion"}))
        return std::nullopt;
    if (from < 0 || to > size) return nullptr;
    std::vector<const Node*> items;
    for (const Node* list : args) {
        if (!list || !list->is_array()) continue;
        double at = 0;
        for (const Node& item : children(list)) {
            const Node* value = settle(&item);
            const bool none =
                value->known && value->is_scalar() && (value->shape == Shape::null || value->text.empty());
            if (at >= from && at < to && !(is({"compact"}) && none)) items.push_back(value);
            ++at;
        }
        if (items.size() > kMostItems) return nullptr;
        if (!is({"setunion"})) break;
    }
    if (is({"reverse"})) std::reverse(items.begin(), items.end());
    if (is({"sort", "setunion"})) {
        if (!std::all_of(items.begin(), items.end(), known_scalar)) return nullptr;
        std::stable_sort(items.begin(), items.end(), [](const Node* a, const Node* b) { return a->text < b->text; });
    }
    Node& list = list_of(Shape::array);
    for (const Node* item : items) put_copy(list, item);
    return &list;
}

// Each of one list with each of the next, the last one changing first.
const Node* Evaluator::product_of(const Args& args, const Expression& e) {
    std::vector<std::vector<const Node*>> rows{{}};
    for (const Node* list : args) {
        if (!list || !list->is_array() || rows.size() * list->count() > kMostItems) return nullptr;
        std::vector<std::vector<const Node*>> longer;
        for (const auto& row : rows)
            for (const Node& item : children(list)) {
                longer.push_back(row);
                longer.back().push_back(settle(&item));
            }
        rows = std::move(longer);
    }
    Node& result = file_.tree.make(at_hand(), Shape::array, span_of(e));
    for (const auto& row : rows) {
        Node& tuple = file_.tree.make(at_hand(), Shape::array, span_of(e));
        for (const Node* item : row) put_copy(tuple, item);
        file_.tree.append(result, tuple);
    }
    return &result;
}

// map, filter, reduce and their kin of Bicep, and of ARM, where lambda('x', body) names its argument in quotes.
const Node* Evaluator::with_lambda(const Expression& e, int depth) {
    const Names is{e.name};
    const Node* list = evaluate(*e.first, depth);
    if (!list || list->is_scalar() || !list->known || list->count() > kMostItems) return nullptr;
    struct Lambda {
        std::vector<std::string_view> names;
        const Expression* body = nullptr;
    };
    const auto read = [&](const Expression* at) -> Lambda {
        Lambda made;
        if (!at) return made;
        if (at->kind == Expression::Kind::lambda) {
            for (const Expression* name = at->first; name; name = name->next) made.names.push_back(name->name);
            made.body = at->b;
        } else if (at->kind == Expression::Kind::call && equals_ignore_case(at->name, "lambda")) {
            for (const Expression* argument = at->first; argument; argument = argument->next) {
                if (!argument->next) {
                    made.body = argument;
                } else if (const Node* name = evaluate(*argument, depth); known_scalar(name)) {
                    made.names.push_back(name->text);
                }
            }
        }
        return made;
    };
    const auto apply = [&](const Lambda& lambda, std::initializer_list<const Node*> given) -> const Node* {
        const std::size_t before = bindings_.size();
        std::size_t k = 0;
        for (const Node* value : given)
            if (value && k < lambda.names.size()) bindings_.push_back({lambda.names[k++], value});
        const Node* value = evaluate(*lambda.body, depth + 1);
        if (value && !value->is_scalar()) value = copy(value, depth + 1);
        bindings_.resize(before);
        return value;
    };
    if (is({"reduce"})) {
        const Expression* start = e.first->next;
        const Lambda step = read(start ? start->next : nullptr);
        const Node* total = start ? evaluate(*start, depth) : nullptr;
        if (!step.body || step.names.size() < 2) return nullptr;
        for (const Node& child : children(list))
            if (!total || !(total = apply(step, {total, settle(&child)}))) return nullptr;
        return total;
    }
    const Lambda function = read(e.first->next);
    if (!function.body || function.names.empty()) return nullptr;
    if (is({"sort"})) {
        std::vector<const Node*> items;
        for (const Node& child : children(list)) items.push_back(settle(&child));
        if (items.size() > 32 || function.names.size() < 2) return nullptr;
        for (std::size_t k = 1; k < items.size(); ++k)  // few items, and an order that may be no order
            for (std::size_t j = k; j > 0; --j) {
                const auto before = truth(apply(function, {items[j - 1], items[j]}));
                if (!before) return nullptr;
                if (*before) break;
                std::swap(items[j - 1], items[j]);
            }
        Node& sorted = file_.tree.make(at_hand(), Shape::array, span_of(e));
        for (const Node* item : items) put_copy(sorted, item);
        return &sorted;
    }
    const bool object = is({"toObject", "mapValues", "groupBy"});
    if (!object && !is({"map", "filter"})) return nullptr;
    Node& result = file_.tree.make(at_hand(), object ? Shape::object : Shape::array, span_of(e));
    const Lambda of_value = read(e.first->next->next);
    double number = 0;
    for (const Node& child : children(list)) {
        const Node* item = settle(&child);
        const Node* given = apply(function, {item, function.names.size() > 1 ? made_number(number, e) : nullptr});
        ++number;
        if (!given) return nullptr;
        if (is({"filter"})) {
            const auto yes = truth(given);
            if (!yes) return nullptr;
            if (*yes) put_copy(result, item, list->is_object() ? child.key : std::string_view());
        } else if (is({"toObject"})) {
            const Node* value = of_value.body ? apply(of_value, {item}) : item;
            if (!known_scalar(given) || !value) return nullptr;
            put_copy(result, value, given->text);
        } else if (is({"groupBy"})) {
            if (!known_scalar(given)) return nullptr;
            Node* group = const_cast<Node*>(result.find(given->text));
            if (!group) {
                group = &file_.tree.make(at_hand(), Shape::array, span_of(e));
                group->key = given->text;
                file_.tree.append(result, *group);
            }
            put_copy(*group, item);
        } else {
            put_copy(result, given, is({"mapValues"}) ? child.key : std::string_view());
        }
    }
    return &result;
}

const Node* Evaluator::called(const Expressions::Function& callee, const Expression& e, int depth) {
    std::vector<Binding> given;
    const Expression* argument = e.first;
    for (const std::string_view parameter : callee.parameters) {
        if (!argument) return nullptr;
        const Node* value = evaluate(*argument, depth);
        if (!value) return nullptr;
        given.push_back({parameter, value});
        argument = argument->next;
    }
    const auto outer = std::move(bindings_);  // a function sees its parameters and nothing else
    bindings_ = std::move(given);
    const bool outer_places = at_holder_;
    at_holder_ = at_holder_ || callee.elsewhere;
    const Node* value = evaluate(*callee.body, depth + 1);
    at_holder_ = outer_places;
    bindings_ = outer;
    return value;
}

// copyIndex(), copyIndex(1), copyIndex('loop'), copyIndex('loop', 1).
const Node* Evaluator::copy_index(const Expression& e, int depth) {
    std::string name = "copyIndex";
    double offset = 0;
    for (const Expression* argument = e.first; argument; argument = argument->next) {
        const Node* value = evaluate(*argument, depth);
        if (!known_scalar(value)) return nullptr;
        if (value->shape == Shape::number)
            offset = number_in(value).value_or(0);
        else
            name += ":" + std::string(value->text);
    }
    for (auto it = bindings_.rbegin(); it != bindings_.rend(); ++it)
        if (equals_ignore_case(it->name, name) || (name == "copyIndex" && it->name.starts_with("copyIndex:")))
            return offset == 0 ? it->value : made_number(number_in(it->value).value_or(0) + offset, e);
    return nullptr;
}

bool Evaluator::lacks(const Expression& e, int depth) {
    if ((e.kind != Expression::Kind::member && e.kind != Expression::Kind::index) || depth > kExpressionDepth)
        return false;
    const Node* object =
        e.a->kind == Expression::Kind::name && e.kind == Expression::Kind::member ? lookup(e.a->name, e.name) : nullptr;
    if (object) return false;  // a symbol that is there and cannot be followed
    object = evaluate(*e.a, depth + 1);
    if (!object) return lacks(*e.a, depth + 1);
    if (object->shape == Shape::null && object->known) return true;
    if (!object->known || object->is_scalar()) return false;
    for (const Node& child : children(object))
        if (child.key.starts_with("(")) return false;  // a key that is not known
    const Node* key = e.kind == Expression::Kind::index ? evaluate(*e.b, depth + 1) : nullptr;
    if (e.kind == Expression::Kind::index && !known_scalar(key)) return false;
    const std::string_view wanted = key ? key->text : e.name;
    if (object->is_object()) return member_of(object, wanted) == nullptr;
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
    return error == std::errc{} && end == wanted.data() + wanted.size() && index >= object->count();
}

}  // namespace stoker::lint
