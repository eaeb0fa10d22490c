#include "observe/gpu/gpu_pages.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker {

namespace {

using M = GpuMetric;

constexpr std::array<std::string_view, 6> kRecovery = {"none",      "reset",           "reboot",
                                                       "drain_p2p", "drain_and_reset", "recover_imex"};
constexpr std::array<GpuState, 6> kStatesShown = {GpuState::ok,   GpuState::slow, GpuState::stale,
                                                  GpuState::hung, GpuState::lost, GpuState::missing};

// What names a device in each of its samples.
std::string who(const GpuDevice& device) {
    std::string labels = label_text("gpu", device.index < 0 ? "" : std::to_string(device.index));
    add_label(labels, "uuid", device.uuid);
    if (!device.whole()) add_label(labels, "gpu_instance", std::to_string(device.gpu_instance));
    return labels;
}

class Families {
public:
    explicit Families(std::vector<ExpositionFamily>& out) : out_(out) {}
    void begin(std::string_view name, std::string_view help, bool counter = false) {
        out_.push_back({std::string(name), std::string(help), counter, {}});
    }
    void add(std::string labels, double value, std::optional<double> created = std::nullopt) {
        out_.back().samples.push_back({std::move(labels), value, created});
    }

private:
    std::vector<ExpositionFamily>& out_;
};

std::string with(std::string labels, std::string_view more) {
    if (more.empty()) return labels;
    if (labels.empty()) return std::string(more);
    return labels + "," + std::string(more);
}

void add_agent(Families& f, const GpuView& view) {
    f.begin("stoker_nvml_up", "1 while NVIDIA's driver answers");
    f.add("", view.up() ? 1 : 0);
    f.begin("stoker_nvml_down_reason", "Why it does not, 1 for one reason, only while it does not");
    if (!view.up()) f.add(label_text("reason", to_string(view.down)), 1);
    f.begin("stoker_gpus", "Boards that answer, and that there should be: as many as the bus shows or were ever seen");
    f.add(label_text("state", "present"), view.present);
    f.add(label_text("state", "expected"), view.expected);
    f.begin("stoker_agent_samplers", "Processes that read the driver; two while the first one hangs on a board");
    f.add("", view.samplers);
    f.begin("stoker_agent_sampler_restarts_total", "How often the sampler had to be started again", true);
    f.add("", view.restarts);
    f.begin("stoker_agent_witness_up", "1 while what needs no driver can be read");
    f.add(label_text("witness", "kernel_log"), view.kernel_log_up ? 1 : 0);
    f.add(label_text("witness", "pci"), view.pci_up ? 1 : 0);
    f.begin("stoker_kmsg_lost_total", "Records of the kernel log that were overwritten before they were read", true);
    f.add("", static_cast<double>(view.kernel_lost));
    f.begin("stoker_gpu_events_lost_total", "Events of the driver that came faster than they could be kept", true);
    f.add("", static_cast<double>(view.events_lost));
}

void add_states(Families& f, const GpuView& view) {
    f.begin("stoker_gpu_info", "Which board it is");
    for (const GpuDevice& device : view.devices) {
        if (device.uuid.empty()) continue;
        std::string labels = who(device);
        add_label(labels, "model", device.name);
        add_label(labels, "pci_bus_id", device.pci);
        add_label(labels, "driver", device.driver.empty() ? view.driver : device.driver);
        add_label(labels, "vbios", device.vbios);
        add_label(labels, "mig", device.mig_profile);
        f.add(labels, 1);
    }
    f.begin("stoker_gpu_up", "1 while the board answers");
    for (const GpuDevice& device : view.devices)
        f.add(who(device), device.state == GpuState::ok || device.state == GpuState::slow ? 1 : 0);
    f.begin("stoker_gpu_state", "1 for the state the board is in");
    for (const GpuDevice& device : view.devices)
        for (const GpuState state : kStatesShown)
            f.add(with(who(device), label_text("state", to_string(state))), device.state == state ? 1 : 0);
    f.begin("stoker_gpu_down_reason", "Why it does not answer, 1 for one reason, only while it does not");
    for (const GpuDevice& device : view.devices)
        if (device.state != GpuState::ok && device.state != GpuState::slow)
            f.add(with(who(device), label_text("reason", to_string(device.state))), 1);
    f.begin("stoker_gpu_sample_age_seconds", "Age of its last reading");
    for (const GpuDevice& device : view.devices)
        if (device.age_s) f.add(who(device), *device.age_s);
    f.begin("stoker_agent_collect_seconds", "What its last reading took");
    for (const GpuDevice& device : view.devices)
        if (device.age_s) f.add(who(device), device.collect_s);
}

void add_xids(Families& f, const GpuView& view) {
    std::vector<std::pair<std::string, const GpuXids*>> boards;
    static const GpuXids kNone;
    for (const GpuDevice& device : view.devices) {
        if (!device.whole() || !device.driver.empty()) continue;  // codes of NVIDIA's
        const auto found = view.xids.find(device.pci);
        boards.emplace_back(who(device), found == view.xids.end() ? &kNone : &found->second);
    }
    // Of a board that the driver never told of: by its address alone.
    for (const auto& entry : view.xids) {
        bool told = false;
        for (const GpuDevice& device : view.devices) told = told || (device.whole() && device.pci == entry.first);
        if (!told)
            boards.emplace_back(
                label_text("gpu", "") + "," + label_text("uuid", "") + "," + label_text("pci_bus_id", entry.first),
                &entry.second);
    }
    f.begin("stoker_gpu_xid_total", "Errors of the driver by their code, since the agent began", true);
    for (const auto& board : boards)
        for (const auto& code : board.second->codes)
            f.add(with(board.first, label_text("xid", std::to_string(code.first))),
                  static_cast<double>(code.second.count));
    // From the start on, at 0: a series that is born at 1 increases by nothing.
    f.begin("stoker_gpu_xid_class_total", "Errors of the driver by what they ask for, since the agent began", true);
    for (const auto& board : boards)
        for (const XidClass kind : xid_classes())
            f.add(with(board.first, label_text("class", to_string(kind))),
                  static_cast<double>(board.second->classes[static_cast<std::size_t>(kind)]));
    f.begin("stoker_gpu_xid_last_timestamp_seconds", "When the code was last seen");
    for (const auto& board : boards)
        for (const auto& code : board.second->codes)
            f.add(with(board.first, label_text("xid", std::to_string(code.first))),
                  static_cast<double>(code.second.last_wall_us) * 1e-6);
}

void add_owners(Families& f, const GpuView& view, const GpuOwners& owners) {
    std::map<std::string, double> used;
    std::set<std::string> holders;
    for (const GpuDevice& device : view.devices)
        for (const GpuProcess& process : device.processes) {
            const GpuOwner* owner = owners.find(process.pid);
            std::string labels = who(device);
            add_label(labels, "run", owner ? owner->run : "");
            add_label(labels, "rank", owner ? owner->rank : "");
            add_label(labels, "job", owner ? owner->job : "");
            add_label(labels, "pod_uid", owner ? owner->pod : "");
            add_label(labels, "container", owner ? owner->container : "");
            add_label(labels, "known", owner ? "1" : "0");
            holders.insert(labels);
            if (process.used_bytes >= 0) used[labels] += static_cast<double>(process.used_bytes);
        }
    f.begin("stoker_gpu_owner_info", "Who has processes on the GPU; known=\"0\": a process whose owner cannot be told");
    for (const std::string& labels : holders) f.add(labels, 1);
    f.begin("stoker_gpu_owner_memory_bytes", "Device memory of the owner's processes");
    for (const auto& entry : used) f.add(entry.first, entry.second);
    f.begin("stoker_gpu_processes", "Processes with a context on the GPU");
    for (const GpuDevice& device : view.devices)
        if (device.processes_told)
            f.add(who(device), static_cast<double>(device.processes.size() + device.processes_left_out));
}

void add_allocations(Families& f, const GpuView& view, const GpuAllocations& allocations) {
    const auto each = [&](const auto& tell) {
        for (const GpuDevice& device : view.devices)
            if (const auto found = allocations.find(device.uuid); device.whole() && found != allocations.end())
                for (std::size_t i = 0; i < kAllocationStates; ++i)
                    tell(with(who(device), label_text("state", to_string(static_cast<AllocationState>(i)))),
                         found->second, i);
    };
    f.begin("stoker_allocation_state", "1 for what comes of the GPU's being held; unknown where a signal is missing");
    each([&](const std::string& labels, const GpuAllocation& allocation, std::size_t i) {
        f.add(labels, static_cast<std::size_t>(allocation.verdict.state) == i ? 1 : 0);
    });
    f.begin("stoker_allocation_waste_seconds_total", "Time in which nothing came of the GPU, by its state", true);
    each([&](const std::string& labels, const GpuAllocation& allocation, std::size_t i) {
        const auto state = static_cast<AllocationState>(i);
        if (state == AllocationState::allocated_idle || state == AllocationState::stalled ||
            state == AllocationState::unallocated)
            f.add(labels, allocation.wasted_s[i]);
    });
}

void add_assignments(Families& f, const GpuView& view, const GpuAssignments& assignments, double now_s) {
    f.begin("stoker_gpu_assigned_info", "Whom kubelet or Slurm gave the GPU to, whether or not they use it");
    for (const GpuDevice& device : view.devices)
        for (const GpuAssignment* each : assignments.of(device)) {
            std::string labels = who(device);
            add_label(labels, "namespace", each->name_space);
            add_label(labels, "pod", each->pod);
            add_label(labels, "container", each->container);
            add_label(labels, "job", each->job);
            f.add(labels, 1);
        }
    f.begin("stoker_attribution_up", "1 while the source tells whom GPUs were given to");
    for (const AssignmentSource& source : assignments.sources)
        f.add(label_text("source", source.name), source.up ? 1 : 0);
    f.begin("stoker_attribution_age_seconds", "Since the source told last; what it told then is told on");
    for (const AssignmentSource& source : assignments.sources)
        if (source.read_at_s) f.add(label_text("source", source.name), std::max(0.0, now_s - *source.read_at_s));
}

// As dcgm-exporter has them, behind all other labels: of a device with one holder. Who of several does what a figure of
// the whole device says cannot be told, and a wrong owner is worse than none.
void add_holder(std::string& labels, const GpuAssignments& assignments, const GpuDevice& device) {
    const std::vector<const GpuAssignment*> holders = assignments.of(device);
    std::array<const GpuAssignment*, 2> only{};  // kubelet's, Slurm's
    std::array<int, 2> count{};
    for (const GpuAssignment* each : holders)
        only[each->job.empty() ? 0 : 1] = each, ++count[each->job.empty() ? 0 : 1];
    if (count[0] == 1) {
        add_label(labels, "pod", only[0]->pod);
        add_label(labels, "namespace", only[0]->name_space);
        add_label(labels, "container", only[0]->container);
    }
    if (count[1] == 1) add_label(labels, "hpc_job", only[1]->job);
}

struct DcgmField {
    std::string name, name_4_6, help;
    std::optional<M> metric;
    bool xid = false;
    double scale = 1;
    bool counter = false, fixed_counter = false, usual = false;
};

const std::vector<DcgmField>& dcgm_fields() {
    static const std::vector<DcgmField> fields = [] {
        std::vector<DcgmField> read;
        const auto rows = Tsv::read(embedded_bytes("gpu/dcgm_fields.tsv"), "gpu/dcgm_fields.tsv");
        CHECK(rows.ok());
        for (std::size_t row = 0; row < rows->rows(); ++row) {
            DcgmField field{.name = std::string(rows->at(row, 0)),
                            .name_4_6 = std::string(rows->at(row, 1)),
                            .help = std::string(rows->at(row, 7))};
            if (rows->at(row, 2) == "driver_label") continue;  // a label of each sample
            field.xid = rows->at(row, 2) == "xid_last";
            if (!field.xid) {
                field.metric = find_gpu_metric(rows->at(row, 2));
                CHECK(field.metric.has_value());
            }
            const auto scale = rows->number(row, 3);
            CHECK(scale.ok());
            field.scale = *scale;
            field.counter = rows->at(row, 4) == "counter";
            field.fixed_counter = rows->at(row, 5) == "counter";
            field.usual = rows->at(row, 6) == "y";
            read.push_back(std::move(field));
        }
        return read;
    }();
    return fields;
}

}  // namespace

