// What the agent of a node tells its server, as values that travel: the GPUs as they are now, and the means of the
// time since, numbered, so that what was not heard is told again. Times are told as how long ago they were: the clocks
// of the two machines need not agree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "observe/gpu/allocations.h"
#include "observe/gpu/gpu_owners.h"
#include "observe/gpu/gpu_view.h"
#include "observe/gpu_source.h"

namespace stoker {

struct ReportedProcess {
    std::int64_t pid = 0, used_bytes = -1, sm_percent = -1;  // below 0: not told
    std::string run, rank, job, pod, container, command, user;
    bool known = false;
};
struct ReportedXid {
    std::int64_t code = 0, count = 0;
    double ago_s = 0;
};
struct ReportedBoard {
    std::string state, uuid, parent_uuid, pci, name, driver, mig_profile, stuck_call;
    std::int64_t index = -1, gpu_instance = -1;
    std::optional<double> age_s;
    std::map<std::string, double> values;  // by gpu_metric_rows()
    bool processes_told = false;
    std::vector<ReportedProcess> processes;
    std::vector<ReportedXid> xids;
    std::string used_as;  // an allocation's state; empty: none is told
    std::vector<std::string> evidence;
};
// Means since the point before.
struct ReportedFigures {
    std::int64_t index = -1;               // of the board
    std::map<std::string, double> values;  // by fleet_measures()
};
struct ReportedPoint {
    std::int64_t number = 0;
    double ago_s = 0;
    std::vector<ReportedFigures> boards;
};
struct GpuReport {
    std::string agent;  // one start of it
    std::string version;
    std::int64_t began_us = 0, sent_us = 0;  // by the node's clock
    double every_s = 10;
    std::string down;  // why NVIDIA's driver tells nothing; empty: it does
    std::string detail, nvidia_driver, nvml;
    std::int64_t cuda = 0, present = 0, expected = 0;
    std::vector<ReportedBoard> boards;
    std::vector<ReportedPoint> points;  // the oldest first
    std::int64_t points_lost = 0;       // that were too old to be kept, since its start
};

// What a server keeps over time, by the names that the series of ranks have (gpu_measures()).
std::span<const std::string_view> fleet_measures();

// Without points.
GpuReport report_of(const GpuView& view, const GpuOwners& owners, const GpuAllocations& allocations);
// As it was told; what came from elsewhere is made fit to be shown. `age_s`: how long ago.
GpuView view_of_report(const GpuReport& report, double age_s = 0);
GpuOwners owners_of_report(const GpuReport& report);
// From the body of a request. What a newer agent says beyond what is known here is passed over.
Result<GpuReport> read_report(std::string_view text);

template <class V>
void fields(V& visit, ReportedProcess& v) {
    visit("command", v.command);
    visit("container", v.container);
    visit("job", v.job);
    visit("known", v.known);
    visit("pid", v.pid);
    visit("pod", v.pod);
    visit("rank", v.rank);
    visit("run", v.run);
    visit("sm_percent", v.sm_percent);
    visit("used_bytes", v.used_bytes);
    visit("user", v.user);
}
template <class V>
void fields(V& visit, ReportedXid& v) {
    visit("ago_s", v.ago_s);
    visit("code", v.code);
    visit("count", v.count);
}
template <class V>
void fields(V& visit, ReportedBoard& v) {
    visit("age_s", v.age_s);
    visit("driver", v.driver);
    visit("evidence", v.evidence);
    visit("gpu_instance", v.gpu_instance);
    visit("index", v.index);
    visit("mig_profile", v.mig_profile);
    visit("name", v.name);
    visit("parent_uuid", v.parent_uuid);
    visit("pci", v.pci);
    visit("processes", v.processes);
    visit("processes_told", v.processes_told);
    visit("state", v.state);
    visit("stuck_call", v.stuck_call);
    visit("used_as", v.used_as);
    visit("uuid", v.uuid);
    visit("values", v.values);
    visit("xids", v.xids);
}
template <class V>
void fields(V& visit, ReportedFigures& v) {
    visit("index", v.index);
    visit("values", v.values);
}
template <class V>
void fields(V& visit, ReportedPoint& v) {
    visit("ago_s", v.ago_s);
    visit("boards", v.boards);
    visit("number", v.number);
}
template <class V>
void fields(V& visit, GpuReport& v) {
    visit("agent", v.agent);
    visit("began_us", v.began_us);
    visit("boards", v.boards);
    visit("cuda", v.cuda);
    visit("detail", v.detail);
    visit("down", v.down);
    visit("every_s", v.every_s);
    visit("expected", v.expected);
    visit("nvidia_driver", v.nvidia_driver);
    visit("nvml", v.nvml);
    visit("points", v.points);
    visit("points_lost", v.points_lost);
    visit("present", v.present);
    visit("sent_us", v.sent_us);
    visit("version", v.version);
}

}  // namespace stoker
