#include "validate/networks.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/tsv.h"
#include "sizing/collectives.h"

namespace stoker::validate {

double PublishedNetwork::stage_wait(int nodes) const noexcept {
    double seconds = 0;
    for (const auto& [from, wait] : stage_wait_s)
        if (nodes >= from) seconds = wait;
    return seconds;
}

Result<PublishedNetworks> PublishedNetworks::read(std::string_view text, FileName file) {
    TRY(const Tsv table, Tsv::read(text, file));
    TRY(const std::size_t source, table.column("source"));
    TRY(const std::size_t link, table.column("link"));
    TRY(const std::size_t what, table.column("what"));
    TRY(const std::size_t nodes, table.column("nodes"));
    TRY(const std::size_t value, table.column("value"));
    PublishedNetworks out;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        TRY(const double from, table.number(row, nodes));
        TRY(const double number, table.number(row, value));
        if (!(from >= 2)) return table.error(row, nodes, "two nodes or more are wanted");
        if (!(number > 0)) return table.error(row, value, "a number above 0 is wanted");
        if (out.all_.empty() || out.all_.back().source != table.at(row, source)) {
            out.all_.emplace_back();
            out.all_.back().source = table.at(row, source);
            out.all_.back().link = table.at(row, link);
        }
        PublishedNetwork& network = out.all_.back();
        if (table.at(row, what) == "all_gather") {
            network.gather_nodes = from;
            network.gather_bytes_per_s = number * 1e9;
        } else if (table.at(row, what) == "stage") {
            if (!network.stage_wait_s.empty() && !(from > network.stage_wait_s.back().first))
                return table.error(row, nodes, "more nodes than in the line before are wanted");
            network.stage_wait_s.emplace_back(from, number * 1e-3);
        } else {
            return table.error(row, what, "all_gather or stage is wanted");
        }
    }
    return out;
}

Result<PublishedNetworks> PublishedNetworks::embedded() {
    return read(embedded_bytes("calibration/networks.tsv"), "data/calibration/networks.tsv");
}

const PublishedNetwork* PublishedNetworks::find(std::string_view source) const {
    const auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one.source == source; });
    return at == all_.end() ? nullptr : &*at;
}

void set_latency(const PublishedNetwork& network, Device& device) {
    if (network.gather_nodes <= 0) return;
    const double ranks = network.gather_nodes * device.ranks_per_node();
    const Group group = make_group(device, ranks, 1);
    const double seen = gather_bytes(ranks, PublishedNetwork::kBytes) / network.gather_bytes_per_s;
    // The gather's hops are one after the other, so that its time grows by as many times what a hop's does.
    const double told = all_gather_s(device, group, PublishedNetwork::kBytes);
    device.across.latency_s += std::max(0.0, seen - told) / (network.gather_nodes - 1);
}

}  // namespace stoker::validate
