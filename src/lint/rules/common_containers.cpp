#include "lint/rules/common_containers.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "formats/kube_quantity.h"

namespace stoker::lint {

bool is_device_resource(std::string_view key) {
    return is_accelerator_resource(key) || key.starts_with("nvidia.com/") || key.starts_with("amd.com/") ||
           contains_nocase(key, "gpu") || key.starts_with("huawei.com/") || key.starts_with("cambricon.com/");
}

bool is_rdma_resource(std::string_view key) {
    // rdma/hca_shared_devices_a, and as other clouds call it: vke.volcengine.com/rdma.
    return key.starts_with("rdma/") || key.ends_with("/rdma") || contains_nocase(key, "mlnx") ||
           key == "nvidia.com/hostdev";
}

const Quantity* accelerator_of(const Container& container) {
    for (const bool limit : {true, false})
        for (const Quantity& each : container.resources)
            if (each.limit == limit && is_accelerator_resource(each.resource) && !each.amount.is("0")) return &each;
    return nullptr;
}

std::optional<std::int64_t> accelerators_of(const Container& container) {
    std::int64_t sum = 0;
    bool any = false;
    for (const Quantity& each : container.resources) {
        if (!is_accelerator_resource(each.resource)) continue;
        if (!each.limit && container.limit(each.resource)) continue;
        const auto amount = each.amount.as_int();
        if (!amount || *amount < 0 || *amount > 1'000'000) return std::nullopt;
        sum += *amount;
        any = true;
    }
    return any ? std::optional(sum) : std::nullopt;
}

bool asks_accelerator(const Workload& workload) {
    return std::any_of(workload.containers.begin(), workload.containers.end(),
                       [](const Container& each) { return accelerator_of(each) != nullptr; });
}

bool names_device(const Workload& workload) {
    if (workload.pod && workload.pod->find("resourceClaims")) return true;
    for (const Container& container : workload.containers) {
        for (const Quantity& each : container.resources)
            if (is_device_resource(each.resource)) return true;
        if (container.node && container.node->at({"resources", "claims"})) return true;
    }
    return false;
}

bool asks_rdma(const Container& container) {
    return std::any_of(container.resources.begin(), container.resources.end(),
                       [](const Quantity& each) { return is_rdma_resource(each.resource) && !each.amount.is("0"); });
}

std::vector<WordList> commands_of(const Container& container) {
    std::vector<WordList> found;
    if (container.scripts.empty()) {
        if (!container.command.empty()) found.push_back({&container.command, nullptr});
        return found;
    }
    for (const File* script : container.scripts)
        for (const Command& command : script->script.commands) found.push_back({&command.words, script});
    return found;
}

std::string_view program_name(std::string_view word) {
    const std::size_t slash = word.rfind('/');
    return slash == std::string_view::npos ? word : word.substr(slash + 1);
}

namespace {

bool same_option(std::string_view word, std::string_view name) {
    return word.size() == name.size() &&
           std::equal(word.begin(), word.end(), name.begin(), [](char a, char b) { return (a == '_' ? '-' : a) == b; });
}

}  // namespace

Value option_of(const std::vector<Value>& words, std::initializer_list<std::string_view> names) {
    Value found;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i].text;
        if (word.size() < 2 || word[0] != '-') continue;
        const std::size_t equals = word.find('=');
        for (const std::string_view name : names) {
            if (!same_option(word.substr(0, equals), name)) continue;
            if (equals == std::string_view::npos) {
                if (i + 1 < words.size()) found = words[i + 1];
                continue;
            }
            found = words[i];
            found.text = word.substr(equals + 1);
            // A placeholder elsewhere in the word does not matter, one in the value does.
            found.state = words[i].known() ? Value::State::known : Value::State::unknown;
        }
    }
    return found;
}

bool has_word(const std::vector<Value>& words, std::string_view part) {
    return std::any_of(words.begin(), words.end(), [&](const Value& word) {
        return word.present() && word.text.find(part) != std::string_view::npos;
    });
}

const Value* training_word(const Container& container) {
    for (const WordList& command : commands_of(container)) {
        const std::vector<Value>& words = *command.words;
        for (std::size_t i = 0; i < words.size() && i < 40; ++i) {
            if (!words[i].known()) continue;
            const std::string_view word = program_name(words[i].text);
            if (word == "torchrun" || word == "deepspeed" || word == "horovodrun") return &words[i];
            if (word == "torch.distributed.run" || word == "torch.distributed.launch") return &words[i];
            if (word == "accelerate" && i + 1 < words.size() && words[i + 1].is("launch")) return &words[i];
            if (word.ends_with(".py") &&
                (contains_nocase(word, "train") || contains_nocase(word, "finetune") || contains_nocase(word, "sft")))
                return &words[i];
        }
    }
    return nullptr;
}

namespace {

bool is_accelerator_label(std::string_view key, const Node& value, const Knowledge& knowledge) {
    for (const std::string_view whole :
         {"cloud.google.com/gke-accelerator", "cloud.google.com/gke-accelerator-count", "k8s.amazonaws.com/accelerator",
          "kubernetes.azure.com/accelerator", "accelerator", "nvidia.com/gpu", "amd.com/gpu"})
        if (key == whole) return !value.text.empty() && value.text != "false" && value.text != "none";
    if (key.starts_with("nvidia.com/gpu.") || key.starts_with("nvidia.com/mig") || key.starts_with("amd.com/gpu."))
        return value.text != "false";
    if (key == "sku" || key == "hardware" || key == "gpu")
        return equals_ignore_case(value.text, "gpu") || equals_ignore_case(value.text, "true") ||
               equals_ignore_case(value.text, "nvidia");
    if (key == "node.kubernetes.io/instance-type" || key == "beta.kubernetes.io/instance-type") {
        const KnownSize* size = value.known ? knowledge.size(value.text) : nullptr;
        return size && size->gpu();
    }
    return false;
}

}  // namespace

