#include "plan/availability.h"

#include <map>
#include <utility>

#include "base/embedded.h"
#include "base/tsv.h"

namespace stoker {
namespace {

const std::map<std::pair<std::string, std::string>, Scarce>& table() {
    static const auto* const all = [] {
        auto* read = new std::map<std::pair<std::string, std::string>, Scarce>;
        const auto rows = Tsv::read(embedded_bytes("catalog/availability.tsv"), "data/catalog/availability.tsv");
        if (!rows) return read;
        const auto cloud = rows->column("cloud"), device = rows->column("accelerator"), how = rows->column("how"),
                   source = rows->column("source");
        if (!cloud || !device || !how || !source) return read;
        for (std::size_t i = 0; i < rows->rows(); ++i)
            (*read)[{std::string(rows->at(i, *cloud)), std::string(rows->at(i, *device))}] = {
                std::string(rows->at(i, *how)), std::string(rows->at(i, *source))};
        return read;
    }();
    return *all;
}

}  // namespace

const Scarce* scarce(std::string_view cloud, std::string_view accelerator) {
    const auto found = table().find({std::string(cloud), std::string(accelerator)});
    return found == table().end() ? nullptr : &found->second;
}

}  // namespace stoker
