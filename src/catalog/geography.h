// Which part of the world a cloud region lies in, from its name, whether ordinary subscriptions may use it, and what it
// costs beside others. Unknown regions satisfy no residency rule. The tables are data/catalog/places.tsv,
// region_access.tsv and region_price_ratios.tsv.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

std::string_view geography_of(std::string_view region);  // "Europe", "United States", ...; empty when unknown
// True when the wanted place (a geography, a country, "eu", or a region itself) contains the region.
bool same_geography(std::string_view wanted, std::string_view region);
bool is_place(std::string_view wanted);  // some region could be in it

enum class RegionAccess : std::uint8_t {
    open,        // nothing is said of it
    well_known,  // where people start: large, and open to ordinary subscriptions
    restricted   // only for those who asked and were let in
};
RegionAccess access_of(std::string_view cloud, std::string_view region);
// How far a region is from what the user can be expected to want: 0 where `home` is (a region or a geography; empty: in
// a well-known region), more elsewhere. `near` asks for the very region, where home is one.
int distance_from_home(std::string_view home, std::string_view cloud, std::string_view region, bool near);

// List prices of a region as shares of those of the cloud's cheapest region: what is known where its price list is not.
struct RegionPriceRatio {
    std::string_view cloud, region;
    double low = 1, high = 1;
};
std::span<const RegionPriceRatio> region_price_ratios();

}  // namespace stoker
