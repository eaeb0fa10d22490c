#include "app/user_settings.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/document.h"
#include "base/json.h"
#include "base/text.h"
#include "catalog/geography.h"
#include "io/files.h"
#include "io/user_file.h"
#include "workload/workload.h"

namespace stoker {

namespace {

constexpr const char* kClouds[] = {"azure", "aws", "gcp"};
constexpr std::size_t kMostBytes = 1u << 16;

}  // namespace

Result<std::string> user_settings_path() {
    return user_file("XDG_CONFIG_HOME", ".config", "settings.yaml", "your settings");
}

Result<UserSettings> load_user_settings() {
    UserSettings settings;
    const auto path = user_settings_path();
    std::error_code error;
    if (!path || !std::filesystem::exists(*path, error)) return settings;
    TRY(const std::string text, read_file(*path, kMostBytes));
    TRY(const Document document, Document::parse_yaml(text, *path));
    const Node& root = document.root();
    if (!root.is_mapping()) return settings;
    for (const Member& member : root.members) {
        const Node& value = *member.value;
        if (member.key == "home" && value.is_scalar()) {
            settings.home = value.text;
        } else if (member.key == "residency" && value.is_scalar()) {
            settings.residency = {value.text};
        } else if (member.key == "residency" && value.is_sequence()) {
            for (const auto& item : value.items) settings.residency.push_back(item->text);
        } else if (member.key == "evictions" && value.is_scalar() && parse_eviction_rate(value.text)) {
            settings.evictions = value.text;
        } else {
            return Error(
                ErrorKind::invalid, fmt::format("your settings have no {}", printable(member.key, 40)), value.pos,
                "home: REGION, residency: [GEOGRAPHY] and evictions: RATE; stoker config home, config residency, "
                "config evictions");
        }
    }
    return settings;
}

Status save_user_settings(const UserSettings& settings) {
    TRY(const std::string path, user_settings_path());
    Json json = Json::object();
    if (!settings.home.empty()) json.set("home", settings.home);
    if (!settings.residency.empty()) {
        Json list = Json::array();
        for (const std::string& place : settings.residency) list.push(place);
        json.set("residency", std::move(list));
    }
    if (!settings.evictions.empty()) json.set("evictions", settings.evictions);
    return write_user_file(path, json.dump_yaml());
}

Result<std::string> place_named(const Catalog& catalog, const std::string& word) {
    for (const char* cloud : kClouds)
        if (auto region = catalog.find_region(cloud, word)) return *region;
    for (const char* cloud : kClouds)
        for (const std::string& region : catalog.regions_of(cloud))
            if (same_geography(word, region)) return word;
    return Error(
        ErrorKind::invalid, fmt::format("no region or geography named '{}'", printable(word, 40)), {},
        "a region such as westeurope (stoker catalog regions), or eu, us, uk, europe, asia pacific, japan, ...");
}

}  // namespace stoker
