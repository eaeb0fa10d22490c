#include "server/engine_config.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/table_impl.h"
#include "base/text.h"
#include "deploy/engines/engines.h"
#include "run/decide/schedule.h"

namespace stoker {
namespace {

constexpr std::size_t kMostEngineName = 16, kMostEngines = 15;
constexpr double kMostNoticeS = 65535;  // of sbatch --signal, in seconds (sbatch(1), Slurm 22.05)

struct Told {
    const char* key;
    std::string EngineChoice::*value;
};
// What only an engine with a queue of its own has a use for.
constexpr Told kOfAQueue[] = {{"partition", &EngineChoice::partition},
                              {"account", &EngineChoice::account},
                              {"qos", &EngineChoice::qos},
                              {"reservation", &EngineChoice::reservation},
                              {"constraint", &EngineChoice::constraint},
                              {"config", &EngineChoice::config},
                              {"commands", &EngineChoice::commands},
                              {"program", &EngineChoice::program}};

RecordTable<GpuNameForm> gpu_name_table() {
    RecordTable<GpuNameForm> t("gpu name", "What a GPU is called by the cluster, and in the catalogue.");
    t.text("name", &GpuNameForm::name, "Its type in gres.conf.", "a100").required();
    t.text("model", &GpuNameForm::model, "Its name in the catalogue.", "A100-SXM4-80GB").required();
    return t;
}

RecordTable<FolderOfPods> folder_of_pods_table() {
    RecordTable<FolderOfPods> t("shared folder", "A folder that this server and the pods see by the same name.");
    t.text("path", &FolderOfPods::path, "Here and in the pods.", "/shared").required();
    t.text(
        "claim", &FolderOfPods::claim,
        "The PersistentVolumeClaim of the namespace that holds it; the node's own folder of this name when nothing is "
        "said.",
        "stoker");
    return t;
}

RecordTable<RestForm> rest_table() {
    RecordTable<RestForm> t("rest", "A slurmrestd, asked instead of Slurm's commands.");
    t.text("url", &RestForm::url, "Its socket, or its address.", "unix:/run/slurmrestd.sock").required();
    t.text("user", &RestForm::user,
           "Whose token it is and whose jobs they are: the user that this server runs as. A socket of that user's own "
           "slurmrestd needs neither.",
           "alice");
    t.text("token_file", &RestForm::token_file,
           "The file that has the token (scontrol token), read anew for each question: who renews it, writes the file "
           "again.",
           "/run/stoker/slurm.token");
    t.text("ca_file", &RestForm::ca_file, "Whom to trust for https; the system's authorities when nothing is said.",
           "/etc/ssl/cluster-ca.pem");
    return t;
}

SourcePos place_of(const EngineForm& form, const char* key) {
    const auto found = form.at.find(key);
    return found == form.at.end() ? SourcePos() : found->second;
}

// What each engine but Kubernetes has no use for.
void refuse_kubernetes_keys(const EngineForm& form, Problems& problems) {
    const std::pair<const char*, bool> told[] = {{"context", !form.context.empty()},
                                                 {"namespace", !form.space.empty()},
                                                 {"image", !form.image.empty()},
                                                 {"queue", !form.queue.empty()},
                                                 {"service_account", !form.service_account.empty()},
                                                 {"priority_class", !form.priority_class.empty()},
                                                 {"pull_secrets", !form.pull_secrets.empty()},
                                                 {"tolerate", !form.tolerate.empty()},
                                                 {"node_selector", !form.node_labels.empty()},
                                                 {"shared", !form.shared.empty() && form.kind != "slurm"},
                                                 {"measures", !form.measures},
                                                 {"gang_wait", form.gang_wait.has_value()}};
    for (const auto& [key, is_told] : told)
        if (is_told)
            problems.push_back({fmt::format("engine.{}: only Kubernetes has a use for it", key),
                                "leave it out, or write kind: kubernetes", place_of(form, key)});
}

// A name of an object, a label, a taint: what goes into manifests, where Kubernetes itself looks closer.
bool is_kube_word(std::string_view text) {
    return !text.empty() && text.size() <= 317 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
               c == '_' || c == '/';
    });
}

void check_shared_paths(const EngineForm& form, Problems& problems) {
    for (const FolderOfPods& each : form.shared)
        if (!each.path.starts_with('/') || each.path.size() < 2)
            problems.push_back({fmt::format("engine.shared: '{}' is no absolute path", printable(each.path, 80)),
                                "/shared, say", place_of(form, "shared")});
}

