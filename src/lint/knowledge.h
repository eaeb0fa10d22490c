// The dated facts that rules rest on: sizes, retirements, versions, names. Read from data/ at the first question, since
// most files ask for little; read-only and safe to share between threads after that.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::lint {

struct KnownSize {
    std::string_view name;    // Standard_ND96asr_v4
    std::string_view series;  // NDasrA100_v4
    std::string_view quota_family;
    int vcpus = 0;
    double memory_gib = 0;
    std::string_view accelerator;  // "A100 SXM 40GB"; empty: none
    std::string_view vendor;       // NVIDIA, AMD; empty without accelerator
    double accelerators = 0;       // 8, 0.5
    double infiniband_gbps = 0;    // of the whole VM; 0: none
    bool generation_1 = false, generation_2 = false;
    std::optional<bool> trusted_launch, accelerated_networking;
    double usd_per_hour = 0;  // 0: no price known; the lowest of the catalogue's regions
    std::string_view source, as_of;

    double tflops = 0;  // dense, 16 bits where it has them, else 32: of one accelerator; 0: not known
    double memory_gb_s = 0;

    bool gpu() const { return accelerators > 0; }
    bool rdma() const { return infiniband_gbps > 0; }
};

struct KnownRetirement {
    std::string_view date;    // YYYY-MM-DD; empty: long gone, the day was not found
    std::string_view target;  // what to take instead
    std::string_view source;
};

// A list price for Linux, pay as you go.
struct KnownPrice {
    double usd_per_hour = 0;
    std::string_view region, source, as_of;
};

// Implementations read data/ (knowledge.cpp); all answers live as long as the program.
class Knowledge {
public:
    // The one of this binary.
    static const Knowledge& embedded();

    // By name in any case; null where no size of that name is known.
    const KnownSize* size(std::string_view name) const;
    // In `region`; where that is empty, or has no price, nothing or the lowest of all regions. By the catalogue's name.
    std::optional<KnownPrice> price(std::string_view size, std::string_view region = {}) const;
    // Of Azure, those that have prices; sorted.
    std::vector<std::string> regions() const;
    // The cheapest GPU size of Azure by the hour, in the region or anywhere; null: no prices.
    const KnownSize* cheapest_gpu(std::string_view region = {}) const;
    // What to take instead of a retired size: of the series that its `target` names, in that order, the cheapest size
    // with as many accelerators that is not to be retired itself; null: the choice needs a person.
    const KnownSize* successor(std::string_view size) const;
    // "2.5x as fast (16-bit arithmetic at its peak) at 1.1x the price": of `to` beside `from`, as far as both are
    // known.
    std::string beside(const KnownSize& from, const KnownSize& to) const;
    // Of a size that is retired or announced: NC6, Standard_NC6s_v3, with or without _Promo.
    const KnownRetirement* retirement(std::string_view size) const;
    // True for what can be a size: "Standard_..." and "Basic_...", or a bare name that is in the catalogue.
    static bool looks_like_size(std::string_view text);
    std::string_view nearest_size(std::string_view name) const;  // empty: nothing is near
    std::string_view sizes_as_of() const;                        // YYYY-MM-DD of the newest row
    // A row of data/lint/facts.tsv (name, value, source, as_of, note): "device-plugin-version".
    std::string_view fact(std::string_view name) const;

private:
    Knowledge() = default;
};

}  // namespace stoker::lint
