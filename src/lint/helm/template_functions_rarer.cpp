// Functions of Sprig and Helm that charts use now and then: objects laid over one another, lists, patterns, versions.
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "lint/helm/template_functions.h"
#include "lint/pattern.h"
#include "lint/read.h"

namespace stoker::lint::helm {

namespace {

constexpr std::size_t kMostListed = 1000;

std::optional<std::int64_t> whole_of(const Node& node) {
    const std::string text = text_of(node);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// 1.30.2 as numbers; what stands behind "-" or "+" does not count.
std::vector<std::int64_t> version_of(std::string_view text) {
    std::vector<std::int64_t> parts;
    if (text.starts_with('v')) text.remove_prefix(1);
    text = text.substr(0, text.find_first_of("-+ "));
    for (const std::string_view part : split(text, '.')) {
        std::int64_t value = 0;
        std::from_chars(part.data(), part.data() + part.size(), value);
        parts.push_back(value);
    }
    parts.resize(3);
    return parts;
}

std::optional<bool> version_fits(std::string_view wanted, std::string_view version) {
    bool all = true;
    for (std::string_view one : split(replace_all(wanted, " ", ","), ',')) {
        one = trim(one);
        if (one.empty()) continue;
        const std::size_t digits = one.find_first_of("v0123456789");
        if (digits == std::string_view::npos) return std::nullopt;
        const std::string_view op = one.substr(0, digits);
        const auto a = version_of(version), b = version_of(one.substr(digits));
        if (op == ">=" || op == "=>")
            all = all && a >= b;
        else if (op == ">")
            all = all && a > b;
        else if (op == "<")
            all = all && a < b;
        else if (op == "<=")
            all = all && a <= b;
        else if (op == "=" || op.empty())
            all = all && a == b;
        else if (op == "^")
            all = all && a >= b && a[0] == b[0];
        else if (op == "~")
            all = all && a >= b && a[0] == b[0] && a[1] == b[1];
        else
            return std::nullopt;
    }
    return all;
}

}  // namespace

Node& merged(const Node& base, const Node& over, const Values& make, int depth) {
    Node& made = make.list(Shape::object);
    for (const Node& child : children(&base)) {
        const Node* other = over.find(child.key);
        if (!other)
            make.put(made, child, child.key);
        else if (child.is_object() && other->is_object() && depth < 40)
            make.put(made, merged(child, *other, make, depth + 1), child.key);
        else
            make.put(made, *other, child.key);
    }
    for (const Node& child : children(&over))
        if (!base.find(child.key)) make.put(made, child, child.key);
    return made;
}

const Node* call_rarer_function(std::string_view name, const std::vector<const Node*>& args, const Values& make) {
    const auto is = [&](std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    const std::size_t n = args.size();
    if (n == 0) return nullptr;
    const Node& first = *args[0];
    const Node& last = *args[n - 1];
    const auto list_of = [&](const std::vector<const Node*>& items) {
        Node& made = make.list(Shape::array);
        for (const Node* item : items) make.put(made, *item);
        return &made;
    };
    const auto items_of = [](const Node& list) {
        std::vector<const Node*> items;
        for (const Node& item : children(&list)) items.push_back(&item);
        return items;
    };
    const auto all_objects = [&] {
        return std::all_of(args.begin(), args.end(),
                           [](const Node* arg) { return arg->is_object() || arg->shape == Shape::null; });
    };
    if (is({"merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite"}) && all_objects()) {
        const Node* result = &first;
        for (std::size_t i = 1; i < n; ++i)
            result = name.find("Overwrite") != std::string_view::npos ? &merged(*result, *args[i], make)
                                                                      : &merged(*args[i], *result, make);
        return result;
    }
    if (is({"deepCopy", "mustDeepCopy"})) return &first;
    if (is({"set"}) && n == 3 && first.is_object()) {
        Node& made = make.list(Shape::object);
        const std::string_view key = make.scratch.tree.keep(text_of(*args[1]));
        for (const Node& child : children(&first))
            if (child.key != key) make.put(made, child, child.key);
        make.put(made, last, key);
        return &made;
    }
    if (is({"omit", "pick", "unset"}) && first.is_object()) {
        Node& made = make.list(Shape::object);
        for (const Node& child : children(&first)) {
            const bool named =
                std::any_of(args.begin() + 1, args.end(), [&](const Node* arg) { return text_of(*arg) == child.key; });
            if (named == (name == "pick")) make.put(made, child, child.key);
        }
        return &made;
    }
    if (is({"dig"}) && n >= 3 && last.is_object()) {
        const Node* at = &last;
        for (std::size_t i = 0; i + 2 < n && at; ++i) at = at->is_object() ? at->find(text_of(*args[i])) : nullptr;
        return at ? at : args[n - 2];
    }
    if (is({"values"}) && first.is_object()) return list_of(items_of(first));
    if (is({"pluck"}) && n >= 2) {
        std::vector<const Node*> found;
        for (std::size_t i = 1; i < n; ++i)
            if (const Node* value = args[i]->find(text_of(first))) found.push_back(value);
        return list_of(found);
    }
    if (is({"has"}) && n == 2 && last.is_array()) {
        for (const Node& item : children(&last))
            if (text_of(item) == text_of(first)) return make.boolean(true);
        return make.boolean(false);
    }
    if (is({"without"}) && first.is_array()) {
        std::vector<const Node*> kept;
        for (const Node* item : items_of(first))
            if (std::none_of(args.begin() + 1, args.end(),
                             [&](const Node* arg) { return text_of(*arg) == text_of(*item); }))
                kept.push_back(item);
        return list_of(kept);
    }
    if (is({"concat"}) && std::all_of(args.begin(), args.end(), [](const Node* arg) { return arg->is_array(); })) {
        std::vector<const Node*> items;
        for (const Node* arg : args)
            for (const Node& item : children(arg)) items.push_back(&item);
        return list_of(items);
    }
    if (is({"append", "mustAppend", "prepend"}) && n == 2 && first.is_array()) {
        auto items = items_of(first);
        items.insert(name == "prepend" ? items.begin() : items.end(), &last);
        return list_of(items);
    }
    if (is({"rest", "initial", "reverse", "uniq", "sortAlpha", "compact"}) && n == 1 && first.is_array()) {
        auto items = items_of(first);
        if (is({"rest"}) && !items.empty()) items.erase(items.begin());
        if (is({"initial"}) && !items.empty()) items.pop_back();
        if (is({"reverse"})) std::reverse(items.begin(), items.end());
        const auto less = [](const Node* a, const Node* b) { return text_of(*a) < text_of(*b); };
        if (is({"sortAlpha"})) std::stable_sort(items.begin(), items.end(), less);
        if (is({"compact"})) std::erase_if(items, [](const Node* item) { return !is_true(*item); });
        if (is({"uniq"})) {
            std::vector<const Node*> kept;
            for (const Node* item : items)
                if (std::none_of(kept.begin(), kept.end(),
                                 [&](const Node* other) { return text_of(*other) == text_of(*item); }))
                    kept.push_back(item);
            items = std::move(kept);
        }
        return list_of(items);
    }
    if (is({"splitList", "mustSplitList", "split"}) && n == 2) {
        const std::string mark = text_of(first), text = text_of(last);
        if (mark.empty()) return nullptr;
        Node& made = make.list(name == "split" ? Shape::object : Shape::array);
        std::size_t from = 0, number = 0;
        for (std::size_t at = text.find(mark); number < kMostListed; at = text.find(mark, from)) {
            const std::string_view key =
                name == "split" ? make.scratch.tree.keep("_" + std::to_string(number)) : std::string_view();
            make.put(made, *make.text(text.substr(from, at == std::string::npos ? at : at - from)), key);
            ++number;
            if (at == std::string::npos) break;
            from = at + mark.size();
        }
        return &made;
    }
    if (is({"until", "untilStep", "seq"})) {
        const auto end = whole_of(args[n > 1 ? 1 : 0][0]);
        const auto begin = n > 1 ? whole_of(first) : std::optional<std::int64_t>(name == "seq" ? 1 : 0);
        const auto step = n > 2 ? whole_of(last) : std::optional<std::int64_t>(1);
        if (!begin || !end || !step || *step <= 0 || *end - *begin > static_cast<std::int64_t>(kMostListed))
            return nullptr;
        if (name == "seq") return nullptr;  // a text, and used as none
        Node& made = make.list(Shape::array);
        for (std::int64_t i = *begin; i < *end; i += *step) make.put(made, *make.number(static_cast<double>(i)));
        return &made;
    }
    if (is({"regexMatch", "mustRegexMatch", "regexReplaceAll", "mustRegexReplaceAll", "regexReplaceAllLiteral",
            "regexFind"}) &&
        n >= 2) {
        const auto pattern = TextPattern::read(text_of(first));
        if (!pattern) return nullptr;
        const std::string text = text_of(*args[1]);
        const auto groups = pattern->match(text);
        if (name.ends_with("Match")) return make.boolean(!groups.empty());
        if (name == "regexFind")
            return make.text(groups.empty() ? std::string()
                                            : text.substr(groups[0].begin, groups[0].end - groups[0].begin));
        auto out =
            n == 3 ? pattern->replaced(text, text_of(last), true, name != "regexReplaceAllLiteral") : std::nullopt;
        return out ? make.text(std::move(*out)) : nullptr;
    }
    if (is({"semverCompare"}) && n == 2) {
        const auto fits = version_fits(text_of(first), text_of(last));
        return fits ? make.boolean(*fits) : nullptr;
    }
    if (is({"substr"}) && n == 3) {
        const auto from = whole_of(first), to = whole_of(*args[1]);
        const std::string text = text_of(last);
        if (!from || !to || *from < 0 || *from > static_cast<std::int64_t>(text.size())) return nullptr;
        const auto begin = static_cast<std::size_t>(*from);
        return make.text(text.substr(begin, *to < *from ? std::string::npos : static_cast<std::size_t>(*to) - begin));
    }
    if (is({"trimAll"}) && n == 2) {
        std::string text = text_of(last);
        const std::string letters = text_of(first);
        while (!text.empty() && letters.find(text.front()) != std::string::npos) text.erase(0, 1);
        while (!text.empty() && letters.find(text.back()) != std::string::npos) text.pop_back();
        return make.text(std::move(text));
    }
    if (is({"cat"})) {
        std::string out;
        for (const Node* arg : args) out += (out.empty() ? "" : " ") + text_of(*arg);
        return make.text(std::move(out));
    }
    if (is({"kebabcase", "snakecase"}) && n == 1) {
        std::string out;
        for (const char c : text_of(first)) {
            if (c >= 'A' && c <= 'Z')
                (out.empty() ? out : out += name == "kebabcase" ? '-' : '_') += static_cast<char>(c | 0x20);
            else
                out += c == ' ' || c == '_' || c == '-' ? (name == "kebabcase" ? '-' : '_') : c;
        }
        return make.text(std::move(out));
    }
    if (is({"title"}) && n == 1) {
        std::string text = text_of(first);
        if (!text.empty()) text.replace(0, 1, upper(text.substr(0, 1)));
        return make.text(std::move(text));
    }
    if (is({"nospace"}) && n == 1) return make.text(replace_all(text_of(first), " ", ""));
    if (is({"add1"}) && n == 1) {
        const auto value = whole_of(first);
        return value ? make.number(static_cast<double>(*value + 1)) : nullptr;
    }
    if (is({"atoi", "toDecimal"}) && n == 1) {
        const auto value = whole_of(first);
        return value ? make.number(static_cast<double>(*value)) : nullptr;
    }
    if (is({"kindIs", "typeIs"}) && n == 2) {
        const std::string kind = text_of(first);
        const Node& value = last;
        const bool fits = kind == "map" || kind == "map[string]interface {}" ? value.is_object()
                          : kind == "slice" || kind == "[]interface {}"      ? value.is_array()
                          : kind == "string"                                 ? value.shape == Shape::string
                          : kind == "bool"                                   ? value.shape == Shape::boolean
                          : kind == "invalid"                                ? value.shape == Shape::null
                                                                             : value.shape == Shape::number;
        return make.boolean(fits);
    }
    if (is({"b64enc", "b64dec"}) && n == 1) return make.text(text_of(first));  // looked through
    if (is({"sha256sum", "sha1sum", "adler32sum"}) && n == 1) return make.text("0");
    if (is({"lookup"})) return &make.list(Shape::object);  // as `helm template` has it: nothing is there
    if (is({"fromYaml", "fromJson", "fromYamlArray"}) && n == 1) {
        const std::string text = text_of(first);
        if (text.size() > (64u << 10) || make.scratch.neighbours.size() > 32) return nullptr;
        make.scratch.neighbours.push_back(std::make_unique<File>("values", text));
        File& read = *make.scratch.neighbours.back();
        read.kinds.add(Kind::k8s);
        read_yaml(read);
        return read.problems.empty() && read.tree.roots.size() == 1 ? read.tree.roots[0] : nullptr;
    }
    return nullptr;
}

}  // namespace stoker::lint::helm
