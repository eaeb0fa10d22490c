#include "deploy/engines/engines.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/engines/several.h"
#include "deploy/kubernetes/kubernetes_driver.h"
#include "deploy/local/local_answers.h"
#include "deploy/local/local_driver.h"
#include "deploy/slurm/slurm_driver.h"

namespace stoker {
namespace {

class LocalLook final : public LocalAnswers<Questions> {};

Result<std::unique_ptr<Driver>> make_local(const EngineSetup& setup) {
    return make_local_driver({.folder = setup.folder,
                              .nodes = {},
                              .offer = setup.offer,
                              .runs_as = setup.choice.runs_as,
                              .isolate_network = setup.choice.isolate_network,
                              .check = setup.check});
}
std::unique_ptr<Questions> look_local(const std::string&) {
    return std::make_unique<LocalLook>();
}

SlurmRest slurm_rest(const RestChoice& rest) {
    return {.url = rest.url, .user = rest.user, .token_file = rest.token_file, .ca_file = rest.ca_file};
}

Result<std::unique_ptr<Driver>> make_slurm(const EngineSetup& setup) {
    SlurmOptions options{.folder = setup.folder + "/slurm",
                         .partition = setup.choice.partition,
                         .account = setup.choice.account,
                         .qos = setup.choice.qos,
                         .reservation = setup.choice.reservation,
                         .constraint = setup.choice.constraint,
                         .config = setup.choice.config,
                         .rest = slurm_rest(setup.choice.rest),
                         .commands = setup.choice.commands,
                         .program = {},
                         .gpu_models = setup.choice.gpu_models,
                         .mounts = setup.choice.mounts,
                         .notice_s = setup.choice.notice_s};
    if (!setup.choice.program.empty()) options.program = {setup.choice.program};
    return make_slurm_driver(std::move(options));
}

Result<std::unique_ptr<Driver>> make_kubernetes(const EngineSetup& setup) {
    const KubernetesChoice& choice = setup.choice.kubernetes;
    KubernetesOptions options{.folder = setup.folder + "/kubernetes",
                              .kubeconfig = setup.choice.config,
                              .context = choice.context,
                              .space = choice.space,
                              .image = choice.image,
                              .queue = choice.queue,
                              .service_account = choice.service_account,
                              .priority_class = choice.priority_class,
                              .pull_secrets = choice.pull_secrets,
                              .node_selector = choice.node_selector,
                              .tolerate = choice.tolerate,
                              .shared = {},
                              .gpu_models = setup.choice.gpu_models,
                              .notice_s = setup.choice.notice_s,
                              .measures = choice.measures,
                              .gang_wait_s = choice.gang_wait_s};
    for (const FolderOfPods& each : choice.shared) options.shared.push_back({each.path, each.claim});
    return make_kubernetes_driver(std::move(options));
}

constexpr EngineKind kEngines[] = {
    {"local", "this machine: no daemon, no root, and what runs outlives the server", make_local, look_local, true},
    // Its folders are shared with the nodes, so a look is the same.
    {"slurm", "a Slurm cluster, through its own commands or slurmrestd", make_slurm, look_local, false},
    // It copies logs to this machine.
    {"kubernetes", "a Kubernetes cluster, through its API", make_kubernetes, look_local, false},
};

}  // namespace

std::span<const EngineKind> engines() {
    return kEngines;
}

Result<const EngineKind*> find_engine(std::string_view name) {
    for (const EngineKind& each : kEngines) {
        if (name.empty() || each.name == name) return &each;
    }
    std::string list;
    for (const EngineKind& each : kEngines)
        list += fmt::format("{}{} ({})", list.empty() ? "" : "; ", each.name, each.what);
    return Error(ErrorKind::not_found, "there is no engine " + printable(name, 60), {}, "there are: " + list);
}

Result<std::unique_ptr<Driver>> make_engine(std::string_view name, const EngineSetup& setup) {
    TRY(const EngineKind* kind, find_engine(name));
    return kind->make(setup);
}

Status check_rest(const RestChoice& rest) {
    return check_slurm_rest(slurm_rest(rest));
}

std::string name_of_engine(const EngineChoice& choice) {
    if (!choice.name.empty()) return choice.name;
    return choice.kind.empty() ? std::string(engines().front().name) : choice.kind;
}

Result<std::unique_ptr<Driver>> make_engines(const EngineSetup& setup, const std::vector<EngineChoice>& beside,
                                             const std::vector<std::string>& left) {
    TRY(const EngineKind* kind, find_engine(setup.choice.kind));
    if (beside.empty() && left.empty()) return kind->make(setup);
    std::vector<OneOfSeveral> all{{.name = name_of_engine(setup.choice),
                                   .kind = std::string(kind->name),
                                   .make = [kind, setup] { return kind->make(setup); }}};
    for (const EngineChoice& choice : beside) {
        TRY(const EngineKind* other, find_engine(choice.kind));
        EngineSetup own = setup;
        own.choice = choice;
        // This machine keeps its work in one place, whether it is the first or beside others.
        if (!other->here) own.folder = setup.folder + "/engines/" + choice.name;
        all.push_back({.name = choice.name, .kind = std::string(other->name), .make = [other, own] {
                           std::error_code ignored;  // who uses it says what is wrong with it
                           std::filesystem::create_directories(own.folder, ignored);
                           return other->make(own);
                       }});
    }
    for (const std::string& name : left)
        all.push_back({.name = name, .kind = "", .make = [name]() -> Result<std::unique_ptr<Driver>> {
                           return Error(ErrorKind::unavailable,
                                        "it is not in the configuration any more, and work of this server is there", {},
                                        "put it back into engines, at least until that has ended");
                       }});
    return make_several(std::move(all));
}

NodeInfo this_node() {
    return discover_local_node();
}

}  // namespace stoker
