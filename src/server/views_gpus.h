// What the API says about the GPUs of nodes, as the agents there tell of them. As in views.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/health.h"
#include "observe/gpu/gpu_report.h"

namespace stoker::api {

struct GpuReportTaken {
    std::int64_t through = 0;  // the number of the last point that is kept
    double clock_ahead_s = 0;  // of the node, with what the way took
};
// One node in the list of all.
struct NodeGpusItem {
    std::string node, told_at;
    double age_s = 0, clock_ahead_s = 0;
    bool silent = false;
    std::string version, driver, down;  // down: why NVIDIA's driver tells nothing
    std::int64_t present = 0, expected = 0;
    std::optional<double> busy, tensor, memory_used_bytes, memory_bytes, power_w, hottest_c;
    std::map<std::string, std::int64_t> used_as;  // boards by what they do
    std::vector<std::string> not_well;
};
struct FleetGpus {
    std::vector<NodeGpusItem> items;
};
struct NodeGpusView {
    std::string node, told_at;
    double age_s = 0, clock_ahead_s = 0;
    bool silent = false;
    GpuReport gpus;
    std::vector<HealthCheck> not_well;
};
// [seconds since 1970, smallest, mean, largest, count] a point.
struct GpuSeriesView {
    int gpu = 0;
    std::string metric;
    std::int64_t seconds = 1;
    std::vector<std::vector<double>> points;
};
struct NodeGpuSeries {
    std::string node, from, to;
    std::vector<GpuSeriesView> series;
};

template <class V>
void fields(V& visit, GpuReportTaken& v) {
    visit("clock_ahead_s", v.clock_ahead_s);
    visit("through", v.through);
}
template <class V>
void fields(V& visit, NodeGpusItem& v) {
    visit("age_s", v.age_s);
    visit("busy", v.busy);
    visit("clock_ahead_s", v.clock_ahead_s);
    visit("down", v.down);
    visit("driver", v.driver);
    visit("expected", v.expected);
    visit("hottest_c", v.hottest_c);
    visit("memory_bytes", v.memory_bytes);
    visit("memory_used_bytes", v.memory_used_bytes);
    visit("node", v.node);
    visit("not_well", v.not_well);
    visit("power_w", v.power_w);
    visit("present", v.present);
    visit("silent", v.silent);
    visit("tensor", v.tensor);
    visit("told_at", v.told_at);
    visit("used_as", v.used_as);
    visit("version", v.version);
}
template <class V>
void fields(V& visit, FleetGpus& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, NodeGpusView& v) {
    visit("age_s", v.age_s);
    visit("clock_ahead_s", v.clock_ahead_s);
    visit("gpus", v.gpus);
    visit("node", v.node);
    visit("not_well", v.not_well);
    visit("silent", v.silent);
    visit("told_at", v.told_at);
}
template <class V>
void fields(V& visit, GpuSeriesView& v) {
    visit("gpu", v.gpu);
    visit("metric", v.metric);
    visit("points", v.points);
    visit("seconds", v.seconds);
}
template <class V>
void fields(V& visit, NodeGpuSeries& v) {
    visit("from", v.from);
    visit("node", v.node);
    visit("series", v.series);
    visit("to", v.to);
}

}  // namespace stoker::api
