// Statements in the order they stand: what variables come to, and in which scope.
#include <algorithm>

#include "base/text.h"
#include "lint/python/python_reader.h"

namespace stoker::lint {

namespace {

constexpr int kMostBlocks = 30;

bool py_keyword_in(std::string_view text, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

PyValue* PythonReader::find(std::string_view name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
        if (const auto it = scope->values.find(name); it != scope->values.end()) return &it->second;
    return nullptr;
}

// Within a branch another value than the one before leaves nothing known.
void PythonReader::set(const std::string& name, PyValue value) {
    Scope* scope = &scopes_.back();
    const bool field = name.starts_with("self.") || name.starts_with("cls.");
    if (field && scopes_.size() > 1)
        for (Scope& each : scopes_)
            if (each.is_class) scope = &each;
    const auto it = scope->values.find(name);
    if (scope == &scopes_.front() && changed_elsewhere_.contains(name)) value = PyValue::unknown(value.span);
    if (branches_ > 0) {
        const bool other = it == scope->values.end() ? true : it->second.joined() != value.joined();
        if (value.is_list())
            value.open = value.open || other;
        else if (value.is_dict())
            value.open = value.open || other;
        else if (it != scope->values.end() && other)
            value = PyValue::unknown(value.span);
        else if (other)
            value.assume();
    }
    scope->values.insert_or_assign(name, std::move(value));
}

bool PythonReader::environment_entry(const std::string& path, std::string_view key, const PyValue& value) {
    if (path != "os.environ" && path != "environ") return false;
    PyValue kept = value;
    if (branches_ > 0) kept.assume();
    if (inlined_ == 0) scopes_.back().environment.emplace_back(key, std::move(kept));
    return true;
}

std::uint32_t PythonReader::end_of_block(std::uint32_t line, std::uint32_t indent) const {
    while (line < tokens_.lines.size() && tokens_.lines[line].indent > indent) ++line;
    return line;
}

void PythonReader::learn_functions() {
    for (std::uint32_t k = 0; k < tokens_.lines.size(); ++k) {
        const PyLine& line = tokens_.lines[k];
        Cursor in{&tokens_.all, line.first, line.last};
        take(in, "async");
        if (!take(in, "def") || in.end()) continue;
        const std::string name(text_of(in));
        ++in.at;
        Function function;
        function.first = k + 1;
        function.last = end_of_block(k + 1, line.indent);
        function.method = line.indent > 0;
        if (take(in, "(")) parameters(in, function);
        if (functions_.contains(name))
            functions_[name] = {};  // which of them is called is not known
        else
            functions_.emplace(name, std::move(function));
    }
}

void PythonReader::parameters(Cursor in, Function& function) {
    while (!in.end() && !is(in, ")")) {
        while (take(in, "*") || take(in, "**") || take(in, "/") || take(in, ",")) {
        }
        if (in.end() || is(in, ")")) break;
        Parameter parameter;
        parameter.name = text_of(in);
        parameter.fallback = {in.tokens, in.at, in.at};
        int open = 0;
        std::uint32_t equals = 0;
        for (++in.at; !in.end(); ++in.at) {
            const std::string_view text = text_of(in);
            if (open == 0 && (text == "," || text == ")")) break;
            if (text == "(" || text == "[" || text == "{") ++open;
            if (text == ")" || text == "]" || text == "}") --open;
            if (open == 0 && text == "=" && equals == 0) equals = in.at + 1;
        }
        if (equals != 0) parameter.fallback = {in.tokens, equals, in.at};
        function.parameters.push_back(std::move(parameter));
        take(in, ",");
    }
}

void PythonReader::block(std::uint32_t first, std::uint32_t last, std::vector<PyValue>* returned, int depth) {
    if (depth > kMostBlocks) return;
    for (std::uint32_t k = first; k < last && k < tokens_.lines.size();) {
        const PyLine line = tokens_.lines[k];
        Cursor in{&tokens_.all, line.first, line.last};
        const std::uint32_t inside = k + 1, behind = std::min(end_of_block(k + 1, line.indent), last);
        Cursor word = in;
        take(word, "async");
        const std::string_view keyword = text_of(word);
        if (keyword == "def" || keyword == "class") {
            ++word.at;
            Scope scope;
            scope.is_class = keyword == "class";
            scope.name = text_of(word);
            if (scope.is_class || inlined_ == 0) {
                if (!scope.is_class)
                    if (const auto own = functions_.find(scope.name); own != functions_.end())
                        for (const Parameter& parameter : own->second.parameters) {
                            Cursor fallback = parameter.fallback;
                            PyValue value = fallback.end() ? PyValue() : expression(fallback, 1, depth + 1);
                            value.assume();
                            scope.values.insert_or_assign(parameter.name, std::move(value));
                        }
                const int branches = branches_;
                branches_ = 0;
                const bool is_class = scope.is_class;
                scopes_.push_back(std::move(scope));
                std::vector<PyValue> own;
                block(inside, behind, is_class ? returned : &own, depth + 1);
                branches_ = branches;
                for (const PyValue& value : own) seen("return", value);
                close_scope();
            }
            k = behind;
            continue;
        }
        if (py_keyword_in(
                keyword, {"if", "elif", "else", "for", "while", "try", "except", "finally", "with", "match", "case"})) {
            // The header's own calls; what stands behind its colon on one line; the block below.
            ++word.at;
            bool main = false;
            Cursor head = word;
            int open = 0;
            for (; !word.end(); ++word.at) {
                const std::string_view text = text_of(word);
                if (text == "(" || text == "[" || text == "{") ++open;
                if (text == ")" || text == "]" || text == "}") --open;
                main = main || text == "__name__";
                if (open == 0 && text == ":") break;
            }
            head.last = word.at;
            // for x in ..., with ... as f: whatever they were before.
            bool names = keyword == "for";
            for (Cursor at = head; !at.end(); ++at.at) {
                if (is(at, "in")) names = false;
                if (names && (*at.tokens)[at.at].kind == PyToken::Kind::name)
                    set(std::string(text_of(at)), PyValue::unknown((*at.tokens)[at.at].span));
                if (is(at, "as") && at.at + 1 < at.last)
                    set(std::string(text_of({at.tokens, at.at + 1, at.last})), PyValue());
            }
            while (!head.end()) {
                const std::uint32_t before = head.at;
                expression(head, 1, depth + 1);
                if (head.at == before) ++head.at;
            }
            const bool branch = keyword != "with" && !main && keyword != "try" && keyword != "finally";
            branches_ += branch;
            if (word.at + 1 < line.last) statement({word.at + 1, line.last, line.indent}, returned, depth + 1);
            block(inside, behind, returned, depth + 1);
            branches_ -= branch;
            k = behind;
            continue;
        }
        statement(line, returned, depth);
        ++k;
    }
}

void PythonReader::statement(const PyLine& line, std::vector<PyValue>* returned, int depth) {
    Cursor in{&tokens_.all, line.first, line.last};
    if (take(in, "global")) {
        for (; !in.end(); ++in.at) changed_elsewhere_.insert(std::string(text_of(in)));
        return;
    }
    if (is(in, "import") || is(in, "from")) return import_statement(in);
    if (is(in, "@") || is(in, "nonlocal")) return;
    if (take(in, "return")) {
        PyValue value = expression(in, 1, depth + 1);
        if (is(in, ",")) return;
        if (returned) returned->push_back(std::move(value));
        return;
    }
    for (const std::string_view word : {"raise", "assert", "del", "yield", "await"}) take(in, word);
    // name = value, name: type = value, name += value, a = b = value.
    int open = 0;
    std::vector<std::pair<std::uint32_t, std::string>> signs;
    for (Cursor at = in; !at.end(); ++at.at) {
        const std::string_view text = text_of(at);
        if (text == "(" || text == "[" || text == "{") ++open;
        if (text == ")" || text == "]" || text == "}") --open;
        if (open == 0 && (text == "=" || text == "+=" || text == "|=" || text == "-=" || text == "*=" || text == "/="))
            signs.emplace_back(at.at, std::string(text));
    }
    if (signs.empty()) {
        while (!in.end()) {
            const std::uint32_t before = in.at;
            expression(in, 1, depth + 1);
            if (in.at == before || is(in, ",") || is(in, ":")) ++in.at;
        }
        return;
    }
    Cursor behind{in.tokens, signs.back().first + 1, in.last};
    PyValue value = expression(behind, 1, depth + 1);
    if (is(behind, ",")) {  // a tuple without brackets
        PyValue tuple = PyValue::of(PyValue::Kind::list, value.span);
        tuple.origin = value.origin;
        tuple.items.push_back(std::move(value));
        while (take(behind, ",") && !behind.end()) tuple.items.push_back(expression(behind, 1, depth + 1));
        value = std::move(tuple);
    }
    std::uint32_t from = in.at;
    for (const auto& [sign, written] : signs) {
        assignment({in.tokens, from, sign}, written, value, depth);
        from = sign + 1;
    }
}

void PythonReader::assignment(Cursor target, std::string_view sign, PyValue value, int depth) {
    if (target.end()) return;
    // a.b.c, then perhaps [index] ... or a type behind a colon.
    std::string name(text_of(target));
    ++target.at;
    while (is(target, ".") && target.at + 1 < target.last) {
        ++target.at;
        name += "." + std::string(text_of(target));
        ++target.at;
    }
    if (is(target, ",")) {  // a, b = ...
        std::vector<std::string> names{name};
        bool plain = sign == "=";
        while (!target.end()) {
            if ((*target.tokens)[target.at].kind == PyToken::Kind::name)
                names.emplace_back(text_of(target));
            else
                plain = plain && is(target, ",");
            ++target.at;
        }
        plain = plain && value.is_list() && !value.open && value.items.size() == names.size();
        for (std::size_t k = 0; k < names.size(); ++k)
            set(names[k], plain && !value.items[k].spread ? value.items[k] : PyValue::unknown(value.span));
        return;
    }
    if (is(target, "[")) {
        std::vector<std::string> keys;
        bool followed = sign == "=";
        while (take(target, "[")) {
            const PyValue key = expression(target, 1, depth + 1);
            followed = followed && key.known() && is(target, "]");
            keys.push_back(key.joined());
            skip_to(target, "]");
        }
        if (keys.size() == 1 && followed && environment_entry(name, keys.front(), value)) return;
        PyValue* changed = find(name);
        if (!changed) return;
        PyValue* inner = changed;
        for (std::size_t k = 0; followed && k + 1 < keys.size(); ++k)
            if (inner) inner = inner->find(keys[k]);
        if (followed && inner && inner->is_dict()) {
            if (branches_ > 0) value = PyValue::unknown(value.span);
            inner->put(keys.back(), std::move(value));
        } else {
            changed->open = true;
        }
        settings(*changed);
        return;
    }
    if (sign == "+=" || sign == "|=") {
        const PyValue* before = find(name);
        if (!before) return;
        PyValue made = combined(sign.substr(0, 1), *before, value);
        if (branches_ > 0 && made.is_list()) {
            made = *before;
            made.open = true;
            scopes_.back().values.insert_or_assign(name, std::move(made));
            return;
        }
        set(name, std::move(made));
        return;
    }
    if (sign != "=") value = PyValue::unknown(value.span);
    set(name, std::move(value));
}

// What variables of it hold in the end, and no call was given.
void PythonReader::close_scope() {
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    if (scope.is_class) {
        for (const auto& [name, value] : scope.values) {
            if (name.find('.') != std::string::npos) continue;
            PyValue field = value;
            field.assume();
            scopes_.front().values.insert_or_assign(scope.name + "." + name, field);
        }
        classes_.insert_or_assign(scope.name, scope);
    }
    if (telling_ && inlined_ == 0)
        for (const auto& [name, value] : scope.values) seen(name, value);
}

}  // namespace stoker::lint
