// Gives expressions their values, where these are written in the file or beside it. What their functions give is in
// functions.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "lint/hcl/bounds.h"

namespace stoker::lint {

namespace {

using Part = Expression::Kind;
using namespace evaluation;

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
        if (child.key == "..." && dialect_ == Dialect::bicep)
            if (const Node* spread = settle(&child); spread->is_object())
                if (const Node* inside = member_of(spread, key)) found = inside;
        steps_ += ++seen % 8 == 0;
    }
    return found;
}

bool Evaluator::spend() {
    return ++steps_ < kMostSteps;
}

const Node* Evaluator::made(std::string text, Shape shape, const Expression& e) {
    bytes_ += text.size();
    if (text.size() > kMostTextBytes || bytes_ > 4 * written_ + kMostTextBytes) return nullptr;
    if (++copies_ > kFewCopies + written_ / 4) return nullptr;
    Node& node = file_.tree.make(at_hand(), shape, span_of(e));
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
    for (const auto& [node, pending] : expressions_.pending)
        if (node->source == &file_.source()) waiting.push_back(node);
    std::sort(waiting.begin(), waiting.end(),
              [](const Node* a, const Node* b) { return a->span.begin < b->span.begin; });
    for (const Node* node : waiting) settle(node);
}

const Node* Evaluator::settle(const Node* node) {
    if (!by_default_.empty() && by_default_.contains(node)) on_default_ = true;
    File* const written_in = node && !node->known ? file_of(*node) : nullptr;
    if (!written_in) return node;
    const auto it = expressions_.pending.find(node);
    if (it == expressions_.pending.end() || it->second.state != Expressions::State::waiting) return node;
    it->second.state = Expressions::State::under_way;
    const Expression* e = it->second.expression;
    const auto outer = std::move(bindings_);  // what is bound in a loop is not seen where a name was defined
    bindings_.clear();
    const Span outer_span = std::exchange(holder_, node->span);
    File* const outer_file = std::exchange(at_hand_, written_in);
    const bool outer_default = std::exchange(on_default_, false);
    const Node* value = evaluate(*e, 0);
    if (on_default_) by_default_.insert(node);
    on_default_ = on_default_ || outer_default;
    holder_ = outer_span;
    at_hand_ = outer_file;
    bindings_ = outer;
    expressions_.pending[node].state = Expressions::State::done;
    if (!value || value == node) return node;
    Node& mine = const_cast<Node&>(*node);  // made by this front end, and not yet seen by others
    if (!value->known && value->is_scalar()) {
        // A manifest or a script with a hole that nobody can fill: what fills the others is read all the same.
        if (value->style == Style::heredoc && mine.style == Style::heredoc) mine.text = value->text;
        return node;
    }
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

File* Evaluator::file_of(const Node& node) const {
    if (node.source == &file_.source()) return &file_;
    for (File* other : joined_)
        if (node.source == &other->source()) return other;
    return nullptr;
}

void Evaluator::settle_below(const Node* node, int depth) {
    settle(node);
    if (depth < kExpressionDepth && node)
        for (const Node& child : children(node)) settle_below(&child, depth + 1);
}

void Evaluator::flatten_spreads(Node& node, int depth) {
    // Lists are shared by all that name them: each is gone through once, what it holds before it.
    std::unordered_set<const Node*> seen;
    const auto flatten = [&](const auto& self, Node& at, int deep) -> void {
        if (at.is_scalar() || deep > kExpressionDepth || !spend()) return;
        const bool fresh = seen.insert(at.first).second;
        bool spreads = false;
        for (const Node& child : children(&at)) {
            const bool spread = at.is_object() && child.key == "...";
            spreads = spreads || spread;
            if (fresh) self(self, const_cast<Node&>(*(spread ? settle(&child) : &child)), deep + 1);
        }
        if (!spreads) return;
        std::vector<const Node*> members;
        const auto add = [&](const Node& member) {
            std::erase_if(members, [&](const Node* own) { return own->key == member.key && !member.key.empty(); });
            members.push_back(&member);
        };
        for (const Node& child : children(&at)) {
            const Node* whole = child.key == "..." ? settle(&child) : nullptr;
            if (whole && whole->is_object() && whole->known)
                for (const Node& member : children(whole)) add(*settle(&member));
            else
                add(child);
        }
        at.first = at.last = nullptr;
        for (const Node* member : members) {
            Node& made = file_.tree.make(*member->source, member->shape, member->span);
            made.style = member->style, made.known = member->known, made.text = member->text;
            made.key = member->key, made.key_span = member->key_span, made.labels = member->labels;
            made.first = member->first, made.last = member->last, made.origin = member->origin;
            file_.tree.append(at, made);
        }
    };
    flatten(flatten, node, depth);
}

Node* Evaluator::copy(const Node* node, int depth) {
    if (!node || depth > kExpressionDepth || !spend()) return nullptr;
    if (++copies_ > kFewCopies + written_ / 4) return nullptr;
    Node& made = file_.tree.make(*node->source, node->shape, node->span);
    made.style = node->style, made.known = node->known, made.merged = node->merged;
    made.key = node->key, made.key_span = node->key_span, made.text = node->text;
    made.labels = node->labels, made.origin = node->origin;
    if (const auto it = expressions_.pending.find(node); it != expressions_.pending.end()) {
        File* const outer_file = at_hand_;
        if (File* const written_in = file_of(*node)) at_hand_ = written_in;
        if (const Node* value = evaluate(*it->second.expression, depth + 1);
            value && (value->known || !value->is_scalar() || value->style == Style::heredoc)) {
            made.shape = value->shape, made.style = value->style, made.text = value->text;
            made.known = value->known || !value->is_scalar();
            made.first = value->first, made.last = value->last;
            const Node* origin = value->origin ? value->origin : value;
            if (origin->source != made.source || !made.span.contains(origin->span)) made.origin = origin;
        }
        at_hand_ = outer_file;
        return &made;
    }
    for (const Node& child : children(node)) {
        if (child.key == "dynamic" && dialect_ == Dialect::hcl && expand_dynamic(child, made, depth + 1)) continue;
        if (Node* copied = copy(&child, depth + 1)) file_.tree.append(made, *copied);
    }
    return &made;
}

bool Evaluator::expand_dynamic(const Node& dynamic, Node& parent, int depth) {
    const Node *each = dynamic.find("for_each"), *content = dynamic.find("content");
    if (dynamic.labels.empty() || !each || !content) return false;
    const auto it = expressions_.pending.find(each);
    const Node* over = it != expressions_.pending.end() ? evaluate(*it->second.expression, depth + 1) : each;
    if (!over || over->is_scalar() || over->count() > kMostItems) return false;
    const Node* iterator = dynamic.find("iterator");
    const std::string_view name = iterator ? iterator->text : dynamic.labels[0];
    for (const Node& item : children(over)) {
        const Node* value = settle(&item);
        Node& pair = file_.tree.make(*dynamic.source, Shape::object, dynamic.span);
        Node& key = file_.tree.make(*item.source, Shape::string, item.span);
        key.text = over->is_object() ? item.key : value->text;
        key.known = over->is_object() || value->known;
        key.key = "key";
        file_.tree.append(pair, key);
        put_copy(pair, value, "value");
        bindings_.push_back({name, &pair});
        Node* made = copy(content, depth + 1);
        bindings_.pop_back();
        if (!made) return true;  // out of its bounds: what is there stays
        made->key = dynamic.labels[0], made->key_span = dynamic.key_span;
        file_.tree.append(parent, *made);
    }
    return true;
}

void Evaluator::put_copy(Node& parent, const Node* item, std::string_view key) {
    Node* copied = copy(item, 1);
    if (!copied) return;
    if (!key.empty()) copied->key = key;
    file_.tree.append(parent, *copied);
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
        case Part::lambda:
        case Part::unknown: return nullptr;
    }
    return nullptr;
}

