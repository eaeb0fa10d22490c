#include "deploy/engines/engines.h"

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/local/local_answers.h"
#include "deploy/local/local_driver.h"

namespace stoker {
namespace {

class LocalLook final : public LocalAnswers<Questions> {};

Result<std::unique_ptr<Driver>> make_local(const EngineSetup& setup) {
    return make_local_driver({.folder = setup.folder, .nodes = {}, .offer = setup.offer, .check = setup.check});
}
std::unique_ptr<Questions> look_local(const std::string&) {
    return std::make_unique<LocalLook>();
}

constexpr EngineKind kEngines[] = {
    {"local", "this machine: no daemon, no root, and what runs outlives the server", make_local, look_local},
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