std::vector<ExpositionFamily> native_gpu_families(const GpuView& view, const GpuOwners& owners,
                                                  const GpuAllocations& allocations, const GpuAssignments& assignments,
                                                  double now_s) {
    std::vector<ExpositionFamily> out;
    Families f(out);
    add_agent(f, view);
    add_states(f, view);
    std::vector<std::string> names;
    for (const GpuDevice& device : view.devices) names.push_back(who(device));
    std::string_view family;
    for (const GpuMetricRow& row : gpu_metric_rows()) {
        if (row.family.empty()) continue;
        if (row.family != family) f.begin(row.family, row.help, row.counter);
        family = row.family;
        for (std::size_t i = 0; i < view.devices.size(); ++i) {
            const auto value = view.devices[i].at(row.metric);
            if (!value) continue;
            f.add(with(names[i], row.labels), *value,
                  row.counter ? std::optional(view.devices[i].counted_since[index_of(row.metric)]) : std::nullopt);
        }
    }
    f.begin("stoker_gpu_recovery_action", "1 for what the driver says has to be done to have the GPU back");
    for (const GpuDevice& device : view.devices)
        if (const auto action = device.at(M::recovery_action))
            for (std::size_t i = 0; i < kRecovery.size(); ++i)
                f.add(with(who(device), label_text("action", kRecovery[i])), *action == static_cast<double>(i) ? 1 : 0);
    add_xids(f, view);
    add_owners(f, view, owners);
    add_allocations(f, view, allocations);
    add_assignments(f, view, assignments, now_s);
    return out;
}

