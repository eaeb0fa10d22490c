#include "doctor/this_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "catalog/names.h"
#include "catalog/this_machine.h"
#include "doctor/framework_speed.h"
#include "io/files.h"
#include "io/machine/nvidia_gpus.h"
#include "io/user_file.h"

namespace stoker {

namespace {

constexpr std::size_t kMaxFile = 4u << 20;
constexpr const char* kName = "this-machine";

Json spread_json(const Spread& s) {
    return Json::object().set("min", s.min).set("median", s.median).set("max", s.max).set("repeats", s.repeats);
}

double number_at(const Node& node, std::string_view key) {
    const Node* found = node.find(key);
    return found != nullptr && found->kind == NodeKind::number ? found->number : 0;
}

Spread read_spread(const Node* node) {
    if (node == nullptr || !node->is_mapping()) return {};
    return {number_at(*node, "min"), number_at(*node, "median"), number_at(*node, "max"),
            static_cast<int>(number_at(*node, "repeats"))};
}

// A tree that was read, as one that can be written: entries of other machines pass through unchanged.
Json copy_json(const Node& node) {
    switch (node.kind) {
        case NodeKind::null: return {};
        case NodeKind::boolean: return node.boolean;
        case NodeKind::number: return node.number;
        case NodeKind::string: return node.text;
        case NodeKind::sequence: {
            Json array = Json::array();
            for (const auto& item : node.items) array.push(copy_json(*item));
            return array;
        }
        case NodeKind::mapping: break;
    }
    Json object = Json::object();
    for (const Member& member : node.members) object.set(member.key, copy_json(*member.value));
    return object;
}

bool names_this_machine(const Node* node) {
    if (node == nullptr) return false;
    if (node->is_sequence())
        return std::any_of(node->items.begin(), node->items.end(),
                           [](const auto& item) { return names_this_machine(item.get()); });
    const std::string word = node->is_scalar() ? fold_name(node->text) : "";
    return word == fold_name(kName) || word == "local";
}

}  // namespace

Result<std::string> this_machine_path() {
    return user_file("XDG_CACHE_HOME", ".cache", "this-machine.json", "the measurement");
}

std::string machine_key(const Machine& machine) {
    return fmt::format("{}, {} of {} cores, {}", machine.model.empty() ? "unknown processor" : machine.model,
                       machine.usable_cores(), machine.logical_cores, machine.architecture);
}

Json speed_json(const MachineSpeed& speed) {
    return Json::object()
        .set("kernel", speed.kernel)
        .set("threads", speed.threads)
        .set("matmul_flops_per_second", spread_json(speed.matmul_flops))
        .set("triad_bytes_per_second", spread_json(speed.triad_bytes));
}

Result<Document> read_measurements(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error))
        return Error(ErrorKind::not_found, "this machine has not been measured", {}, "stoker bench cpu");
    TRY(const std::string text, read_file(path, kMaxFile));
    TRY(Document document, Document::parse_json(text, path));
    if (!document.root().is_mapping())
        return Error(ErrorKind::invalid, path + " does not hold an object", {}, "remove it and run stoker bench cpu");
    return document;
}

Status save_measurement(const std::string& path, const std::string& machine, const std::string& part, Json measured) {
    Json all = Json::object(), mine = Json::object();
    if (const auto old = read_measurements(path)) {  // an unreadable file holds nothing worth keeping
        for (const Member& member : old->root().members)
            if (member.key != machine)
                all.set(member.key, copy_json(*member.value));
            else if (member.value->is_mapping())
                mine = copy_json(*member.value);
    }
    mine.set(part, std::move(measured));
    all.set(machine, std::move(mine));
    return write_user_file(path, all.dump() + "\n");
}

Status save_speed(const std::string& path, const Machine& machine, const MachineSpeed& speed, const std::string& day) {
    return save_measurement(path, machine_key(machine), "hardware", speed_json(speed).set("measured", day));
}

