#include "lint/read.h"

#include <fmt/format.h>

#include "base/utf16.h"
#include "lint/helm/read_chart.h"
#include "lint/python/read_python.h"
#include "lint/shell/read_makefile.h"
#include "lint/shell/read_script_files.h"

namespace stoker::lint {

namespace {

// SYN005 and SYN001 for what no front end should see. False: leave it.
bool readable(File& file) {
    const std::string_view text = file.source().text();
    const auto refuse = [&](std::string_view rule, Span span, std::string message) {
        file.problems.push_back({rule, span, std::move(message), &file.source()});
        return false;
    };
    if (text.size() > kMostBytes) return refuse("SYN005", {0, 0}, "the file is larger than 16 MiB: it is not read");
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
        return refuse("SYN001", {0, 2}, "the file is UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)");
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
        const auto at = static_cast<std::uint32_t>(nul);
        return refuse("SYN001", {at, at + 1}, "a NUL byte: this is not a text file");
    }
    return true;
}

// --size stands for the variables that decide at deployment; what is written stays.
void assume_size(File& file, const std::string& size) {
    for (Resource& resource : file.resources)
        for (auto& [attr, value] : resource.attributes)
            if (attr == Attr::size && value.unknown()) {
                value.state = Value::State::known;
                value.assumed = true;
                value.text = file.tree.keep(size);
            }
}

// SYN006: what the command that the file is for would say of it, at the places that it names.
void judge_workload(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::stoker) || file.host || !file.problems.empty() || !options.workload_problems) return;
    const Source& source = file.source();
    for (const Problem& problem : options.workload_problems(file.path(), source.text())) {
        const bool here = problem.pos.line > 0 && problem.pos.file == file.path();
        std::string message = here || problem.pos.file.empty() ? problem.message
                                                               : fmt::format("{}:{}: {}", problem.pos.file.view(),
                                                                             problem.pos.line, problem.message);
        if (!problem.remedy.empty()) message += "; " + problem.remedy;
        file.problems.push_back({"SYN006", here ? source.word_at(problem.pos.line, problem.pos.column) : Span{0, 0},
                                 std::move(message), &source});
    }
}

void read_into(File& file, const ReadOptions& options) {
    if (!readable(file)) return;
    const Kinds kinds = file.kinds;
    if (kinds.has(Kind::terraform)) {
        read_hcl(file, options);
    } else if (kinds.has(Kind::bicep)) {
        read_bicep(file, options);
    } else if (kinds.any({Kind::arm, Kind::deepspeed, Kind::grafana})) {
        read_json(file);
    } else if (kinds.has(Kind::dockerfile)) {
        read_dockerfile(file, options);
    } else if (kinds.any({Kind::slurm, Kind::launch, Kind::az})) {
        read_shell(file, options);
    } else if (kinds.has(Kind::workflow) && !file.host && is_python(file.path(), file.source().text())) {
        read_python(file, options);
    } else if (kinds.has(Kind::workflow) && is_script_file(file.host ? "" : file.path(), file.source().text())) {
        read_script_file(file, options);
    } else if (kinds.has(Kind::workflow) && is_makefile(file.path())) {
        read_makefile(file, options);
    } else if (kinds.any({Kind::k8s, Kind::compose, Kind::azureml, Kind::cloud_init, Kind::prometheus, Kind::workflow,
                          Kind::stoker})) {
        const std::string_view text = file.source().text();
        const std::size_t first = text.find_first_not_of(" \t\r\n");
        if (first != std::string_view::npos && text[first] == '{' && file.path().ends_with(".json") && !file.host)
            read_json(file);
        else
            read_yaml(file);
    }
    if (const std::string_view name = std::string_view(file.path()).substr(file.path().rfind('/') + 1);
        kinds.has(Kind::helm) && !file.host &&
        (name.starts_with("values") || name.find("values.y") != std::string_view::npos ||
         name.find("-values") != std::string_view::npos || name.starts_with("helmfile") || name == "Chart.yaml") &&
        (name.ends_with(".yaml") || name.ends_with(".yml")) && !is_template_of_values(file.source().text()))
        read_yaml(file);  // values
    read_chart_template(file, options);
    read_helmfile(file, options);
    read_installed_charts(file, options);
    read_stack_values(file);
    find_kubernetes(file, options);
    read_kustomization(file, options);
    find_compose(file, options);
    find_azureml(file, options);
    find_terraform(file, options);
    find_bicep(file, options);
    find_arm(file, options);
    find_az(file, options);
    find_az_files(file, options);
    find_launches(file, options);
    find_cloud_init(file, options);
    find_workflow(file, options);
    judge_workload(file, options);
    if (!options.size.empty()) assume_size(file, options.size);
}

}  // namespace

std::unique_ptr<File> read_file(std::string path, std::string text, const ReadOptions& options) {
    auto file = std::make_unique<File>(std::move(path), std::move(text));
    if (options.kind)
        file->kinds.add(*options.kind);
    else
        file->kinds = classify(file->path(), file->source().text());
    if (file->kinds.empty()) return nullptr;
    read_into(*file, options);
    return file;
}

void read_called(File& caller, std::string path, std::string text, ModuleCall call, const ReadOptions& options) {
    auto file = std::make_unique<File>(std::move(path), std::move(text));
    file->kinds = caller.kinds;
    file->call = std::move(call);
    read_into(*file, options);
    caller.calls.push_back(std::move(file));
}

File* read_guest(File& host, std::string text, std::vector<Piece> pieces, Kinds kinds, const ReadOptions& options,
                 const Container* container, const Source* written) {
    if (host.depth() >= kMostGuestDepth || text.empty() || pieces.empty()) return nullptr;
    auto guest = std::make_unique<File>(host, written ? *written : host.source(), std::move(text), std::move(pieces));
    guest->kinds = kinds.empty() ? classify("", guest->source().text()) : kinds;
    if (guest->kinds.empty()) return nullptr;
    guest->host_container = container;
    read_into(*guest, options);
    host.guests.push_back(std::move(guest));
    return host.guests.back().get();
}

}  // namespace stoker::lint