const Node* accelerator_intent(const Node& pod, const Knowledge& knowledge) {
    const Node* found = nullptr;
    each_selector(pod, [&](const Node& key, const Node& value) {
        const std::string_view name = key.key.empty() || key.key == "key" ? key.text : key.key;
        if (!found && is_accelerator_label(name, value, knowledge)) found = &key;
    });
    if (found) return found;
    for (const Node& toleration : children(pod.find("tolerations"))) {
        const Node* key = toleration.find("key");
        const Node* value = toleration.find("value");
        if (!key) continue;
        if (key->text == "nvidia.com/gpu" || key->text == "amd.com/gpu" ||
            (key->text == "sku" && value && equals_ignore_case(value->text, "gpu")))
            return key;
    }
    const Node* runtime = pod.find("runtimeClassName");
    if (runtime && contains_nocase(runtime->text, "nvidia")) return runtime;
    return nullptr;
}

bool tolerates(const Node& pod, std::string_view key, std::string_view value, std::string_view effect) {
    for (const Node& each : children(pod.find("tolerations"))) {
        const Node* its_key = each.find("key");
        const Node* operation = each.find("operator");
        const Node* its_value = each.find("value");
        const Node* its_effect = each.find("effect");
        for (const Node* part : {its_key, operation, its_value, its_effect})
            if (part && !part->known) return true;  // not known: silence
        if (its_effect && !its_effect->text.empty() && its_effect->text != effect) continue;
        const bool exists = operation && operation->text == "Exists";
        if (!its_key || its_key->text.empty()) {
            if (exists) return true;
            continue;
        }
        if (its_key->text != key) continue;
        if (exists || (its_value ? its_value->text : std::string_view()) == value) return true;
    }
    return false;
}

std::optional<double> quantity_of(std::string_view text) {
    const auto quantity = parse_kube_quantity(text);
    return quantity && *quantity >= 0 ? std::optional(*quantity) : std::nullopt;
}

ImageTag tag_of(std::string_view image) {
    ImageTag result;
    if (const std::size_t at = image.find('@'); at != std::string_view::npos) {
        result.digest = true;
        image = image.substr(0, at);
    }
    const std::size_t colon = image.rfind(':'), slash = image.rfind('/');
    const bool tagged = colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
    result.name = tagged ? image.substr(0, colon) : image;
    if (tagged) result.tag = image.substr(colon + 1);
    return result;
}

bool is_upper_placeholder(std::string_view text) {
    bool letter = false;
    for (const char c : text) {
        if (c >= 'A' && c <= 'Z')
            letter = true;
        else if (!((c >= '0' && c <= '9') || c == '_' || c == '-'))
            return false;
    }
    return letter && text.size() > 1;
}

std::string indentation_at(const Source& source, std::uint32_t offset) {
    const Span line = source.line_at(offset);
    std::string blanks;
    for (std::uint32_t at = line.begin; at < line.end; ++at) {
        const char c = source.text()[at];
        if (c == ' ' || c == '\t')
            blanks += c;
        else if (c == '-' && at + 1 < line.end && source.text()[at + 1] == ' ')
            blanks += ' ';
        else
            break;
    }
    return blanks;
}

Span lines_of(const Source& source, Span span) {
    Span lines{source.line_at(span.begin).begin, source.line_at(span.empty() ? span.end : span.end - 1).end};
    const std::string_view text = source.text();
    while (lines.end < text.size() && text[lines.end] != '\n') ++lines.end;
    if (lines.end < text.size()) ++lines.end;
    return lines;
}

bool source_line_is_own(const Node& node) {
    const Source& source = *node.source;
    const std::string_view before = source.text({source.line_at(node.key_span.begin).begin, node.key_span.begin});
    const std::string_view after = source.text({node.span.end, source.line_at(node.span.end).end});
    return before.find_first_not_of(' ') == std::string_view::npos &&
           (trim(after).empty() || trim(after).starts_with('#'));
}

std::optional<Edit> line_before(const Node& sibling, std::string_view text) {
    if (sibling.merged || sibling.key_span.empty()) return std::nullopt;
    const Source& source = *sibling.source;
    const Span line = source.line_at(sibling.key_span.begin);
    const std::string_view before = source.text({line.begin, sibling.key_span.begin});
    const bool first_of_item = before.find('-') != std::string_view::npos;
    if (before.find_first_not_of(" \t-") != std::string_view::npos) return std::nullopt;  // in braces
    const std::string indent(before.size(), ' ');
    std::string added;
    for (const std::string_view row : split_lines(text)) {
        if (first_of_item) {  // the dash stays in front: the new lines come behind it
            added += std::string(row) + std::string(source.line_end()) + indent;
            continue;
        }
        added += indent + std::string(row) + std::string(source.line_end());
    }
    const std::uint32_t at = first_of_item ? sibling.key_span.begin : line.begin;
    return Edit{{at, at}, std::move(added)};
}

}  // namespace stoker::lint
