#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s006(const File& file, Report& report) {
    each_with_resources(file, [&](const Container& container) {
        for (const Quantity& quantity : container.resources) {
            const Node* node = quantity.amount.node;
            if (!is_accelerator_resource(quantity.resource) || !node || !node->known || !node->is_scalar()) continue;
            const std::string_view text = trim(node->text);
            std::string what, then = "the API server refuses it";
            if (node->shape == Shape::null || text.empty()) {
                what = "has no value";
                then = "the API server reads it as 0, and the pod gets no device";
            } else {
                if (is_upper_placeholder(text)) continue;  // a template that sed fills in
                const auto amount = quantity_of(text);
                if (amount && std::floor(*amount) == *amount) continue;
                what = fmt::format("is {}, which is not a whole number", printable(text, 40));
            }
            const Span place = node->span.empty() ? node->key_span : node->span;
            report.add(*node->source, place, container.address,
                       fmt::format("the quantity of {} {}: {}", quantity.resource, what, then));
        }
    });
}

}  // namespace stoker::lint
