// What a file is: by what it says, and by its name where that leaves it open.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/helm/read_chart.h"
#include "lint/python/read_python.h"
#include "lint/read.h"
#include "lint/shell/read_makefile.h"
#include "lint/shell/read_script_files.h"
#include "lint/shell/shell_words.h"
#include "lint/shell/step_files.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kLooked = 64u << 10;

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// `word` at the beginning of a line (blanks before it allowed when `indented`).
bool line_starts(std::string_view text, std::string_view word, bool indented = false) {
    for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        std::size_t begin = at;
        while (indented && begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t')) --begin;
        if (begin == 0 || text[begin - 1] == '\n') return true;
    }
    return false;
}

Kinds of_json(std::string_view text) {
    Kinds kinds;
    if (has_any(text, {"\"zero_optimization\"", "\"train_micro_batch_size_per_gpu\"", "\"train_batch_size\""}) &&
        !has_any(text, {"\"deepspeed_config\"", "\"$schema\""}))
        kinds.add(Kind::deepspeed);
    else if (has_any(text, {"\"resources\"", "\"parameters\""}) &&
             has_any(text, {"\"Microsoft.", "deploymentTemplate.json", "deploymentParameters.json"}))
        kinds.add(Kind::arm);
    else if (has_any(text, {"\"panels\""}) && has_any(text, {"\"expr\""}))
        kinds.add(Kind::grafana);
    else if ((has_any(text, {"\"currentValue\""}) && has_any(text, {"\"limit\""})) ||
             (has_any(text, {"\"virtualMachines\""}) && has_any(text, {"\"restrictions\""})))
        kinds.add(Kind::arm);  // what az vm list-usage and az vm list-skus answered
    else if (has_any(text, {"\"apiVersion\""}) && has_any(text, {"\"kind\""}))
        kinds.add(Kind::k8s);
    else if (has_any(text, {"\"fp16\"", "\"bf16\""}) && has_any(text, {"\"optimizer\"", "\"scheduler\"", "gradient_"}))
        kinds.add(Kind::deepspeed);
    return kinds;
}

// {{ where YAML's own structure is made by the template: at the beginning of a line, or as a whole value. A manifest
// whose script prints with a Go template (docker ps --format '{{.Names}}') is a manifest.
bool has_structural_template(std::string_view text) {
    for (std::size_t at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at + 2)) {
        std::size_t before = at;
        while (before > 0 && (text[before - 1] == ' ' || text[before - 1] == '\t')) --before;
        if (before == 0 || text[before - 1] == '\n' || text[before - 1] == ':') return true;
        if (text[before - 1] == '-' && before < at) return true;
    }
    return false;
}

// `kind:` with sections that no other tool has beside it: right in most keys is enough, a wrong one is to be told.
bool is_workload_of_ours(std::string_view text) {
    if (!line_starts(text, "kind:") || has_any(text, {"apiVersion:"})) return false;
    int sections = 0;
    for (const std::string_view key : {"model:", "data:", "traffic:", "objective:", "where:", "use_case:", "run:"})
        sections += line_starts(text, key);
    return sections >= 2 || (sections == 1 && line_starts(text, "version:"));
}

// What a gateway is told to be: models with servers behind them and keys kept as digests.
bool is_gateway_file_of_ours(std::string_view text) {
    return line_starts(text, "models:") && line_starts(text, "keys:") && has_any(text, {"upstreams:", "endpoint:"}) &&
           has_any(text, {"sha256:"}) && !has_any(text, {"apiVersion:", "{{"});
}

// What a server is told to be, its price book, or its machines: words that nobody else has at the beginning of a line,
// or two that go together.
bool is_server_file_of_ours(std::string_view text) {
    if (has_any(text, {"apiVersion:", "{{"}) || line_starts(text, "kind:") || line_starts(text, "services:"))
        return false;
    for (const std::string_view key : {"max_queued:", "max_ended:", "keep_ended:", "health_gate:", "azure_events:"})
        if (line_starts(text, key)) return true;
    int sections = 0;
    for (const std::string_view key : {"engine:", "engines:", "admission:", "webhook:", "notify:", "rate:",
                                       "log_level:", "log_format:", "virtual_nodes:", "backup:"})
        sections += line_starts(text, key);
    if (sections >= 2) return true;
    return (line_starts(text, "nodes:") && has_any(text, {"vcpus:", "gpus:"}) && has_any(text, {"name:"})) ||
           (line_starts(text, "prices:") && has_any(text, {"usd_per_hour:"}) && has_any(text, {"resource:"}));
}

// What rules speak of, or a script that may.
bool runs_programs(std::string_view text) {
    return has_any(text, {"az ",         "sbatch ",    "srun ",  "torchrun ", "helm ", "docker ",  "envsubst ",
                          ".sh",         "python",     "vllm ",  "curl ",     "wget ", "kubectl ", "jupyter",
                          "accelerate ", "deepspeed ", "ollama", "apt-key",   "apt",   "podman ",  "nvidia"});
}

