// A chart's templates with the values that they get: the chart's own, those of values-*.yaml beside it, and those that
// whoever installs the chart gives.
#include "lint/helm/read_chart.h"

#include <algorithm>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/helm/render_template.h"
#include "lint/helm/template_functions.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostTemplateBytes = 1u << 18;
constexpr std::size_t kMostNamesAbove = 8;  // of a chart that another one takes in several times
constexpr std::size_t kMostValueFiles = 4, kMostGivenTemplates = 24, kMostLibraries = 8;

class ChartReader {
public:
    // `file`: the template; what it makes is put among the guests of `into`, which has the text of the template too.
    // `which`: of the names under which the chart above takes this one in.
    ChartReader(File& file, const ReadOptions& options, std::size_t which = 0)
        : file_(file), options_(options), which_(which) {
        const std::string& path = file.path();
        folder_ = path.rfind("templates/");
        if (folder_ == std::string::npos || (folder_ > 0 && path[folder_ - 1] != '/')) return;
        for (std::size_t at = path.find('/', folder_ + 10); at != std::string::npos; at = path.find('/', at + 1))
            to_templates_ += "../";
        File* about = beside("../Chart.yaml");
        if (!about) return;
        read_yaml(*about);
        if (!about->tree.roots.empty()) about_ = about->tree.roots[0];
        for (const auto& [key, to] :
             {std::pair("name", &chart_.name), {"version", &chart_.version}, {"appVersion", &chart_.app_version}})
            if (const Node* node = about_ ? about_->find(key) : nullptr) *to = node->text;
        whole_ = own_values();
        if (!whole_) return;
        chart_.file = [this](const std::string& name) -> std::optional<std::string> {
            if (name.starts_with('/') || name.find("..") != std::string::npos) return std::nullopt;
            auto text = options_.neighbour(to_templates_ + "../" + name);
            if (!text || text->size() > kMostTemplateBytes / 4 || text->find('\0') != std::string::npos)
                return std::nullopt;
            return text;
        };
        helpers();
    }

    bool whole() const { return whole_; }
    std::size_t names_above() const { return names_above_; }

    void render(File& into, const Node* given) {
        Chart chart = chart_;
        file_.neighbours.push_back(std::make_unique<File>(file_.path(), ""));
        File& scratch = *file_.neighbours.back();
        if (given) chart.values = chart.values ? &helm::merged(*chart.values, *given, helm::Values{scratch}) : given;
        auto rendered = render_template(into.source().text(), chart, scratch);
        if (!rendered || trim(rendered->text).empty()) return;
        if (!classify("", rendered->text).has(Kind::k8s)) return;
        const File* guest =
            read_guest(into, std::move(rendered->text), std::move(rendered->pieces), {Kind::k8s}, options_);
        if (guest && !guest->problems.empty())
            into.guests.pop_back();  // what was not followed may be all that is wrong
    }

    // values-prod.yaml, values.gpu.yaml, values/prod.yaml: what the chart is with each of them.
    void render_other_values() {
        if (!options_.list) return;
        std::size_t count = 0;
        std::vector<std::string> names;
        for (const char* folder : {"", "values/"})
            for (const std::string& name : options_.list(to_templates_ + ".." + (*folder ? "/values" : ""))) {
                const bool yaml = name.ends_with(".yaml") || name.ends_with(".yml");
                const bool own =
                    *folder == '\0' && (!name.starts_with("values") || name == "values.yaml" || name == "values.yml");
                if (yaml && !own) names.push_back(folder + name);
            }
        for (const std::string& name : names) {
            if (++count > kMostValueFiles) return;
            File* values = beside("../" + name);
            if (!values || values->source().text().find("{{") != std::string_view::npos) continue;
            read_yaml(*values);
            if (!values->problems.empty() || values->tree.roots.size() != 1 || !values->tree.roots[0]->is_object())
                continue;
            auto made = file_of_call(*values, file_.path(), std::string(file_.source().text()), name);
            made->kinds.add(Kind::helm);
            made->call->overlay = true;
            render(*made, values->tree.roots[0]);
            if (!made->guests.empty()) file_.calls.push_back(std::move(made));
        }
    }

private:
    File* beside(const std::string& name) {
        auto text = options_.neighbour(to_templates_ + name);
        if (!text || text->size() > kMostTemplateBytes || text->find('\0') != std::string::npos) return nullptr;
        std::string where = name.starts_with("../") ? name.substr(3) : "templates/" + name;
        file_.neighbours.push_back(std::make_unique<File>(file_.path().substr(0, folder_) + where, std::move(*text)));
        return file_.neighbours.back().get();
    }

