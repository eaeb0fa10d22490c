// Which part of the world a cloud region lies in, from its name. Used for residency; unknown regions satisfy no
// residency rule.
#pragma once

#include <string_view>

namespace stoker {

std::string_view geography_of(std::string_view region);  // "Europe", "United States", ...; empty when unknown
// True when the wanted place (a geography, a country, "eu", or a region itself) contains the region.
bool same_geography(std::string_view wanted, std::string_view region);

}  // namespace stoker
