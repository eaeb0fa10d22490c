#include "catalog/gpu_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "catalog/names.h"

namespace stoker {
namespace {

// Folded names and aliases of data/catalog/accelerators.tsv -> its name.
const std::map<std::string, std::string, std::less<>>& table_of_names() {
    static const auto names = [] {
        std::map<std::string, std::string, std::less<>> made;
        const std::string_view file = "catalog/accelerators.tsv";
        const auto table = Tsv::read(embedded_bytes(file), file);
        const auto name = table ? table->column("name") : Result<std::size_t>(std::size_t{0});
        const auto aliases = table ? table->column("aliases") : Result<std::size_t>(std::size_t{0});
        if (!table || !name || !aliases) return made;
        for (std::size_t row = 0; row < table->rows(); ++row)
            made.emplace(fold_accelerator(table->at(row, *name)), table->at(row, *name));
        for (std::size_t row = 0; row < table->rows(); ++row)
            for (const std::string_view alias : split(table->at(row, *aliases), ','))
                made.emplace(fold_accelerator(trim(alias)), table->at(row, *name));
        return made;
    }();
    return names;
}

std::string_view in_catalog(std::string_view name) {
    const auto found = table_of_names().find(fold_accelerator(name));
    return found == table_of_names().end() ? std::string_view() : std::string_view(found->second);
}

// "NVIDIA_A100-SXM4-80GB" -> a100, sxm, 80gb. Of SXM boards each generation has one, so its number says nothing.
std::set<std::string> parts_of(std::string_view name) {
    std::set<std::string> parts;
    std::string part;
    const auto end = [&] {
        if (part.starts_with("sxm")) part = "sxm";
        if (!part.empty() && part != "nvidia" && part != "amd" && part != "tesla" && part != "instinct")
            parts.insert(part);
        part.clear();
    };
    for (const char c : lower(name)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain)
            part += c;
        else
            end();
    }
    end();
    return parts;
}

// "3g" of a100_3g.20gb: part of a GPU, and not one that somebody means who says a100.
bool is_slice(const std::set<std::string>& parts) {
    return std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
        return part.size() == 2 && part[0] >= '1' && part[0] <= '7' && part[1] == 'g';
    });
}

}  // namespace

bool names_gpu(std::string_view asked, std::string_view model) {
    if (fold_accelerator(asked) == fold_accelerator(model)) return true;
    const std::string_view known = in_catalog(model);
    if (!known.empty() && in_catalog(asked) == known) return true;
    const std::set<std::string> wanted = parts_of(asked);
    std::set<std::string> there = parts_of(model);
    there.merge(parts_of(known));
    return !wanted.empty() && is_slice(wanted) == is_slice(there) &&
           std::includes(there.begin(), there.end(), wanted.begin(), wanted.end());
}

}  // namespace stoker
