#include "deploy/engines/engines.h"

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/local/local_answers.h"
#include "deploy/local/local_driver.h"
#include "deploy/slurm/slurm_driver.h"

namespace stoker {
namespace {

class LocalLook final : public LocalAnswers<Questions> {};

Result<std::unique_ptr<Driver>> make_local(const EngineSetup& setup) {
    return make_local_driver({.folder = setup.folder, .nodes = {}, .offer = setup.offer, .check = setup.check});
}
std::unique_ptr<Questions> look_local(const std::string&) {
    return std::make_unique<LocalLook>();
}

Result<std::unique_ptr<Driver>> make_slurm(const EngineSetup& setup) {
    SlurmOptions options{.folder = setup.folder + "/slurm",
                         .partition = setup.choice.partition,
                         .account = setup.choice.account,
                         .qos = setup.choice.qos,
                         .reservation = setup.choice.reservation,
                         .constraint = setup.choice.constraint,
                         .config = setup.choice.config,
                         .commands = setup.choice.commands,
                         .program = {},
                         .gpu_models = setup.choice.gpu_models,
                         .notice_s = setup.choice.notice_s};
    if (!setup.choice.program.empty()) options.program = {setup.choice.program};
    return make_slurm_driver(std::move(options));
}

constexpr EngineKind kEngines[] = {
    {"local", "this machine: no daemon, no root, and what runs outlives the server", make_local, look_local},
    // Its folders are shared with the nodes, so a look is the same.
    {"slurm", "a Slurm cluster, through its own commands", make_slurm, look_local},
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

NodeInfo this_node() {
    return discover_local_node();
}

}  // namespace stoker