// Of a cluster whose nodes share files anyway: which of them its containers see.
std::vector<std::string> mounts_of(const EngineForm& form, Problems& problems) {
    constexpr std::size_t kMostMounts = 64;
    const auto wrong = [&](std::string what, std::string cure) {
        problems.push_back({"engine.shared: " + std::move(what), std::move(cure), place_of(form, "shared")});
    };
    check_shared_paths(form, problems);
    std::vector<std::string> mounts;
    for (const FolderOfPods& each : form.shared) {
        if (!each.claim.empty()) wrong("only Kubernetes has a use for a claim", "leave claim out");
        if (each.path.find_first_of(",:\n") != std::string::npos)
            wrong(fmt::format("'{}' has a comma, a colon or a line end in it", printable(each.path, 80)), "");
        mounts.push_back(each.path);
    }
    if (mounts.size() > kMostMounts)
        wrong(fmt::format("{} folders, at most {} are taken", mounts.size(), kMostMounts), "");
    return mounts;
}

KubernetesChoice kubernetes_choice(const EngineForm& form, Problems& problems) {
    KubernetesChoice choice = form;
    const auto word = [&](const char* key, const std::string& text) {
        if (!is_kube_word(text))
            problems.push_back({fmt::format("engine.{}: '{}' is no name of Kubernetes", key, printable(text, 80)), "",
                                place_of(form, key)});
    };
    for (const auto& [key, text] :
         {std::pair("namespace", form.space), std::pair("queue", form.queue),
          std::pair("service_account", form.service_account), std::pair("priority_class", form.priority_class)})
        if (!text.empty()) word(key, text);
    for (const std::string& each : form.pull_secrets) word("pull_secrets", each);
    for (const std::string& each : form.tolerate) word("tolerate", each);
    for (const std::string& each : form.node_labels) {
        const std::size_t equals = each.find('=');
        if (equals == std::string::npos || !is_kube_word(each.substr(0, equals)))
            problems.push_back(
                {fmt::format("engine.node_selector: '{}' is no label with its value", printable(each, 80)),
                 "write it as agentpool=h100", place_of(form, "node_selector")});
        else
            choice.node_selector[each.substr(0, equals)] = each.substr(equals + 1);
    }
    check_shared_paths(form, problems);
    for (const FolderOfPods& each : form.shared)
        if (!each.claim.empty()) word("shared", each.claim);
    if (form.gang_wait) choice.gang_wait_s = form.gang_wait->value();
    return choice;
}

}  // namespace

namespace {

// What both kinds of entry take.
void add_engine_fields(RecordTable<EngineForm>& t) {
    std::vector<std::pair<std::string, std::string>> kinds;
    for (const EngineKind& kind : engines()) kinds.emplace_back(std::string(kind.name), std::string(kind.name));
    t.choice("kind", &EngineForm::kind, std::move(kinds), "Which.", "slurm").required();
    t.other_names({"type", "backend"});
    t.text(
        "region", &EngineForm::region,
        "Where it stands, for rules of admission that name regions or a residency: a region of a cloud, or a country. "
        "Holds at once.",
        "westeurope");
    t.other_names({"location", "site"});
    t.text("partition", &EngineForm::partition, "Of Slurm: where jobs go; the cluster's default when nothing is said.",
           "gpu");
    t.text("account", &EngineForm::account, "Of Slurm: which account pays.", "research");
    t.text("qos", &EngineForm::qos, "Of Slurm: on which terms.", "normal");
    t.text("reservation", &EngineForm::reservation, "Of Slurm: within this reservation.", "maintenance");
    t.text("constraint", &EngineForm::constraint, "Of Slurm: only on nodes with these features.", "ib&a100");
    t.other_names({"features"});
    t.text("config", &EngineForm::config,
           "Of Slurm: its slurm.conf; of Kubernetes: the kubeconfig, where they are not the usual ones.",
           "/etc/slurm/slurm.conf");
    t.text("commands", &EngineForm::commands, "Of Slurm: the folder of sbatch and squeue, where they are not in PATH.",
           "/opt/slurm/bin");
    t.record("rest", &EngineForm::rest_form, rest_table(),
             "Of Slurm: its slurmrestd, which is then asked instead of the commands; never one when the other fails.");
    t.text("program", &EngineForm::program,
           "This program by the name that the nodes know; the same as here when nothing is said.",
           "/shared/bin/stoker");
    t.text("runs_as", &EngineForm::runs_as,
           "Of this machine, where the server is root: as whom work runs. project: a user of its own for each project, "
           "who can read neither the server's token, journal and secrets nor what other projects left; or the name of "
           "an account. The server's own user when nothing is said.",
           "project");
    t.flag(
        "isolate_network", &EngineForm::isolate_network,
        "Of this machine, where the server is root: each run has a loopback of its own, on which its ranks meet, and "
        "reaches nothing else; nor does anybody reach it. false when nothing is said.");
    t.list_of("gpu_models", &EngineForm::gpu_names, gpu_name_table(),
              "What the cluster's GPUs are called in the catalogue, so that plans and runs mean the same.");
    t.seconds("notice", &EngineForm::notice,
              "Of Slurm: how long before its time limit, or a preemption that tells jobs, a run is told (USR1); of "
              "Kubernetes: "
              "between TERM and KILL at an eviction. 60s when nothing is said.",
              "2m", 0, kMostNoticeS);
    t.text("context", &EngineForm::context,
           "Of Kubernetes: which context of the kubeconfig; the current one when nothing "
           "is said.",
           "prod");
    t.text("namespace", &EngineForm::space,
           "Of Kubernetes: where its Jobs are made; that of the context when nothing is "
           "said.",
           "research");
    t.text("image", &EngineForm::image, "Of Kubernetes: the image of runs that name none; it needs /bin/sh.",
           "registry.example/trainer:1.4");
    t.text("queue", &EngineForm::queue,
           "Of Kubernetes: the LocalQueue of Kueue, which then admits; gangs are admitted as there is room for them "
           "when nothing is "
           "said.",
           "team-a");
    t.text("service_account", &EngineForm::service_account, "Of Kubernetes: the account of the pods.", "trainer");
    t.text("priority_class", &EngineForm::priority_class, "Of Kubernetes: the PriorityClass of the pods.", "batch");
    t.list_of_text(
        "pull_secrets", &EngineForm::pull_secrets,
        "Of Kubernetes: Secrets of the namespace with which images are pulled; they are named and never read.",
        "registry-key");
    t.list_of_text("node_selector", &EngineForm::node_labels, "Of Kubernetes: only nodes with these labels.",
                   "agentpool=h100");
    t.list_of_text("tolerate", &EngineForm::tolerate,
                   "Of Kubernetes: keys of taints that runs may ignore, beside those that mark pools of GPUs.", "team");
    t.list_of(
        "shared", &EngineForm::shared, folder_of_pods_table(),
        "Of Kubernetes: folders that this server and the pods see by the same name; what lies elsewhere goes with "
        "the pod. Of Slurm: what containers see of the shared folders, beside those of the run itself.");
    t.flag(
        "measures", &EngineForm::measures,
        "Of Kubernetes: a container beside the ranks of each pod tells what they use and how far they are; true when "
        "nothing is said.",
        "false");
    t.seconds(
        "gang_wait", &EngineForm::gang_wait,
        "Of Kubernetes: how long a gang may hold a part of its nodes before it gives them back; 3m when nothing is "
        "said.",
        "10m", 1, 86400);
}

}  // namespace