// A file of steps that call what rules speak of; a playbook may hold manifests, too.
Kinds of_steps(std::string_view path, std::string_view text) {
    if (!step_dialect_of(path, text) ||
        !(runs_programs(text) || has_any(text, {"uses: ./", "template: ", "Standard_N", "extends:"})))
        return {};
    return has_any(text, {"apiVersion:"}) ? Kinds{Kind::workflow, Kind::k8s} : Kinds{Kind::workflow};
}

Kinds of_yaml(std::string_view path, std::string_view text) {
    Kinds kinds;
    if (const Kinds steps = of_steps(path, text); !steps.empty()) return steps;
    if (text.starts_with("#cloud-config") || has_any(text.substr(0, 512), {"\n#cloud-config"}))
        return {Kind::cloud_init};
    // Variables of Ansible that are about GPUs: for their secrets. What they are for is judged with the playbook.
    if (has_any(path, {"group_vars/", "host_vars/"}) && !has_any(text, {"apiVersion:"}) &&
        !text.starts_with("$ANSIBLE") && has_any(text, {"gpu", "GPU", "nvidia", "cuda", "vllm", "hf_", "Standard_N"}))
        return {Kind::workflow};
    // The values of a chart that is about GPUs: for its secrets. Its templates are judged with them.
    if (const std::string_view name = path.substr(path.rfind('/') + 1);
        (name.starts_with("values") || has_any(name, {"values.y", "-values"})) && !has_any(text, {"apiVersion:"}) &&
        !is_template_of_values(text) && has_any(text, {"gpu", "GPU", "nvidia", "cuda", "vllm", "DCGM"}))
        return {Kind::helm};
    if (path.substr(path.rfind('/') + 1) == "Chart.yaml" && has_any(text, {"file://"})) return {Kind::helm};
    if (const std::string_view name = path.substr(path.rfind('/') + 1);
        name.starts_with("helmfile") && line_starts(text, "releases:") && !has_any(text, {"{{"}))
        return {Kind::helm};
    const bool template_text = has_any(text, {"{{"}) && !has_any(text, {"${{"});
    if (template_text && (has_any(path, {"templates/"}) ||
                          (has_any(text, {"{{-", "{{ .", "{{.", ".Values"}) && has_structural_template(text)))) {
        kinds.add(Kind::helm);
        return kinds;
    }
    if (has_any(text, {"azuremlschemas"}) ||
        ((line_starts(text, "type: command") || line_starts(text, "type: pipeline") ||
          line_starts(text, "type: sweep") || line_starts(text, "type: amlcompute") ||
          line_starts(text, "type: computeinstance")) &&
         has_any(text, {"compute", "size:", "jobs:"})))
        return {Kind::azureml};
    if (const std::string_view name = path.substr(path.rfind('/') + 1);
        (name == "kustomization.yaml" || name == "kustomization.yml") &&
        has_any(text, {"resources:", "bases:", "patches", "images:", "configMapGenerator:", "secretGenerator:"}))
        return {Kind::k8s};
    if (line_starts(text, "apiVersion:") && line_starts(text, "kind:")) return {Kind::k8s};
    if (is_workload_of_ours(text) || is_server_file_of_ours(text) || is_gateway_file_of_ours(text))
        return {Kind::stoker};
    if (has_any(text, {"apiVersion:"}) && has_any(text, {"kind:"}) && !line_starts(text, "services:"))
        return {Kind::k8s};
    const bool compose_name = has_any(path.substr(path.rfind('/') + 1), {"compose."});
    if (line_starts(text, "services:") &&
        (has_any(text, {"image:", "build:", "extends:"}) ||
         (compose_name && has_any(text, {"deploy:", "environment:", "command:", "volumes:", "ports:"}))))
        return {Kind::compose};
    if (line_starts(text, "groups:") && has_any(text, {"alert:", "record:"})) return {Kind::prometheus};
    // Alert rules as Grafana is provisioned with them.
    if (line_starts(text, "groups:") && has_any(text, {"datasourceUid:"}) && has_any(text, {"expr:"}))
        return {Kind::prometheus};
    if (!template_text && names_size(text)) return {Kind::workflow};
    return kinds;
}

// az as a command: at the beginning of a line, behind &&, in $( ) or ` `.
bool calls_az(std::string_view text) {
    for (std::size_t at = text.find("az "); at != std::string_view::npos; at = text.find("az ", at + 3)) {
        std::size_t begin = at;
        while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t')) --begin;
        const std::string_view before = text.substr(0, begin);
        if (before.empty() || before.ends_with('\n')) return true;
        if (begin == at ? before.ends_with("$(") || before.ends_with('`') : before.ends_with("&&")) return true;
    }
    return false;
}

// #SBATCH, # SBATCH, #PBS, #$ -: in one pass over the lines that begin with '#'.
bool has_directive(std::string_view text) {
    for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
        if (at > 0 && text[at - 1] != '\n') continue;
        const std::string_view rest = text.substr(at + 1);
        if (rest.starts_with("SBATCH") || rest.starts_with(" SBATCH") || rest.starts_with("PBS") ||
            rest.starts_with("$ -"))
            return true;
    }
    return false;
}

