#include "catalog/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <tuple>

#include "base/text.h"
#include "catalog/names.h"

namespace stoker {
namespace {

constexpr std::string_view kPrecisionNames[kPrecisions] = {"fp32", "tf32", "fp16", "bf16",
                                                           "fp8",  "int8", "int4", "fp4"};

auto price_key(const Price& p) {
    return std::tie(p.node_type, p.region, p.os, p.pricing);
}
bool price_before(const Price& a, const Price& b) {
    return price_key(a) < price_key(b);
}

using NameIndex = std::map<std::string, int, std::less<>>;

std::optional<int> look_up(const NameIndex& index, const std::string& folded) {
    const auto at = index.find(folded);
    return at == index.end() ? std::nullopt : std::optional<int>(at->second);
}

template <typename T>
std::vector<std::string> names_of(const std::vector<T>& things) {
    std::vector<std::string> names;
    names.reserve(things.size());
    for (const T& thing : things) names.push_back(thing.name);
    return names;
}

Error not_found(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
    return Error(ErrorKind::not_found,
                 fmt::format("no {} named {}{}", what, name.substr(0, 100), did_you_mean(name, known)));
}

}  // namespace

std::string_view to_string(Precision precision) {
    return kPrecisionNames[static_cast<std::size_t>(precision)];
}

std::optional<Precision> precision_from(std::string_view text) {
    const std::string folded = fold_name(text);
    for (int i = 0; i < kPrecisions; ++i) {
        if (folded == kPrecisionNames[i]) return static_cast<Precision>(i);
    }
    return std::nullopt;
}

const std::vector<std::string>& precision_names() {
    static const std::vector<std::string> names(std::begin(kPrecisionNames), std::end(kPrecisionNames));
    return names;
}

double bytes_per_weight(Precision precision) {
    constexpr double bytes[kPrecisions] = {4, 4, 2, 2, 1, 1, 0.5625, 0.5625};
    return bytes[static_cast<std::size_t>(precision)];
}

std::string_view to_string(Pricing pricing) {
    constexpr std::string_view names[] = {"on-demand", "spot", "reserved-1y", "reserved-3y", "owned"};
    static_assert(std::size(names) == static_cast<std::size_t>(Pricing::owned) + 1);
    return names[static_cast<std::size_t>(pricing)];
}

std::string ModelSpec::request_unit() const {
    if (!request.unit.empty()) return request.unit;
    if (!is_image(kind)) return "request";
    const bool word = sample_unit.find(' ') == std::string::npos && sample_unit != "token" && sample_unit != "step";
    return word ? sample_unit : "image";
}

std::string_view to_string(ModelKind kind) {
    constexpr std::string_view names[] = {"decoder", "encoder", "encoder-decoder", "cnn", "vit", "diffusion"};
    static_assert(std::size(names) == static_cast<std::size_t>(ModelKind::diffusion) + 1);
    return names[static_cast<std::size_t>(kind)];
}

Result<int> Catalog::find_accelerator(std::string_view name) const {
    if (const auto index = look_up(accelerator_index_, fold_accelerator(name))) return *index;
    return not_found("accelerator", name, names_of(accelerators_));
}

Result<int> Catalog::find_node_type(std::string_view name) const {
    if (const auto index = look_up(node_type_index_, fold_vm_size(name))) return *index;
    return not_found("VM size", name, names_of(node_types_));
}

Result<int> Catalog::find_model(std::string_view name) const {
    // Model hubs put the owner in front: meta-llama/Llama-3.1-8B.
    const std::size_t slash = name.rfind('/');
    const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
    for (const std::string_view part : {name, last}) {
        // As it is written first, then without the points of its numbers.
        if (const auto index = look_up(model_index_, fold_model(part))) return *index;
        if (const auto index = look_up(model_index_, fold_name(part))) return *index;
    }
    return not_found("model", name, names_of(models_));
}

Result<int> Catalog::find_image(std::string_view name) const {
    for (std::size_t i = 0; i < images_.size(); ++i) {
        if (fold_name(images_[i].name) == fold_name(name)) return static_cast<int>(i);
    }
    // One URN may stand in several rows, of which the one for most orchestrators is the general one.
    int general = -1;
    for (std::size_t i = 0; i < images_.size(); ++i) {
        if (images_[i].urn.empty() || fold_name(images_[i].urn) != fold_name(name)) continue;
        if (general < 0 ||
            images_[i].orchestrators.size() > images_[static_cast<std::size_t>(general)].orchestrators.size())
            general = static_cast<int>(i);
    }
    if (general >= 0) return general;
    return not_found("image", name, names_of(images_));
}

Result<int> Catalog::find_disk(std::string_view name) const {
    for (std::size_t i = 0; i < disks_.size(); ++i) {
        if (fold_name(disks_[i].name) == fold_name(name)) return static_cast<int>(i);
    }
    return not_found("disk", name, names_of(disks_));
}

int Catalog::nvidia_alternative(int accelerator) const {
    const Accelerator& wanted = accelerators_[static_cast<std::size_t>(accelerator)];
    if (wanted.vendor == "NVIDIA") return -1;
    // The precision it is bought for: the first of these that it has. A GPU without it is no alternative.
    std::size_t rate = 0;
    for (Precision p : {Precision::fp32, Precision::int8, Precision::fp16, Precision::bf16}) {
        if (wanted.has(p)) rate = static_cast<std::size_t>(p);
    }
    const auto ratio = [](double a, double b) { return a > 0 && b > 0 ? a / b : 1.0; };
    std::vector<bool> rented(accelerators_.size(), false);
    for (const NodeType& node : node_types_) {
        if (node.has_gpu() && node.retirement_date.empty()) rented[static_cast<std::size_t>(node.accelerator)] = true;
    }
    int best = -1;
    double least = 0;
    for (std::size_t i = 0; i < accelerators_.size(); ++i) {
        const Accelerator& other = accelerators_[i];
        if (!rented[i] || other.vendor != "NVIDIA" || !other.is_gpu() || !(other.peak[rate].v > 0)) continue;
        double distance = 0;
        for (const double r :
             {ratio(other.memory.v, wanted.memory.v), ratio(other.memory_bandwidth.v, wanted.memory_bandwidth.v),
              ratio(other.peak[rate].v, wanted.peak[rate].v)})
            distance += std::abs(std::log(r));
        if (best < 0 || distance < least) {
            best = static_cast<int>(i);
            least = distance;
        }
    }
    return best;
}

Result<std::string> Catalog::find_region(std::string_view cloud, std::string_view name) const {
    const std::vector<std::string> known = regions_of(cloud);
    const std::string folded = fold_name(name);
    for (const std::string& region : known) {
        if (fold_name(region) == folded) return region;
    }
    return not_found(fmt::format("region of {}", cloud), name, known);
}

std::span<const Price> Catalog::prices_of(int node_type) const {
    const auto first = std::lower_bound(prices_.begin(), prices_.end(), node_type,
                                        [](const Price& p, int n) { return p.node_type < n; });
    const auto last =
        std::upper_bound(first, prices_.end(), node_type, [](int n, const Price& p) { return n < p.node_type; });
    return {first, last};
}

const Price* Catalog::price(int node_type, std::string_view region, std::string_view os, Pricing pricing) const {
    const auto key = std::make_tuple(node_type, region, os, pricing);
    const auto at = std::lower_bound(prices_.begin(), prices_.end(), key, [](const Price& p, const auto& wanted) {
        return std::make_tuple(p.node_type, std::string_view(p.region), std::string_view(p.os), p.pricing) < wanted;
    });
    const bool found = at != prices_.end() && at->node_type == node_type && at->region == region && at->os == os &&
                       at->pricing == pricing;
    return found ? &*at : nullptr;
}

const Constant* Catalog::constant(std::string_view name) const {
    const auto at = std::lower_bound(constants_.begin(), constants_.end(), name,
                                     [](const Constant& c, std::string_view n) { return c.name < n; });
    return at != constants_.end() && at->name == name ? &*at : nullptr;
}

void Catalog::replace_constant(Constant constant) {
    for (Constant& each : constants_)
        if (each.name == constant.name) return void(each = std::move(constant));
}

double Catalog::constant_or_die(std::string_view name) const {
    const Constant* found = constant(name);
    if (found != nullptr) return found->value;
    // In a folder of the user's it is his to add; in ours it is our bug.
    const bool ours = origin.empty() || origin == "embedded";
    fmt::print(stderr, "error: the catalogue {} has no constant {}\n  expected a row in {}catalog/defaults.tsv\n",
               version, name, ours ? "" : origin + "/");
    std::fflush(stderr);
    std::exit(exit_code(ours ? ErrorKind::internal : ErrorKind::invalid));
}

std::vector<std::string> Catalog::regions_of(std::string_view cloud) const {
    const auto at = regions_.find(cloud);
    return at == regions_.end() ? std::vector<std::string>() : at->second;
}

void Catalog::note_region(std::string_view cloud, std::string_view region) {
    auto at = regions_.find(cloud);
    if (at == regions_.end()) at = regions_.emplace(std::string(cloud), std::vector<std::string>()).first;
    const auto place = std::lower_bound(at->second.begin(), at->second.end(), region);
    if (place == at->second.end() || *place != region) at->second.insert(place, std::string(region));
}

// The first to take a name keeps it, except that what the user adds comes before what the tables say.
int Catalog::add_accelerator(Accelerator accelerator) {
    const int index = static_cast<int>(accelerators_.size());
    accelerator_index_.insert_or_assign(fold_accelerator(accelerator.name), index);
    for (const std::string& alias : accelerator.aliases) accelerator_index_.emplace(fold_accelerator(alias), index);
    accelerators_.push_back(std::move(accelerator));
    return index;
}

int Catalog::add_node_type(NodeType node_type) {
    const int index = static_cast<int>(node_types_.size());
    node_type_index_.insert_or_assign(fold_vm_size(node_type.name), index);
    node_types_.push_back(std::move(node_type));
    return index;
}

int Catalog::add_link(Link link) {
    links_.push_back(std::move(link));
    return static_cast<int>(links_.size()) - 1;
}

int Catalog::add_cpu(Cpu cpu) {
    cpus_.push_back(std::move(cpu));
    return static_cast<int>(cpus_.size()) - 1;
}

void Catalog::replace_price(Price price) {
    std::vector<Price> one;
    one.push_back(std::move(price));
    replace_prices(std::move(one));
}

void Catalog::replace_prices(std::vector<Price> added) {
    if (added.empty()) return;
    const auto same = [](const Price& a, const Price& b) { return price_key(a) == price_key(b); };
    // Places are sorted instead of prices, which are large; of equals the last in the list comes first and stays.
    std::vector<std::uint32_t> order(added.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return price_before(added[a], added[b]) || (!price_before(added[b], added[a]) && a > b);
    });
    order.erase(std::unique(order.begin(), order.end(),
                            [&](std::uint32_t a, std::uint32_t b) { return same(added[a], added[b]); }),
                order.end());