RecordTable<EngineForm> engine_form_table() {
    RecordTable<EngineForm> t("engine", "What carries the work out. A single word stands for its kind.");
    add_engine_fields(t);
    t.shorthand("a kind", [](const Node& node, EngineForm& form, Problems&) {
        if (!node.is_scalar()) return false;
        form.kind = node.text;
        form.at["kind"] = node.pos;
        return true;
    });
    return t;
}

RecordTable<EngineForm> engine_beside_table() {
    RecordTable<EngineForm> t("engine beside", "An engine beside the first, with a name of its own.");
    t.text("name", &EngineForm::name,
           "What runs, nodes and messages call it: up to 16 of a-z, 0-9 and -. Its nodes are NODE@NAME.", "slurm-b")
        .required();
    add_engine_fields(t);
    return t;
}

std::vector<EngineChoice> engine_choices(const EngineChoice& first, const std::vector<EngineForm>& forms,
                                         Problems& problems) {
    std::vector<EngineChoice> choices;
    std::set<std::string> names{name_of_engine(first)};
    const auto is_here = [](const EngineChoice& choice) {
        const auto kind = find_engine(choice.kind);
        return kind && (*kind)->here;
    };
    bool here = is_here(first);
    for (std::size_t i = 0; i < forms.size(); ++i) {
        const EngineForm& form = forms[i];
        const std::string where = fmt::format("engines[{}].", i);
        Problems own;
        EngineChoice choice = engine_choice(form, own);
        for (Problem& problem : own) {
            constexpr std::string_view kOne = "engine.";
            if (problem.message.starts_with(kOne)) problem.message = where + problem.message.substr(kOne.size());
            problems.push_back(std::move(problem));
        }
        const auto wrong = [&](const char* key, std::string what, std::string cure) {
            problems.push_back({where + key + ": " + std::move(what), std::move(cure), place_of(form, key)});
        };
        const bool word = !choice.name.empty() && choice.name.size() <= kMostEngineName &&
                          std::all_of(choice.name.begin(), choice.name.end(), [](char c) {
                              return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                          });
        if (!word)
            wrong("name", fmt::format("'{}' is no name of an engine", printable(choice.name, 60)),
                  "up to 16 of a-z, 0-9 and -: slurm-b");
        else if (choice.name == kAnyEngine)
            wrong("name", "any means whichever engine is free first", "give it another name");
        else if (!names.insert(choice.name).second)
            wrong("name", fmt::format("there are two engines {}", choice.name),
                  names.size() == 1 ? "the first is called by its kind; give this one another name"
                                    : "give it another name");
        if (!choice.kind.empty() && is_here(choice) && std::exchange(here, true))
            wrong("kind", "this machine is one of the engines already", "leave one of the two out");
        choices.push_back(std::move(choice));
    }
    if (forms.size() > kMostEngines)
        problems.push_back({fmt::format("engines: {} of them, at most {} are taken", forms.size(), kMostEngines), "",
                            place_of(forms.back(), "name")});
    return choices;
}

