#include "server/node_check.h"

#include "doctor/health_baseline.h"
#include "doctor/health_check.h"
#include "doctor/this_machine.h"

namespace stoker {

NodeCheckFunction node_check(const std::string& doctor_token, const std::string& folder, const std::string& size) {
    return [doctor_token, folder, size](const NodeInfo& node, HealthLevel level, Deadline deadline) {
        HealthTarget target;
        target.node = node;
        target.token = doctor_token;
        if (node.link_bytes_per_s) {
            target.link_bytes_per_s = static_cast<double>(*node.link_bytes_per_s);
            target.link_source = "ethernet_gbps of " + node.name;
        }
        if (node.doctor.empty()) {  // this machine, or a part of it
            target.folder = folder;
            target.size = size;
            if (const auto path = this_machine_path()) add_usual(*path, discover_machine(), target);
        } else {  // of a machine elsewhere only its link can be looked at from here
            target.peers = {node.doctor};
            target.device = false;
        }
        return check_node(target, level, deadline);
    };
}

}  // namespace stoker
