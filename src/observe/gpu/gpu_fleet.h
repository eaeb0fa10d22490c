// The GPUs of machines elsewhere, as the agents there tell of them: what was said last, series of it, and what is
// wrong. In memory but for the series: an agent tells everything again within seconds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/health.h"
#include "base/result.h"
#include "observe/gpu/gpu_health.h"
#include "observe/gpu/gpu_report.h"
#include "observe/series.h"

namespace stoker {

struct FleetMoment {
    double mono_s = 0;
    std::int64_t wall_us = 0;
    static FleetMoment now();
};
// Of the whole boards of a node; what no board tells is absent.
struct GpuSums {
    std::optional<double> busy, tensor, memory_used_bytes, memory_bytes, power_w, hottest_c;  // the first two are means
    std::map<std::string, std::int64_t> used_as;  // boards by an allocation's state
    std::string down;                             // why NVIDIA's driver tells nothing, in words
};
struct NodeGpusNow {
    std::string node;
    std::shared_ptr<const GpuReport> report;  // without points
    std::int64_t told_us = 0;                 // when it came, by the server's clock
    double age_s = 0, clock_ahead_s = 0;      // of the node's clock; with what the way took
    bool silent = false;                      // three reports are missing
    std::vector<HealthCheck> not_well;        // what fails or warns, by the policy
    GpuSums sums;
};
struct FleetCounts {
    std::uint64_t taken = 0, refused = 0;
};

// Any thread.
class GpuFleet {
public:
    explicit GpuFleet(std::unique_ptr<SeriesStore> series = nullptr, GpuHealthPolicy policy = usual_gpu_policy(),
                      std::size_t most_nodes = 4096);
    // Whom to tell when something fails on a node that did not before.
    void on_worse(std::function<void(const std::string& node, const HealthReport& failing)> tell);

    // The number of the last point that is kept. invalid: no name of a node. conflict: an agent that began later tells
    // of the node. exhausted: of too many nodes.
    Result<std::int64_t> take(const std::string& node, GpuReport report, const FleetMoment& now);
    void count_refused();
    std::vector<NodeGpusNow> nodes(const FleetMoment& now) const;
    std::optional<NodeGpusNow> find(const std::string& node, const FleetMoment& now) const;
    // For a check of the node: what its agent tells, or that it is silent. None: there never was an agent.
    std::vector<HealthCheck> check(const std::string& node, const FleetMoment& now) const;
    // Of one node, the index of a board in place of a rank.
    Result<std::vector<RankSeries>> series(const SeriesQuery& query) const;
    FleetCounts counts() const;

private:
    struct Node;
    std::shared_ptr<Node> node_of(const std::string& name, const FleetMoment& now, bool make, bool& full);
    NodeGpusNow now_of(const std::string& name, const Node& node, const FleetMoment& now) const;

    const std::unique_ptr<SeriesStore> series_;
    const GpuHealthPolicy policy_;
    const std::size_t most_nodes_;
    mutable std::mutex mutex_;  // guards what follows; never held while a file is written
    std::map<std::string, std::shared_ptr<Node>, std::less<>> nodes_;
    std::function<void(const std::string&, const HealthReport&)> on_worse_;
    double tidied_s_ = 0;
    FleetCounts counts_;
};

}  // namespace stoker
