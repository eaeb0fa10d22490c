#include "plan/geography.h"

#include <array>

#include "base/text.h"

namespace stoker {
namespace {

struct Place {
    std::string_view part, country, geography;
    bool eu = false;
};
// The first part that occurs in the region's name decides, so longer words stand before the shorter ones they contain.
constexpr std::array<Place, 48> kPlaces{{
    {"usgov", "United States Government", "United States Government"},
    {"australia", "Australia", "Australia"},
    {"brazil", "Brazil", "South America"},
    {"canada", "Canada", "Canada"},
    {"northamerica", "Canada", "Canada"},
    {"chile", "Chile", "South America"},
    {"mexico", "Mexico", "Mexico"},
    {"southamerica", "Brazil", "South America"},
    {"switzerland", "Switzerland", "Europe"},
    {"uksouth", "United Kingdom", "Europe"},
    {"ukwest", "United Kingdom", "Europe"},
    {"norway", "Norway", "Europe"},
    {"france", "France", "Europe", true},
    {"germany", "Germany", "Europe", true},
    {"italy", "Italy", "Europe", true},
    {"poland", "Poland", "Europe", true},
    {"spain", "Spain", "Europe", true},
    {"sweden", "Sweden", "Europe", true},
    {"austria", "Austria", "Europe", true},
    {"belgium", "Belgium", "Europe", true},
    {"denmark", "Denmark", "Europe", true},
    {"finland", "Finland", "Europe", true},
    {"northeurope", "Ireland", "Europe", true},
    {"westeurope", "Netherlands", "Europe", true},
    {"europe-west2", "United Kingdom", "Europe"},
    {"europe-west6", "Switzerland", "Europe"},
    {"europe", "European Union", "Europe", true},
    {"eu-west-2", "United Kingdom", "Europe"},
    {"eu-", "European Union", "Europe", true},
    {"japan", "Japan", "Asia Pacific"},
    {"korea", "Korea", "Asia Pacific"},
    {"india", "India", "Asia Pacific"},
    {"indonesia", "Indonesia", "Asia Pacific"},
    {"malaysia", "Malaysia", "Asia Pacific"},
    {"newzealand", "New Zealand", "Asia Pacific"},
    {"singapore", "Singapore", "Asia Pacific"},
    {"taiwan", "Taiwan", "Asia Pacific"},
    {"eastasia", "Hong Kong", "Asia Pacific"},
    {"southeastasia", "Singapore", "Asia Pacific"},
    {"asia", "Asia", "Asia Pacific"},
    {"ap-", "Asia", "Asia Pacific"},
    {"israel", "Israel", "Middle East"},
    {"qatar", "Qatar", "Middle East"},
    {"uae", "United Arab Emirates", "Middle East"},
    {"me-", "Middle East", "Middle East"},
    {"southafrica", "South Africa", "Africa"},
    {"africa", "South Africa", "Africa"},
    {"us", "United States", "United States"},
}};

const Place* place_of(std::string_view region) {
    const std::string name = lower(region);
    for (const Place& place : kPlaces)
        if (name.find(place.part) != std::string::npos) return &place;
    return nullptr;
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

}  // namespace stoker
