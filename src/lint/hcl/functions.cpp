// Functions of HCL, Bicep and ARM, most of which the three have under one name, and the files beside that they read.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/hcl/bounds.h"

namespace stoker::lint {

namespace {

using namespace evaluation;

constexpr int kMostFoldersAbove = 6;
constexpr std::size_t kMostConfigs = 16;

}  // namespace

const Node* Evaluator::neighbour(const Node* name) {
    if (!known_scalar(name) || !options_.neighbour) return nullptr;
    std::string path(name->text);
    while (path.starts_with("./")) path.erase(0, 2);
    if (path.empty() || path[0] == '/' || path[0] == '~' || path.find("..") != std::string::npos) return nullptr;
    auto text = options_.neighbour(path);
    if (!text || text->size() > kMostBytes) return nullptr;
    const std::size_t slash = file_.path().rfind('/');
    if (slash != std::string::npos) path.insert(0, file_.path(), 0, slash + 1);
    file_.neighbours.push_back(std::make_unique<File>(path, std::move(*text)));
    File& file = *file_.neighbours.back();
    Node& node =
        file.tree.make(file.source(), Shape::string, {0, static_cast<std::uint32_t>(file.source().text().size())});
    node.text = file.source().text();
    return &node;
}

// find_in_parent_folders() of Terragrunt: the nearest file of that name above this one, seen from here.
const Node* Evaluator::file_above(const Node* name, const Expression& e) {
    if ((name && !known_scalar(name)) || !options_.neighbour) return nullptr;
    const std::string wanted(name ? name->text : std::string_view("root.hcl"));
    if (wanted.empty() || wanted.find('/') != std::string::npos) return nullptr;
    std::string path = "../" + wanted;
    for (int up = 0; up < kMostFoldersAbove; ++up, path.insert(0, "../"))
        if (options_.neighbour(path)) {
            Node& found = file_.tree.make(at_hand(), Shape::string, span_of(e));
            found.text = file_.tree.keep(path);
            return &found;
        }
    return nullptr;
}

// read_terragrunt_config(): the locals and inputs of another file of Terragrunt.
const Node* Evaluator::terragrunt_config(const Node* path) {
    if (!known_scalar(path) || !options_.neighbour || file_.call || file_.neighbours.size() > kMostConfigs)
        return nullptr;
    std::string where(path->text);
    auto text = where.ends_with(".hcl") && where[0] != '/' ? options_.neighbour(where) : std::nullopt;
    if (!text || text->size() > kMostBytes || text->find('\0') != std::string::npos) return nullptr;
    file_.neighbours.push_back(std::make_unique<File>(path_from(file_.path(), where), std::move(*text)));
    File& read = *file_.neighbours.back();
    read.kinds.add(Kind::terraform);
    read_hcl(read, {});
    return read.problems.empty() && read.tree.roots.size() == 1 ? read.tree.roots[0] : nullptr;
}

// jsondecode and yamldecode: a file beside keeps its own places; what is written here is mapped back to here.
const Node* Evaluator::decoded(const Node* text, bool yaml, const Expression& e) {
    if (!known_scalar(text) || text->text.empty() || ++decoded_ > kMostDecoded) return nullptr;
    File* file = nullptr;
    for (const auto& beside : file_.neighbours)
        if (&beside->source() == text->source && text->text.data() == beside->source().text().data())
            file = beside.get();
    const auto root_of = [](const File& read) -> const Node* {
        return read.problems.empty() && read.tree.roots.size() == 1 ? read.tree.roots[0] : nullptr;
    };
    if (file && (!file->tree.roots.empty() || !file->problems.empty())) return root_of(*file);
    if (!file) {
        bytes_ += text->text.size();
        if (text->text.size() > kMostTextBytes || bytes_ > 4 * written_ + kMostTextBytes) return nullptr;
        Inlay inlay;
        if (text->source == &at_hand()) inlay = inlay_of(*text, dialect_);
        if (inlay.text != text->text) {
            inlay.text = text->text;
            const Span at = text->source == &at_hand() ? text->span : span_of(e);
            inlay.pieces = {{0, static_cast<std::uint32_t>(inlay.text.size()), at, Piece::Kind::changed}};
        }
        file_.neighbours.push_back(std::make_unique<File>(*at_hand_, std::move(inlay.text), std::move(inlay.pieces)));
        file = file_.neighbours.back().get();
    }
    if (yaml)
        read_yaml(*file);
    else
        read_json(*file);
    return root_of(*file);
}

// union() of Bicep and ARM: of objects with the same key within one another the later counts, deeply.
const Node* Evaluator::united(const Args& args, const Expression& e, int depth) {
    if (depth > 8) return nullptr;
    Node& object = file_.tree.make(at_hand(), Shape::object, span_of(e));
    std::vector<std::string_view> keys;
    for (const Node* arg : args) {
        if (!arg || !arg->is_object()) return nullptr;
        for (const Node& item : children(arg))
            if (std::find(keys.begin(), keys.end(), item.key) == keys.end()) keys.push_back(item.key);
    }
    if (keys.size() > kMostItems) return nullptr;
    for (const std::string_view key : keys) {
        Args of_key;
        for (const Node* arg : args)
            if (const Node* item = arg->find(key)) of_key.push_back(settle(item));
        const bool objects = of_key.size() > 1 &&
                             std::all_of(of_key.begin(), of_key.end(), [](const Node* n) { return n->is_object(); });
        const Node* value = objects ? united(of_key, e, depth + 1) : of_key.back();
        if (!value) return nullptr;
        put_copy(object, value, key);
    }
    return &object;
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
    if (const auto found = more_function(name, args, e)) return *found;
    // The decoded text is what rules want to see: base64 is looked through.
    if (any({"tostring", "tonumber", "tobool", "toset", "tolist", "tomap", "string", "int", "bool", "sensitive",
             "nonsensitive", "base64encode", "base64", "base64gzip", "any", "array", "json", "jsonencode",
             "yamlencode"}) &&
        args.size() == 1) {
        if (is("json") && first && first->text == "null") return &file_.tree.make(at_hand(), Shape::null, span_of(e));
        if (is("json") && !known_scalar(first)) return nullptr;
        if (is("json") && (first->text.starts_with('{') || first->text.starts_with('[')))
            return decoded(first, false, e);
        return first;
    }
    if (const auto found = text_function(name, args, e)) return *found;
    if (const auto found = list_function(name, args, e)) return *found;
    if (is("null") && args.empty()) return &file_.tree.make(at_hand(), Shape::null, span_of(e));
    if (any({"file", "loadTextContent", "filebase64", "loadFileAsBase64"})) return neighbour(first);
    if (is("find_in_parent_folders") && args.size() <= 2) return file_above(first, e);
    if (is("read_terragrunt_config") && !args.empty()) return terragrunt_config(first);
    if (is("templatefile")) return rendered(neighbour(first), args.size() > 1 ? args[1] : nullptr, e);
    if (any({"jsondecode", "yamldecode"}) && args.size() == 1) return decoded(first, is("yamldecode"), e);
    if (any({"loadJsonContent", "loadYamlContent"}) && !args.empty()) {
        const Node* found = decoded(neighbour(first), is("loadYamlContent"), e);
        if (args.size() > 1 && !known_scalar(args[1])) return nullptr;
        for (std::string_view step : split(args.size() > 1 ? args[1]->text : std::string_view(), '.')) {
            const std::string_view name_of_step = step.substr(0, step.find('['));
            if (!name_of_step.empty() && name_of_step != "$" && found) found = member_of(found, name_of_step);
            for (std::size_t at = step.find('['); at != std::string_view::npos && found; at = step.find('[', at + 1)) {
                std::string_view inside = step.substr(at + 1, step.find(']', at) - at - 1);
                std::size_t index = 0;
                const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), index);
                const bool number = error == std::errc{} && end == inside.data() + inside.size();
                while (inside.size() > 1 && (inside.front() == '\'' || inside.front() == '"'))
                    inside = inside.substr(1, inside.size() - 2);
                found = number ? item_at(found, index) : member_of(found, inside);
            }
        }
        return found;
    }
    if (is("readEnvironmentVariable") && args.size() == 2) {
        on_default_ = true;
        return args[1];
    }
    if (is("union") && args.size() > 1 && dialect_ != Dialect::hcl && first && first->is_object())
        return united(args, e);
    if (any({"concat", "union", "createArray", "flatten", "distinct"}) && !args.empty()) {
        if (is("concat") && dialect_ != Dialect::hcl && all_scalars) {
            std::string text;
            for (const Node* arg : args) text += arg->text;
            return made(std::move(text), Shape::string, e);
        }
        if (std::any_of(args.begin(), args.end(), [](const Node* arg) { return !arg; })) return nullptr;
        Node& list = file_.tree.make(at_hand(), first->is_object() ? Shape::object : Shape::array, span_of(e));
        const auto add = [&](const Node* item) {
            if (Node* copied = copy(settle(item), 1)) file_.tree.append(list, *copied);
        };
        if (is("flatten")) {
            const std::function<void(const Node&, int)> flat = [&](const Node& items, int depth) {
                for (const Node& item : children(&items)) {
                    const Node* value = settle(&item);
                    if (value->is_array() && depth < 8)
                        flat(*value, depth + 1);
                    else
                        add(value);
                }
            };
            flat(*first, 0);
            return &list;
        }
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
        Node& object = file_.tree.make(at_hand(), Shape::object, span_of(e));
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
        Node& list = file_.tree.make(at_hand(), Shape::array, span_of(e));
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
        Node& list = file_.tree.make(at_hand(), Shape::array, span_of(e));
        for (const std::string_view part : split(whole->text, mark->text[0])) {
            Node& item = file_.tree.make(at_hand(), Shape::string, span_of(e));
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
    // range(n), range(from, to), range(from, to, step) of Terraform.
    if (is("range") && dialect_ == Dialect::hcl && !args.empty() && args.size() <= 3 &&
        std::all_of(args.begin(), args.end(), [](const Node* each) { return number_in(each).has_value(); })) {
        const double from = args.size() == 1 ? 0 : *number_in(args[0]), to = *number_in(args[args.size() == 1 ? 0 : 1]);
        const double step = args.size() == 3 ? *number_in(args[2]) : to < from ? -1 : 1;
        if (step == 0 || (to - from) / step > kMostItems) return nullptr;
        Node& list = file_.tree.make(at_hand(), Shape::array, span_of(e));
        for (double i = from; step > 0 ? i < to : i > to; i += step)
            if (const Node* item = made_number(i, e)) file_.tree.append(list, *const_cast<Node*>(item));
        return &list;
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
        if (is("range") && b <= kMostItems) {
            Node& list = file_.tree.make(at_hand(), Shape::array, span_of(e));
            for (double i = 0; i < b; ++i)
                if (const Node* item = made_number(a + i, e)) file_.tree.append(list, *const_cast<Node*>(item));
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
