// `where`: names of clouds, regions, sizes and geographies, looked up and spelled as the catalogue does.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "catalog/geography.h"
#include "catalog/names.h"
#include "workload/workload_form.h"

namespace stoker {
namespace {

using Names = std::vector<std::string>;

bool contains(const Names& all, std::string_view name) {
    return std::find(all.begin(), all.end(), name) != all.end();
}

// Places that data may be bound to. Everything else is the name of a region.
const Names& geographies() {
    static const Names all = {"eu",
                              "us",
                              "uk",
                              "europe",
                              "asia pacific",
                              "middle east",
                              "africa",
                              "south america",
                              "australia",
                              "austria",
                              "belgium",
                              "brazil",
                              "canada",
                              "chile",
                              "denmark",
                              "finland",
                              "france",
                              "germany",
                              "india",
                              "indonesia",
                              "ireland",
                              "israel",
                              "italy",
                              "japan",
                              "korea",
                              "malaysia",
                              "mexico",
                              "netherlands",
                              "new zealand",
                              "norway",
                              "poland",
                              "qatar",
                              "singapore",
                              "south africa",
                              "spain",
                              "sweden",
                              "switzerland",
                              "taiwan",
                              "united arab emirates",
                              "united kingdom",
                              "united states"};
    return all;
}

class Places {
public:
    Places(WorkloadForm& workload, const Catalog& catalog, Problems& problems)
        : workload_(workload), where_(workload.where), catalog_(catalog), problems_(problems) {}

    void resolve(const FileLoader& load) {
        const Names own = own_nodes(load);
        clouds();
        accelerators();
        sizes(own);
        gpus();
        regions();
        residency();
        floor();
        lies_in(workload_.data.region, workload_.data.cloud, workload_.data.at, "data.region");
        lies_in(workload_.traffic.region, workload_.traffic.cloud, workload_.traffic.at, "traffic.region");
    }

private:
    SourcePos item(const char* key, std::size_t i) const {
        return place_of(where_.at, fmt::format("{}.{}", key, i), place_of(where_.at, key, {}));
    }
    void add(SourcePos pos, std::string message, std::string remedy = {}) {
        problems_.push_back({std::move(message), std::move(remedy), pos});
    }

    // FPGAs are known as a kind, though no size of the catalogue has one: the plan says what to take in their place.
    void accelerators() {
        const auto& all = catalog_.accelerators();
        constexpr std::array<std::string_view, 4> kNoGpu = {"none", "no", "cpu", "cpus"};
        Names known = {"fpga", "nvidia", "amd"};
        for (const Accelerator& one : all) known.push_back(one.name);
        for (std::size_t i = 0; i < where_.accelerators.size(); ++i) {
            std::string& word = where_.accelerators[i];
            word = std::string(trim(word));
            const bool found =
                equals_ignore_case(word, "fpga") ||
                std::any_of(all.begin(), all.end(), [&](const auto& one) { return matches_accelerator(word, one); });
            if (found) continue;
            unknown_accelerator_ = true;
            add(item("accelerators", i),
                fmt::format("accelerators: no accelerator named {}{}", printable(word, 40), did_you_mean(word, known)),
                std::find(kNoGpu.begin(), kNoGpu.end(), fold_name(word)) != kNoGpu.end()
                    ? "for machines without a GPU name their sizes, such as sizes: [Standard_D16s_v5]; where none is "
                      "named they are compared with the rest"
                    : "stoker catalog gpus lists them; a vendor (nvidia, amd) or the start of a name (h100, tpu) will "
                      "do");
        }
    }

    // Names of the nodes that the user describes; they join the catalogue only later.
    Names own_nodes(const FileLoader& load) {
        Names names = where_.names_here;
        if (where_.nodes_file.empty()) return names;
        const SourcePos pos = place_of(where_.at, "nodes", {});
        const auto document = load ? load(where_.nodes_file)
                                   : Result<Document>(Error(ErrorKind::unsupported, "files cannot be read here"));
        if (!document) {
            for (Problem problem : document.error().problems()) {
                if (!problem.pos.known())
                    problem = {"nodes: " + problem.message,
                               "a number of nodes, or a file relative to the workload file, is expected here", pos};
                problems_.push_back(std::move(problem));
            }
            return names;
        }
        const Node* list = document->root().is_mapping() ? document->root().find("nodes") : &document->root();
        if (list == nullptr) return names;
        for (const auto& node : list->items) {
            const Node* name = node->find("name");
            if (name != nullptr && name->is_scalar()) names.push_back(name->text);
        }
        return names;
    }

