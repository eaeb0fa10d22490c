#include "lint/helm/render_template.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "lint/helm/template_functions.h"
#include "lint/helm/template_parts.h"
#include "lint/read.h"

namespace stoker::lint {

namespace {

using namespace helm;

constexpr std::size_t kMostOut = 1u << 18;
constexpr std::size_t kMostSteps = 100'000;
constexpr int kMostIncludes = 20;  // within one another

bool word_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class Renderer {
public:
    Renderer(std::string_view text, const Chart& chart, File& scratch) : text_(text), chart_(chart), make_{scratch} {}

    std::optional<RenderedTemplate> run() {
        auto parts = parts_of(text_);
        if (!parts) return std::nullopt;
        for (const std::string_view helper : chart_.helpers)
            if (auto read = parts_of(helper)) learn(*read, helper);
        learn(*parts, text_);
        Node& root = make_.list(Shape::object);
        make_.put(root, chart_.values && chart_.values->is_object() ? *chart_.values : make_.list(Shape::object),
                  "Values");
        Node& about = make_.list(Shape::object);
        make_.put(about, *make_.text(chart_.name), "Name");
        make_.put(about, *make_.text(chart_.version), "Version");
        make_.put(about, *make_.text(chart_.app_version), "AppVersion");
        make_.put(root, about, "Chart");
        Node& release = make_.list(Shape::object);
        make_.put(release, *make_.text("release"), "Name");
        make_.put(release, *make_.text("default"), "Namespace");
        make_.put(release, *make_.text("Helm"), "Service");
        make_.put(release, *make_.boolean(true), "IsInstall");
        make_.put(release, *make_.boolean(false), "IsUpgrade");
        make_.put(release, *make_.number(1), "Revision");
        make_.put(root, release, "Release");
        Node& cluster = make_.list(Shape::object);
        Node& version = make_.list(Shape::object);
        for (const std::string_view key : {"Version", "GitVersion"}) make_.put(version, *make_.text("v1.30.0"), key);
        make_.put(version, *make_.text("1"), "Major");
        make_.put(version, *make_.text("30"), "Minor");
        make_.put(cluster, version, "KubeVersion");
        make_.put(root, cluster, "Capabilities");
        Node& about_template = make_.list(Shape::object);
        make_.put(about_template, *make_.text("templates/template.yaml"), "Name");
        make_.put(about_template, *make_.text("templates"), "BasePath");
        make_.put(root, about_template, "Template");
        root_ = &root;
        names_.push_back({"$", root_});
        if (!write(*parts, root_) || out_.text.size() > kMostOut) return std::nullopt;
        return std::move(out_);
    }

private:
    struct Define {
        std::vector<Part> parts;
        std::string_view text;
    };

    void learn(const std::vector<Part>& parts, std::string_view text) {
        for (const Part& part : parts)
            if (part.kind == Part::Kind::define) defines_[part.name] = {part.inner, text};
    }

    // Into the output, or into `plain` within an include. False: it cannot be followed.
    bool write(const std::vector<Part>& parts, const Node* dot) {
        const std::size_t names = names_.size();
        for (const Part& part : parts)
            if (!write(part, dot)) return false;
        names_.resize(names);
        return true;
    }
    bool write(const Part& part, const Node* dot) {
        if (++steps_ > kMostSteps || out_.text.size() > kMostOut) return false;
        switch (part.kind) {
            case Part::Kind::define: return true;
            case Part::Kind::text:
                return put(current_.substr(part.span.begin, part.span.size()), part.span, true), true;
            case Part::Kind::choice:
            case Part::Kind::with: {
                const std::size_t names = names_.size();
                const Node* value = pipeline_of(part.words, dot);
                if (!value) return false;
                const bool yes = is_true(*value);
                const bool good =
                    write(yes ? part.inner : part.otherwise, yes && part.kind == Part::Kind::with ? value : dot);
                names_.resize(names);
                return good;
            }
            case Part::Kind::range: return range(part, dot);
            case Part::Kind::call: {
                const auto text = included(part.words, dot);
                if (text) put(*text, part.span, false);
                return text.has_value();
            }
            case Part::Kind::output: break;
        }
        if (part.words.starts_with("$")) {
            const std::size_t equals = part.words.find('=');
            if (equals != std::string_view::npos && part.words.substr(equals, 2) != "==" &&
                part.words.substr(0, equals).find('"') == std::string_view::npos) {
                pipeline_of(part.words, dot);
                return true;
            }
        }
        const Node* value = pipeline_of(part.words, dot);
        put(value ? text_of(*value) : open_value(part), part.span, false);
        return true;
    }

    // What is not known stays as it is written; alone behind a key it needs quotes to be a value of YAML.
    std::string open_value(const Part& part) const {
        const std::string written(current_.substr(part.span.begin, part.span.size()));
        const std::string_view before = out_.text;
        const bool quoted = before.ends_with('"') || before.ends_with('\'');
        const bool alone = before.ends_with(": ") || before.ends_with("- ");
        return alone && !quoted ? "'" + replace_all(written, "'", "''") + "'" : written;
    }

    bool range(const Part& part, const Node* dot) {
        std::string_view words = part.words;
        std::string_view key, value;
        if (const std::size_t assigned = words.find(":=");
            assigned != std::string_view::npos && words.starts_with("$")) {
            const std::string_view names = trim(words.substr(0, assigned));
            const std::size_t comma = names.find(',');
            value = trim(comma == std::string_view::npos ? names : names.substr(comma + 1));
            if (comma != std::string_view::npos) key = trim(names.substr(0, comma));
            words = words.substr(assigned + 2);
        }
        const Node* over = pipeline_of(words, dot);
        if (!over) return false;
        if (!is_true(*over)) return write(part.otherwise, dot);
        if (over->is_scalar()) return false;
        std::vector<const Node*> items;
        for (const Node& item : children(over)) items.push_back(&item);
        if (over->is_object())  // in the order of their names
            std::stable_sort(items.begin(), items.end(), [](const Node* a, const Node* b) { return a->key < b->key; });
        int number = 0;
        for (const Node* item : items) {
            const std::size_t names = names_.size();
            if (!key.empty())
                names_.push_back({key, over->is_object() ? make_.text(std::string(item->key)) : make_.number(number)});
            if (!value.empty()) names_.push_back({value, item});
            ++number;
            if (!write(part.inner, item)) return false;
            names_.resize(names);
        }
        return true;
    }

    void put(std::string_view text, Span host, bool verbatim) {
        if (text.empty()) return;
        if (inside_) return void(out_.text += text);
        out_.pieces.push_back({static_cast<std::uint32_t>(out_.text.size()), static_cast<std::uint32_t>(text.size()),
                               host, verbatim ? Piece::Kind::verbatim : Piece::Kind::changed});
        out_.text += text;
    }

    // What a named template writes; nothing where it is not there.
    std::optional<std::string> included(std::string_view words, const Node* dot) {
        std::string_view rest = words;
        const Node* name = operand(rest, dot);
        const Node* given = trim(rest).empty() ? make_.nothing() : operand(rest, dot);
        return name && given ? included(name->text, *given) : std::string();
    }
    std::optional<std::string> included(std::string_view name, const Node& dot) {
        const auto it = defines_.find(name);
        if (it == defines_.end()) return std::string();
        return apart(it->second.parts, it->second.text, dot);
    }
    // A text that is a template itself.
    std::optional<std::string> filled(std::string_view text, const Node& dot) {
        const auto parts = parts_of(text);
        return parts ? apart(*parts, text, dot) : std::nullopt;
    }
    std::optional<std::string> apart(const std::vector<Part>& parts, std::string_view written, const Node& dot) {
        if (++depth_ > kMostIncludes) return std::string();
        RenderedTemplate outer;
        std::swap(outer, out_);
        const std::string_view text = std::exchange(current_, written);
        const bool was_inside = std::exchange(inside_, true);
        auto names = std::exchange(names_, {{"$", &dot}});
        const bool good = write(parts, &dot);
        names_ = std::move(names);
        inside_ = was_inside;
        current_ = text;
        std::swap(outer, out_);
        --depth_;
        return good ? std::optional(std::move(outer.text)) : std::nullopt;
    }

    // ---- Pipelines ------------------------------------------------------------------------------------------------
    const Node* pipeline_of(std::string_view words, const Node* dot) {
        std::string_view rest = words;
        if (rest.starts_with("$")) {  // $x := ..., $x = ...
            std::size_t end = 1;
            while (end < rest.size() && word_letter(rest[end])) ++end;
            const std::string_view name = rest.substr(0, end);
            std::string_view after = trim(rest.substr(end));
            const bool made = after.starts_with(":="), changed = after.starts_with("=") && !after.starts_with("==");
            if (made || changed) {
                after.remove_prefix(made ? 2 : 1);
                const Node* value = pipeline(after, dot);
                if (made) {
                    names_.push_back({name, value});
                } else {
                    for (auto it = names_.rbegin(); it != names_.rend(); ++it)
                        if (it->first == name) {
                            it->second = value;
                            break;
                        }
                }
                return value;
            }
        }
        const Node* value = pipeline(rest, dot);
        return trim(rest).empty() ? value : nullptr;
    }

    static void blanks(std::string_view& rest) {
        while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r'))
            rest.remove_prefix(1);
    }
    const Node* pipeline(std::string_view& rest, const Node* dot) {
        if (++steps_ > kMostSteps || ++depth_ > 200) return nullptr;
        const Node* value = command(rest, dot, nullptr);
        for (blanks(rest); rest.starts_with("|"); blanks(rest)) {
            rest.remove_prefix(1);
            value = command(rest, dot, value ? value : open());
        }
        --depth_;
        return value && value->known ? value : nullptr;
    }
    const Node* open() {
        Node& made = make_.list(Shape::string);
        made.known = false;
        return &made;
    }
    const Node* command(std::string_view& rest, const Node* dot, const Node* piped) {
        blanks(rest);
        if (rest.empty()) return nullptr;
        std::size_t end = 0;
        while (end < rest.size() && word_letter(rest[end])) ++end;
        const std::string_view word = rest.substr(0, end);
        const bool letter = end > 0 && !(rest[0] >= '0' && rest[0] <= '9');
        for (const std::string_view get : {".Files.Get ", "$.Files.Get ", ".Root.Files.Get ", ".root.Files.Get "})
            if (rest.starts_with(get) && !piped) {
                rest.remove_prefix(get.size());
                const Node* name = operand(rest, dot);
                auto text = name && name->known && chart_.file ? chart_.file(std::string(name->text)) : std::nullopt;
                return text ? make_.text(std::move(*text)) : nullptr;
            }
        for (const std::string_view has : {".Capabilities.APIVersions.Has ", "$.Capabilities.APIVersions.Has "})
            if (rest.starts_with(has) && !piped) {  // of a cluster with nothing beside Kubernetes itself
                rest.remove_prefix(has.size());
                const Node* name = operand(rest, dot);
                return make_.boolean(name &&
                                     (name->text == "v1" || name->text.find("k8s.io/v1") != std::string_view::npos ||
                                      name->text == "apps/v1" || name->text == "batch/v1" ||
                                      name->text == "policy/v1" || name->text == "autoscaling/v2"));
            }
        if (!letter || word == "true" || word == "false" || word == "nil") {
            const Node* value = operand(rest, dot);
            blanks(rest);
            if (piped || !(rest.empty() || rest[0] == ')' || rest[0] == '|')) return nullptr;
            return value;
        }
        rest.remove_prefix(end);
        std::vector<const Node*> args;
        for (blanks(rest); !rest.empty() && rest[0] != ')' && rest[0] != '|'; blanks(rest)) {
            const std::size_t before = rest.size();
            args.push_back(operand(rest, dot));
            if (rest.size() == before) return nullptr;
        }
        if (piped) args.push_back(piped);
        const auto known = [](const Node* arg) { return arg && arg->known; };
        if (word == "include" && args.size() == 2 && known(args[0]) && known(args[1])) {
            auto text = included(args[0]->text, *args[1]);
            return text ? make_.text(std::move(*text)) : nullptr;
        }
        if (word == "tpl" && args.size() == 2 && known(args[0])) {
            if (args[0]->text.find("{{") == std::string_view::npos) return args[0];
            auto text = known(args[1]) ? filled(args[0]->text, *args[1]) : std::nullopt;
            return text ? make_.text(std::move(*text)) : nullptr;
        }
        if ((word == "and" || word == "or") && !args.empty()) {  // what decides alone needs no other
            for (const Node* arg : args)
                if (known(arg) && is_true(*arg) == (word == "or")) return arg;
        }
        if (word == "default" && args.size() == 2 && known(args[1]) && is_true(*args[1])) return args[1];
        if (!std::all_of(args.begin(), args.end(), known)) return nullptr;
        return call_function(word, args, make_);
    }

    const Node* fields(const Node* value, std::string_view& rest) {
        while (rest.size() > 1 && rest[0] == '.' && word_letter(rest[1])) {
            std::size_t end = 1;
            while (end < rest.size() && (word_letter(rest[end]))) ++end;
            const std::string_view name = rest.substr(1, end - 1);
            rest.remove_prefix(end);
            if (!value) continue;
            if (value == root_ && name != "Values" && name != "Chart" && name != "Release" && !value->find(name)) {
                value = nullptr;  // .Files
            } else if (value->is_object()) {
                const Node* found = value->find(name);
                value = found ? found : make_.nothing();
            } else {
                value = value->shape == Shape::null ? value : nullptr;
            }
        }
        return value;
    }

    const Node* operand(std::string_view& rest, const Node* dot) {
        blanks(rest);
        if (rest.empty()) return nullptr;
        const char c = rest[0];
        if (c == '(') {
            rest.remove_prefix(1);
            const Node* value = pipeline(rest, dot);
            blanks(rest);
            if (!rest.starts_with(")")) return rest = {}, nullptr;
            rest.remove_prefix(1);
            return fields(value, rest);
        }
        if (c == '"' || c == '`') {
            std::string out;
            std::size_t at = 1;
            for (; at < rest.size() && rest[at] != c; ++at) {
                if (rest[at] == '\\' && c == '"' && at + 1 < rest.size()) {
                    ++at;
                    out += rest[at] == 'n' ? '\n' : rest[at] == 't' ? '\t' : rest[at];
                } else {
                    out += rest[at];
                }
            }
            rest.remove_prefix(std::min(at + 1, rest.size()));
            return make_.text(std::move(out));
        }
        if (c == '.') {
            if (rest.size() > 1 && word_letter(rest[1])) return fields(dot, rest);
            rest.remove_prefix(1);
            return dot;
        }
        if (c == '$') {
            std::size_t end = 1;
            while (end < rest.size() && word_letter(rest[end])) ++end;
            const std::string_view name = rest.substr(0, end);
            rest.remove_prefix(end);
            for (auto it = names_.rbegin(); it != names_.rend(); ++it)
                if (it->first == name) return fields(it->second, rest);
            return fields(nullptr, rest);
        }
        std::size_t end = c == '-' ? 1 : 0;
        while (end < rest.size() && (word_letter(rest[end]) || rest[end] == '.')) ++end;
        const std::string_view word = rest.substr(0, end);
        rest.remove_prefix(end);
        if (word == "true" || word == "false") return make_.boolean(word == "true");
        if (word == "nil") return make_.nothing();
        if (word.empty() || word.find_first_not_of("0123456789.-") != std::string_view::npos) {
            if (word == "list" || word == "dict") return call_function(word, {}, make_);
            return nullptr;
        }
        Node& made = make_.list(Shape::number);
        made.text = make_.scratch.tree.keep(word);
        return &made;
    }

    std::string_view text_, current_ = text_;
    const Chart& chart_;
    Values make_;
    std::map<std::string_view, Define> defines_;
    std::vector<std::pair<std::string_view, const Node*>> names_;
    const Node* root_ = nullptr;
    RenderedTemplate out_;
    bool inside_ = false;  // of an include: its text has no places of its own
    int depth_ = 0;
    std::size_t steps_ = 0;
};

}  // namespace

std::optional<RenderedTemplate> render_template(std::string_view text, const Chart& chart, File& scratch) {
    return Renderer(text, chart, scratch).run();
}

}  // namespace stoker::lint
