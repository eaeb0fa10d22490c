// Bicep: statements with their expressions. A statement is an object under the root: key "param", "var", "resource",
// "module" ..., labels its symbol, its type and "existing", and below it
//   value    default of a param, value of a var, body of a resource or module (of a loop: of each round)
//   loop     what a resource or module is repeated over
//   rounds   the bodies of all rounds, where that list is written
//   if       its condition
//   allowed  values that a decorator or the type of a param offers
#include <algorithm>

#include "base/text.h"
#include "lint/hcl/expression.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostBicepProblems = 20;

class BicepReader {
public:
    BicepReader(File& file, Expressions& expressions)
        : file_(file), in_(file, expressions, Dialect::bicep, file.source().text()) {}

    void read() {
        if (file_.source().text().starts_with("\xEF\xBB\xBF")) in_.at = 3;
        root_ = &file_.tree.make(file_.source(), Shape::object, {0, in_.size()});
        file_.tree.roots.push_back(root_);
        for (;;) {
            in_.skip(true);
            if (in_.done()) return;
            const std::uint32_t begin = in_.at;
            if (!statement()) {
                const auto* fault = in_.fault();
                if (fault && file_.problems.size() < kMostBicepProblems)
                    file_.problems.push_back(
                        {fault->depth ? "SYN005" : "SYN001", fault->span, fault->message, &file_.source()});
                in_.clear();
                allowed_ = nullptr;
                recover(begin);
            }
        }
    }

private:
    // To the next line that begins with a word or "@": there a statement begins.
    void recover(std::uint32_t begin) {
        const std::string_view text = file_.source().text();
        for (std::size_t at = text.find('\n', std::max(in_.at, begin)); at != std::string_view::npos;
             at = text.find('\n', at + 1)) {
            const char c = at + 1 < text.size() ? text[at + 1] : '\0';
            if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '@') {
                in_.at = static_cast<std::uint32_t>(at + 1);
                return;
            }
        }
        in_.at = in_.size();
    }

    bool statement() {
        if (in_.peek() == '@') return decorator();
        const std::uint32_t begin = in_.at;
        const std::string_view word = in_.identifier();
        if (word.empty()) return in_.fail("expected a statement"), false;
        Node& made = file_.tree.make(file_.source(), Shape::object, {begin, begin});
        made.key = word;
        made.key_span = {begin, in_.at};
        const Node* allowed = allowed_;
        allowed_ = nullptr;
        in_.skip(false);
        bool good = true;
        if (word == "param" || word == "output" || word == "var" || word == "metadata" || word == "assert") {
            std::vector<std::string_view> labels{in_.identifier()};
            if (labels[0].empty()) return in_.fail("expected a name"), false;
            in_.skip(false);
            const std::uint32_t type = in_.at;
            Node* offered = skip_type(true);
            if (in_.at > type) labels.push_back(in_.text({type, in_.at}));
            made.labels = file_.tree.keep_labels(labels);
            if (!allowed) allowed = offered;
            good = value_of(made, "value");
        } else if (word == "targetScope") {
            good = value_of(made, "value");
        } else if (word == "resource" || word == "module") {
            good = resource(made);
        } else if (word == "func") {
            const std::string_view name = in_.identifier();
            good = in_.function(std::string(name));
        } else if (word == "type") {
            in_.identifier();
            in_.skip(false);
            if (in_.peek() == '=') ++in_.at, in_.skip(true);
            skip_type(false);
        } else if (word == "import" || word == "using") {
            const std::uint32_t from = in_.at;
            skip_type(false);
            made.labels = file_.tree.keep_labels(words_of(in_.text({from, in_.at})));
        } else if (word == "extension" || word == "provider" || word == "extends") {
            skip_type(false);
        } else {
            in_.fail("no statement begins with this word", made.key_span);
            return false;
        }
        if (!good) return false;
        if (allowed) {
            Node& list = const_cast<Node&>(*allowed);
            list.key = "allowed";
            file_.tree.append(made, list);
        }
        made.span.end = in_.at;
        file_.tree.append(*root_, made);
        in_.skip(false);
        if (!in_.done() && in_.peek() != '\n') return in_.fail("expected the end of the line"), false;
        return true;
    }

    // @description('...'), @allowed([...]), @sys.allowed(...)
    bool decorator() {
        ++in_.at;
        const Expression* e = in_.expression(0);
        if (!e) return false;
        if (e->kind == Expression::Kind::call && e->name == "allowed" && e->first &&
            e->first->kind == Expression::Kind::value && e->first->node->is_array())
            allowed_ = e->first->node;
        return true;
    }

    // To "=" (when `assigned`) or the end of the line, over brackets, strings and lines that begin with "|". The
    // literals of a union of strings, when there are two or more.
    Node* skip_type(bool assigned) {
        Node* list = nullptr;
        int open = 0;
        for (; !in_.done();) {
            const char c = in_.peek();
            if (c == '/' && (in_.peek(1) == '/' || in_.peek(1) == '*')) {
                in_.skip(false);
                continue;
            }
            if (c == '\'') {
                const std::uint32_t begin = in_.at;
                Node* literal = in_.string_node(0);
                if (!literal) {
                    in_.clear();
                    in_.at = std::max(begin + 1, in_.at);
                    continue;
                }
                if (open == 0) {
                    if (!list) list = &file_.tree.make(file_.source(), Shape::array, {begin, begin});
                    file_.tree.append(*list, *literal);
                    list->span.end = in_.at;
                }
                continue;
            }
            if (c == '{' || c == '[' || c == '(') ++open;
            if (c == '}' || c == ']' || c == ')') --open;
            if (open == 0 && c == '@') {  // a decorator within a type: its argument is no type
                ++in_.at;
                continue;
            }
            if (open <= 0 && assigned && c == '=' && in_.peek(1) != '=') break;
            if (open <= 0 && c == '\n') {
                const std::uint32_t here = in_.at;
                in_.skip(true);
                if (in_.peek() != '|' && in_.peek() != '?') {
                    in_.at = here;
                    break;
                }
                continue;
            }
            ++in_.at;
        }
        return list && list->first != list->last ? list : nullptr;
    }

    // Names and strings, in order, without what stands between them: {a as b, c} from 'x.bicep'.
    static std::vector<std::string_view> words_of(std::string_view text) {
        std::vector<std::string_view> words;
        for (std::size_t at = 0; at < text.size();) {
            const bool quoted = text[at] == '\'';
            const std::size_t end = quoted ? std::min(text.find('\'', at + 1), text.size())
                                           : std::min(text.find_first_of(" \t\r\n,{}'", at), text.size());
            if (quoted) words.push_back(text.substr(at + 1, end - at - 1));
            if (!quoted && end > at) words.push_back(text.substr(at, end - at));
            at = quoted || end == at ? end + 1 : end;
        }
        return words;
    }

    bool value_of(Node& made, std::string_view key) {
        in_.skip(false);
        if (in_.peek() != '=') return true;  // a param without a default
        ++in_.at;
        in_.skip(true);
        Node* value = in_.value(0);
        if (!value) return false;
        value->key = key;
        file_.tree.append(made, *value);
        return true;
    }

    bool resource(Node& made) {
        std::vector<std::string_view> labels{in_.identifier()};
        if (labels[0].empty()) return in_.fail("expected a name"), false;
        in_.skip(false);
        if (in_.peek() != '\'') return in_.fail("expected the type in quotes"), false;
        Node* type = in_.string_node(0);
        if (!type) return false;
        labels.push_back(type->text);
        in_.skip(false);
        if (in_.word_is("existing")) {
            in_.at += 8;
            labels.push_back("existing");
            in_.skip(false);
        }
        made.labels = file_.tree.keep_labels(labels);
        if (in_.peek() != '=') return in_.fail("expected \"=\" and the body"), false;
        ++in_.at;
        in_.skip(true);
        if (in_.word_is("if")) {
            in_.at += 2;
            in_.skip(true);
            if (in_.peek() != '(') return in_.fail("expected the condition in parentheses"), false;
            ++in_.at;
            in_.skip(true);
            Node* condition = in_.value(0);
            if (!condition) return false;
            in_.skip(true);
            if (in_.peek() != ')') return in_.fail("expected \")\""), false;
            ++in_.at;
            in_.skip(true);
            condition->key = "if";
            file_.tree.append(made, *condition);
        }
        const Expression* e = in_.expression(0);
        if (!e) return false;
        if (e->kind == Expression::Kind::loop) {
            // The list is needed for its length alone: its own node, apart from the one the loop settles.
            if (Node* over = in_.node_of(e->a->kind == Expression::Kind::value ? nullptr : e->a)) {
                over->key = "loop";
                file_.tree.append(made, *over);
            } else if (e->a->kind == Expression::Kind::value && !e->a->node->is_scalar()) {
                e->a->node->key = "loop";
                file_.tree.append(made, *e->a->node);
            }
            Node* rounds = in_.node_of(e);  // a list of bodies, when the list can be followed
            rounds->key = "rounds";
            file_.tree.append(made, *rounds);
            e = e->b;
        }
        // The loop keeps the expression of its body: it is not handed over here.
        Node* value = e->kind == Expression::Kind::value ? e->node : in_.node_of(e);
        if (!value) return false;
        value->key = "value";
        file_.tree.append(made, *value);
        return true;
    }

    File& file_;
    ExpressionReader in_;
    Node* root_ = nullptr;
    const Node* allowed_ = nullptr;
};