    std::set<std::pair<std::string_view, std::string_view>> places;
    for (const std::uint32_t i : order)
        places.emplace(node_types_[static_cast<std::size_t>(added[i].node_type)].cloud, added[i].region);
    for (const auto& [cloud, region] : places) note_region(cloud, region);

    std::vector<Price> merged;
    merged.reserve(prices_.size() + order.size());
    auto old = prices_.begin();
    for (const std::uint32_t i : order) {
        Price& price = added[i];
        while (old != prices_.end() && price_before(*old, price)) merged.push_back(std::move(*old++));
        if (old != prices_.end() && same(*old, price)) ++old;
        merged.push_back(std::move(price));
    }
    merged.insert(merged.end(), std::make_move_iterator(old), std::make_move_iterator(prices_.end()));
    prices_ = std::move(merged);
}

void Catalog::estimate_missing_spot_prices() {
    std::vector<const SpotRatio*> ratio_of(accelerators_.size(), nullptr);
    for (const SpotRatio& ratio : spot_ratios_) ratio_of[static_cast<std::size_t>(ratio.accelerator)] = &ratio;
    std::vector<Price> estimates;
    for (const Price& list : prices_) {
        const NodeType& node = node_types_[static_cast<std::size_t>(list.node_type)];
        // The bracket was read for sizes with whole GPUs under Linux; a fraction of a GPU is priced apart.
        if (list.pricing != Pricing::on_demand || list.os != "linux" || node.cloud != "azure" || node.accelerators < 1)
            continue;
        const SpotRatio* ratio = node.accelerator >= 0 ? ratio_of[static_cast<std::size_t>(node.accelerator)] : nullptr;
        if (ratio == nullptr) continue;
        const Price* known = price(list.node_type, list.region, list.os, Pricing::spot);
        if (known != nullptr && !known->estimate) continue;
        Price spot = list;
        spot.pricing = Pricing::spot;
        spot.estimate = true;
        spot.low = list.per_hour.dollars() * ratio->low;
        spot.high = list.per_hour.dollars() * ratio->high;
        spot.per_hour = Usd::from_double((spot.low + spot.high) / 2);
        spot.provenance = ratio->provenance;
        estimates.push_back(std::move(spot));
    }
    replace_prices(std::move(estimates));
}

// Azure's naming convention: family, vCPUs, and behind a hyphen the constrained ones.
int NodeType::usable_vcpus() const {
    const std::string all = std::to_string(vcpus) + "-";
    const std::size_t at = cloud == "azure" ? name.find(all) : std::string::npos;
    if (at == std::string::npos) return vcpus;
    int on = 0;
    for (std::size_t i = at + all.size(); i < name.size() && name[i] >= '0' && name[i] <= '9' && on < vcpus; ++i)
        on = 10 * on + (name[i] - '0');
    return on > 0 && on < vcpus ? on : vcpus;
}

std::string NodeType::rdma_name() const {
    if (!rdma_generation.empty() && rdma_generation != "none") return rdma_generation;
    return rdma == "roce" ? "RoCE" : upper(rdma);
}

}  // namespace stoker