std::vector<ExpositionFamily> dcgm_gpu_families(const GpuView& view, const DcgmOptions& options,
                                                const GpuAssignments& assignments) {
    std::vector<ExpositionFamily> out;
    for (const DcgmField& field : dcgm_fields()) {
        if (!field.usual && !options.all) continue;
        ExpositionFamily family{options.names_4_6 ? field.name_4_6 : field.name,
                                field.help,
                                options.fixed_types ? field.fixed_counter : field.counter,
                                {}};
        for (const GpuDevice& device : view.devices) {
            if (!device.driver.empty()) continue;  // DCGM tells of NVIDIA's
            std::optional<double> value;
            const auto xids = view.xids.find(device.pci);
            const bool up = device.state == GpuState::ok || device.state == GpuState::slow;
            if (field.xid) {
                if (up && device.whole()) value = xids == view.xids.end() ? 0 : xids->second.last;
            } else if (const auto at = device.at(*field.metric)) {
                value = *at * field.scale;
            }
            if (!value) continue;
            // In the order in which that exporter writes them.
            const bool whole = device.whole();
            std::string labels = label_text("gpu", std::to_string(device.index));
            add_label(labels, "UUID", whole ? device.uuid : device.parent_uuid);
            add_label(labels, "pci_bus_id", "0000" + upper(device.pci));
            add_label(labels, "device", "nvidia" + std::to_string(device.minor < 0 ? device.index : device.minor));
            add_label(labels, "modelName", device.name);
            if (!whole) {
                add_label(labels, "GPU_I_PROFILE", device.mig_profile);
                add_label(labels, "GPU_I_ID", std::to_string(device.gpu_instance));
            }
            add_label(labels, options.lower_hostname ? "hostname" : "Hostname", options.hostname);
            add_label(labels, options.names_4_6 ? "DCGM_FI_SYSTEM_DRIVER_VERSION" : "DCGM_FI_DRIVER_VERSION",
                      view.driver);
            if (field.xid) {
                add_label(labels, "err_code", fmt::format("{}", *value));
                add_label(labels, "err_msg",
                          *value == 0 ? "No Error" : std::string(xid_action(static_cast<int>(*value)).action));
            }
            add_holder(labels, assignments, device);
            family.samples.push_back({std::move(labels), *value, std::nullopt});
        }
        out.push_back(std::move(family));
    }
    return out;
}

