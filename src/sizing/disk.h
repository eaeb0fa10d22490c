// The managed data disk of a VM: what it delivers and what it costs a month, from the workload's `disk` record and the
// constants disk_* of data/catalog/defaults.tsv.
#pragma once

#include "workload/workload.h"

namespace stoker {

struct Disk {
    std::string type = "premium-ssd", tier;  // tier: P30, where it has a name; else empty
    double gib = 0;
    double bytes_per_s = 0;         // 0: not known
    double usd_per_month = 0;       // 0: no price is known
    bool throughput_given = false;  // by the user, not by the type and size
    Provenance price_provenance;
    std::string text() const;  // "premium-ssd P30 (1,024 GiB, 200 MB/s)"
};
Disk disk_of(const DiskSpec& spec, const Catalog& catalog);
bool disk_was_asked_for(const DiskSpec& spec);

}  // namespace stoker