const Node* Evaluator::evaluate_binary(const Expression& e, int depth) {
    const Node* left = evaluate(*e.a, depth + 1);
    if (e.op == '?') {
        if ((left && left->shape == Shape::null && left->known) || (!left && lacks(*e.a, depth + 1)))
            return evaluate(*e.b, depth + 1);
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
    if (e.node) return filled_heredoc(e);
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
    Node& result = file_.tree.make(at_hand(), e.object ? Shape::object : Shape::array, span_of(e));
    std::size_t number = 0;
    for (const Node& item : children(collection)) {
        const Node* value = settle(&item);
        copies_ += 2;
        if (copies_ > kFewCopies + written_ / 4) return nullptr;
        Node& key = file_.tree.make(at_hand(), Shape::string, span_of(e));
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
            copied = &file_.tree.make(at_hand(), Shape::string, span_of(e));
            copied->known = false;
        }
        if (e.key) {
            if (!known_scalar(made_key)) return nullptr;
            copied->key = made_key->text;
            if (e.op == '*') {
                Node* group = const_cast<Node*>(result.find(made_key->text));
                if (!group) {
                    group = &file_.tree.make(at_hand(), Shape::array, span_of(e));
                    group->key = made_key->text;
                    file_.tree.append(result, *group);
                }
                copied->key = {};
                file_.tree.append(*group, *copied);
                continue;
            }
        }
        file_.tree.append(result, *copied);
    }
    return &result;
}

