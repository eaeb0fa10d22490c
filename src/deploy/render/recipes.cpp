#include "deploy/render/recipes.h"

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/tsv.h"

namespace stoker {
namespace {

// Tables of the binary: that they read is what the tests of this folder show.
template <class Take>
void for_rows(const char* path, std::initializer_list<const char*> columns, Take take) {
    const auto table = Tsv::read(embedded_bytes(path), FileName(path));
    if (!table) return;
    std::vector<std::size_t> at;
    for (const char* column : columns) {
        const auto found = table->column(column);
        if (!found) return;
        at.push_back(*found);
    }
    for (std::size_t row = 0; row < table->rows(); ++row) {
        std::vector<std::string> cells;
        for (const std::size_t column : at) cells.emplace_back(table->at(row, column));
        if (!take(cells)) return;
    }
}

}  // namespace

std::optional<Recipe> recipe_of(std::string_view program, std::string_view model) {
    std::optional<Recipe> out;
    for_rows("render/recipes.tsv", {"program", "model", "module", "config", "source", "as_of"},
             [&](const std::vector<std::string>& row) {
                 if (row[0] != program || row[1] != model) return true;
                 out = Recipe{row[2], row[3], row[4], row[5]};
                 return false;
             });
    return out;
}

std::optional<Recipe> recipe_of(std::string_view program, const ModelSpec& model) {
    auto recipe = recipe_of(program, model.name);
    for (std::size_t i = 0; i < model.aliases.size() && !recipe; ++i) recipe = recipe_of(program, model.aliases[i]);
    return recipe;
}

std::string recipes_of(std::string_view program) {
    std::string out;
    for_rows("render/recipes.tsv", {"program", "model"}, [&](const std::vector<std::string>& row) {
        if (row[0] == program) out += (out.empty() ? "" : ", ") + row[1];
        return true;
    });
    return out;
}

std::optional<RotaryShape> rotary_of(std::string_view model) {
    std::optional<RotaryShape> out;
    for_rows("render/rotary.tsv", {"model", "base", "scaling", "source", "as_of"},
             [&](const std::vector<std::string>& row) {
                 if (row[0] == model) out = RotaryShape{row[1], row[2], row[3], row[4]};
                 return !out;
             });
    return out;
}

std::optional<EngineImage> engine_image(std::string_view engine, std::string_view vendor) {
    std::optional<EngineImage> out;
    for_rows("render/images.tsv", {"engine", "vendor", "image", "source", "as_of"},
             [&](const std::vector<std::string>& row) {
                 if (row[0] != engine || row[1] != (vendor.empty() ? "none" : vendor)) return true;
                 out = EngineImage{row[2], row[3], row[4]};
                 return false;
             });
    return out;
}

std::optional<EngineImage> engine_image(std::string_view engine, const Deployment& deployment) {
    auto out = engine_image(engine, deployment.nodes.gpus > 0 ? deployment.nodes.gpu_vendor : "");
    if (!out || deployment.framework_version.empty()) return out;
    const std::size_t colon = out->image.rfind(':');
    const std::string_view tag = std::string_view(out->image).substr(colon + 1);
    if (tag.find_first_not_of("v0123456789.") != std::string_view::npos) return std::nullopt;
    std::string release = deployment.framework_version;
    if (release.starts_with('v')) release.erase(0, 1);
    if (std::count(release.begin(), release.end(), '.') == 1) release += ".0";
    out->image = fmt::format("{}:{}{}", out->image.substr(0, colon), tag.starts_with('v') ? "v" : "", release);
    out->source = fmt::format("framework_version {} of the file", deployment.framework_version);
    return out;
}

Release release_in_use(std::string_view program) {
    Release out;
    for_rows("render/releases.tsv", {"program", "release", "source"}, [&](const std::vector<std::string>& row) {
        if (row[0] == program) out = {row[1], row[2]};
        return out.release.empty();
    });
    return out;
}

std::string driver_package(std::string_view gpu) {
    std::string out;
    for_rows("render/drivers.tsv", {"gpus", "package"}, [&](const std::vector<std::string>& row) {
        if (gpu.starts_with(row[0])) out = row[1];
        return out.empty();
    });
    return out.empty() ? "nvidia-open" : out;
}

std::string resource_of_vendor(std::string_view vendor) {
    std::string out;
    for_rows("render/devices.tsv", {"vendor", "resource"}, [&](const std::vector<std::string>& row) {
        if (row[0] == vendor) out = row[1];
        return out.empty();
    });
    return out;
}

std::string gke_accelerator(std::string_view machine) {
    std::string out;
    for_rows("render/gke_accelerators.tsv", {"machines", "type"}, [&](const std::vector<std::string>& row) {
        if (machine.starts_with(row[0])) out = row[1];
        return out.empty();
    });
    return out;
}

std::vector<std::string> names_reached_for(std::string_view what) {
    std::vector<std::string> out;
    for_rows("render/reached_names.tsv", {"what", "name"}, [&](const std::vector<std::string>& row) {
        if (row[0] == what) out.push_back(row[1]);
        return true;
    });
    if (out.empty()) out.emplace_back(what);
    return out;
}

std::string registry_of(std::string_view image) {
    const std::size_t slash = image.find('/');
    const std::string_view first = image.substr(0, slash);
    // A first part with a dot or a port is a host, as Docker has it.
    if (slash == std::string_view::npos ||
        (first.find_first_of(".:") == std::string_view::npos && first != "localhost"))
        return "docker.io";
    return std::string(first);
}

VmImage vm_image(std::string_view vendor) {
    VmImage out;
    for_rows("render/vm_images.tsv", {"vendor", "urn", "source"}, [&](const std::vector<std::string>& row) {
        if (row[0] == (vendor.empty() ? "none" : vendor) || row[0] == "none") out = {row[1], row[2]};
        return row[0] != vendor;
    });
    return out;
}

}  // namespace stoker