Result<MachineSpeed> load_speed(const std::string& path, const Machine& machine) {
    TRY(const Document document, read_measurements(path));
    const Node* all = document.root().find(machine_key(machine));
    const Node* entry = all != nullptr && all->is_mapping() ? all->find("hardware") : nullptr;
    if (entry == nullptr || !entry->is_mapping())
        return Error(ErrorKind::not_found, "this machine has not been measured", {}, "stoker bench cpu");
    MachineSpeed speed;
    if (const Node* kernel = entry->find("kernel")) speed.kernel = kernel->text;
    speed.threads = static_cast<int>(number_at(*entry, "threads"));
    speed.matmul_flops = read_spread(entry->find("matmul_flops_per_second"));
    speed.triad_bytes = read_spread(entry->find("triad_bytes_per_second"));
    if (!(speed.matmul_flops.max > 0) || !(speed.triad_bytes.max > 0))
        return Error(ErrorKind::not_found, "the kept measurement is not complete", {}, "stoker bench cpu");
    return speed;
}

namespace {

// The best that the framework was measured to reach in bf16; 0: it was not measured, or does not compute with it.
double measured_bf16(const Machine& machine) {
    const auto path = this_machine_path();
    if (!path) return 0;
    const auto framework = load_framework(*path, machine);
    double best = 0;
    if (framework)
        for (const MatmulRate& rate : framework->matmul)
            if (rate.precision == "bf16") best = std::max(best, rate.flops_per_second);
    return best;
}

}  // namespace

int add_this_machine(const Machine& machine, const MachineSpeed& speed, Catalog& catalog) {
    if (const auto known = catalog.find_node_type(kName)) return *known;
    // Of several kinds the first counts, as many as there are of it.
    const std::vector<NvidiaGpu> gpus = nvidia_gpus();
    const auto gpu =
        gpus.empty() ? Result<int>(Error(ErrorKind::not_found, "none")) : catalog.find_accelerator(gpus.front().model);
    const auto alike =
        std::count_if(gpus.begin(), gpus.end(), [&](const NvidiaGpu& one) { return one.model == gpus.front().model; });
    return add_this_machine({.cpu_name = machine.model,
                             .vcpus = machine.usable_cores(),
                             .cores = std::max(1, std::min(machine.usable_cores(), machine.physical_cores)),
                             .ghz = machine.mhz / 1000,
                             .measured_fp32_gflops = speed.matmul_flops.max / 1e9,
                             .measured_memory_gb_s = speed.triad_bytes.max / 1e9,
                             .measured_bf16_gflops = measured_bf16(machine) / 1e9,
                             .memory = machine.usable_memory(),
                             .accelerator = gpu ? *gpu : -1,
                             .accelerators = gpu ? static_cast<int>(alike) : 0},
                            catalog);
}

MachineSpeed known_speed(const Machine& machine, const std::string& day) {
    const auto path = this_machine_path();
    if (path) {
        if (auto speed = load_speed(*path, machine)) return std::move(*speed);
    }
    MachineSpeed speed = measure_machine(machine, true);
    if (path) (void)save_speed(*path, machine, speed, day);  // the next one need not measure
    return speed;
}

bool names_this_machine_only(const Workload& workload) {
    const auto all_here = [](const std::vector<std::string>& names) {
        return std::all_of(names.begin(), names.end(), [](const std::string& name) {
            return fold_name(name) == fold_name(kName) || fold_name(name) == "local";
        });
    };
    const WhereSpec& where = workload.where;
    return !(where.clouds.empty() && where.sizes.empty()) && all_here(where.clouds) && all_here(where.sizes);
}

Status add_this_machine_if_named(const Document& workload, Catalog& catalog, const std::string& day) {
    const Node* where = workload.root().is_mapping() ? workload.root().find("where") : nullptr;
    if (where == nullptr || !where->is_mapping()) return done();
    if (!names_this_machine(where->find("cloud")) && !names_this_machine(where->find("clouds")) &&
        !names_this_machine(where->find("sizes")))
        return done();
    const Machine machine = discover_machine();
    add_this_machine(machine, known_speed(machine, day), catalog);
    return done();
}

}  // namespace stoker
