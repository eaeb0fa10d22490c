#include "lint/script.h"

namespace stoker::lint {

Value Script::variable(std::string_view name) const {
    Value found;
    for (const Assignment& assignment : assignments) {
        if (assignment.name != name) continue;
        if (found.absent()) {
            found = assignment.value;
            if (assignment.appends) found.state = Value::State::unknown;
        } else if (!found.known() || !assignment.value.known() || found.text != assignment.value.text) {
            found.state = Value::State::unknown;
        }
    }
    return found;
}

}  // namespace stoker::lint
