// Where a price is from, and where to look whether it still holds.
#include <fmt/format.h>

#include "app/render/plan_text.h"
#include "base/text.h"

namespace stoker {

std::string price_source(const Candidate& candidate, const Workload& workload) {
    std::string text =
        fmt::format("price: {}{}, {} per node and hour{}", candidate.region.empty() ? "" : candidate.region + ", ",
                    workload.where.os, money_text(candidate.node_per_hour.dollars()),
                    !candidate.price_is_of.empty()
                        ? fmt::format(" (estimate: the list price of {} x {:.2f} to {:.2f})", candidate.price_is_of,
                                      candidate.list_ratio.low, candidate.list_ratio.high)
                    : candidate.price_is_estimate ? " (estimate)"
                                                  : "");
    if (!candidate.price_provenance.as_of.empty()) text += ", as of " + candidate.price_provenance.as_of;
    if (!candidate.price_provenance.source.empty()) text += ", " + candidate.price_provenance.source;
    return text;
}

std::vector<std::string> verify_pages(std::string_view cloud, std::string_view os) {
    if (cloud == "azure")
        return {"azure.microsoft.com/pricing/calculator",
                fmt::format("azure.microsoft.com/pricing/details/virtual-machines/{}",
                            os == "windows" ? "windows" : "linux")};
    if (cloud == "aws") return {"calculator.aws", "aws.amazon.com/ec2/pricing/on-demand"};
    if (cloud == "gcp") return {"cloud.google.com/products/calculator", "cloud.google.com/compute/vm-instance-pricing"};
    return {};
}

}  // namespace stoker
