// Whether a service has a node more than its load needs, where the file does not say.
#include <fmt/format.h>

#include "workload/workload_form.h"

namespace stoker {

void fill_survival(WorkloadForm& w, const Catalog& catalog) {
    if (w.kind != WorkloadKind::inference || w.objective.at.contains("survive_one_replica_lost")) return;
    if (w.where.nodes || w.where.gpus) {
        w.assumptions.push_back(
            "all nodes count and none is held in reserve, since their number is given; "
            "objective.survive_one_replica_lost: true holds one back");
        return;
    }
    const Constant* handful = catalog.constant("spare_node_clients");
    if (handful != nullptr && w.clients() > 0 && w.clients() <= handful->value) {
        w.objective.survive_one_replica_lost = false;
        w.assumptions.push_back(
            fmt::format("no node to spare for {:g} client{}: while one is down nothing of its share answers; "
                        "objective.survive_one_replica_lost: true plans it",
                        w.clients(), w.clients() == 1 ? "" : "s"));
    } else {
        w.assumptions.push_back(
            "with one node lost the middle estimate still keeps the limits; objective.survive_one_replica_lost: "
            "true keeps them as surely as before, false plans no node for it");
    }
}

}  // namespace stoker
