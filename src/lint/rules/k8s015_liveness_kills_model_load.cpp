#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s015(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        if (container.init || !accelerator_of(container) || !container.node) return;
        const Node* probe = container.node->find("livenessProbe");
        if (!probe || !probe->is_object() || container.node->find("startupProbe")) return;
        bool server = container.image.known() && is_server_image(container.image.text);
        for (const WordList& command : commands_of(container))
            for (const std::string_view name :
                 {"vllm", "sglang", "text-generation-launcher", "tritonserver", "trtllm-serve"})
                server |= has_word(*command.words, name);
        if (!server) return;
        // Defaults of the API: kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes.
        double numbers[3] = {0, 10, 3};
        const char* names[3] = {"initialDelaySeconds", "periodSeconds", "failureThreshold"};
        for (int i = 0; i < 3; ++i) {
            const Node* node = probe->find(names[i]);
            if (!node) continue;
            const auto number = Value::of(node).as_int();
            if (!number) return;
            numbers[i] = static_cast<double>(*number);
        }
        const double budget = numbers[0] + numbers[1] * numbers[2];
        if (budget >= report.options().liveness_budget_s) return;
        Finding* finding =
            report.add(*probe->source, probe->key_span, container.address,
                       fmt::format("the liveness probe gives the server {:.0f} s to load its model, then "
                                   "kills it and starts over",
                                   budget));
        if (finding) finding->advice = "add a startupProbe that waits for the model, or a longer initialDelaySeconds";
    });
}

}  // namespace stoker::lint