EngineChoice engine_choice(const EngineForm& form, Problems& problems) {
    EngineChoice choice = form;
    for (const GpuNameForm& each : form.gpu_names) choice.gpu_models[each.name] = each.model;
    if (form.notice) choice.notice_s = static_cast<int>(form.notice->value());
    const auto place = [&](const char* key) { return place_of(form, key); };
    if (const auto known = find_engine(choice.kind); !known)
        problems.push_back(
            {"engine.kind: " + known.error().message(), known.error().problems().front().remedy, place("kind")});
    if (choice.kind == "kubernetes")
        choice.kubernetes = kubernetes_choice(form, problems);
    else
        refuse_kubernetes_keys(form, problems);
    if (choice.kind == "slurm") choice.mounts = mounts_of(form, problems);
    if (!choice.runs_as.empty() && choice.kind != "local")
        problems.push_back({"engine.runs_as: only this machine has a use for it", "leave it out, or write kind: local",
                            place("runs_as")});
    if (choice.isolate_network && choice.kind != "local")
        problems.push_back({"engine.isolate_network: only this machine has a use for it",
                            "leave it out, or write kind: local; on Kubernetes a NetworkPolicy does it",
                            place("isolate_network")});
    if (form.rest_form) {
        choice.rest = *form.rest_form;
        if (choice.kind != "slurm")
            problems.push_back(
                {"engine.rest: only Slurm has a use for it", "leave it out, or write kind: slurm", place("rest")});
        else if (!choice.commands.empty())
            problems.push_back({"engine.commands: with rest, Slurm's commands are not used", "leave one of the two out",
                                place("commands")});
        if (const Status sound = check_rest(choice.rest); !sound && !choice.rest.url.empty())
            problems.push_back({sound.error().message(), sound.error().problems().front().remedy, place("rest")});
    }
    for (const auto& [key, value] : kOfAQueue) {
        const std::string& text = choice.*value;
        if (text.empty()) continue;
        if (choice.kind == "kubernetes" && std::string_view(key) != "config")
            problems.push_back(
                {fmt::format("engine.{}: only Slurm has a use for it", key), "leave it out", place(key)});
        if (choice.kind == "local")
            problems.push_back({fmt::format("engine.{}: this machine has no queue of its own", key),
                                "leave it out, or name another kind", place(key)});
        // They go into the script of a job, a line each.
        if (text.find_first_of("\"\\") != std::string::npos ||
            std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }))
            problems.push_back(
                {fmt::format("engine.{}: has a quote, a backslash or a line end in it", key), "", place(key)});
    }
    return choice;
}

std::string exact_words(const KubernetesChoice& choice) {
    std::string words = fmt::format("\n{}\n{}\n{}\n{}\n{}\n{}\n{}", choice.context, choice.space, choice.image,
                                    choice.queue, choice.service_account, choice.priority_class, choice.gang_wait_s);
    for (const std::string& each : choice.pull_secrets) words += "\n" + each;
    for (const std::string& each : choice.tolerate) words += "\n" + each;
    for (const auto& [key, value] : choice.node_selector) words += "\n" + key + "=" + value;
    for (const FolderOfPods& each : choice.shared) words += "\n" + each.path + "=" + each.claim;
    if (!choice.measures) words += "\nwithout measures";
    return words;
}

std::string in_words(const EngineChoice& choice) {
    std::string words = choice.kind.empty() ? std::string(engines().front().name) : choice.kind;
    for (const auto& [key, value] : kOfAQueue)
        if (!(choice.*value).empty()) words += fmt::format(", {} {}", key, printable(choice.*value, 60));
    if (!choice.rest.url.empty()) words += ", rest " + printable(choice.rest.url, 120);
    if (!choice.runs_as.empty()) words += ", runs as " + printable(choice.runs_as, 60);
    if (choice.isolate_network) words += ", without a network";
    if (!choice.kubernetes.context.empty()) words += ", context " + printable(choice.kubernetes.context, 60);
    if (!choice.kubernetes.space.empty()) words += ", namespace " + printable(choice.kubernetes.space, 60);
    return words;
}

}  // namespace stoker
