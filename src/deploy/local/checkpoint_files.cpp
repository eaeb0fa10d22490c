#include "deploy/local/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "base/document.h"
#include "base/text.h"
#include "io/files.h"

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

Result<Checkpoints> list_checkpoint_files(const std::string& folder) {
    Checkpoints found;
    std::vector<Checkpoint>& all = found.items;
    std::error_code code;
    found.done = fs::exists(fs::path(folder) / "done", code);
    fs::directory_iterator entries(folder, code);
    if (code == std::errc::no_such_file_or_directory) return found;
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
    return found;
}

}  // namespace stoker