    void clouds() {
        Names known = {"any", "on-prem", "this-machine"};
        for (const NodeType& type : catalog_.node_types()) {
            if (!contains(known, type.cloud)) known.push_back(type.cloud);
        }
        Names found;
        for (std::size_t i = 0; i < where_.clouds.size(); ++i) {
            const std::string word = fold_name(where_.clouds[i]);
            const auto at = std::find_if(known.begin(), known.end(), [&](const std::string& cloud) {
                return fold_name(cloud) == word || (word == "local" && cloud == "this-machine") ||
                       (word == "googlecloud" && cloud == "gcp") || (word == "amazon" && cloud == "aws") ||
                       (word == "microsoft" && cloud == "azure");
            });
            if (at == known.end()) {
                Names sorted = known;
                std::sort(sorted.begin(), sorted.end());
                unknown_cloud_ = true;
                add(item("cloud", i),
                    fmt::format("cloud: no cloud named '{}'{}", printable(where_.clouds[i], 40),
                                did_you_mean(where_.clouds[i], known)),
                    "known clouds: " + join(sorted, ", ") +
                        "; machines of any other: describe them with their price_per_hour, as "
                        "examples/on-prem-nodes.yaml does, and write cloud: on-prem, nodes: FILE");
            } else if (!contains(found, *at)) {
                found.push_back(*at);
            }
        }
        const auto own = std::find(found.begin(), found.end(), "on-prem");
        const bool described = std::any_of(catalog_.node_types().begin(), catalog_.node_types().end(),
                                           [](const NodeType& type) { return type.cloud == "on-prem"; });
        if (own != found.end() && !where_.describes_nodes() && !described) {
            add(place_of(where_.at, "cloud", {}), "cloud: the machines on-prem are not described",
                "write beside cloud what they are, as nodes: [{gpu: H100-SXM, gpus: 8, vcpus: 96, memory: 1900GiB, "
                "rdma: "
                "ndr, count: 4}], or nodes: my-nodes.yaml, a file such as examples/on-prem-nodes.yaml");
        }
        where_.clouds = std::move(found);
        if (where_.clouds.empty() && where_.describes_nodes()) where_.clouds = {"on-prem"};
    }

    bool in_reach(const NodeType& type) const {
        if (!where_.sizes.empty()) return contains(where_.sizes, type.name);
        return contains(searched(), type.cloud);
    }

    bool is_wanted(const NodeType& type) const {
        if (!type.has_gpu()) return false;
        const Accelerator& one = catalog_.accelerators()[static_cast<std::size_t>(type.accelerator)];
        return where_.accelerators.empty() ||
               std::any_of(where_.accelerators.begin(), where_.accelerators.end(),
                           [&](const std::string& word) { return matches_accelerator(word, one); });
    }

    // Whether some number of machines makes up the sum. That a cloud has no such accelerator at all is the plan's to
    // say.
    void gpus() {
        if (!where_.gpus || unknown_cloud_ || unknown_accelerator_ || where_.describes_nodes()) return;
        std::vector<int> per_node;
        for (const NodeType& type : catalog_.node_types()) {
            if (!in_reach(type) || !is_wanted(type)) continue;
            if (where_.takes(type)) return;
            if (std::find(per_node.begin(), per_node.end(), type.whole_gpus()) == per_node.end())
                per_node.push_back(type.whole_gpus());
        }
        if (per_node.empty()) return;
        std::sort(per_node.begin(), per_node.end());
        Names counts;
        for (const int count : per_node) counts.push_back(std::to_string(count));
        const std::string kinds = where_.accelerators.empty() ? "GPUs" : join_or(where_.accelerators);
        add(place_of(where_.at, "gpus", {}),
            fmt::format("gpus: {:.0f} is no multiple of the GPUs of one machine: those with {} have {}", *where_.gpus,
                        kinds, join_or(counts)));
    }

