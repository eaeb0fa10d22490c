#include "app/client/spec_differences.h"

#include <map>

namespace stoker {
namespace {

void flatten(const Json& json, const std::string& path, std::map<std::string, std::string>& out) {
    const auto* members = std::get_if<Json::Object>(&json.value());
    if (members == nullptr) {
        out[path] = json.dump(0);
        return;
    }
    for (const auto& [key, value] : *members) flatten(value, path.empty() ? key : path + "." + key, out);
}

}  // namespace

std::vector<Difference> differences_of(const std::vector<Json>& texts, const std::set<std::string>& left_out) {
    std::vector<std::map<std::string, std::string>> flat(texts.size());
    std::set<std::string> paths;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        flatten(texts[i], "", flat[i]);
        for (const auto& [path, value] : flat[i]) paths.insert(path);
    }
    std::vector<Difference> differences;
    for (const std::string& path : paths) {
        if (left_out.contains(path) || left_out.contains(path.substr(0, path.find('.')))) continue;
        Difference difference{.path = path, .values = {}};
        bool same = true;
        for (const auto& each : flat) {
            const auto found = each.find(path);
            difference.values.push_back(found == each.end() ? "" : found->second);
            same = same && difference.values.back() == difference.values.front();
        }
        if (!same) differences.push_back(std::move(difference));
    }
    return differences;
}

std::vector<Difference> spec_differences(const std::vector<const RunSpec*>& specs, std::set<std::string> left_out) {
    left_out.insert("prediction");
    std::vector<Json> texts;
    for (const RunSpec* spec : specs) texts.push_back(to_json(*spec));
    std::vector<Difference> differences = differences_of(texts, left_out);
    std::erase_if(differences, [](const Difference& each) { return each.path.starts_with("labels.stoker/"); });
    return differences;
}

}  // namespace stoker