    // False: the chart has values that cannot be read.
    bool own_values() {
        const std::string& path = file_.path();
        if (File* values = beside("../values.yaml")) {
            read_yaml(*values);
            if (!values->problems.empty()) return false;
            if (!values->tree.roots.empty()) chart_.values = values->tree.roots[0];
        }
        // A chart below another one: what that gives it under its name, and what is everybody's.
        const std::size_t above = path.rfind("charts/", folder_);
        if (above == std::string::npos || path.find('/', above + 7) + 1 != folder_) return true;
        File* outer = beside("../../../values.yaml");
        File* parent = outer ? beside("../../../Chart.yaml") : nullptr;
        if (!parent) return true;
        read_yaml(*outer);
        read_yaml(*parent);
        std::string key = path.substr(above + 7, folder_ - above - 8);
        if (!chart_.name.empty()) key = chart_.name;
        std::vector<std::string> names;
        for (const Node* root : parent->tree.roots)
            for (const Node& dependency : children(root->find("dependencies"))) {
                const Node *alias = dependency.find("alias"), *name = dependency.find("name");
                if (name && name->text == key && names.size() < kMostNamesAbove)
                    names.emplace_back(alias && alias->is_scalar() ? alias->text : name->text);
            }
        names_above_ = std::max<std::size_t>(names.size(), 1);
        if (which_ < names.size()) key = names[which_];
        if (!outer->problems.empty() || outer->tree.roots.empty()) return true;
        const helm::Values make{*outer};
        const Node* given = outer->tree.roots[0]->find(key);
        if (given && given->is_object())
            chart_.values = chart_.values ? &helm::merged(*chart_.values, *given, make) : given;
        if (const Node* global = outer->tree.roots[0]->find("global")) {
            Node& everybodys = make.list(Shape::object);
            make.put(everybodys, *global, "global");
            chart_.values = chart_.values ? &helm::merged(*chart_.values, everybodys, make) : &everybodys;
        }
        return true;
    }

    // Blocks that the chart defines, and those of the charts it depends on that stand beside or below it.
    void helpers() {
        if (!options_.list) return;
        std::vector<std::string> folders = {""};
        for (const Node& dependency : children(about_ ? about_->find("dependencies") : nullptr)) {
            const Node *name = dependency.find("name"), *from = dependency.find("repository");
            if (!name || name->text.empty() || folders.size() > kMostLibraries) continue;
            folders.push_back("../charts/" + std::string(name->text) + "/templates/");
            if (from && from->text.starts_with("file://"))
                folders.push_back("../" + std::string(from->text.substr(7)) + "/templates/");
        }
        for (const std::string& folder : folders)
            for (const std::string& name : options_.list(to_templates_ + (folder.empty() ? "." : folder)))
                if (name.ends_with(".tpl"))
                    if (File* helper = beside(folder + name)) chart_.helpers.push_back(helper->source().text());
    }

    File& file_;
    const ReadOptions& options_;
    std::size_t folder_ = std::string::npos;
    std::string to_templates_;
    const Node* about_ = nullptr;
    Chart chart_;
    bool whole_ = false;
    std::size_t which_ = 0, names_above_ = 1;
};

Node& made_value(File& in, const Value& from, std::string_view text, std::string_view key) {
    const bool number = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    const bool truth = text == "true" || text == "false";
    Node& made = in.tree.make(*from.source, truth ? Shape::boolean : number ? Shape::number : Shape::string, from.span);
    made.text = in.tree.keep(text);
    made.key = in.tree.keep(key);
    made.known = from.known();
    return made;
}

}  // namespace

bool is_template_of_values(std::string_view text) {
    for (std::size_t at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at + 2))
        if (!trim(text.substr(at + 2, 4)).starts_with('$')) return true;
    return false;
}

void read_chart_template(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::helm) || file.host || !options.neighbour || file.path().ends_with(".tpl")) return;
    ChartReader reader(file, options);
    if (!reader.whole()) return;
    reader.render(file, nullptr);
    reader.render_other_values();
    for (std::size_t which = 1; which < reader.names_above(); ++which) {
        auto made = file_of_call(file, file.path(), std::string(file.source().text()), "alias");
        made->kinds.add(Kind::helm);
        made->call->overlay = true;
        ChartReader again(*made, options, which);
        if (again.whole()) again.render(*made, nullptr);
        if (!made->guests.empty()) file.calls.push_back(std::move(made));
    }
}

