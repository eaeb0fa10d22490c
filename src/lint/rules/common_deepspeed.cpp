#include "lint/rules/common_deepspeed.h"

#include <algorithm>
#include <vector>

#include "base/embedded.h"
#include "base/text.h"

namespace stoker::lint {

namespace {

const std::vector<DeepSpeedKey>& deepspeed_keys() {
    static const std::vector<DeepSpeedKey> keys = [] {
        std::vector<DeepSpeedKey> rows;
        bool head = true;
        for (const std::string_view line : split_lines(embedded_bytes("lint/deepspeed_keys.tsv"))) {
            if (line.empty() || line.starts_with('#')) continue;
            if (head) {
                head = false;
                continue;
            }
            const auto fields = split(line, '\t');
            if (fields.size() >= 4) rows.push_back({fields[0], fields[1], fields[2], fields[3]});
        }
        return rows;
    }();
    return keys;
}

// Edits between two short names, up to `most`.
std::size_t key_distance(std::string_view a, std::string_view b, std::size_t most) {
    if (a.size() > b.size() + most || b.size() > a.size() + most || a.size() > 64 || b.size() > 64) return most + 1;
    std::size_t row[66];
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t corner = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
            corner = above;
        }
    }
    return row[b.size()];
}

}  // namespace

void for_each_deepspeed(const File& file, const std::function<void(const DeepSpeedFile&)>& visit) {
    int ordinal = 0;
    for_each_part(file, [&](const File& part) {
        if (!part.kinds.has(Kind::deepspeed) || part.tree.roots.empty()) return;
        const Node* root = part.tree.roots.front();
        if (!root->is_object()) return;
        std::string address = "ds:";
        if (part.host) address += "@" + std::to_string(++ordinal);
        bool neox = false;
        for (const Node& child : children(root))
            neox |= child.key.find('-') != std::string_view::npos || child.key == "num_layers" ||
                    child.key == "pipe_parallel_size" || child.key == "model_parallel_size" ||
                    child.key == "gpt_j_residual" || child.key == "hidden_size" || child.key == "autotuning_config";
        visit({part, *root, std::move(address), neox});
    });
}

bool json_true(const Node* node) {
    return node && node->known && node->shape == Shape::boolean && node->text == "true";
}
std::optional<std::int64_t> json_int(const Node* node) {
    return node && node->shape == Shape::number ? Value::of(node).as_int() : std::nullopt;
}

std::optional<std::int64_t> zero_stage(const Node& root) {
    const Node* zero = root.find("zero_optimization");
    if (!zero) return 0;
    if (zero->shape == Shape::boolean) return json_true(zero) ? 1 : 0;
    if (!zero->is_object()) return std::nullopt;
    const Node* stage = zero->find("stage");
    if (!stage) return 0;
    return json_int(stage);
}

std::string_view offload_device(const Node* offload) {
    const Node* device = offload ? offload->find("device") : nullptr;
    if (!device || !device->known || (device->text != "cpu" && device->text != "nvme")) return {};
    return device->text;
}

Span property_span(const Node& property) {
    Span span = property.whole();
    const std::string_view text = property.source->text();
    if (span.begin > 0 && text[span.begin] != '"' && text[span.begin - 1] == '"') --span.begin;
    if (property.shape == Shape::string && span.end < text.size() && text[span.end] == '"' &&
        (span.end == span.begin || text[span.end - 1] != '"'))
        ++span.end;
    return span;
}

Span property_removal(const Node& property) {
    Span span = property_span(property);
    if (property.next) {
        span.end = property_span(*property.next).begin;
        return span;
    }
    const Node* before = nullptr;
    for (const Node& child : children(property.parent)) {
        if (&child == &property) break;
        before = &child;
    }
    if (before) span.begin = property_span(*before).end;
    return span;
}

const DeepSpeedKey* deepspeed_key(std::string_view section, std::string_view key) {
    for (const DeepSpeedKey& each : deepspeed_keys())
        if (each.section == section && each.key == key) return &each;
    return nullptr;
}

std::string_view nearest_deepspeed_key(std::string_view section, std::string_view key) {
    std::string_view best;
    std::size_t least = 3;
    for (const DeepSpeedKey& each : deepspeed_keys()) {
        if (each.section != section || each.status != "current") continue;
        const std::size_t distance = key_distance(key, each.key, 2);
        if (distance < least && distance * 4 <= key.size()) {
            least = distance;
            best = each.key;
        }
    }
    return best;
}

}  // namespace stoker::lint
