#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace stoker::lint {

namespace {

// Edits that drop the retired items of a list in brackets; nothing when it is no such list, has comments between its
// items, or would lose all of them.
std::vector<Edit> sku021_drop(const Resource& list, const std::vector<const Node*>& drop) {
    const Node* node = list.node;
    if (!node || !node->is_array() || node->source != list.source || node->count() <= drop.size()) return {};
    const std::string_view text = node->source->text(node->span);
    if (text.find("//") != std::string_view::npos || text.find('#') != std::string_view::npos ||
        text.find("/*") != std::string_view::npos || text.empty() || text.front() != '[')
        return {};
    const Node* given = nullptr;  // a default that is dropped would be refused by its own list
    for (const std::string_view key : {"defaultValue", "value", "default"})
        if (node->parent && node->parent->find(key)) given = node->parent->find(key);
    const auto dropped = [&](const Node* item) { return std::find(drop.begin(), drop.end(), item) != drop.end(); };
    std::vector<Edit> edits;
    const Node* kept = nullptr;
    for (const Node& item : children(node)) {
        if (given && given->text == item.text && dropped(&item)) return {};
        if (!dropped(&item)) {
            kept = &item;
        } else if (item.next) {
            edits.push_back({{item.span.begin, item.next->span.begin}, ""});
        } else if (kept) {
            // The last one goes with what parts it from the last that stays; items between are dropped already.
            const Node* before = nullptr;
            for (const Node& other : children(node))
                if (other.next == &item) before = &other;
            if (before && dropped(before)) {
                while (!edits.empty() && edits.back().span.begin >= kept->span.end) edits.pop_back();
            }
            edits.push_back({{kept->span.end, item.span.end}, ""});
        }
    }
    return edits;
}

}  // namespace

void check_sku021(const File& file, Report& report) {
    // A size that a resource takes is said there (SKU001): its table is no list of choices on top of that.
    std::set<std::pair<const Source*, std::uint32_t>> taken;
    each_resource(file, [&](const Resource& resource) {
        if (resource.type == ResourceType::size_list) return;
        for (const Value* size : resource.all(Attr::size)) taken.emplace(size->source, size->span.begin);
    });
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::size_list) return;
        const Value* first = nullptr;
        std::vector<const Node*> retired;
        std::string names;
        for (const Value* size : resource.all(Attr::allowed_size)) {
            const KnownRetirement* retirement = report.knowledge().retirement(size->text);
            if (!retirement || !is_retired(*retirement, report.options())) continue;
            if (taken.contains({size->source, size->span.begin})) continue;
            if (!first) first = size;
            retired.push_back(size->node);
            if (retired.size() <= 4) names += (names.empty() ? "" : ", ") + std::string(size->text);
        }
        if (!first) return;
        Finding* finding =
            report.add(*first, resource.address,
                       fmt::format("this list offers {} that can no longer be created: {}{}",
                                   retired.size() == 1 ? "a size" : "sizes", names, retired.size() > 4 ? ", ..." : ""));
        report.fix(finding, *resource.source, FixClass::safe, "drop the retired sizes", sku021_drop(resource, retired));
    });
}

}  // namespace stoker::lint
