#include "validate/unmeasured.h"

#include <cmath>

#include "plan/chance.h"
#include "plan/evidence.h"

namespace stoker::validate {

Range wider_where_unmeasured(const Range& own, const Catalog& catalog, int accelerator, std::string_view kind) {
    if (accelerator < 0) return own;
    const Accelerator& device = catalog.accelerators()[static_cast<std::size_t>(accelerator)];
    if (measured_rows(kind, &device) >= catalog.constant_or_die("device_rows_wanted")) return own;
    constexpr double kNinetieth = 1.2815515655446004;  // of the normal distribution
    const double factor = std::exp(kNinetieth * catalog.constant_or_die("sigma_device_no_rows"));
    return combined(own, {1 / factor, 1, factor});
}

}  // namespace stoker::validate
