#include "observe/gpu/gpu_health.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker {

namespace {

using M = GpuMetric;

constexpr std::array<std::string_view, 11> kConditions = {
    "lost",        "hung",   "missing", "recovery_action", "remap_failed", "remap_pending", "retired_pending",
    "nvlink_down", "fabric", "too_hot", "power_brake"};

bool is_condition(std::string_view name) {
    if (name.starts_with("xid:")) return find_xid_class(name.substr(4)).has_value();
    return std::find(kConditions.begin(), kConditions.end(), name) != kConditions.end();
}

struct Seen {
    double count = 0;
    std::string what;
};

// How much of a state there is on a board, and what it is in words.
Seen state_of(std::string_view condition, const GpuDevice& board) {
    const auto flag = [&](M metric, std::string what) -> Seen {
        return {board.at(metric).value_or(0), std::move(what)};
    };
    if (condition == "lost") return {board.state == GpuState::lost ? 1.0 : 0.0, "it does not answer any more (lost)"};
    if (condition == "missing") return {board.state == GpuState::missing ? 1.0 : 0.0, "it was there and is missing"};
    if (condition == "hung")
        return {board.state == GpuState::hung ? 1.0 : 0.0, "the driver does not come back from " + board.stuck_call};
    if (condition == "recovery_action") return flag(M::recovery_action, "the board asks for a recovery action");
    if (condition == "remap_failed") return flag(M::remap_failed, "rows of its memory could not be replaced");
    if (condition == "remap_pending")
        return flag(M::remap_pending, "rows of its memory wait for a reset to be replaced");
    if (condition == "retired_pending") return flag(M::retired_pending, "pages of its memory wait to be retired");
    if (condition == "too_hot") return flag(M::reason_hw_thermal, "heat halves its clock");
    if (condition == "power_brake") return flag(M::reason_power_brake, "the power supply halves its clock");
    if (condition == "fabric")
        return {board.at(M::fabric_healthy).value_or(1) == 0 ? 1.0 : 0.0, "it is not part of the NVSwitch fabric"};
    const auto links = board.at(M::nvlink_expected), active = board.at(M::nvlink_active);
    const double down = links && active ? std::max(0.0, *links - *active) : 0;
    return {down, fmt::format("{:.0f} of its {:.0f} NVLinks are down", down, links.value_or(0))};
}

// Errors of a class that still count.
Seen xids_of(const GpuHealthRule& rule, const GpuDevice& board, const GpuXids& xids, std::int64_t now_us) {
    const auto kind = find_xid_class(std::string_view(rule.condition).substr(4));
    Seen seen;
    for (const auto& code : xids.codes) {
        if (xid_action(code.first).kind != kind) continue;
        const double ago_s = static_cast<double>(now_us - code.second.last_wall_us) * 1e-6;
        // A board that says itself that nothing has to be done is believed when the time has passed; one that cannot
        // say so is waited for six times as long.
        const double hold_s = board.at(M::recovery_action) ? rule.hold_s : 6 * rule.hold_s;
        if (rule.hold_s >= 0 && ago_s > hold_s) continue;
        seen.count += static_cast<double>(code.second.count);
        seen.what += fmt::format("{}Xid {} {} time{}, {:.0f} min ago", seen.what.empty() ? "" : ", ", code.first,
                                 code.second.count, code.second.count == 1 ? "" : "s", std::max(0.0, ago_s) / 60);
    }
    return seen;
}

}  // namespace

Result<GpuHealthPolicy> read_gpu_policy(std::string_view text, const std::string& name) {
    TRY(const Tsv rows, Tsv::read(text, FileName(name)));
    std::size_t at[6];
    constexpr std::array<std::string_view, 6> kColumns = {"condition", "verdict", "least",
                                                          "hold_min",  "repair",  "source"};
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
        TRY(at[i], rows.column(kColumns[i]));
    }
    GpuHealthPolicy policy;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
        GpuHealthRule rule;
        rule.condition = rows.at(row, at[0]), rule.repair = rows.at(row, at[4]), rule.source = rows.at(row, at[5]);
        if (!is_condition(rule.condition))
            return rows.error(row, at[0],
                              fmt::format("{} is none; there are xid:CLASS and {}", printable(rule.condition, 40),
                                          fmt::join(kConditions, ", ")));
        const std::string_view verdict = rows.at(row, at[1]);
        if (verdict != "fail" && verdict != "warn")
            return rows.error(row, at[1],
                              printable(verdict, 40) + ", expected fail or warn; a row that is left out is neither");
        rule.verdict = verdict == "fail" ? HealthVerdict::fail : HealthVerdict::warn;
        TRY(rule.least, rows.number(row, at[2]));
        TRY(const double hold_min, rows.number(row, at[3]));
        rule.hold_s = 60 * hold_min;
        policy.push_back(std::move(rule));
    }
    return policy;
}

const GpuHealthPolicy& usual_gpu_policy() {
    static const GpuHealthPolicy policy = [] {
        auto read = read_gpu_policy(embedded_bytes("gpu/health_policy.tsv"), "gpu/health_policy.tsv");
        CHECK(read.ok());
        return std::move(*read);
    }();
    return policy;
}

std::vector<HealthCheck> judge_gpus(const GpuView& view, const GpuHealthPolicy& policy, const std::string& node) {
    std::vector<HealthCheck> checks;
    if (!view.up() && view.devices.empty()) return checks;
    int whole = 0;
    for (const GpuDevice& board : view.devices) {
        if (!board.whole()) continue;
        ++whole;
        const auto xids = view.xids.find(board.pci);
        for (const GpuHealthRule& rule : policy) {
            Seen seen;
            if (!rule.condition.starts_with("xid:"))
                seen = state_of(rule.condition, board);
            else if (xids != view.xids.end())
                seen = xids_of(rule, board, xids->second, view.wall_us);
            if (seen.count < rule.least) continue;
            HealthCheck check{
                .layer = HealthLayer::device, .name = "gpu-" + replace_all(rule.condition, ":", "-"), .node = node};
            std::replace(check.name.begin(), check.name.end(), '_', '-');
            check.verdict = rule.verdict;
            check.source = rule.source;
            // One that was lost before it said who it is has neither.
            const std::string& who = board.uuid.empty() ? board.pci : board.uuid;
            check.detail = fmt::format("GPU {}{}: {}", board.index, who.empty() ? "" : " (" + who + ")", seen.what);
            check.fix = rule.repair;
            checks.push_back(std::move(check));
        }
    }
    if (checks.empty() && whole > 0) {
        HealthCheck check{.layer = HealthLayer::device, .name = "gpu-health", .node = node};
        check.verdict = HealthVerdict::pass;
        check.measured = whole, check.unit = "count";
        check.detail = "they answer, and the driver reports no error that counts";
        checks.push_back(std::move(check));
    }
    return checks;
}

std::vector<HealthCheck> FailingGpus::look(const std::vector<HealthCheck>& checks) {
    std::set<std::string> failing;
    std::vector<HealthCheck> told;
    bool fresh = false;
    for (const HealthCheck& check : checks) {
        if (check.verdict != HealthVerdict::fail) continue;
        // What is wrong on which board: a count in the rest of the detail may differ from look to look.
        std::string what = check.name + " " + check.detail.substr(0, check.detail.find(')'));
        fresh = fresh || !known_.contains(what);
        failing.insert(std::move(what));
        told.push_back(check);
    }
    known_ = std::move(failing);
    if (!fresh) told.clear();
    return told;
}

}  // namespace stoker
