// Networks of sources whose rows do not say theirs: data/calibration/networks.tsv.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sizing/device.h"

namespace stoker::validate {

struct PublishedNetwork {
    std::string source, link;
    double gather_nodes = 0, gather_bytes_per_s = 0;  // bus bandwidth of an all-gather of kBytes; 0 nodes: not known
    std::vector<std::pair<double, double>> stage_wait_s{};  // from so many nodes on, fewest first

    static constexpr double kBytes = 256e6;

    // What a micro-batch waits for the stage beside its own.
    double stage_wait(int nodes) const noexcept;
};

class PublishedNetworks {
public:
    static Result<PublishedNetworks> embedded();
    static Result<PublishedNetworks> read(std::string_view text, FileName file);

    const PublishedNetwork* find(std::string_view source) const;  // nullptr: not known

private:
    std::vector<PublishedNetwork> all_;
};

// A hop between nodes takes so long that the all-gather, whose ring passes all of them, reaches what was published.
void set_latency(const PublishedNetwork& network, Device& device);

}  // namespace stoker::validate
