// Format: kubernetes/kubectl pkg/describe/describe.go (1.36): "Key:  value" by indentation, then a table of events
// whose columns are two blanks apart.
#include "readings/kube_describe.h"

#include <algorithm>

#include "base/text.h"

namespace stoker {
namespace {

struct DescribeLine {
    std::size_t indent = 0;
    std::string_view key, value;  // "Limits:" has no value
};
DescribeLine describe_line(std::string_view line) {
    DescribeLine found;
    found.indent = std::min(line.find_first_not_of(' '), line.size());
    line = trim(line);
    // Keys of resources hold colons only at their end: "nvidia.com/gpu:  8".
    const std::size_t colon = line.find(": "), end = line.ends_with(':') ? line.size() - 1 : std::string_view::npos;
    const std::size_t at = std::min(colon, end);
    if (at == std::string_view::npos) {
        found.value = line;
        return found;
    }
    found.key = line.substr(0, at);
    found.value = trim(line.substr(at + 1));
    if (found.value == "<none>" || found.value == "<unset>") found.value = {};
    return found;
}

// "sku=gpu:NoSchedule", "nvidia.com/gpu:NoSchedule op=Exists", "op=Exists", "... op=Exists for 300s".
KubeToleration described_toleration(std::string_view text) {
    KubeToleration toleration{.op = contains(text, "op=Exists") ? "Exists" : "Equal"};
    const std::string_view first = text.substr(0, text.find(' '));
    if (first.starts_with("op=")) return toleration;
    const std::size_t colon = first.rfind(':');
    if (colon != std::string_view::npos) toleration.effect = first.substr(colon + 1);
    const std::string_view pair = first.substr(0, colon);
    toleration.key = pair.substr(0, pair.find('='));
    if (pair.find('=') != std::string_view::npos) toleration.value = pair.substr(pair.find('=') + 1);
    return toleration;
}

// Type, reason, age, from, message: two blanks or more apart; the message may hold such itself.
bool described_event(std::string_view line, KubeEvent& event) {
    std::string_view rest = trim(line);
    std::string_view columns[4];
    for (std::string_view& column : columns) {
        const std::size_t gap = rest.find("  ");
        if (gap == std::string_view::npos) return false;
        column = rest.substr(0, gap);
        rest = trim(rest.substr(gap));
    }
    if ((columns[0] != "Normal" && columns[0] != "Warning") || rest.empty()) return false;
    event.reason = columns[1];
    event.source = columns[3];
    event.message = rest;
    return true;
}

class DescribeReader {
public:
    DescribeReader(std::string_view text, const std::string& file, KubeState& state)
        : lines_(text), file_(file), state_(state) {}