    void sizes(const Names& own) {
        const bool free_choice = where_.clouds.empty();
        Names found, their_clouds;
        for (std::size_t i = 0; i < where_.sizes.size(); ++i) {
            const auto mine = std::find_if(own.begin(), own.end(), [&](const std::string& name) {
                return fold_name(name) == fold_name(where_.sizes[i]);
            });
            if (mine != own.end()) {
                found.push_back(*mine);
                continue;
            }
            const auto index = catalog_.find_node_type(where_.sizes[i]);
            if (!index) {
                add(item("sizes", i), "sizes: " + index.error().message(),
                    index.error().problems().front().remedy.empty() ? "stoker catalog sizes lists what is known"
                                                                    : index.error().problems().front().remedy);
                continue;
            }
            const NodeType& type = catalog_.node_types()[static_cast<std::size_t>(*index)];
            if (!contains(found, type.name)) found.push_back(type.name);
            if (!contains(their_clouds, type.cloud)) their_clouds.push_back(type.cloud);
            if (!free_choice && !unknown_cloud_ && !contains(where_.clouds, "any") &&
                !contains(where_.clouds, type.cloud)) {
                add(item("sizes", i),
                    fmt::format("sizes: {} is a size of {}, but only {} may be used", type.name, type.cloud,
                                join_or(where_.clouds)),
                    fmt::format("add {} to cloud, or take the size out", type.cloud));
            }
        }
        where_.sizes = std::move(found);
        if (free_choice) where_.clouds = their_clouds;
    }

    // "eu", "germany": regions lie in it, and it is none.
    bool is_a_place(const std::string& name) const {
        for (const std::string& cloud : searched())
            for (const std::string& region : catalog_.regions_of(cloud))
                if (same_geography(lower(name), region)) return true;
        return false;
    }

    void regions() {
        Names found;
        for (std::size_t i = 0; i < where_.regions.size(); ++i) {
            std::optional<Error> first;
            bool ok = false;
            for (const std::string& cloud : searched()) {
                if (catalog_.regions_of(cloud).empty()) continue;
                auto region = catalog_.find_region(cloud, where_.regions[i]);
                if (region) {
                    ok = true;
                    if (!contains(found, *region)) found.push_back(std::move(*region));
                } else if (!first) {
                    first = region.error();
                }
            }
            if (ok) continue;
            if (const std::string meant = same_letters(where_.regions[i]); !meant.empty())
                add(item("regions", i), fmt::format("regions: no region of {} named {} (did you mean {}?)",
                                                    join_or(searched()), printable(where_.regions[i], 40), meant));
            else if (const std::string owner = cloud_of_region(where_.regions[i]); !owner.empty())
                add(item("regions", i),
                    fmt::format("regions: {} is a region of {}, but only {} may be used", where_.regions[i], owner,
                                join_or(searched())),
                    fmt::format("write cloud: {}, or take the region out", owner));
            else if (first && is_a_place(where_.regions[i]))
                add(item("regions", i),
                    fmt::format("regions: no region of {} named {}", join_or(searched()),
                                printable(where_.regions[i], 40)),
                    fmt::format("it is where several lie: write residency: {} for any of them",
                                lower(where_.regions[i])));
            else if (first)
                add(item("regions", i), "regions: " + first->message(),
                    "stoker catalog regions lists them; without regions all of them are compared");
            else if (!unknown_cloud_)
                add(item("regions", i), fmt::format("regions: {} has no regions", join_or(where_.clouds)),
                    "take regions out");
        }
        where_.regions = std::move(found);
    }

    void floor() {
        if (!where_.on_demand_replicas) return;
        const SourcePos pos = place_of(where_.at, "on_demand_replicas", workload_.pos);
        if (workload_.kind != WorkloadKind::inference)
            add(pos, "where.on_demand_replicas: only a service has replicas", "take it out");
        else if (where_.spot != SpotUse::allowed)
            add(pos,
                fmt::format("where.on_demand_replicas: a floor under spot capacity, and where.spot is {}",
                            to_string(where_.spot)),
                "write spot: allowed");
    }

    // Data and users may be in any cloud, whatever is planned; the planned ones are looked at first.
    void lies_in(std::string& region, std::string& cloud, const std::map<std::string, SourcePos>& at,
                 std::string_view key) {
        if (region.empty()) return;
        Names clouds = searched();
        for (const NodeType& type : catalog_.node_types())
            if (!contains(clouds, type.cloud)) clouds.push_back(type.cloud);
        std::optional<Error> first;
        for (const std::string& one : clouds) {
            if (catalog_.regions_of(one).empty()) continue;
            auto found = catalog_.find_region(one, region);
            if (found) {
                region = std::move(*found);
                cloud = one;
                return;
            }
            if (!first) first = found.error();
        }
        add(place_of(at, "region", {}),
            fmt::format("{}: no region named {}{}", key, printable(region, 40),
                        first && first->message().find("did you mean") != std::string::npos
                            ? first->message().substr(first->message().find(" (did you mean"))
                            : ""),
            "stoker catalog regions lists them");
        region.clear();
    }