class BicepEvaluator : public Evaluator {
public:
    using Evaluator::Evaluator;
    void learn() {
        for (const Node& statement : children(file_.tree.roots[0])) {
            const bool parameter = statement.key == "param";
            if ((!parameter && statement.key != "var") || statement.labels.empty()) continue;
            const Node* value = statement.find("value");
            if (!value && parameter && statement.labels.size() > 1 && trim(statement.labels[1]).ends_with('?'))
                value = &file_.tree.make(file_.source(), Shape::null, statement.span);
            if (value) symbols_.emplace(statement.labels[0], Symbol{value, parameter});
        }
        for (const Node& statement : children(file_.tree.roots[0]))
            if (statement.key == "import" || statement.key == "using") imported(statement);
        if (!file_.call) return given();
        for (const auto& [name, value] : file_.call->inputs) symbols_.insert_or_assign(name, Symbol{value, false});
    }
    // What the file itself says is not made: if (false), a loop over nothing. What a default switches off is on offer.
    void drop_absent() {
        for (const Node& statement : children(file_.tree.roots[0])) {
            if (statement.key != "resource" && statement.key != "module") continue;
            const Node *condition = statement.find("if"), *rounds = statement.find("rounds");
            const bool off =
                condition && Value::of(condition).as_bool() == std::optional(false) && !rests_on_default(condition);
            const bool none =
                rounds && rounds->known && rounds->is_array() && !rounds->first && !rests_on_default(rounds);
            if (off || none) const_cast<Node&>(statement).key = "not made";
        }
    }

protected:
    const Node* lookup(std::string_view space, std::string_view name) override {
        if (!space.empty()) return nullptr;
        const auto it = symbols_.find(name);
        if (it == symbols_.end()) return outputs_of(name);
        on_default_ = on_default_ || it->second.by_default;
        return it->second.value;
    }

private:
    const File* beside(const std::string& name, std::optional<ModuleCall> call = std::nullopt) {
        const std::size_t slash = file_.path().rfind('/');
        const std::string folder = slash == std::string::npos ? "" : file_.path().substr(0, slash + 1);
        std::string relative = name;
        while (relative.starts_with("./")) relative.erase(0, 2);
        if (folder + relative == file_.path()) return nullptr;
        auto text = options_.neighbour(relative);
        if (!text || text->size() > kMostBytes || text->find('\0') != std::string::npos) return nullptr;
        file_.neighbours.push_back(std::make_unique<File>(folder + relative, std::move(*text)));
        File& read = *file_.neighbours.back();
        if (relative.ends_with(".json")) {
            read.kinds.add(Kind::arm);
            read_json(read);
        } else {
            read.kinds.add(Kind::bicep);
            read.call = std::move(call);
            ReadOptions inside;
            if (const std::size_t end = relative.rfind('/'); read.call) {
                const std::string below = end == std::string::npos ? "" : relative.substr(0, end + 1);
                inside.neighbour = [outer = options_.neighbour, below](const std::string& path) {
                    return outer(below + path);
                };
            }
            read_bicep(read, inside);
        }
        return read.tree.roots.empty() ? nullptr : &read;
    }
    // A module's symbol: an object with what the file beside gives for these parameters.
    const Node* outputs_of(std::string_view name) {
        if (!options_.neighbour || file_.host) return nullptr;
        const Node* call = nullptr;
        for (const Node& statement : children(file_.tree.roots[0]))
            if (statement.key == "module" && statement.labels.size() > 1 && statement.labels[0] == name)
                call = &statement;
        if (!call) return nullptr;
        const auto [it, fresh] = modules_.emplace(name, nullptr);  // while it is worked out, it is not known
        if (!fresh) return it->second;
        const std::string_view path = call->labels[1];
        const int depth = file_.call ? file_.call->depth + 1 : 1;
        const Node* value = call->find("value");
        if (depth > 2 || modules_.size() > 8 || !path.ends_with(".bicep") || call->find("rounds") || !value)
            return nullptr;
        settle_below(value);
        ModuleCall made;
        made.name = name;
        made.caller = &file_;
        made.span = call->key_span;
        made.depth = depth;
        for (const Node& argument : children(value->find("params"))) made.inputs.emplace_back(argument.key, &argument);
        const File* read = beside(std::string(path), std::move(made));
        if (!read) return nullptr;
        Node& result = file_.tree.make(file_.source(), Shape::object, call->span);
        Node& outputs = file_.tree.make(file_.source(), Shape::object, call->span);
        outputs.key = "outputs";
        file_.tree.append(result, outputs);
        append_values(outputs, *read, "output");
        return modules_[name] = &result;
    }
    // The values that a file states as `var NAME = ...` or `output NAME type = ...`, under their names.
    void append_values(Node& all, const File& from, std::string_view statements) {
        for (const Node& statement : children(from.tree.roots[0])) {
            const Node* value =
                statement.key == statements && !statement.labels.empty() ? statement.find("value") : nullptr;
            if (!value) continue;
            Node& member = file_.tree.make(*value->source, value->shape, value->span);
            member.style = value->style, member.known = value->known, member.text = value->text;
            member.first = value->first, member.last = value->last, member.origin = value->origin;
            member.key = statement.labels[0];
            file_.tree.append(all, member);
        }
    }
    // Functions of another file under the names they get here: their bodies are read once more, as if they stood here.
    void imported_functions(const File& from, std::span<const std::string_view> words) {
        if (from.source().text().find("func ") == std::string_view::npos) return;
        file_.neighbours.push_back(std::make_unique<File>(from.path(), std::string(from.source().text())));
        auto own = std::move(expressions_.functions);
        expressions_.functions.clear();
        BicepReader(*file_.neighbours.back(), expressions_).read();
        auto theirs = std::exchange(expressions_.functions, std::move(own));
        for (std::size_t i = 0; i + 2 < words.size(); ++i) {
            const bool renamed = i + 4 < words.size() && words[i + 1] == "as";
            if (const auto it = theirs.find(std::string(words[i])); it != theirs.end()) {
                Expressions::Function made = it->second;
                made.elsewhere = true;
                expressions_.functions.emplace(std::string(words[renamed ? i + 2 : i]), std::move(made));
            }
            if (renamed) i += 2;
        }
        for (auto& [name, made] : theirs) {  // what those call
            made.elsewhere = true;
            expressions_.functions.emplace(name, std::move(made));
        }
    }
    // import {a as b} from 'x.bicep': its variables under the names they get here.
    void imported(const Node& statement) {
        if (!options_.neighbour || statement.key != "import" || statement.labels.size() < 3) return;
        const auto& words = statement.labels;
        if (words[words.size() - 2] != "from" || !words.back().ends_with(".bicep")) return;
        const File* read = beside(std::string(words.back()));
        if (read && words[0] == "*" && words.size() > 4 && words[1] == "as") {  // all of it, below one name
            Node& all = file_.tree.make(file_.source(), Shape::object, statement.span);
            append_values(all, *read, "var");
            symbols_.emplace(words[2], Symbol{&all, false});
            return;
        }
        if (read) imported_functions(*read, words);
        for (std::size_t i = 0; read && i + 2 < words.size(); ++i) {
            const bool renamed = i + 4 < words.size() && words[i + 1] == "as";
            for (const Node& variable : children(read->tree.roots[0]))
                if (variable.key == "var" && !variable.labels.empty() && variable.labels[0] == words[i])
                    if (const Node* value = variable.find("value"))
                        symbols_.emplace(words[renamed ? i + 2 : i], Symbol{value, false});
            if (renamed) i += 2;
        }
    }
    // ${NAME=default} in a file of parameters: azd takes it from its environment, else by what stands there.
    const Node& as_azd_gives(const Node& value) {
        const std::size_t at = value.is_scalar() ? value.text.find("${") : std::string_view::npos;
        if (at == std::string_view::npos) return value;
        const std::size_t equals = value.text.find('=', at);
        const bool whole = at == 0 && value.text.find('}') + 1 == value.text.size();
        Node& given = file_.tree.make(*value.source, value.shape, value.span);
        given.key = value.key, given.key_span = value.key_span;
        given.known = whole && equals != std::string_view::npos;
        given.text = given.known ? value.text.substr(equals + 1, value.text.size() - equals - 2) : value.text;
        return given;
    }
    // What the files of parameters beside it give, where they agree: main.bicepparam, main.parameters.json.
    void given() {
        if (!options_.neighbour || !options_.list || file_.host || !file_.path().ends_with(".bicep")) return;
        bool asks = false;
        for (const Node& statement : children(file_.tree.roots[0])) asks = asks || statement.key == "param";
        if (!asks) return;
        std::string stem = file_.path().substr(file_.path().rfind('/') + 1);
        stem.resize(stem.size() - 6);
        std::unordered_map<std::string_view, std::vector<const Node*>> values;
        std::size_t files = 0;
        for (const std::string& name : options_.list(".")) {
            const bool json = name.starts_with(stem + ".") && name.ends_with("parameters.json");
            if (!json && !name.ends_with(".bicepparam")) continue;
            if (++files > 8) return;
            const File* read = beside(name);
            if (!read) continue;
            const Node* root = read->tree.roots[0];
            if (json) {
                for (const Node& parameter : children(root->find("parameters")))
                    if (const Node* value = parameter.find("value"))
                        values[parameter.key].push_back(&as_azd_gives(*value));
                continue;
            }
            bool ours = false;
            for (const Node& statement : children(root))
                if (statement.key == "using" && !statement.labels.empty()) {
                    std::string_view target = statement.labels[0];
                    if (target.starts_with("./")) target.remove_prefix(2);
                    ours = target == stem + ".bicep";
                }
            for (const Node& statement : children(root))
                if (ours && statement.key == "param" && !statement.labels.empty())
                    if (const Node* value = statement.find("value")) values[statement.labels[0]].push_back(value);
        }
        for (const auto& [name, all] : values) {
            const bool agree = std::all_of(all.begin(), all.end(), [&first = *all[0]](const Node* value) {
                return value->known && (value == &first || (value->is_scalar() && value->text == first.text));
            });
            if (agree) symbols_.insert_or_assign(name, Symbol{all[0], false});
        }
    }

    std::unordered_map<std::string_view, const Node*> modules_;
    struct Symbol {
        const Node* value = nullptr;
        bool by_default = false;
    };
    std::unordered_map<std::string_view, Symbol> symbols_;
};

}  // namespace

void read_bicep(File& file, const ReadOptions& options) {
    Expressions expressions;
    BicepReader(file, expressions).read();
    BicepEvaluator evaluator(file, expressions, Dialect::bicep, options);
    evaluator.learn();
    evaluator.settle_all();
    if (file.source().text().find("...") != std::string_view::npos) evaluator.flatten_spreads(*file.tree.roots[0]);
    evaluator.drop_absent();
}

}  // namespace stoker::lint
