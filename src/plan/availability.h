// What a list price does not tell: devices that a cloud gives out by reservation or by agreement, not at the push of a
// button (data/catalog/availability.tsv).
#pragma once

#include <string>
#include <string_view>

namespace stoker {

struct Scarce {
    std::string how, source;  // how one comes by it
};

// Null: as far as is known it can be launched on demand, given quota.
const Scarce* scarce(std::string_view cloud, std::string_view accelerator);

}  // namespace stoker
