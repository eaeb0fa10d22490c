#include "catalog/geography.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker {
namespace {

struct Place {
    std::string_view part, country, geography;
    bool eu = false;
};

// Longer parts first: they decide before the shorter ones that they contain.
const std::vector<Place>& places() {
    static const std::vector<Place>* const all = [] {
        auto* read = new std::vector<Place>;
        const auto table = Tsv::read(embedded_bytes("catalog/places.tsv"), "data/catalog/places.tsv");
        if (!table) return read;
        const auto part = table->column("part"), country = table->column("country"),
                   geography = table->column("geography"), eu = table->column("eu");
        if (!part || !country || !geography || !eu) return read;
        for (std::size_t i = 0; i < table->rows(); ++i)
            read->push_back(
                {table->at(i, *part), table->at(i, *country), table->at(i, *geography), table->at(i, *eu) == "yes"});
        std::stable_sort(read->begin(), read->end(),
                         [](const Place& a, const Place& b) { return a.part.size() > b.part.size(); });
        return read;
    }();
    return *all;
}

const Place* place_of(std::string_view region) {
    const std::string name = lower(region);
    for (const Place& place : places())
        if (name.find(place.part) != std::string::npos) return &place;
    return nullptr;
}

using AccessTable = std::map<std::pair<std::string, std::string>, RegionAccess>;  // cloud, region

const AccessTable& access_table() {
    static const AccessTable* const all = [] {
        auto* read = new AccessTable;
        const auto table = Tsv::read(embedded_bytes("catalog/region_access.tsv"), "data/catalog/region_access.tsv");
        if (!table) return read;
        const auto cloud = table->column("cloud"), region = table->column("region"), access = table->column("access");
        if (!cloud || !region || !access) return read;
        for (std::size_t i = 0; i < table->rows(); ++i)
            (*read)[{std::string(table->at(i, *cloud)), std::string(table->at(i, *region))}] =
                table->at(i, *access) == "restricted" ? RegionAccess::restricted : RegionAccess::well_known;
        return read;
    }();
    return *all;
}

bool has_well_known(std::string_view cloud) {
    return std::any_of(access_table().begin(), access_table().end(),
                       [&](const auto& row) { return row.first.first == cloud; });
}

}  // namespace

std::string_view geography_of(std::string_view region) {
    const Place* place = place_of(region);
    return place != nullptr ? place->geography : std::string_view();
}

bool same_geography(std::string_view wanted, std::string_view region) {
    if (equals_ignore_case(wanted, region)) return true;
    const Place* place = place_of(region);
    if (place == nullptr) return false;
    if (equals_ignore_case(wanted, "eu") || equals_ignore_case(wanted, "european union")) return place->eu;
    if (equals_ignore_case(wanted, "us") || equals_ignore_case(wanted, "usa")) wanted = "United States";
    if (equals_ignore_case(wanted, "uk")) wanted = "United Kingdom";
    if (equals_ignore_case(wanted, "asia") || equals_ignore_case(wanted, "apac")) wanted = "Asia Pacific";
    return equals_ignore_case(wanted, place->country) || equals_ignore_case(wanted, place->geography);
}

bool is_place(std::string_view wanted) {
    return place_of(wanted) != nullptr || std::any_of(places().begin(), places().end(), [&](const Place& place) {
               return same_geography(wanted, place.part);
           });
}

RegionAccess access_of(std::string_view cloud, std::string_view region) {
    const auto found = access_table().find({std::string(cloud), std::string(region)});
    return found == access_table().end() ? RegionAccess::open : found->second;
}

int distance_from_home(std::string_view home, std::string_view cloud, std::string_view region, bool near) {
    const bool known = access_of(cloud, region) == RegionAccess::well_known || !has_well_known(cloud);
    if (home.empty()) return known ? 0 : 1;
    if (equals_ignore_case(home, region) || same_geography(home, region)) return 0;
    // Where home is a region, the rest of its part of the world is near enough for work that nobody waits for.
    const Place* place = place_of(home);
    const bool whole =
        place == nullptr || equals_ignore_case(home, place->country) || equals_ignore_case(home, place->geography);
    if (!whole && geography_of(region) == place->geography) return near ? 1 : 0;
    return known ? 2 : 3;
}

std::span<const RegionPriceRatio> region_price_ratios() {
    static const std::vector<RegionPriceRatio>* const all = [] {
        auto* read = new std::vector<RegionPriceRatio>;
        const auto table =
            Tsv::read(embedded_bytes("catalog/region_price_ratios.tsv"), "data/catalog/region_price_ratios.tsv");
        if (!table) return read;
        const auto cloud = table->column("cloud"), region = table->column("region"), low = table->column("low"),
                   high = table->column("high");
        if (!cloud || !region || !low || !high) return read;
        for (std::size_t i = 0; i < table->rows(); ++i) {
            const auto least = table->number(i, *low), most = table->number(i, *high);
            if (least && most && *least > 0 && *most >= *least)
                read->push_back({table->at(i, *cloud), table->at(i, *region), *least, *most});
        }
        return read;
    }();
    return *all;
}

}  // namespace stoker
