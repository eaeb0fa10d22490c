#include "readings/forgotten.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/api_time.h"
#include "base/text.h"
#include "catalog/names.h"
#include "readings/tool_reader.h"

namespace stoker {
namespace {

constexpr double kHoursPerMonth = 730;
constexpr std::int64_t kDayUs = std::int64_t{86'400} * 1'000'000;

// Of tags, in lower case without what divides their words.
constexpr std::array<std::string_view, 11> kOwners = {"owner",      "createdby",  "contact",    "team",
                                                      "user",       "maintainer", "creator",    "requester",
                                                      "costcenter", "costcentre", "responsible"};
constexpr std::array<std::string_view, 7> kEnds = {"expires",        "expiry",      "expireson", "expiresat",
                                                   "expirationdate", "deleteafter", "endsat"};
// By which the files that Stoker renders name what they are for.
constexpr std::array<std::string_view, 3> kWork = {"workload", "run", "endpoint"};

std::string plain_key(std::string_view key) {
    std::string out = lower(key);
    std::erase_if(out, [](char c) { return c == '-' || c == '_' || c == ' ' || c == '.' || c == ':' || c == '/'; });
    return out;
}
template <std::size_t N>
const std::string* tag_of(const CloudThing& thing, const std::array<std::string_view, N>& keys) {
    for (const auto& [key, value] : thing.tags)
        if (std::find(keys.begin(), keys.end(), plain_key(key)) != keys.end() && !trim(value).empty()) return &value;
    return nullptr;
}
bool is_ours(const CloudThing& thing) {
    for (const auto& [key, value] : thing.tags)
        if (plain_key(key) == "managedby" && equals_ignore_case(trim(value), "stoker")) return true;
    return false;
}

bool has_gpu(const CloudThing& thing, const Catalog& catalog) {
    const auto at = catalog.find_node_type(thing.type);
    return at && catalog.node_types()[static_cast<std::size_t>(*at)].has_gpu();
}

std::string key_of(const CloudThing& thing) {
    return thing.cloud + " " + lower(thing.id.empty() ? thing.name : thing.id);
}

class Judge {
public:
    Judge(const Catalog& catalog, const HeldNames* held, std::int64_t now_us)
        : catalog_(catalog), held_(held), now_us_(now_us) {}

    // A group hands its mark on to what is in it.
    void know_group(const CloudThing& group) { groups_[place_of_group(group)] = &group; }

    bool is_held(const CloudThing& thing) const {
        if (held_ == nullptr) return false;
        for (const std::string& name : {thing.name, thing.host})
            if (!name.empty() && held_->nodes.contains(lower(name))) return true;
        const std::string* work = marked(thing) ? work_of(thing) : nullptr;
        return work != nullptr && held_->work.contains(lower(*work));
    }

    std::vector<WhyForgotten> why(const CloudThing& thing) const {
        std::vector<WhyForgotten> out;
        if (thing.state == MachineState::gone) return out;
        if (const std::string* end = tag_of(thing, kEnds)) {
            const auto at = parse_rfc3339(trim(*end));
            if (at && *at <= now_us_)
                out.push_back(
                    {"past-its-end", fmt::format("its tag says that it was to end: {}", printable(*end, 40)), true});
        }
        state(thing, out);
        if (marked(thing)) ours(thing, out);
        if (out.empty() && thing.kind == ThingKind::machine && thing.state != MachineState::parked &&
            has_gpu(thing, catalog_) && owner_of(thing) == nullptr)
            out.push_back({"no-owner", "a machine with GPUs, and no tag says whose it is", false});
        else if (!out.empty() && owner_of(thing) == nullptr)
            out.push_back({"no-owner", "no tag says whose it is", false});
        return out;
    }

private:
    static std::string place_of_group(const CloudThing& thing) { return lower(thing.account + "/" + thing.group); }
    const CloudThing* group_of(const CloudThing& thing) const {
        const auto found = groups_.find(place_of_group(thing));
        return found == groups_.end() ? nullptr : found->second;
    }
    bool marked(const CloudThing& thing) const {
        const CloudThing* group = group_of(thing);
        return is_ours(thing) || (group != nullptr && is_ours(*group));
    }
    template <std::size_t N>
    const std::string* tag_here_or_above(const CloudThing& thing, const std::array<std::string_view, N>& keys) const {
        if (const std::string* own = tag_of(thing, keys)) return own;
        const CloudThing* group = group_of(thing);
        return group == nullptr ? nullptr : tag_of(*group, keys);
    }
    const std::string* owner_of(const CloudThing& thing) const { return tag_here_or_above(thing, kOwners); }
    const std::string* work_of(const CloudThing& thing) const { return tag_here_or_above(thing, kWork); }

    void ours(const CloudThing& thing, std::vector<WhyForgotten>& out) const {
        if (held_ == nullptr) return;
        const std::string* work = work_of(thing);
        out.push_back(
            {"no-run",
             work == nullptr
                 ? "its tag says managed-by=stoker, and neither a node nor a run here is of its name"
                 : fmt::format("its tags say managed-by=stoker for {}, and no run or endpoint here that has not "
                               "ended is called so",
                               printable(*work, 80)),
             false});
    }

    void state(const CloudThing& thing, std::vector<WhyForgotten>& out) const {
        switch (thing.kind) {
            case ThingKind::machine:
                if (thing.state == MachineState::stopped)
                    out.push_back({"stopped-and-billed",
                                   "stopped from inside and still allocated: it does nothing and is paid for in full",
                                   true});
                if (thing.state == MachineState::parked)
                    out.push_back(
                        {"parked",
                         fmt::format("{}: nobody uses it, and its disks are paid for", printable(thing.said, 40)),
                         false});
                break;
            case ThingKind::disk:
                if (thing.used == false)
                    out.push_back({"detached", fmt::format("{}: no machine has it", printable(thing.said, 40)), true});
                break;
            case ThingKind::address:
                if (thing.used == false) out.push_back({"unassociated", "nothing is reached by it", true});
                break;
            case ThingKind::interface:
                if (thing.used == false)
                    out.push_back({"unattached",
                                   "no machine has it; it costs nothing and holds an address of its network", true});
                break;
            case ThingKind::node_pool: pool(thing, out); break;
            case ThingKind::group:
            case ThingKind::other: break;
        }
    }

    void pool(const CloudThing& thing, std::vector<WhyForgotten>& out) const {
        if (thing.system || thing.count == 0 || equals_ignore_case(thing.said, "Stopped") || !has_gpu(thing, catalog_))
            return;
        if (!thing.scales)
            out.push_back({"never-empties",
                           fmt::format("{} with GPUs whatever runs: it has no autoscaler",
                                       counted(static_cast<std::size_t>(thing.count), "node")),
                           false});
        else if (thing.least > 0)
            out.push_back({"never-empties",
                           fmt::format("its autoscaler keeps {} with GPUs though nothing runs (min-count {})",
                                       counted(static_cast<std::size_t>(thing.least), "node"), thing.least),
                           false});
    }

    const Catalog& catalog_;
    const HeldNames* held_;
    const std::int64_t now_us_;
    std::map<std::string, const CloudThing*> groups_;
};

// ------------------------------------------------------------------ what it costs

void price_machine(ForgottenThing& found, const Catalog& catalog) {
    const CloudThing& thing = found.thing;
    const auto at = catalog.find_node_type(thing.type);
    if (!at || catalog.node_types()[static_cast<std::size_t>(*at)].cloud != thing.cloud) {
        found.price_note = thing.type.empty()
                               ? "the list does not say its size"
                               : fmt::format("{} is no size of the catalogue", printable(thing.type, 60));
        return;
    }
    const Pricing pricing = thing.spot ? Pricing::spot : Pricing::on_demand;
    const Price* price = catalog.price(*at, thing.region, thing.windows ? "windows" : "linux", pricing);
    if (price == nullptr) {
        found.price_note = fmt::format("the catalogue has no {} price of {} in {}", to_string(pricing),
                                       printable(thing.type, 60), printable(thing.region, 40));
        return;
    }
    const double count = thing.kind != ThingKind::node_pool ? 1
                         : thing.scales                     ? static_cast<double>(thing.least)
                                                            : static_cast<double>(thing.count);
    found.usd_per_month = price->per_hour.dollars() * kHoursPerMonth * count;
    found.price_note = fmt::format(
        "{} {} x {:g} h{}{}", format_usd(price->per_hour), thing.spot ? "an hour as spot" : "an hour", kHoursPerMonth,
        count > 1 ? fmt::format(" x {:g}", count) : "", price->estimate ? ", an estimate" : "");
}

void price_disk(ForgottenThing& found, const Catalog& catalog) {
    const CloudThing& thing = found.thing;
    const std::string kind = thing.type.starts_with("Premium_")       ? "premium-ssd"
                             : thing.type.starts_with("StandardSSD_") ? "standard-ssd"
                                                                      : "";
    const DiskTier* tier = nullptr;
    for (const DiskTier& each : catalog.disks())
        if (each.kind == kind && each.gib >= thing.gib && (tier == nullptr || each.gib < tier->gib)) tier = &each;
    if (thing.cloud == "azure" && tier != nullptr && tier->usd_per_month > 0) {
        found.usd_per_month = tier->usd_per_month;
        found.price_note = fmt::format("{}, billed whole, as listed for {}", tier->name, tier->price_region);
        return;
    }
    found.price_note = fmt::format("the catalogue has no price of {}{}", printable(thing.type, 60),
                                   tier != nullptr ? fmt::format(" {}", tier->name) : "");
}

void price(ForgottenThing& found, const Catalog& catalog) {
    switch (found.thing.kind) {
        case ThingKind::machine:
            if (found.thing.state == MachineState::parked) {
                found.price_note = "its disks alone: see the list of disks";
                return;
            }
            return price_machine(found, catalog);
        case ThingKind::node_pool: return price_machine(found, catalog);
        case ThingKind::disk: return price_disk(found, catalog);
        case ThingKind::address: found.price_note = "the catalogue has no price of addresses"; return;
        case ThingKind::interface:
            found.usd_per_month = 0;
            found.price_note = "free by itself";
            return;
        case ThingKind::group: found.price_note = "what is in it"; return;
        case ThingKind::other: found.price_note = "the catalogue has no price of such things"; return;
    }
}

// ------------------------------------------------------------------ what removes it

using Words = std::vector<std::string>;

Words of_azure(const CloudThing& thing) {
    Words words = {"az"};
    const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
    if (thing.group.empty()) return {};
    switch (thing.kind) {
        case ThingKind::machine: add({"vm", "delete", "-g", thing.group, "-n", thing.name, "--yes"}); break;
        case ThingKind::disk: add({"disk", "delete", "-g", thing.group, "-n", thing.name, "--yes"}); break;
        case ThingKind::address: add({"network", "public-ip", "delete", "-g", thing.group, "-n", thing.name}); break;
        case ThingKind::interface: add({"network", "nic", "delete", "-g", thing.group, "-n", thing.name}); break;
        case ThingKind::group: add({"group", "delete", "-n", thing.name, "--yes"}); break;
        case ThingKind::node_pool:
            if (thing.cluster.empty()) return {};
            add({"aks", "nodepool", "delete", "-g", thing.group, "--cluster-name", thing.cluster, "-n", thing.name});
            break;
        case ThingKind::other:
            if (thing.id.empty()) return {};
            add({"resource", "delete", "--ids", thing.id});
            return words;
    }
    if (!thing.account.empty()) add({"--subscription", thing.account});
    return words;
}

Words of_aws(const CloudThing& thing) {
    if (thing.region.empty()) return {};
    Words words = {"aws", "ec2"};
    const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
    if (thing.kind == ThingKind::machine) add({"terminate-instances", "--instance-ids", thing.id});
    if (thing.kind == ThingKind::disk) add({"delete-volume", "--volume-id", thing.id});
    if (thing.kind == ThingKind::address && !thing.id.empty()) add({"release-address", "--allocation-id", thing.id});
    if (thing.kind == ThingKind::address && thing.id.empty()) add({"release-address", "--public-ip", thing.name});
    add({"--region", thing.region});
    return words;
}

Words of_google(const CloudThing& thing) {
    Words words = {"gcloud", "compute"};
    const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
    if (thing.kind == ThingKind::machine) add({"instances"});
    if (thing.kind == ThingKind::disk) add({"disks"});
    if (thing.kind == ThingKind::address) add({"addresses"});
    if (words.size() == 2) return {};
    add({"delete", thing.name});
    if (!thing.zone.empty())
        add({"--zone", thing.zone});
    else if (!thing.region.empty())
        add({"--region", thing.region});
    else
        add({"--global"});
    if (!thing.account.empty()) add({"--project", thing.account});
    return words;
}

Words removal(const CloudThing& thing) {
    Words words = thing.cloud == "azure" ? of_azure(thing) : thing.cloud == "aws" ? of_aws(thing) : of_google(thing);
    // A name that is an option to the program would be taken for one.
    for (const std::string& value : {thing.name, thing.id, thing.group, thing.cluster, thing.zone, thing.region})
        if (value.starts_with('-')) return {};
    return words;
}

void add_notes(const std::vector<CloudThing>& things, const HeldNames* held, bool goes_on, ForgottenReport& out) {
    std::map<ThingKind, std::size_t> only_named;
    std::size_t states = 0, pools = 0;
    bool azure_groups = false, marks = false;
    for (const CloudThing& thing : things) {
        only_named[thing.kind] += thing.detailed || thing.kind == ThingKind::other ? 0 : 1;
        states += thing.detailed && thing.kind == ThingKind::machine && thing.said.empty() ? 1 : 0;
        pools += thing.kind == ThingKind::node_pool && thing.count > 0 ? 1 : 0;
        azure_groups = azure_groups || thing.kind == ThingKind::group;
        marks = marks || is_ours(thing);
    }
    for (const auto& [kind, words] :
         {std::pair(ThingKind::machine, std::pair("machine", "az vm list -d -o json")),
          std::pair(ThingKind::disk, std::pair("disk", "az disk list -o json")),
          std::pair(ThingKind::address, std::pair("address", "az network public-ip list -o json")),
          std::pair(ThingKind::interface, std::pair("interface", "az network nic list -o json"))})
        if (only_named[kind] > 0)
            out.notes.push_back(fmt::format("{} only named, not described: add {}",
                                            counted(only_named[kind], words.first), words.second));
    if (states > 0)
        out.notes.push_back(
            fmt::format("of {} it is not said whether it runs: az vm list needs -d", counted(states, "machine")));
    if (pools > 0)
        out.notes.push_back(
            "whether anything runs on the nodes of a pool is not in these lists: kubectl get pods -A -o wide");
    if (!azure_groups &&
        std::any_of(things.begin(), things.end(), [](const CloudThing& each) { return each.cloud == "azure"; }))
        out.notes.push_back("the files that stoker renders mark the group: add az group list -o json");
    if (held == nullptr && marks)
        out.notes.push_back(
            "no server was asked which of those marked managed-by=stoker it still needs: --server URL, or --folder "
            "DIR");
    if (goes_on) out.notes.push_back("a list goes on behind its end: take all pages");
}

}  // namespace

bool ForgottenThing::sure() const {
    return std::any_of(why.begin(), why.end(), [](const WhyForgotten& each) { return each.sure; });
}

ForgottenReport find_forgotten(std::vector<CloudList> lists, const Catalog& catalog, const HeldNames* held,
                               std::int64_t now_us) {
    // The one that says most of each; a second list of the same kind is a newer one as likely as an older.
    std::map<std::string, CloudThing> by_id;
    bool goes_on = false;
    for (CloudList& list : lists) {
        goes_on = goes_on || list.goes_on;
        for (CloudThing& thing : list.things) {
            const auto [at, is_new] = by_id.emplace(key_of(thing), thing);
            if (!is_new && thing.detailed && !at->second.detailed) {
                thing.tags.merge(at->second.tags);
                if (thing.made_us == 0) thing.made_us = at->second.made_us;
                at->second = std::move(thing);
            } else if (!is_new && at->second.made_us == 0) {
                at->second.made_us = thing.made_us;
            }
        }
    }
    std::vector<CloudThing> things;
    things.reserve(by_id.size());
    for (auto& [id, thing] : by_id) things.push_back(std::move(thing));
    Judge judge(catalog, held, now_us);
    for (const CloudThing& thing : things)
        if (thing.kind == ThingKind::group) judge.know_group(thing);
    ForgottenReport out{.looked_at = things.size()};
    for (const CloudThing& thing : things) {
        if (judge.is_held(thing)) {
            ++out.held;
            continue;
        }
        ForgottenThing found{.thing = thing, .why = judge.why(thing)};
        if (found.why.empty()) continue;
        if (thing.made_us > 0 && thing.made_us <= now_us) found.age_days = (now_us - thing.made_us) / kDayUs;
        price(found, catalog);
        found.remove = removal(thing);
        if (!found.usd_per_month) ++out.unpriced;
        (found.sure() ? out.usd_per_month : out.perhaps_usd_per_month) += found.usd_per_month.value_or(0);
        out.things.push_back(std::move(found));
    }
    std::stable_sort(out.things.begin(), out.things.end(), [](const ForgottenThing& a, const ForgottenThing& b) {
        if (a.sure() != b.sure()) return a.sure();
        return a.usd_per_month.value_or(0) > b.usd_per_month.value_or(0);
    });
    add_notes(things, held, goes_on, out);
    return out;
}

}  // namespace stoker