    // useast for eastus: the parts of the name in another order.
    std::string same_letters(std::string_view word) const {
        const auto sorted = [](std::string letters) {
            std::sort(letters.begin(), letters.end());
            return letters;
        };
        const std::string letters = sorted(fold_name(word));
        for (const std::string& cloud : searched()) {
            for (const std::string& region : catalog_.regions_of(cloud))
                if (sorted(fold_name(region)) == letters) return region;
        }
        return {};
    }

    std::string cloud_of_region(std::string_view word) const {
        for (const NodeType& type : catalog_.node_types()) {
            if (!catalog_.regions_of(type.cloud).empty() && catalog_.find_region(type.cloud, word)) return type.cloud;
        }
        return {};
    }

    void residency() {
        Names found;
        for (std::size_t i = 0; i < where_.residency.size(); ++i) {
            const std::string& word = where_.residency[i];
            const std::string folded = fold_name(word);
            const auto at = std::find_if(geographies().begin(), geographies().end(),
                                         [&](const std::string& name) { return fold_name(name) == folded; });
            if (at != geographies().end()) {
                found.push_back(*at);
                continue;
            }
            constexpr std::array<std::pair<std::string_view, std::string_view>, 6> other = {
                {{"usa", "us"},
                 {"europeanunion", "eu"},
                 {"apac", "asia pacific"},
                 {"uae", "united arab emirates"},
                 {"asia", "asia pacific"},
                 {"greatbritain", "uk"}}};
            const auto alias =
                std::find_if(other.begin(), other.end(), [&](const auto& pair) { return pair.first == folded; });
            if (alias != other.end()) {
                found.emplace_back(alias->second);
                continue;
            }
            std::string region;
            for (const std::string& cloud : searched()) {
                if (catalog_.regions_of(cloud).empty()) continue;
                if (auto exact = catalog_.find_region(cloud, word)) region = *exact;
            }
            if (!region.empty())
                found.push_back(std::move(region));
            else
                add(item("residency", i),
                    fmt::format("residency: no geography named '{}'{}", printable(word, 40),
                                did_you_mean(word, geographies())),
                    "a geography such as eu, us, uk or switzerland, or a region");
        }
        where_.residency = std::move(found);
    }

    Names searched() const {
        if (where_.clouds.empty()) return {"azure"};
        if (!contains(where_.clouds, "any")) return where_.clouds;
        Names all;
        for (const NodeType& type : catalog_.node_types()) {
            if (!contains(all, type.cloud)) all.push_back(type.cloud);
        }
        return all;
    }

    WorkloadForm& workload_;
    WhereSpec& where_;
    const Catalog& catalog_;
    Problems& problems_;
    bool unknown_cloud_ = false, unknown_accelerator_ = false;
};

}  // namespace

bool WhereSpec::takes(const NodeType& type) const {
    return !gpus || (type.whole_gpus() > 0 && std::fmod(*gpus, type.whole_gpus()) == 0);
}

std::optional<int> WhereSpec::pinned_nodes(const NodeType& type) const {
    if (nodes) return static_cast<int>(std::lround(*nodes));
    if (gpus && type.whole_gpus() > 0) return static_cast<int>(std::lround(*gpus / type.whole_gpus()));
    return std::nullopt;
}

bool matches_accelerator(std::string_view word, const Accelerator& accelerator) {
    auto folded = [](std::string_view text) {
        std::string out;
        for (char c : lower(text))
            if (c != '-' && c != '_' && c != ' ') out += c;
        return out;
    };
    const std::string wanted = folded(word);
    if (wanted.empty()) return false;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const std::string name = folded(accelerator.name);
    // A10 is no beginning of A100, nor L4 of L40S: a number is named whole.
    const bool whole = name.size() == wanted.size() || !is_digit(wanted.back()) ||
                       !is_digit(name[std::min(name.size() - 1, wanted.size())]);
    if ((name.starts_with(wanted) && whole) || folded(accelerator.vendor) == wanted) return true;
    return std::any_of(accelerator.aliases.begin(), accelerator.aliases.end(),
                       [&](const std::string& alias) { return folded(alias) == wanted; });
}

void resolve_where(WorkloadForm& workload, const Catalog& catalog, const FileLoader& load, Problems& problems) {
    Places(workload, catalog, problems).resolve(load);
}

}  // namespace stoker