    void read() {
        std::size_t first = 0;
        for (std::size_t at = 0; at < lines_.size(); ++at) {
            if (!lines_[at].starts_with("Name:")) continue;
            if (at > first) object(first, at);
            first = at;
        }
        object(first, lines_.size());
    }

private:
    void object(std::size_t begin, std::size_t end) {
        KubePod pod{.file = file_, .place = {static_cast<std::uint32_t>(begin + 1), 1}, .partial = true};
        std::string kind = "object", section, block;  // section: at the margin; block: one level in
        std::map<std::string, double, std::less<>> own;
        std::string image;
        bool containers = false, is_template = false;
        std::vector<KubeEvent> events;
        KubeNode node{.file = file_, .place = {static_cast<std::uint32_t>(begin + 1), 1}};
        bool capacity = false, allocatable = false;
        const auto container_ends = [&] {
            for (const auto& [name, value] : own) pod.requests[name] += value;
            if (std::any_of(own.begin(), own.end(), [](const auto& each) { return is_gpu_resource(each.first); }))
                pod.gpu_images.push_back(image);
            own.clear();
            image.clear();
        };
        for (std::size_t at = begin; at < end; ++at) {
            const std::string_view line = lines_[at];
            if (section == "Events" && !line.empty() && line.front() == ' ') {
                KubeEvent event{.file = file_, .place = {static_cast<std::uint32_t>(at + 1), 1}};
                if (described_event(line, event)) events.push_back(std::move(event));
                continue;
            }
            const DescribeLine said = describe_line(line);
            if (said.indent == 0 && !said.key.empty()) {
                if (section == "Containers") container_ends();
                section = said.key;
                block.clear();
                if (section == "Containers") containers = true;
                if (section == "Pod Template") is_template = true;
                if (section == "Name") pod.name = said.value;
                if (section == "Namespace") pod.space = said.value;
                if (section == "Status") pod.phase = said.value.substr(0, said.value.find(' '));
                if (section == "Node") pod.node = said.value.substr(0, said.value.find('/'));
                if (section == "Controlled By") {
                    pod.owner_kind = said.value.substr(0, said.value.find('/'));
                    pod.owner = said.value.substr(std::min(said.value.find('/') + 1, said.value.size()));
                }
                if (section == "Pods Statuses") kind = "Job";
                if (section == "Replicas") kind = "ReplicaSet";
                capacity |= section == "Capacity";
                allocatable |= section == "Allocatable";
            }
            of_node(section, said, node);
            if (is_template) continue;
            if (section == "Containers") {
                if (said.indent == 2) container_ends();
                if (said.indent == 4) block = said.key;
                if (block == "Image" && said.indent == 4) image = said.value;
                if ((block == "Limits" || block == "Requests") && said.indent > 4 && !said.value.empty())
                    own[std::string(said.key)] = kube_quantity(said.value);
                if (block == "State" && said.indent == 4 && said.value != "Waiting") block.clear();
                if (block == "State" && said.key == "Reason" && pod.waiting.empty()) pod.waiting = said.value;
                if (block == "State" && said.key == "Message" && pod.waiting_for.empty()) pod.waiting_for = said.value;
            } else if (section == "Volumes" && said.key == "ClaimName") {
                pod.claims.emplace_back(said.value);
            } else if (section == "Node-Selectors" && !said.value.empty()) {
                const std::size_t equal = said.value.find('=');
                if (equal != std::string_view::npos)
                    pod.selector[std::string(said.value.substr(0, equal))] = said.value.substr(equal + 1);
            } else if (section == "Tolerations" && !said.value.empty()) {
                pod.tolerations.push_back(described_toleration(said.value));
            }
        }
        if (section == "Containers") container_ends();
        const bool is_node = capacity && allocatable;
        if (is_node) kind = "Node";
        const bool is_pod = containers && !is_template && !pod.phase.empty();
        for (KubeEvent& event : events) {
            event.space = pod.space;
            event.name = pod.name;
            event.kind = is_pod ? "Pod" : kind;
            if (event.reason == "Failed" && pod.waiting_for.empty()) pod.waiting_for = event.message;
            state_.events.push_back(std::move(event));
        }
        if (is_pod)
            state_.pods.push_back(std::move(pod));
        else if (is_node)
            state_.nodes.push_back(std::move(node)), state_.nodes.back().name = pod.name;
        else
            ++state_.others;
    }

    // A line of kubectl describe node.
    static void of_node(std::string_view section, const DescribeLine& said, KubeNode& node) {
        const std::string_view value = said.indent > 0 && said.key.empty() ? trim(said.value) : said.value;
        if (section == "Labels") {
            if (const std::size_t equal = value.find('='); equal != std::string_view::npos)
                node.labels[std::string(value.substr(0, equal))] = value.substr(equal + 1);
        } else if (section == "Taints" && !value.empty()) {
            const std::size_t colon = value.rfind(':'), equal = value.find('=');
            if (colon == std::string_view::npos) return;
            KubeTaint taint{.effect = std::string(value.substr(colon + 1))};
            taint.key = value.substr(0, std::min(equal, colon));
            if (equal < colon) taint.value = value.substr(equal + 1, colon - equal - 1);
            node.taints.push_back(std::move(taint));
        } else if (section == "Unschedulable") {
            node.unschedulable = value == "true";
        } else if (section == "Conditions" && value.starts_with("Ready ")) {
            node.ready = trim(value.substr(6)).starts_with("True");
        } else if ((section == "Capacity" || section == "Allocatable") && said.indent > 0 && !said.key.empty()) {
            (section == "Capacity" ? node.capacity : node.allocatable)[std::string(said.key)] = kube_quantity(value);
        }
    }

    const ToolLines lines_;
    const std::string& file_;
    KubeState& state_;
};

}  // namespace

bool is_kube_describe(std::string_view text) {
    if (!text.starts_with("Name:")) return false;
    if (contains(text, "\nCapacity:") && contains(text, "\nAllocatable:")) return true;  // of a node
    return (contains(text, "\nEvents:") || contains(text, "\nNamespace:")) &&
           (contains(text, "\nContainers:") || contains(text, "\nPod Template:"));
}

void read_kube_describe(std::string_view text, const std::string& file, KubeState& state) {
    DescribeReader(text, file, state).read();
}

}  // namespace stoker
