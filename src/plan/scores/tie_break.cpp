// The order of candidates. Everything after the objective only decides ties, and the names at the end make the order
// total.
#include <tuple>

#include "plan/option.h"

namespace stoker {

std::int64_t score(const Option& option, Minimize minimize) {
    switch (minimize) {
        case Minimize::cost: return score_cost(option);
        case Minimize::time: return score_time(option);
        case Minimize::energy: return score_energy(option);
    }
    return 0;
}

bool ranks_before(const Option& a, const Option& b, Minimize minimize) {
    auto key = [minimize](const Option& o) {
        return std::tuple(o.preference, score(o, minimize), score_cost(o), score_time(o), -o.year, o.nodes, o.name,
                          o.region, static_cast<int>(o.pricing), o.point);
    };
    return key(a) < key(b);
}

}  // namespace stoker