Kinds of_shell(std::string_view text) {
    Kinds kinds;
    if (has_directive(text)) kinds.add(Kind::slurm);
    if (calls_az(text)) kinds.add(Kind::az);
    kinds.add(Kind::launch);
    return kinds;
}

// "#!/bin/bash -l", "#!/usr/bin/env zsh": not every line with these two letters.
bool shell_of(std::string_view shebang) {
    for (std::size_t at = shebang.find("sh"); at != std::string_view::npos; at = shebang.find("sh", at + 1)) {
        const bool ends = at + 2 == shebang.size() || shebang[at + 2] == ' ' || shebang[at + 2] == '\t';
        const std::size_t word = shebang.find_last_of(" /!", at);
        const std::string_view before = shebang.substr(word + 1, at - word - 1);
        if (ends &&
            (before.empty() || before == "ba" || before == "da" || before == "k" || before == "z" || before == "a"))
            return true;
    }
    return false;
}

}  // namespace

Kinds classify(std::string_view path, std::string_view whole) {
    const std::string_view text = whole.substr(0, kLooked);
    const std::string_view name = base_name_of(path);
    const auto ends = [&](std::string_view end) { return name.size() > end.size() && name.ends_with(end); };

    // cloud-init.yaml.tftpl, job.tftpl.yaml, values.yaml.j2: made into something else before it is used. What fills it
    // in reads it (templatefile).
    for (const std::string_view mark :
         {".tftpl", ".tpl.", ".j2", ".jinja", ".jinja2", ".gotmpl", ".tmpl", ".template", ".erb", ".mustache"})
        if (const std::size_t at = name.find(mark);
            at != std::string_view::npos && at > 0 &&
            (mark.ends_with('.') || at + mark.size() == name.size() || name[at + mark.size()] == '.'))
            return {Kind::helm};
    if (ends(".tf") || ends(".tfvars") || ends(".hcl") || ends(".tf.json") || ends(".tfvars.json"))
        return {Kind::terraform};
    if (ends(".bicep") || ends(".bicepparam")) return {Kind::bicep};
    if (name == "Dockerfile" || name.starts_with("Dockerfile.") || ends(".dockerfile") || ends(".Dockerfile") ||
        name == "Containerfile")
        return {Kind::dockerfile};
    if (ends(".sh") || ends(".bash") || ends(".sbatch") || ends(".slurm") || ends(".pbs") || ends(".qsub"))
        return of_shell(text);
    if (ends(".py")) return is_python(path, text) ? Kinds{Kind::workflow} : Kinds{};
    if (ends(".ipynb") && !has_any(text, {"\"!", "%%bash", "%%sh"})) return {};
    if (is_makefile(path) || is_script_file(path, text)) return runs_programs(text) ? Kinds{Kind::workflow} : Kinds{};
    if (name == "plugstack.conf") return {Kind::slurm};
    if (ends(".json") || ends(".jsonc") || ends(".json5")) return of_json(text);
    if (ends(".yaml") || ends(".yml")) return of_yaml(path, text);
    if (ends(".tpl")) return {Kind::helm};
    if (ends(".md") || ends(".markdown")) return {Kind::markdown};
    if (name.starts_with("requirements") && ends(".txt")) return {Kind::requirements};

    // By content alone: standard input, guests, files without a telling name.
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    if (text.starts_with("#!")) {
        std::string_view line = text.substr(0, text.find('\n'));
        line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
        if (shell_of(line) || line_starts(text, "#SBATCH")) return of_shell(text);
        return {};
    }
    if (line_starts(text, "#SBATCH")) return of_shell(text);
    // The name says that it is something else: a program that prints YAML, a test with examples in it.
    if (name.find('.', 1) != std::string_view::npos && !ends(".txt") && !ends(".conf") && !ends(".config") &&
        !ends(".example") && !ends(".sample") && !ends(".template"))
        return {};
    if (text[first] == '{') return of_json(text);
    if (const Kinds yaml = of_yaml(path, text); !yaml.empty()) return yaml;
    if (line_starts(text, "FROM ") && has_any(text, {"RUN ", "COPY ", "CMD ", "ENTRYPOINT "}))
        return {Kind::dockerfile};
    if (line_starts(text, "resource \"") || line_starts(text, "provider \"")) return {Kind::terraform};
    if (has_any(text, {"'Microsoft."}) && (line_starts(text, "resource ") || line_starts(text, "module ")))
        return {Kind::bicep};
    if (path.empty() || path == "-")
        if (has_any(text,
                    {"torchrun", "deepspeed ", "accelerate launch", "mpirun", "srun ", "python", "export ", "az "}))
            return of_shell(text);
    return {};
}

Kinds classify_guest(std::string_view name, std::string_view text) {
    return name.ends_with(".py") ? Kinds{} : classify(name, text);
}

}  // namespace stoker::lint
