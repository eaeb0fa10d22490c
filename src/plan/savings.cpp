#include "plan/savings.h"

#include "catalog/savings_plan.h"

namespace stoker {

bool by_savings_plan(const Provenance& price) {
    return price.source.ends_with(kSavingsPlan);
}

}  // namespace stoker
