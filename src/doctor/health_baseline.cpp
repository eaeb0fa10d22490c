#include "doctor/health_baseline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "doctor/this_machine.h"

namespace stoker {

namespace {

constexpr const char* kDoctorPart = "doctor";
constexpr std::size_t kMostUsual = 1000;  // figures of one machine: folders and peers come and go
// What a machine has is declared, not usual; and room on a disk is meant to change.
constexpr std::array<std::string_view, 12> kUsualChecks = {
    "link-bandwidth", "link-latency",   "disk-write",     "disk-read", "disk-small-files", "memory-bandwidth",
    "matmul",         "gpu-all-reduce", "gpu-arithmetic", "gpu-copy",  "gpu-memory-copy",  "gpu-peer-copy"};

struct KeptUsual {
    std::map<std::string, double> values;
    std::string day;
};

KeptUsual kept_usual(const std::string& path, const Machine& machine) {
    KeptUsual kept;
    const auto document = read_measurements(path);
    if (!document) return kept;
    const Node* mine = document->root().find(machine_key(machine));
    const Node* part = mine != nullptr && mine->is_mapping() ? mine->find(kDoctorPart) : nullptr;
    if (part == nullptr || !part->is_mapping()) return kept;
    if (const Node* day = part->find("measured"); day != nullptr && day->is_scalar()) kept.day = day->text;
    const Node* values = part->find("usual");
    if (values == nullptr || !values->is_mapping()) return kept;
    for (const Member& member : values->members)
        if (member.value->kind == NodeKind::number && member.value->number > 0 && std::isfinite(member.value->number))
            kept.values[std::string(member.key)] = member.value->number;
    return kept;
}

}  // namespace

void add_usual(const std::string& path, const Machine& machine, HealthTarget& target) {
    KeptUsual kept = kept_usual(path, machine);
    target.usual = std::move(kept.values);
    target.usual_source = kept.day.empty() ? "stoker bench cpu" : "this machine on " + kept.day;
    const auto bench = load_speed(path, machine);
    if (!bench) return;
    const double threads = std::max(1, bench->threads);
    target.usual.try_emplace("full/matmul", bench->matmul_flops.max);
    target.usual.try_emplace("full/memory-bandwidth", bench->triad_bytes.max);
    target.usual.try_emplace("quick/matmul", bench->matmul_flops.max / threads);
    target.usual.try_emplace("quick/memory-bandwidth", bench->triad_bytes.max / threads);
    if (!kept.day.empty()) target.usual_source += " or stoker bench cpu";
}

Result<std::size_t> keep_usual(const std::string& path, const Machine& machine, HealthLevel level,
                               const HealthReport& report, const std::string& folder, const std::string& day) {
    KeptUsual kept = kept_usual(path, machine);
    std::size_t count = 0;
    for (const HealthCheck& check : report.checks) {
        if (!check.measured || !(*check.measured > 0)) continue;
        if (std::find(kUsualChecks.begin(), kUsualChecks.end(), check.name) == kUsualChecks.end()) continue;
        kept.values[usual_key(level, check, folder)] = *check.measured;
        ++count;
    }
    if (count == 0)
        return Error(ErrorKind::invalid, "nothing was measured that could be kept", {},
                     "stoker doctor --baseline measures processors, memory and disk");
    if (kept.values.size() > kMostUsual)
        return Error(ErrorKind::exhausted, "too many figures are kept of this machine", {}, "stoker doctor --forget");
    Json values = Json::object();
    for (const auto& [key, value] : kept.values) values.set(key, value);
    TRY_VOID(save_measurement(path, machine_key(machine), kDoctorPart,
                              Json::object().set("measured", day).set("usual", std::move(values))));
    return count;
}

Status forget_usual(const std::string& path, const Machine& machine) {
    const auto document = read_measurements(path);
    if (!document && document.error().kind() == ErrorKind::not_found) return done();
    return save_measurement(path, machine_key(machine), kDoctorPart, Json());
}

}  // namespace stoker