void read_chart_given(File& caller, std::string_view chart, const Node& given, Span at, std::string name,
                      const ReadOptions& options) {
    if (!options.neighbour || !options.list || caller.host || caller.call || !given.is_object() || !given.first) return;
    std::string folder(chart);
    while (folder.ends_with('/')) folder.pop_back();
    while (folder.starts_with("./")) folder.erase(0, 2);
    if (folder.empty() || folder.starts_with('/') || folder.find_first_of("$:~*{ ") != std::string::npos) return;
    std::size_t count = 0;
    for (const std::string& each : options.list(folder + "/templates")) {
        if (!each.ends_with(".yaml") && !each.ends_with(".yml")) continue;
        auto text = options.neighbour(folder + "/templates/" + each);
        if (!text || text->size() > kMostTemplateBytes || ++count > kMostGivenTemplates) continue;
        auto made =
            file_of_call(caller, path_from(caller.path(), folder + "/templates/" + each), std::move(*text), name, at);
        made->kinds.add(Kind::helm);
        made->call->overlay = true;
        ReadOptions inside;
        inside.neighbour = [outer = options.neighbour, folder](const std::string& path) {
            return outer(folder + "/templates/" + path);
        };
        inside.list = [outer = options.list, folder](const std::string& path) {
            return outer(folder + "/templates/" + path);
        };
        ChartReader reader(*made, inside);
        if (reader.whole()) reader.render(*made, &given);
        if (!made->guests.empty()) caller.calls.push_back(std::move(made));
    }
}

void give_chart_value(File& in, Node& given, std::string_view path, const Value& value) {
    Node* at = &given;
    for (std::size_t steps = 0; steps < 16; ++steps) {
        std::size_t dot = path.find('.');
        while (dot != std::string_view::npos && dot > 0 && path[dot - 1] == '\\') dot = path.find('.', dot + 1);
        const std::string key = replace_all(std::string(path.substr(0, dot)), "\\.", ".");
        if (key.empty() || key.find('[') != std::string::npos) return;
        if (dot == std::string_view::npos) return in.tree.append(*at, made_value(in, value, value.text, key));
        path.remove_prefix(dot + 1);
        Node* next = const_cast<Node*>(at->find(key));
        if (!next || !next->is_object()) {
            next = &in.tree.make(*value.source, Shape::object, value.span);
            next->key = in.tree.keep(key);
            in.tree.append(*at, *next);
        }
        at = next;
    }
}

const Node* chart_values_of(File& in, const Node& written) {
    if (written.is_object()) return &written;
    if (!written.known || !written.is_scalar() || written.text.empty() || written.text.size() > kMostTemplateBytes ||
        written.text.find("{{") != std::string_view::npos)
        return nullptr;
    const Span at = written.source == &in.source() ? written.span : Span{0, 0};
    in.neighbours.push_back(std::make_unique<File>(
        in, std::string(written.text),
        std::vector<Piece>{{0, static_cast<std::uint32_t>(written.text.size()), at, Piece::Kind::changed}}));
    File& read = *in.neighbours.back();
    read_yaml(read);
    const bool whole = read.problems.empty() && read.tree.roots.size() == 1 && read.tree.roots[0]->is_object();
    return whole ? read.tree.roots[0] : nullptr;
}

const Node* chart_values_beside(File& in, const std::string& path, const ReadOptions& options) {
    auto text = options.neighbour ? options.neighbour(path) : std::nullopt;
    if (!text || text->size() > kMostTemplateBytes || text->find('\0') != std::string::npos ||
        text->find("{{") != std::string::npos)
        return nullptr;
    in.neighbours.push_back(std::make_unique<File>(path_from(in.path(), path), std::move(*text)));
    File& read = *in.neighbours.back();
    read_yaml(read);
    const bool whole = read.problems.empty() && read.tree.roots.size() == 1 && read.tree.roots[0]->is_object();
    return whole ? read.tree.roots[0] : nullptr;
}

const Node& chart_values_over(File& in, const Node& base, const Node& over) {
    return helm::merged(base, over, helm::Values{in});
}

// releases: of a helmfile, each with the values that it gives a chart beside it.
void read_helmfile(File& file, const ReadOptions& options) {
    const std::string_view name = base_name_of(file.path());
    if (!file.kinds.has(Kind::helm) || !name.starts_with("helmfile") || file.tree.roots.empty()) return;
    for (const Node* root : file.tree.roots)
        for (const Node& release : children(root->find("releases"))) {
            const Node* chart = release.find("chart");
            if (!chart || !chart->is_scalar() || !chart->text.starts_with('.')) continue;
            const Node* values = nullptr;
            const auto lay = [&](const Node* over) {
                if (over) values = values ? &chart_values_over(file, *values, *over) : over;
            };
            for (const Node& each : children(release.find("values")))
                lay(each.is_object() ? &each : chart_values_beside(file, std::string(each.text), options));
            Node& set = file.tree.make(file.source(), Shape::object, release.span);
            for (const Node& each : children(release.find("set")))
                if (const Node* key = each.find("name"), *value = each.find("value");
                    key && value && key->is_scalar() && value->is_scalar())
                    give_chart_value(file, set, key->text, Value::of(value));
            if (set.first) lay(&set);
            if (values) read_chart_given(file, chart->text, *values, chart->span, "helmfile", options);
        }
}

}  // namespace stoker::lint
