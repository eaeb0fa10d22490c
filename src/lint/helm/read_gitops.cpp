// Charts and manifests of this repository as Argo CD and Flux install them: the values that an Application or a
// HelmRelease gives a chart, the variables that a Kustomization of Flux fills in, the values that an umbrella chart has
// for the charts it is made of.
#include <algorithm>

#include "base/text.h"
#include "lint/azure/local_modules.h"
#include "lint/helm/read_chart.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostElements = 8, kMostSubstituted = 24, kMostSubstitutedBytes = 256u << 10;

std::string_view gitops_text(const Node* node) {
    return node && node->is_scalar() ? node->text : std::string_view();
}

class GitOpsReader {
public:
    GitOpsReader(File& file, const ReadOptions& options) : file_(file), options_(options) {}

    void document(const Node& root) {
        const std::string_view kind = gitops_text(root.find("kind")), version = gitops_text(root.find("apiVersion"));
        const Node* spec = root.find("spec");
        if (!spec) return;
        if (kind == "HelmRelease" && version.starts_with("helm.toolkit.fluxcd.io/")) return helm_release(*spec);
        if (kind == "Kustomization" && version.starts_with("kustomize.toolkit.fluxcd.io/")) return substituted(*spec);
        if (!version.starts_with("argoproj.io/")) return;
        if (kind == "Application") return application(*spec, nullptr);
        if (kind != "ApplicationSet") return;
        const Node* made = spec->at({"template", "spec"});
        std::size_t count = 0;
        for (const Node& generator : children(spec->find("generators")))
            for (const Node& element : children(generator.at({"list", "elements"})))
                if (made && ++count <= kMostElements) application(*made, &element);
    }

private:
    // A path counts from the top of the repository, which lies some folders above the file.
    std::string from_here(std::string_view path, std::string_view file_in_it) const {
        while (path.starts_with("./")) path.remove_prefix(2);
        while (path.ends_with('/')) path.remove_suffix(1);
        if (path.empty() || path.starts_with('/') || path.find("{{") != std::string_view::npos) return {};
        std::string up;
        for (int floors = 0; floors < 6; ++floors, up += "../") {
            const std::string folder = up + std::string(path);
            if (file_in_it.empty() ? !options_.list(folder).empty()
                                   : options_.neighbour(folder + "/" + std::string(file_in_it)).has_value())
                return folder;
        }
        return {};
    }

    void helm_release(const Node& spec) {
        const Node* chart = spec.at({"chart", "spec", "chart"});
        const Node* values = spec.find("values");
        const Node* from = spec.at({"chart", "spec", "sourceRef", "kind"});
        if (!chart || !values || gitops_text(from) != "GitRepository") return;
        const std::string folder = from_here(gitops_text(chart), "Chart.yaml");
        if (!folder.empty()) read_chart_given(file_, folder, *values, values->key_span, "HelmRelease", options_);
    }

    // `element`: of the list that an ApplicationSet is made for.
    void application(const Node& spec, const Node* element) {
        if (const Node* source = spec.find("source")) chart_of(*source, element);
        for (const Node& source : children(spec.find("sources"))) chart_of(source, element);
    }

    void chart_of(const Node& source, const Node* element) {
        const Node* helm = source.find("helm");
        const std::string folder = helm ? from_here(gitops_text(source.find("path")), "Chart.yaml") : std::string();
        if (folder.empty()) return;
        const Node* values = nullptr;
        const auto lay = [&](const Node* over) {
            if (over) values = values ? &chart_values_over(file_, *values, *over) : over;
        };
        for (const Node& each : children(helm->find("valueFiles")))
            lay(chart_values_beside(file_, folder + "/" + filled(gitops_text(&each), element), options_));
        if (const Node* text = helm->find("values")) lay(chart_values_of(file_, *text));
        if (const Node* object = helm->find("valuesObject")) lay(object);
        Node& set = file_.tree.make(file_.source(), Shape::object, helm->span);
        for (const Node& each : children(helm->find("parameters"))) {
            const Node *name = each.find("name"), *value = each.find("value");
            if (!name || !value || !value->is_scalar()) continue;
            give_chart_value(file_, set, name->text, filled(*value, element));
        }
        if (set.first) lay(&set);
        if (values) read_chart_given(file_, folder, *values, helm->key_span, "Application", options_);
    }

