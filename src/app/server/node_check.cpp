#include "app/server/node_check.h"

namespace stoker {

NodeCheckFunction node_check([[maybe_unused]] const std::string& doctor_token) {
    return {};
}

}  // namespace stoker
