#include "sizing/disk.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace stoker {
namespace {

// Managed disks are billed and fast by tier: a size between two tiers is the larger one.
struct Tier {
    int number;
    double gib;
};
constexpr std::array<Tier, 13> kTiers{{{4, 32},
                                       {6, 64},
                                       {10, 128},
                                       {15, 256},
                                       {20, 512},
                                       {30, 1024},
                                       {40, 2048},
                                       {50, 4096},
                                       {60, 8192},
                                       {70, 16384},
                                       {80, 32767},
                                       {80, 65536},
                                       {80, 1e18}}};
constexpr double kDefaultGib = 128;  // P10: room for the system, an environment and a few checkpoints

std::string underscored(std::string text) {
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
}

}  // namespace

bool disk_was_asked_for(const DiskSpec& spec) {
    return spec.type || spec.size || spec.throughput_per_second;
}

Disk disk_of(const DiskSpec& spec, const Catalog& catalog) {
    Disk disk;
    disk.type = spec.type.value_or("premium-ssd");
    disk.gib = spec.size ? spec.size->v / kGiB : kDefaultGib;
    const std::string name = "disk_" + underscored(disk.type);
    auto constant = [&](const std::string& key) { return catalog.constant(key); };
    const bool tiered = disk.type == "premium-ssd" || disk.type == "standard-ssd" || disk.type == "standard-hdd";
    if (tiered) {
        const Tier& tier =
            *std::find_if(kTiers.begin(), kTiers.end(), [&](const Tier& t) { return t.gib >= disk.gib; });
        disk.gib = std::min(tier.gib, 65536.0);
        disk.tier = fmt::format("{}{}",
                                disk.type == "premium-ssd"    ? 'P'
                                : disk.type == "standard-ssd" ? 'E'
                                                              : 'S',
                                tier.number);
        if (const Constant* flat = constant(name + "_mb_s")) disk.bytes_per_s = flat->value * 1e6;
        for (const Tier& t : kTiers)  // the largest tier up to this one that has a figure
            if (t.gib <= disk.gib)
                if (const Constant* rate = constant(fmt::format("{}_mb_s_{:.0f}", name, t.gib)))
                    disk.bytes_per_s = rate->value * 1e6;
    }
    if (const Constant* price = constant(name + "_usd_per_gib_month")) {
        disk.usd_per_month = price->value * disk.gib;
        disk.price_provenance = price->provenance;
    }
    if (spec.throughput_per_second) {
        // A tier caps what may be asked of it; the newer types deliver what is paid for.
        const double asked = spec.throughput_per_second->v;
        disk.throughput_given = true;
        disk.bytes_per_s = tiered && disk.bytes_per_s > 0 ? std::min(asked, disk.bytes_per_s) : asked;
    }
    return disk;
}

std::string Disk::text() const {
    return fmt::format("{}{}{} ({} GiB{})", type, tier.empty() ? "" : " ", tier, format_thousands(gib),
                       bytes_per_s > 0 ? fmt::format(", {:.0f} MB/s", bytes_per_s / 1e6) : "");
}

}  // namespace stoker
