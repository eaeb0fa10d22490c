// What of Azure a Deployment needs, before it is written down as az script, Bicep, Terraform or ARM: which kind of
// resource, of which size, with which image and driver, and what keeps it safe and cheap.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "deploy/deployment.h"

namespace stoker {

enum class AzureKind : std::uint8_t {
    machine,    // one VM
    scale_set,  // Uniform in one placement group where InfiniBand joins it, else Flexible
    cluster     // AKS with a pool of its own for the work
};

struct AzureShape {
    AzureKind kind = AzureKind::machine;
    std::string name;  // a DNS label, at most 40 characters
    std::string size, location;
    int count = 1;
    bool spot = false, infiniband = false;
    bool neighbours = false;  // nodes that wait for each other over Ethernet: one proximity placement group
    bool gpu = false;
    std::string publisher, offer, sku, version;  // of the VM's image
    bool driver_extension = false;               // the image has no GPU driver, so that Azure's extension puts it in
    bool virtual_gpu = false;                    // whose guests take a driver of their own
    std::string image_comment;
    std::string disk_type;  // Premium_LRS; empty: no data disk
    std::int64_t disk_gib = 0;
    std::string pool;                  // of AKS: at most 12 letters and digits
    int kept = 0;                      // of a scale set on spot: so many are on demand, and stay
    bool stays = false;                // a pool beside one on spot (render/pools.h)
    std::int64_t vcpus = 0;            // of all machines: what their family's quota has to leave
    std::int64_t budget_usd = 0;       // a month, as the plan counts; 0: no price is known
    bool guarded = false;              // sensitive data: no public address, and a firewall on the way out
    std::vector<std::string> reached;  // of guarded work: names that the firewall lets through
    std::string registry;              // of guarded work: Azure's registry whose image it pulls, without its domain
    // A scale set of replicas that follow their load: so many stay. 0: the number is fixed.
    int least = 0;
    bool off_at_night = false;  // a person's machine: switched off every evening
};

AzureShape azure_shape(const Deployment& deployment);
// Of a service on spot above replicas that stay: the shape of each part, what stays first. Else the one.
std::vector<AzureShape> azure_pools(const Deployment& deployment);
// Why these machines are not Azure's, or not described by it; empty: they are.
std::string azure_refusal(const Deployment& deployment);

// Addresses of the network: not 172.16.0.0/16, which InfiniBand sizes keep for themselves.
inline constexpr std::string_view kNetwork = "10.20.0.0/16", kSubnet = "10.20.0.0/22";
// Of guarded work: Azure's names and least sizes of the firewall's own subnets, and its first address.
inline constexpr std::string_view kFirewallSubnet = "10.20.4.0/26", kFirewallManagement = "10.20.4.64/26",
                                  kFirewallAddress = "10.20.4.4";
// Of guarded work: how long is kept who reached what.
inline constexpr int kAuditDays = 90;
// When a machine of a person is switched off each day, in UTC.
inline constexpr std::string_view kShutdownTime = "1900";
// Of a machine that is no person's: why the check does not ask for that.
inline constexpr std::string_view kNotOffAtNight =
    "stoker: ignore[COST001] reason=\"work that ends is not cut off in the evening: deallocate the machine behind it\"";
// What one placement group of a scale set holds without a support request (placement_group_vms of the catalogue), and
// why the check does not ask about more.
inline constexpr int kVmsOfAGroup = 100;
inline constexpr std::string_view kMoreByRequest =
    "stoker: ignore[NET005] reason=\"Azure raises the limit of a placement group on request: ask before this is "
    "applied\"";
inline bool asks_for_a_larger_group(const AzureShape& s) {
    return s.infiniband && s.count > kVmsOfAGroup;
}
// Of AKS: what runs the cluster's own pods.
inline constexpr std::string_view kSystemSize = "Standard_D4s_v5";

// What tells later whose it is and until when (stoker doctor cloud reads it), as words of az --tags: OWNER, else
// whoever runs the script; EXPIRES where that is said.
std::string az_tags(std::string_view work);
// The same of a template, whose parameter has them.
inline constexpr std::string_view kTagsMean =
    "Of all resources; with owner and expires in it stoker doctor cloud says whose they are, and until when";

// In a template of ARM: a list of one, and what names another resource.
Json arm_list(Json item);
Json arm_id(std::string text);
// The same resources as ARM has them, for the template and for Bicep.
Json azure_parameters(const Deployment& deployment);
Json azure_resources(const Deployment& deployment);

}  // namespace stoker