std::vector<ExpositionFamily> telling_families(const AgentTelling& telling) {
    std::vector<ExpositionFamily> out;
    Families f(out);
    f.begin("stoker_agent_told_timestamp_seconds", "When the server heard of these GPUs last; 0: never");
    f.add("", static_cast<double>(telling.last_us) * 1e-6);
    f.begin("stoker_agent_tell_failures_total", "Reports that the server did not hear", true);
    f.add("", static_cast<double>(telling.failed));
    f.begin("stoker_agent_points_waiting", "Means of some seconds that the server has not heard yet");
    f.add("", static_cast<double>(telling.waiting));
    f.begin("stoker_agent_points_lost_total", "Of them, those that were too old to be kept for it", true);
    f.add("", static_cast<double>(telling.lost));
    f.begin("stoker_agent_clock_ahead_seconds", "Of this machine's clock, as the server sees it");
    if (telling.last_us != 0) f.add("", telling.clock_ahead_s);
    return out;
}

std::vector<std::string> native_gpu_family_names() {
    std::set<std::string> names;
    GpuView view;
    for (const ExpositionFamily& family : native_gpu_families(view, GpuOwners())) names.insert(family.name);
    for (const ExpositionFamily& family : telling_families({})) names.insert(family.name);
    return {names.begin(), names.end()};
}

}  // namespace stoker
