// Gives expressions their values, where these are written in the file or beside it.
// Longer than 500 lines because the functions of three languages stand in one table of names: most are the same.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "lint/hcl/expression.h"

namespace stoker::lint {

namespace {

using Part = Expression::Kind;

constexpr std::size_t kMostSteps = 400'000;      // of one file: loops in loops end here
constexpr std::size_t kMostTextBytes = 1 << 16;  // of one text
constexpr std::size_t kFewCopies = 4096;         // nodes that loops may make beside a quarter of the file's bytes
constexpr std::size_t kMostItems = 256;          // of a loop or range

bool known_scalar(const Node* node) {
    return node && node->known && node->is_scalar();
}
std::optional<double> number_in(const Node* node) {
    if (!known_scalar(node) || node->text.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(node->text.data(), node->text.data() + node->text.size(), value);
    if (error != std::errc{} || end != node->text.data() + node->text.size()) return std::nullopt;
    return value;
}
std::optional<bool> truth(const Node* node) {
    if (!known_scalar(node)) return std::nullopt;
    if (node->text == "true") return true;
    if (node->text == "false") return false;
    return std::nullopt;
}
}  // namespace

const Node* Evaluator::item_at(const Node* list, std::size_t index) {
    const Node* item = list ? list->first : nullptr;
    for (; item && index > 0; --index) item = item->next, steps_ += index % 8 == 0;
    return item;
}

// Long lists cost as they are walked, so that a file of a hundred kilobytes is done in a few milliseconds.
const Node* Evaluator::member_of(const Node* object, std::string_view key) {
    const Node* found = nullptr;
    std::size_t seen = 0;
    for (const Node& child : children(object->is_object() ? object : nullptr)) {
        if (child.key == key) found = &child;
        steps_ += ++seen % 8 == 0;
    }
    return found;
}

bool Evaluator::spend() {
    return ++steps_ < kMostSteps;
}

const Node* Evaluator::made(std::string text, Shape shape, const Expression& e) {
    bytes_ += text.size();
    if (text.size() > kMostTextBytes || bytes_ > 4 * file_.source().text().size() + kMostTextBytes) return nullptr;
    if (++copies_ > kFewCopies + file_.source().text().size() / 4) return nullptr;
    Node& node = file_.tree.make(file_.source(), shape, span_of(e));
    node.text = file_.tree.keep(std::move(text));
    return &node;
}

const Node* Evaluator::made_number(double value, const Expression& e) {
    if (!std::isfinite(value)) return nullptr;
    if (std::floor(value) == value && std::abs(value) < 1e15)
        return made(std::to_string(static_cast<std::int64_t>(value)), Shape::number, e);
    return made(fmt::format("{}", value), Shape::number, e);
}

void Evaluator::settle_all() {
    // The map may not grow meanwhile: copies are made by loops and entered after it was walked.
    std::vector<const Node*> waiting;
    waiting.reserve(expressions_.pending.size());
    for (const auto& [node, pending] : expressions_.pending) waiting.push_back(node);
    std::sort(waiting.begin(), waiting.end(),
              [](const Node* a, const Node* b) { return a->span.begin < b->span.begin; });
    for (const Node* node : waiting) settle(node);
}

const Node* Evaluator::settle(const Node* node) {
    if (!node || node->known || node->source != &file_.source()) return node;
    const auto it = expressions_.pending.find(node);
    if (it == expressions_.pending.end() || it->second.state != Expressions::State::waiting) return node;
    it->second.state = Expressions::State::under_way;
    const Expression* e = it->second.expression;
    const auto outer = std::move(bindings_);  // what is bound in a loop is not seen where a name was defined
    bindings_.clear();
    const Span outer_span = holder_;
    holder_ = node->span;
    const Node* value = evaluate(*e, 0);
    holder_ = outer_span;
    bindings_ = outer;
    expressions_.pending[node].state = Expressions::State::done;
    if (!value || value == node || (!value->known && value->is_scalar())) return node;
    Node& mine = const_cast<Node&>(*node);  // made by this front end, and not yet seen by others
    mine.shape = value->shape;
    mine.style = value->style;
    mine.text = value->text;
    mine.first = value->first;
    mine.last = value->last;
    mine.known = true;
    const Node* origin = value->origin ? value->origin : value;
    if (origin->source != mine.source || !mine.span.contains(origin->span)) mine.origin = origin;
    return node;
}

void Evaluator::settle_below(const Node* node, int depth) {
    settle(node);
    if (depth < kExpressionDepth && node)
        for (const Node& child : children(node)) settle_below(&child, depth + 1);
}

Node* Evaluator::copy(const Node* node, int depth) {
    if (!node || depth > kExpressionDepth || !spend()) return nullptr;
    if (++copies_ > kFewCopies + file_.source().text().size() / 4) return nullptr;
    Node& made = file_.tree.make(*node->source, node->shape, node->span);
    made.style = node->style, made.known = node->known, made.merged = node->merged;
    made.key = node->key, made.key_span = node->key_span, made.text = node->text;
    made.labels = node->labels, made.origin = node->origin;
    if (const auto it = expressions_.pending.find(node); it != expressions_.pending.end()) {
        if (const Node* value = evaluate(*it->second.expression, depth + 1);
            value && (value->known || !value->is_scalar())) {
            made.shape = value->shape, made.style = value->style, made.text = value->text, made.known = true;
            made.first = value->first, made.last = value->last;
            const Node* origin = value->origin ? value->origin : value;
            if (origin->source != made.source || !made.span.contains(origin->span)) made.origin = origin;
        }
        return &made;
    }
    for (const Node& child : children(node))
        if (Node* copied = copy(&child, depth + 1)) file_.tree.append(made, *copied);
    return &made;
}

Node* Evaluator::copy_with(const Node* body, std::vector<Binding> bindings) {
    const auto outer = std::move(bindings_);
    bindings_ = std::move(bindings);
    Node* made = copy(body, 0);
    bindings_ = outer;
    return made;
}

const Node* Evaluator::evaluate(const Expression& e, int depth) {
    if (depth > kExpressionDepth || !spend()) return nullptr;
    switch (e.kind) {
        case Part::value:
            if (!bindings_.empty() && !e.node->is_scalar()) return copy(e.node, depth + 1);
            return e.node;
        case Part::name: {
            for (auto it = bindings_.rbegin(); it != bindings_.rend(); ++it)
                if (it->name == e.name) return it->value;
            return settle(lookup("", e.name));
        }
        case Part::member: {
            if (e.a->kind == Part::name) {
                const bool bound = std::any_of(bindings_.begin(), bindings_.end(),
                                               [&](const Binding& b) { return b.name == e.a->name; });
                if (!bound)
                    if (const Node* found = lookup(e.a->name, e.name)) return settle(found);
            }
            const Node* object = evaluate(*e.a, depth + 1);
            if (!object) return nullptr;
            if (object->is_array()) {
                std::size_t index = 0;
                const auto [end, error] = std::from_chars(e.name.data(), e.name.data() + e.name.size(), index);
                return error == std::errc{} ? settle(item_at(object, index)) : nullptr;
            }
            return settle(member_of(object, e.name));
        }
        case Part::index: {
            const Node* object = evaluate(*e.a, depth + 1);
            const Node* key = evaluate(*e.b, depth + 1);
            if (!object || !known_scalar(key)) return nullptr;
            if (object->is_object()) return settle(member_of(object, key->text));
            const auto index = number_in(key);
            return index && *index >= 0 && *index < 1e6 ? settle(item_at(object, static_cast<std::size_t>(*index)))
                                                        : nullptr;
        }
        case Part::unary: {
            const Node* value = evaluate(*e.a, depth + 1);
            if (e.op == '-') {
                const auto number = number_in(value);
                return number ? made_number(-*number, e) : nullptr;
            }
            const auto yes = truth(value);
            return yes ? made_bool(!*yes, e) : nullptr;
        }
        case Part::binary: return evaluate_binary(e, depth);
        case Part::choice: {
            const auto yes = truth(evaluate(*e.a, depth + 1));
            return yes ? evaluate(*yes ? *e.b : *e.c, depth + 1) : nullptr;
        }
        case Part::text: return evaluate_text(e, depth);
        case Part::call: return evaluate_call(e, depth);
        case Part::loop: return evaluate_loop(e, depth);
        case Part::unknown: return nullptr;
    }
    return nullptr;
}

const Node* Evaluator::evaluate_binary(const Expression& e, int depth) {
    const Node* left = evaluate(*e.a, depth + 1);
    if (e.op == '?') {
        if (left && left->shape == Shape::null && left->known) return evaluate(*e.b, depth + 1);
        return left;  // null when it is not known
    }
    const Node* right = evaluate(*e.b, depth + 1);
    if (e.op == '&' || e.op == '|') {
        const auto a = truth(left), b = truth(right);
        const bool ends = e.op == '|';  // the value that decides alone
        if ((a && *a == ends) || (b && *b == ends)) return made_bool(ends, e);
        return a && b ? made_bool(!ends, e) : nullptr;
    }
    if (!known_scalar(left) || !known_scalar(right)) return nullptr;
    if (e.op == '=' || e.op == '!') return made_bool((left->text == right->text) == (e.op == '='), e);
    if (e.op == '~') return nullptr;
    const auto a = number_in(left), b = number_in(right);
    if (!a || !b) return nullptr;
    switch (e.op) {
        case '+': return made_number(*a + *b, e);
        case '-': return made_number(*a - *b, e);
        case '*': return made_number(*a * *b, e);
        case '/':
            if (*b == 0) return nullptr;
            return made_number(dialect_ == Dialect::hcl ? *a / *b : std::trunc(*a / *b), e);
        case '%': return *b == 0 ? nullptr : made_number(std::fmod(*a, *b), e);
        case '<': return made_bool(*a < *b, e);
        case '>': return made_bool(*a > *b, e);
        case 'l': return made_bool(*a <= *b, e);
        case 'g': return made_bool(*a >= *b, e);
        default: return nullptr;
    }
}

const Node* Evaluator::evaluate_text(const Expression& e, int depth) {
    const Node* only = nullptr;
    std::string text;
    std::size_t parts = 0;
    for (const Expression* part = e.first; part; part = part->next, ++parts) {
        only = evaluate(*part->a, depth + 1);
        if (!only || (!known_scalar(only) && parts > 0)) return nullptr;
        text += only->text;
        if (text.size() > kMostTextBytes) return nullptr;
    }
    if (parts == 1) return only;  // "${x}" is x
    return known_scalar(only) ? made(std::move(text), Shape::string, e) : nullptr;
}

const Node* Evaluator::evaluate_loop(const Expression& e, int depth) {
    const Node* collection = evaluate(*e.a, depth + 1);
    if (!collection || collection->is_scalar() || collection->count() > kMostItems) return nullptr;
    Node& result = file_.tree.make(file_.source(), e.object ? Shape::object : Shape::array, span_of(e));
    std::size_t number = 0;
    for (const Node& item : children(collection)) {
        const Node* value = settle(&item);
        copies_ += 2;
        if (copies_ > kFewCopies + file_.source().text().size() / 4) return nullptr;
        Node& key = file_.tree.make(file_.source(), Shape::string, span_of(e));
        key.text = collection->is_object() ? item.key : file_.tree.keep(std::to_string(number));
        ++number;
        const std::size_t before = bindings_.size();
        bindings_.push_back({e.name, value});
        if (!e.other.empty()) bindings_.push_back({e.other, &key});
        bool wanted = true, known = true;
        if (e.c) {
            const auto yes = truth(evaluate(*e.c, depth + 1));
            known = yes.has_value();
            wanted = yes.value_or(false);
        }
        const Node* made_value = known && wanted ? evaluate(*e.b, depth + 1) : nullptr;
        const Node* made_key = known && wanted && e.key ? evaluate(*e.key, depth + 1) : nullptr;
        bindings_.resize(before);
        if (!known) return nullptr;
        if (!wanted) continue;
        Node* copied = made_value ? copy(made_value, depth + 1) : nullptr;
        if (!copied) {
            copied = &file_.tree.make(file_.source(), Shape::string, span_of(e));
            copied->known = false;
        }
        if (e.key) {
            if (!known_scalar(made_key)) return nullptr;
            copied->key = made_key->text;
        }
        file_.tree.append(result, *copied);
    }
    return &result;
}

const Node* Evaluator::neighbour(const Node* name) {
    if (!known_scalar(name) || !options_.neighbour) return nullptr;
    std::string path(name->text);
    if (path.starts_with("./")) path.erase(0, 2);
    if (path.empty() || path[0] == '/' || path[0] == '~' || path.find("..") != std::string::npos) return nullptr;
    auto text = options_.neighbour(path);
    if (!text || text->size() > kMostBytes) return nullptr;
    file_.neighbours.push_back(std::make_unique<File>(path, std::move(*text)));
    File& file = *file_.neighbours.back();
    Node& node =
        file.tree.make(file.source(), Shape::string, {0, static_cast<std::uint32_t>(file.source().text().size())});
    node.text = file.source().text();
    return &node;
}

const Node* Evaluator::evaluate_call(const Expression& e, int depth) {
    // Lazy ones first: what is not chosen need not be known.
    if ((e.name == "if" || e.name == "ternary") && e.first && e.first->next && e.first->next->next) {
        const auto yes = truth(evaluate(*e.first, depth + 1));
        return yes ? evaluate(*yes ? *e.first->next : *e.first->next->next, depth + 1) : nullptr;
    }
    if (e.name == "try" || e.name == "coalesce") {
        for (const Expression* argument = e.first; argument; argument = argument->next) {
            const Node* value = evaluate(*argument, depth + 1);
            if (!value) return nullptr;
            if (value->shape != Shape::null &&
                !(e.name == "coalesce" && value->shape == Shape::string && value->text.empty()))
                return value;
        }
        return nullptr;
    }
    if (dialect_ == Dialect::arm && (e.name == "parameters" || e.name == "variables") && e.first) {
        const Node* name = evaluate(*e.first, depth + 1);
        return known_scalar(name) ? settle(lookup(e.name, name->text)) : nullptr;
    }
    Args args;
    for (const Expression* argument = e.first; argument; argument = argument->next) {
        if (args.size() >= kMostItems) return nullptr;
        args.push_back(evaluate(*argument, depth + 1));
    }
    return function(e.name, args, e);
}

// format("%s-%02d", ...) of HCL and format('{0}-{1}', ...) of the others.
const Node* Evaluator::formatted(const Args& args, const Expression& e) {
    if (!std::all_of(args.begin(), args.end(), known_scalar)) return nullptr;
    const std::string_view pattern = args[0]->text;
    std::string out;
    std::size_t next = 1;
    for (std::size_t i = 0; i < pattern.size() && out.size() <= kMostTextBytes; ++i) {
        const char c = pattern[i];
        if (dialect_ == Dialect::hcl && c == '%') {
            if (++i < pattern.size() && pattern[i] == '%') {
                out += '%';
                continue;
            }
            std::size_t width = 0;
            while (i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9')
                width = std::min<std::size_t>(width * 10 + static_cast<std::size_t>(pattern[i++] - '0'), 64);
            if (i >= pattern.size() || next >= args.size() ||
                (pattern[i] != 's' && pattern[i] != 'd' && pattern[i] != 'v'))
                return nullptr;
            const std::string_view text = args[next++]->text;
            if (text.size() < width) out.append(width - text.size(), pattern[i] == 'd' ? '0' : ' ');
            out += text;
        } else if (dialect_ != Dialect::hcl && c == '{' && i + 1 < pattern.size() && pattern[i + 1] != '{') {
            const std::size_t end = pattern.find('}', i);
            std::size_t index = 0;
            if (end == std::string_view::npos) return nullptr;
            const std::string_view inner = pattern.substr(i + 1, end - i - 1);
            const auto [stop, error] = std::from_chars(inner.data(), inner.data() + inner.size(), index);
            if (error != std::errc{} || stop != inner.data() + inner.size() || index + 1 >= args.size()) return nullptr;
            out += args[index + 1]->text;
            i = end;
        } else {
            if ((c == '{' || c == '}') && dialect_ != Dialect::hcl && i + 1 < pattern.size() && pattern[i + 1] == c)
                ++i;
            out += c;
        }
    }
    return made(std::move(out), Shape::string, e);
}

const Node* Evaluator::function(std::string_view name, const Args& args, const Expression& e) {
    const auto is = [&](std::string_view wanted) { return equals_ignore_case(name, wanted); };
    const auto any = [&](std::initializer_list<std::string_view> names) {
        return std::any_of(names.begin(), names.end(), is);
    };
    const Node* first = args.empty() ? nullptr : args[0];
    const bool all_scalars = std::all_of(args.begin(), args.end(), known_scalar);
    // The decoded text is what rules want to see: base64 is looked through.
    if (any({"tostring", "tonumber", "tobool", "toset", "tolist", "tomap", "string", "int", "bool", "sensitive",
             "nonsensitive", "base64encode", "base64", "base64gzip", "any", "array", "json", "jsonencode",
             "trimspace"}) &&
        args.size() == 1) {
        if (is("json") && first && first->text == "null")
            return &file_.tree.make(file_.source(), Shape::null, span_of(e));
        if (is("json") && !known_scalar(first)) return nullptr;
        return first;
    }
    if (is("null") && args.empty()) return &file_.tree.make(file_.source(), Shape::null, span_of(e));
    if (any({"file", "templatefile", "loadTextContent", "filebase64", "loadFileAsBase64"})) return neighbour(first);
    if (any({"concat", "union", "createArray", "flatten", "distinct"}) && !args.empty()) {
        if (is("concat") && dialect_ != Dialect::hcl && all_scalars) {
            std::string text;
            for (const Node* arg : args) text += arg->text;
            return made(std::move(text), Shape::string, e);
        }
        if (std::any_of(args.begin(), args.end(), [](const Node* arg) { return !arg; })) return nullptr;
        Node& list = file_.tree.make(file_.source(), first->is_object() ? Shape::object : Shape::array, span_of(e));
        const auto add = [&](const Node* item) {
            if (Node* copied = copy(settle(item), 1)) file_.tree.append(list, *copied);
        };
        for (const Node* arg : args) {
            if (is("createArray") || arg->is_scalar())
                add(arg);
            else
                for (const Node& item : children(arg)) add(&item);
        }
        return &list;
    }
    if (is("merge")) {
        if (std::any_of(args.begin(), args.end(), [](const Node* arg) { return !arg || !arg->is_object(); }))
            return nullptr;
        Node& object = file_.tree.make(file_.source(), Shape::object, span_of(e));
        for (const Node* arg : args)
            for (const Node& item : children(arg))
                if (Node* copied = copy(settle(&item), 1)) file_.tree.append(object, *copied);
        return &object;
    }
    if (is("format") && !args.empty()) return formatted(args, e);
    if (any({"lower", "toLower", "upper", "toUpper"}) && known_scalar(first))
        return made(any({"lower", "toLower"}) ? lower(first->text) : upper(first->text), Shape::string, e);
    if (is("lookup") && args.size() >= 2 && first && known_scalar(args[1])) {
        const Node* found = member_of(first, args[1]->text);
        return found ? settle(found) : args.size() > 2 ? args[2] : nullptr;
    }
    if (is("element") && args.size() == 2 && first && first->first && number_in(args[1]))
        return settle(item_at(first, static_cast<std::size_t>(std::abs(*number_in(args[1]))) % first->count()));
    if (any({"first", "one"}) && first && first->is_array()) return settle(first->first);
    if (any({"length", "empty"}) && first) {
        const std::size_t size = first->is_scalar() ? first->text.size() : first->count();
        if (!first->is_scalar()) steps_ += size / 8;
        if (first->is_scalar() && !first->known) return nullptr;
        return is("length") ? made_number(static_cast<double>(size), e) : made_bool(size == 0, e);
    }
    if (is("keys") && first && first->is_object()) {
        Node& list = file_.tree.make(file_.source(), Shape::array, span_of(e));
        for (const Node& item : children(first)) {
            Node& key = file_.tree.make(*item.source, Shape::string, item.key_span);
            key.text = item.key;
            file_.tree.append(list, key);
        }
        return &list;
    }
    if (is("join") && args.size() == 2) {
        const bool list_last = dialect_ == Dialect::hcl;
        const Node* list = list_last ? args[1] : args[0];
        const Node* between = list_last ? args[0] : args[1];
        if (!list || !list->is_array() || !known_scalar(between)) return nullptr;
        std::string text;
        for (const Node& item : children(list)) {
            if (!known_scalar(settle(&item)) || text.size() > kMostTextBytes) return nullptr;
            if (&item != list->first) text += between->text;
            text += item.text;
        }
        return made(std::move(text), Shape::string, e);
    }
    if (is("split") && args.size() == 2 && all_scalars) {
        const Node* whole = dialect_ == Dialect::hcl ? args[1] : args[0];
        const Node* mark = dialect_ == Dialect::hcl ? args[0] : args[1];
        if (mark->text.size() != 1 || whole->text.size() > kMostTextBytes) return nullptr;
        Node& list = file_.tree.make(file_.source(), Shape::array, span_of(e));
        for (const std::string_view part : split(whole->text, mark->text[0])) {
            Node& item = file_.tree.make(file_.source(), Shape::string, span_of(e));
            item.text = part;
            file_.tree.append(list, item);
        }
        return &list;
    }
    if (is("replace") && args.size() == 3 && all_scalars && !args[1]->text.empty() && !args[1]->text.starts_with('/'))
        return made(replace_all(first->text, args[1]->text, args[2]->text), Shape::string, e);
    if (any({"equals", "not", "and", "or"})) {
        if (is("equals"))
            return args.size() == 2 && all_scalars ? made_bool(args[0]->text == args[1]->text, e) : nullptr;
        if (is("not")) return truth(first) ? made_bool(!*truth(first), e) : nullptr;
        bool all = true;
        for (const Node* arg : args) {
            const auto yes = truth(arg);
            if (yes && *yes == is("or")) return made_bool(is("or"), e);
            all = all && yes;
        }
        return all ? made_bool(is("and"), e) : nullptr;
    }
    if (args.size() == 2 && number_in(args[0]) && number_in(args[1])) {
        const double a = *number_in(args[0]), b = *number_in(args[1]);
        if (is("add")) return made_number(a + b, e);
        if (is("sub")) return made_number(a - b, e);
        if (is("mul")) return made_number(a * b, e);
        if (is("div") && b != 0) return made_number(std::trunc(a / b), e);
        if (is("mod") && b != 0) return made_number(std::fmod(a, b), e);
        if (is("min")) return made_number(std::min(a, b), e);
        if (is("max")) return made_number(std::max(a, b), e);
        if (is("greater")) return made_bool(a > b, e);
        if (is("less")) return made_bool(a < b, e);
        if (is("greaterOrEquals")) return made_bool(a >= b, e);
        if (is("lessOrEquals")) return made_bool(a <= b, e);
        if (is("range") && dialect_ == Dialect::hcl ? b - a <= kMostItems : b <= kMostItems && is("range")) {
            const double from = a, count = dialect_ == Dialect::hcl ? b - a : b;
            Node& list = file_.tree.make(file_.source(), Shape::array, span_of(e));
            for (double i = 0; i < count; ++i)
                if (const Node* item = made_number(from + i, e)) file_.tree.append(list, *const_cast<Node*>(item));
            return &list;
        }
    }
    if (is("contains") && args.size() == 2 && first && known_scalar(args[1])) {
        if (first->is_scalar())
            return known_scalar(first) ? made_bool(first->text.find(args[1]->text) != std::string_view::npos, e)
                                       : nullptr;
        if (first->is_object()) return made_bool(member_of(first, args[1]->text) != nullptr, e);
        for (const Node& item : children(first)) {
            if (!known_scalar(settle(&item))) return nullptr;
            if (item.text == args[1]->text) return made_bool(true, e);
        }
        return made_bool(false, e);
    }
    if (any({"startsWith", "endsWith"}) && args.size() == 2 && all_scalars)
        return made_bool(is("startsWith") ? starts_with_ignore_case(first->text, args[1]->text)
                                          : lower(first->text).ends_with(lower(args[1]->text)),
                         e);
    return nullptr;
}

}  // namespace stoker::lint
