#include "run/checkpoints.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "base/document.h"
#include "base/text.h"
#include "io/files.h"
#include "sizing/economics.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMaxManifestBytes = 16 << 20;
constexpr std::string_view kStepPrefix = "step-";

// The step that the name tells; -1: it is no checkpoint's.
std::int64_t step_of_name(std::string_view name) {
    if (!name.starts_with(kStepPrefix)) return -1;
    name.remove_prefix(kStepPrefix.size());
    if (name.ends_with(".tmp")) name.remove_suffix(4);
    std::int64_t step = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), step);
    return code == std::errc() && end == name.data() + name.size() && !name.empty() && step >= 0 ? step : -1;
}

// What is wrong with one entry of the manifest's files; empty: nothing.
std::string fault_of_file(const fs::path& folder, const std::string& name, const Node& entry) {
    // A manifest is a program's own; it may name nothing outside its folder.
    const fs::path relative(name);
    if (name.empty() || relative.is_absolute() || std::find(relative.begin(), relative.end(), "..") != relative.end())
        return "the manifest names " + printable(name, 80) + ", which lies outside";
    const Node* size = entry.is_mapping() ? entry.find("size") : &entry;
    if (size == nullptr || size->kind != NodeKind::number)
        return "the manifest tells no size of " + printable(name, 80);
    std::error_code code;
    const auto there = fs::file_size(folder / relative, code);
    if (code) return printable(name, 80) + " is missing";
    if (static_cast<double>(there) != size->number)
        return fmt::format("{} has {} bytes, the manifest says {}", printable(name, 80), there, size->text);
    return {};
}

// {"files": {"rank-0.pt": 123}} or {"files": [{"name": "rank-0.pt", "size": 123}]}
std::string fault_of_manifest(const fs::path& folder) {
    const auto text = read_file((folder / "manifest.json").string(), kMaxManifestBytes);
    if (!text) return "it has no manifest.json that can be read";
    const auto document = Document::parse_json(*text, "manifest.json");
    if (!document) return "its manifest.json is no JSON";
    const Node* files = document->root().is_mapping() ? document->root().find("files") : nullptr;
    if (files == nullptr || files->is_scalar()) return "its manifest.json lists no files";
    for (const Member& member : files->members)
        if (std::string fault = fault_of_file(folder, member.key, *member.value); !fault.empty()) return fault;
    for (const auto& item : files->items) {
        const Node* name = item->is_mapping() ? item->find("name") : nullptr;
        if (std::string fault = fault_of_file(folder, name == nullptr ? "" : name->text, *item); !fault.empty())
            return fault;
    }
    return {};
}

}  // namespace

Result<std::vector<Checkpoint>> list_checkpoints(const std::string& folder) {
    std::vector<Checkpoint> all;
    std::error_code code;
    fs::directory_iterator entries(folder, code);
    if (code == std::errc::no_such_file_or_directory) return all;
    for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
        const std::string name = entries->path().filename().string();
        const std::int64_t step = step_of_name(name);
        std::error_code ignored;
        if (step < 0 || !entries->is_directory(ignored)) continue;
        Checkpoint& checkpoint = all.emplace_back();
        checkpoint.folder = entries->path().string();
        checkpoint.step = step;
        checkpoint.fault = name.ends_with(".tmp") ? "it is not finished" : fault_of_manifest(entries->path());
        checkpoint.complete = checkpoint.fault.empty();
    }
    if (code)
        return Error(ErrorKind::unavailable, fmt::format("cannot list {}: {}", printable(folder), code.message()));
    std::sort(all.begin(), all.end(), [](const Checkpoint& a, const Checkpoint& b) {
        return a.step != b.step ? a.step > b.step : a.folder < b.folder;
    });
    return all;
}

std::optional<CheckpointView> read_checkpoints(const std::string& folder) {
    CheckpointView view;
    if (folder.empty()) return view;
    std::error_code code;
    view.done = fs::exists(fs::path(folder) / "done", code);
    const auto all = list_checkpoints(folder);
    if (!all) return std::nullopt;
    const auto newest = std::find_if(all->begin(), all->end(), [](const Checkpoint& each) { return each.complete; });
    if (newest == all->end()) return view;
    view.newest = newest->folder;
    view.step = newest->step;
    return view;
}

std::vector<std::string> checkpoints_to_prune(const std::vector<Checkpoint>& checkpoints, int keep) {
    std::vector<std::string> prune;
    int kept = 0, older = 0;
    for (const Checkpoint& checkpoint : checkpoints) {
        // A torn one below a complete one will not be finished any more.
        if (!checkpoint.complete) {
            if (kept > 0) prune.push_back(checkpoint.folder);
        } else if (kept < std::max(keep, 1)) {
            ++kept;
        } else if (++older % 10 != 0) {
            prune.push_back(checkpoint.folder);
        }
    }
    return prune;
}

double suggested_interval_s(double write_s, double mtbf_s) {
    if (!(mtbf_s > 0) || !(write_s > 0)) return 0;
    const double interval =
        write_s > mtbf_s / 10 ? daly_interval_s(write_s, mtbf_s) : young_interval_s(write_s, mtbf_s);
    return std::max(interval, 10 * write_s);
}

}  // namespace stoker
