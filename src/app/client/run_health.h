// A run's troubles by layer: what `stoker explain` found, sorted into network, device and model, so that the network is
// looked at before a device is blamed, and both before the model. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/health.h"
#include "base/style.h"
#include "server/views.h"
#include "server/views_nodes.h"
#include "server/views_observe.h"

namespace stoker {

// One check for each diagnosis: found ones fail (or warn, where they cost little), those that were ruled out pass, and
// what nobody could know is skipped. One of a server that knows more than this program is told last, and as that.
HealthReport health_of_explanation(const api::ExplanationView& explanation);

// What the server's last checks of the nodes of a run's last attempt say, for nodes that have an address to be checked
// at; of those that never were that is said, with the command.
HealthReport health_of_nodes(const api::RunView& view, const std::vector<api::NodeView>& nodes);

// Both, layer by layer; of one layer what the run itself shows comes first, and of that the dearest.
HealthReport by_layers(HealthReport of_run, HealthReport of_node);

struct RunCost {
    std::optional<double> per_hour_usd;  // of the whole run
    double share = 0;                    // of the step that the blamed diagnosis takes
    bool goes_on = false;
};
RunCost cost_of_trouble(const api::RunView& view, const api::ExplanationView& explanation, const HealthCheck* blamed);

// The last lines: who is to blame, what it costs, the fix.
std::string conclusion_text(const api::RunView& view, const HealthCheck* blamed, const RunCost& cost,
                            const Style& style);

}  // namespace stoker
