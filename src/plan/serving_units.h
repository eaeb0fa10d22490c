// What a service's work is counted in: tokens only where tokens are made.
#pragma once

#include <string>

#include "sizing/serving.h"

namespace stoker {

struct ServiceUnits {
    std::string price;      // "M output tokens", "1k images", "1k sequences", "hour of audio"
    double price_each = 0;  // of those in one request
    std::string rate;       // "output tokens", "images", ...: per second
    double rate_each = 0;
};
ServiceUnits units_of(const Workload& workload, const ServingSetup& setup);

}  // namespace stoker