    // {{ .tag }} and {{tag}} as the element has it.
    std::string filled(std::string_view text, const Node* element) const {
        std::string out(text);
        for (std::size_t at = out.find("{{"); at != std::string::npos && element; at = out.find("{{", at)) {
            const std::size_t end = out.find("}}", at);
            if (end == std::string::npos) break;
            std::string_view name = trim(std::string_view(out).substr(at + 2, end - at - 2));
            if (name.starts_with('.')) name.remove_prefix(1);
            const std::string value(gitops_text(element->find(name)));
            if (value.empty()) break;
            out.replace(at, end + 2 - at, value);
            at += value.size();
        }
        return out;
    }
    Value filled(const Node& written, const Node* element) {
        Value value = Value::of(&written);
        if (written.text.find("{{") == std::string_view::npos) return value;
        const std::string text = filled(written.text, element);
        if (text.find("{{") != std::string::npos) return value;
        value.text = file_.tree.keep(text);
        value.state = Value::State::known;
        // Where all of it is one field of the element, that is what a reader wants to see.
        std::string_view name = trim(written.text);
        if (name.starts_with("{{") && name.ends_with("}}")) {
            name = trim(name.substr(2, name.size() - 4));
            if (name.starts_with('.')) name.remove_prefix(1);
            if (const Node* field = element ? element->find(name) : nullptr)
                value.span = field->span, value.source = field->source;
        }
        return value;
    }

    void substituted(const Node& spec) {
        const Node* given = spec.at({"postBuild", "substitute"});
        const std::string folder = given ? from_here(gitops_text(spec.find("path")), "") : std::string();
        if (folder.empty()) return;
        std::vector<EnvVar> variables;
        for (const Node& each : children(given))
            if (each.is_scalar()) variables.push_back({each.key, Value::of(&each), each.whole()});
        std::size_t count = 0;
        for (const std::string& name : options_.list(folder)) {
            if ((!name.ends_with(".yaml") && !name.ends_with(".yml")) || ++count > kMostSubstituted) continue;
            auto text = options_.neighbour(folder + "/" + name);
            if (!text || text->size() > kMostSubstitutedBytes || text->find("${") == std::string::npos) continue;
            auto made = file_of_call(file_, path_from(file_.path(), folder + "/" + name), std::move(*text),
                                     "Kustomization", spec.key_span);
            std::vector<Piece> pieces;
            std::string whole = with_variables(made->source().text(), variables, {}, pieces);
            if (pieces.empty() || !classify("", whole).has(Kind::k8s)) continue;
            made->kinds.add(Kind::helm);  // a text that is filled in
            made->call->overlay = true;
            const File* guest = read_guest(*made, std::move(whole), std::move(pieces), {Kind::k8s}, options_);
            if (guest && guest->problems.empty()) file_.calls.push_back(std::move(made));
        }
    }

    File& file_;
    const ReadOptions& options_;
};

// A chart whose dependencies lie in folders beside it: what its values say below their names.
void read_umbrella(File& file, const ReadOptions& options) {
    if (base_name_of(file.path()) != "Chart.yaml" || file.tree.roots.empty()) return;
    std::vector<std::string> names = {"values.yaml"};
    for (const std::string& name : options.list("."))
        if (name.starts_with("values") && name != "values.yaml" && name.ends_with(".yaml") && names.size() < 5)
            names.push_back(name);
    for (const std::string& name : names) {
        const Node* all = chart_values_beside(file, name, options);
        if (!all) continue;
        for (const Node& dependency : children(file.tree.roots[0]->find("dependencies"))) {
            const std::string_view from = gitops_text(dependency.find("repository"));
            if (!from.starts_with("file://")) continue;
            const Node* alias = dependency.find("alias");
            const Node* given = all->find(gitops_text(alias ? alias : dependency.find("name")));
            if (!given || !given->is_object()) continue;
            if (const Node* everybodys = all->find("global")) {
                Node& global = file.tree.make(*everybodys->source, everybodys->shape, everybodys->span);
                global.first = everybodys->first, global.last = everybodys->last, global.key = "global";
                Node& around = file.tree.make(*everybodys->source, Shape::object, everybodys->span);
                file.tree.append(around, global);
                given = &chart_values_over(file, *given, around);
            }
            read_chart_given(file, from.substr(7), *given, dependency.span, name, options);
        }
    }
}

}  // namespace

void read_installed_charts(File& file, const ReadOptions& options) {
    if (file.host || file.call || !options.neighbour || !options.list) return;
    if (file.kinds.has(Kind::helm)) return read_umbrella(file, options);
    if (!file.kinds.has(Kind::k8s)) return;
    GitOpsReader reader(file, options);
    for (const Node* root : file.tree.roots) reader.document(*root);
}

}  // namespace stoker::lint
