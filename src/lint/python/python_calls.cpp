// What calls give: those of texts, lists and paths, defaults, and functions of the file itself.
#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "lint/python/python_reader.h"

namespace stoker::lint {

namespace {

constexpr int kMostInlined = 4;

std::string_view py_last_name(std::string_view path) {
    return path.substr(path.rfind('.') == std::string_view::npos ? 0 : path.rfind('.') + 1);
}

bool py_is_any(std::string_view text, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

const PyValue* PythonReader::Call::argument(std::size_t at, std::string_view name) const {
    for (const auto& [key, value] : named)
        if (key == name) return &value;
    return at < arguments.size() ? &arguments[at] : nullptr;
}

PyValue PythonReader::default_of(const Call& call, std::size_t at, std::string_view name) const {
    const PyValue* given = call.argument(at, name);
    if (!given || given->kind == PyValue::Kind::none) return PyValue::unknown(call.span);
    PyValue value = *given;
    value.assume();
    return value;
}

PyValue PythonReader::value_of_call(Call& call, int depth) {
    using Sort = PyValue::Kind;
    const std::string_view path = call.path, name = py_last_name(path);
    const PyValue* first = call.arguments.empty() ? nullptr : &call.arguments.front();
    if (telling_ && inlined_ == 0) called(call);
    if (call.receiver && path.find('.') != std::string_view::npos) {
        if (changes_variable(call, name)) return PyValue::of(Sort::none, call.span);
        if (call.receiver->is_text()) return text_method(call, name);
        if (call.receiver->is_dict() && name == "get" && first && first->known()) {
            if (const PyValue* entry = call.receiver->find(first->joined())) return *entry;
            return call.receiver->open ? PyValue::unknown(call.span) : default_of(call, 1, "default");
        }
        if (name == "copy" && (call.receiver->is_dict() || call.receiver->is_list())) return *call.receiver;
    }
    if (py_is_any(path, {"os.environ.copy", "dict", "collections.OrderedDict", "OrderedDict", "SimpleNamespace",
                         "types.SimpleNamespace", "EasyDict"})) {
        PyValue made = PyValue::of(Sort::dict, call.span);
        if (first && first->is_dict())
            made = *first;
        else
            made.open = first != nullptr || path == "os.environ.copy";
        for (auto& [key, value] : call.named) made.put(key, value);
        settings(made);
        return made;
    }
    if (py_is_any(path, {"os.environ.get", "os.getenv", "getenv", "environ.get"}))
        return default_of(call, 1, "default");
    if (name == "add_argument" && first && first->known()) {
        std::string option = first->joined();
        for (const PyValue& each : call.arguments)
            if (each.known() && each.joined().starts_with("--")) option = each.joined();
        if (const PyValue* destination = call.argument(99, "dest"); destination && destination->known())
            option = destination->joined();
        option.erase(0, option.find_first_not_of('-') == std::string::npos ? 0 : option.find_first_not_of('-'));
        std::replace(option.begin(), option.end(), '-', '_');
        const PyValue value = default_of(call, 99, "default");
        if (value.known()) arguments_[option] = value;
        return PyValue::unknown(call.span);
    }
    if (py_is_any(name, {"Option", "Argument"})) return default_of(call, 0, "default");
    if (py_is_any(name, {"Field", "field"})) return default_of(call, 0, "default");
    if (first && (py_is_any(path, {"str", "int", "shlex.split", "shlex.quote", "quote", "os.path.expanduser",
                                   "os.fspath", "copy.deepcopy", "copy.copy", "deepcopy"}) ||
                  (py_is_any(path, {"list", "tuple"}) && first->is_list())))
        return *first;
    if (py_is_any(path, {"len"}) && first && first->is_list() && !first->open)
        return PyValue::whole(static_cast<long long>(first->items.size()), call.span);
    if (first && first->is_text() && py_is_any(name, {"dedent", "cleandoc"})) {
        PyValue value = py_dedented(*first);
        return name == "cleandoc" ? py_stripped(value, true, true, "\n") : value;
    }
    if (first && path == "shlex.join" && first->is_list()) {
        PyValue blank = PyValue::of(Sort::text, call.span);
        blank.add_text(" ", call.span);
        return py_joined(first->items, blank, first->open);
    }
    if (first && py_is_any(path, {"os.path.join", "Path", "pathlib.Path", "PurePath", "osp.join", "path.join"})) {
        PyValue made = PyValue::of(Sort::text, call.span);
        for (const PyValue& part : call.arguments) {
            if (!made.pieces.empty()) made.add_text("/", part.span);
            append_text(made, part, "part");
        }
        return made;
    }
    if (const auto own = functions_.find(path); own != functions_.end()) return own_function(own->second, call, depth);
    if (const auto there = imported_.find(path); there != imported_.end())
        return imported_function(*there->second.first, there->second.second, call, depth);
    if (path.starts_with("self.") || path.starts_with("cls."))
        if (const auto own = functions_.find(name); own != functions_.end() && own->second.method)
            return own_function(own->second, call, depth);
    if (const auto own = classes_.find(path); own != classes_.end()) return own_class(own->second, call);
    return PyValue::unknown(call.span);
}

PyValue PythonReader::text_method(const Call& call, std::string_view name) const {
    const PyValue& text = *call.receiver;
    const PyValue* first = call.arguments.empty() ? nullptr : &call.arguments.front();
    if (name == "join" && first && first->is_list()) return py_joined(first->items, text, first->open);
    if (py_is_any(name, {"strip", "lstrip", "rstrip"}))
        return py_stripped(text, name != "rstrip", name != "lstrip", first && first->known() ? first->joined() : "");
    if (name == "replace" && call.arguments.size() >= 2 && first->known())
        return py_replaced(text, first->joined(), call.arguments[1]);
    if (name == "split" && !first) {
        PyValue list = PyValue::of(PyValue::Kind::list, call.span);
        list.items = py_words(text);
        list.origin = text.origin;
        return list;
    }
    if (name == "format") return filled_in(call);
    if (py_is_any(name, {"encode", "expanduser", "as_posix", "resolve", "absolute"})) return text;
    if (name == "joinpath" && first) {
        PyValue made = text;
        for (const PyValue& part : call.arguments) {
            made.add_text("/", part.span);
            append_text(made, part, "part");
        }
        return made;
    }
    return PyValue::unknown(call.span);
}

// "{a} {0} {}".format(...)
PyValue PythonReader::filled_in(const Call& call) const {
    const PyValue& text = *call.receiver;
    const PyFlat flat(text);
    PyValue made = PyValue::of(PyValue::Kind::text, text.span);
    made.origin = text.origin;
    std::size_t from = 0, count = 0, grown = 0;
    for (std::size_t at = 0; at < flat.text.size();) {
        const char c = flat.text[at];
        if ((c == '{' || c == '}') && at + 1 < flat.text.size() && flat.text[at + 1] == c) {
            flat.copy(text, from, at + 1, made);
            from = at += 2;
        } else if (c == '{') {
            const std::size_t end = flat.text.find('}', at);
            if (end == std::string::npos) break;
            flat.copy(text, from, at, made);
            const std::string written = flat.text.substr(at + 1, end - at - 1);
            const std::string name = written.substr(0, written.find_first_of("!:"));
            const bool number = name.find_first_not_of("0123456789") == std::string::npos && name.size() < 4;
            const std::size_t place = name.empty() ? count++ : number ? std::stoul(name) : std::string::npos;
            const PyValue* value = call.argument(place, number ? "" : name);
            if (value && (grown += value->bytes() + value->pieces.size()) > (256u << 10))
                return PyValue::unknown(text.span);
            if (value && written.find(':') == std::string::npos)
                append_text(made, *value, name);
            else
                made.add_unknown(name, text.span);
            from = at = end + 1;
        } else {
            ++at;
        }
    }
    flat.copy(text, from, flat.text.size(), made);
    return made;
}

// cmd.append(x), env.update(X="1"), os.environ.setdefault("X", "1").
bool PythonReader::changes_variable(const Call& call, std::string_view name) {
    const std::string variable = call.path.substr(0, call.path.rfind('.'));
    const PyValue* first = call.arguments.empty() ? nullptr : &call.arguments.front();
    if (variable == "os.environ" || variable == "environ") {
        if (name == "setdefault" && call.arguments.size() == 2 && first->known()) {
            PyValue value = call.arguments[1];
            value.assume();
            return environment_entry("os.environ", first->joined(), value);
        }
        if (name != "update") return false;
        if (first)
            for (const auto& [key, value] : first->entries) environment_entry("os.environ", key, value);
        for (const auto& [key, value] : call.named) environment_entry("os.environ", key, value);
        return true;
    }
    if (!py_is_any(name, {"append", "extend", "insert", "update", "remove", "pop", "clear", "setdefault"}))
        return false;
    PyValue* changed = find(variable);
    if (!changed || (!changed->is_list() && !changed->is_dict())) return false;
    if (changed->is_dict()) {
        if (name == "update" && branches_ == 0) {
            if (first)
                for (const auto& [key, value] : first->entries) changed->put(key, value);
            changed->open = changed->open || (first && !first->is_dict());
            for (const auto& [key, value] : call.named) changed->put(key, value);
        } else {
            changed->open = true;
        }
        settings(*changed);
        return true;
    }
    if (branches_ > 0 || !first || !py_is_any(name, {"append", "extend"}) || (name == "extend" && !first->is_list())) {
        changed->open = true;
    } else if (name == "append") {
        changed->items.push_back(*first);
    } else {
        changed->items.insert(changed->items.end(), first->items.begin(), first->items.end());
        changed->open = changed->open || first->open;
    }
    return true;
}

// What the function returns for these arguments, where it returns one thing.
PyValue PythonReader::own_function(const Function& function, const Call& call, int depth) {
    if (inlined_ >= kMostInlined || function.first >= function.last) return PyValue::unknown(call.span);
    Scope scope;
    scope.indent = tokens_.lines[function.first].indent;
    const std::size_t skipped = function.method && call.path.find('.') != std::string::npos ? 1 : 0;
    for (std::size_t k = skipped; k < function.parameters.size(); ++k) {
        const Parameter& parameter = function.parameters[k];
        PyValue value = PyValue::unknown(call.span);
        if (const PyValue* given = call.argument(k - skipped, parameter.name)) {
            value = *given;
        } else if (!parameter.fallback.end() && !call.open) {
            Cursor in = parameter.fallback;
            value = expression(in, 1, depth + 1);  // nobody gives another here
        }
        scope.values.insert_or_assign(parameter.name, std::move(value));
    }
    // Seen from there are the file's own names alone.
    std::vector<Scope> outer;
    if (!scopes_.empty()) {
        outer.assign(std::make_move_iterator(scopes_.begin() + 1), std::make_move_iterator(scopes_.end()));
        scopes_.resize(1);
    }
    const int branches = branches_;
    branches_ = 0;
    scopes_.push_back(std::move(scope));
    ++inlined_;
    std::vector<PyValue> returned;
    block(function.first, function.last, &returned, depth + 1);
    --inlined_;
    branches_ = branches;
    scopes_.resize(1);
    std::move(outer.begin(), outer.end(), std::back_inserter(scopes_));
    return returned.size() == 1 ? std::move(returned.front()) : PyValue::unknown(call.span);
}

// Config(tp=4): the fields of a class with what the call gives them.
PyValue PythonReader::own_class(const Scope& fields, const Call& call) const {
    PyValue made = PyValue::of(PyValue::Kind::dict, call.span);
    made.open = true;
    for (const auto& [name, value] : fields.values)
        if (name.find('.') == std::string::npos) made.put(name, value);
    for (const auto& [name, value] : call.named) made.put(name, value);
    return made;
}

}  // namespace stoker::lint