const Node* Evaluator::evaluate_call(const Expression& e, int depth) {
    // Lazy ones first: what is not chosen need not be known.
    if ((e.name == "if" || e.name == "ternary") && e.first && e.first->next && e.first->next->next) {
        const auto yes = truth(evaluate(*e.first, depth + 1));
        return yes ? evaluate(*yes ? *e.first->next : *e.first->next->next, depth + 1) : nullptr;
    }
    if (e.name == "can" && e.first && dialect_ == Dialect::hcl) {
        const Node* value = evaluate(*e.first, depth + 1);
        if (known_scalar(value) || (value && !value->is_scalar())) return made_bool(true, e);
        return lacks(*e.first, depth + 1) ? made_bool(false, e) : nullptr;
    }
    if (e.name == "try" || e.name == "coalesce") {
        for (const Expression* argument = e.first; argument; argument = argument->next) {
            const Node* value = evaluate(*argument, depth + 1);
            if (!value && !lacks(*argument, depth + 1)) return nullptr;
            if (value && value->shape != Shape::null &&
                !(e.name == "coalesce" && value->shape == Shape::string && value->text.empty()))
                return value;
        }
        return nullptr;
    }
    if (dialect_ == Dialect::arm && (e.name == "parameters" || e.name == "variables") && e.first) {
        const Node* name = evaluate(*e.first, depth + 1);
        if (!known_scalar(name)) return nullptr;
        if (e.name == "parameters")  // of a function
            for (auto it = bindings_.rbegin(); it != bindings_.rend(); ++it)
                if (it->name == name->text) return it->value;
        return settle(lookup(e.name, name->text));
    }
    if (dialect_ == Dialect::arm && equals_ignore_case(e.name, "copyIndex")) return copy_index(e, depth + 1);
    if (dialect_ == Dialect::arm && equals_ignore_case(e.name, "lambdaVariables") && e.first) {
        const Node* name = evaluate(*e.first, depth + 1);
        for (auto it = bindings_.rbegin(); known_scalar(name) && it != bindings_.rend(); ++it)
            if (it->name == name->text) return it->value;
        return nullptr;
    }
    const auto is_lambda = [&](const Expression* argument) {
        return argument &&
               (argument->kind == Part::lambda || (dialect_ == Dialect::arm && argument->kind == Part::call &&
                                                   equals_ignore_case(argument->name, "lambda")));
    };
    if (e.first && e.first->next && (is_lambda(e.first->next) || is_lambda(e.first->next->next)))
        return with_lambda(e, depth + 1);
    if (!expressions_.functions.empty()) {
        std::string name(e.name);
        if (e.a && e.a->kind == Part::name) name = std::string(e.a->name) + "." + name;
        if (const auto it = expressions_.functions.find(name); it != expressions_.functions.end())
            return called(it->second, e, depth + 1);
    }
    Args args;
    for (const Expression* argument = e.first; argument; argument = argument->next) {
        if (args.size() >= kMostItems) return nullptr;
        args.push_back(evaluate(*argument, depth + 1));
        if (e.op == '*' && !argument->next) {
            const Node* rest = args.back();
            if (!rest || !rest->is_array() || rest->count() > kMostItems) return nullptr;
            args.pop_back();
            for (const Node& item : children(rest)) args.push_back(settle(&item));
        }
    }
    return function(e.name, args, e);
}

}  // namespace stoker::lint
