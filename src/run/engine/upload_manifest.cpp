#include "run/engine/upload_manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/codec.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/sha256.h"
#include "run/engine/checkpoints.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostStoredManifest = 32u << 20;
constexpr std::size_t kMostStoredFiles = 100'000;
constexpr std::size_t kMostListedObjects = 2'000'000;
constexpr std::string_view kCompletePrefix = "complete/", kManifestEnd = ".json";

// "step-000040" -> 40; -1: it is no name of a checkpoint.
std::int64_t step_of_stored(std::string_view name) {
    if (!name.starts_with("step-") || name.size() > 40) return -1;
    name.remove_prefix(5);
    std::int64_t step = -1;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), step);
    return code == std::errc() && end == name.data() + name.size() && step >= 0 ? step : -1;
}

bool is_inside(const std::string& name) {
    if (name.empty() || name.size() > 800 || name.find('\\') != std::string::npos ||
        name.find('\0') != std::string::npos)
        return false;
    for (const std::string_view part : split(name, '/'))
        if (part.empty() || part == "." || part == "..") return false;
    return true;
}

std::string manifest_key(const std::string& name) {
    return std::string(kCompletePrefix) + name + std::string(kManifestEnd);
}

// What the checkpoint's own manifest says of its files: {"files": [{"name", "sha256"}]} or {"files": {name: {...}}}.
std::map<std::string, std::string> digests_of_program(const fs::path& folder) {
    std::map<std::string, std::string> digests;
    const auto text = read_file((folder / "manifest.json").string(), kMostStoredManifest);
    if (!text) return digests;
    const auto document = Document::parse_json(*text, "manifest.json");
    const Node* files = document && document->root().is_mapping() ? document->root().find("files") : nullptr;
    if (files == nullptr || files->is_scalar()) return digests;
    const auto take = [&](const std::string& name, const Node& entry) {
        const Node* sum = entry.is_mapping() ? entry.find("sha256") : nullptr;
        if (sum != nullptr && is_sha256(lower(sum->text))) digests[name] = lower(sum->text);
    };
    for (const Member& member : files->members) take(member.key, *member.value);
    for (const auto& item : files->items)
        if (const Node* name = item->is_mapping() ? item->find("name") : nullptr) take(name->text, *item);
    return digests;
}

Result<std::vector<std::string>> files_below(const fs::path& folder) {
    std::vector<std::string> files;
    std::error_code code;
    for (fs::recursive_directory_iterator at(folder, code); !code && at != fs::recursive_directory_iterator();
         at.increment(code)) {
        std::error_code ignored;
        if (!at->is_regular_file(ignored)) continue;
        files.push_back(at->path().lexically_relative(folder).string());
        if (files.size() > kMostStoredFiles)
            return Error(ErrorKind::invalid,
                         fmt::format("{} has more than {} files", folder.string(), kMostStoredFiles));
    }
    if (code) return Error(ErrorKind::unavailable, fmt::format("cannot list {}: {}", folder.string(), code.message()));
    std::sort(files.begin(), files.end());
    return files;
}

bool is_there_whole(const std::string& path, const StoredFile& file) {
    std::error_code code;
    if (!fs::is_regular_file(path, code) || static_cast<std::int64_t>(fs::file_size(path, code)) != file.size || code)
        return false;
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    Sha256 sum;
    std::string piece(1u << 20, '\0');
    for (;;) {
        const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
        if (got < 0) return false;
        if (got == 0) return hex(sum.finish()) == file.sha256;
        sum.add(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
    }
}

Status fetch_checkpoint(ObjectStore& store, const StoredManifest& manifest, const std::string& folder,
                        const std::function<void(const RestoreProgress&)>& progress,
                        const std::function<bool()>& stop) {
    // A name that list_checkpoints() takes for torn, until it is renamed.
    const std::string target = folder + "/" + manifest.name, temporary = target + ".tmp";
    RestoreProgress now{.name = manifest.name, .bytes = 0, .total = manifest.bytes};
    const TransferOptions options{.stop = stop,
                                  .moved =
                                      [&](std::int64_t bytes) {
                                          now.bytes += bytes;
                                          if (progress) progress(now);
                                      },
                                  .tier = ""};
    if (progress) progress(now);
    std::set<std::string> folders{temporary};
    for (const StoredFile& file : manifest.files) {
        const std::string path = temporary + "/" + file.name;
        std::error_code code;
        fs::create_directories(fs::path(path).parent_path(), code);
        if (code)
            return Error(code == std::errc::no_space_on_device ? ErrorKind::exhausted : ErrorKind::denied,
                         fmt::format("cannot make the folder of {}: {}", printable(path), code.message()));
        for (fs::path at = fs::path(path).parent_path(); at.string().size() > temporary.size(); at = at.parent_path())
            folders.insert(at.string());
        if (is_there_whole(path, file)) {
            options.moved(file.size);
            continue;
        }
        TRY(const ObjectInfo got, store.get_file(manifest.name + "/" + file.name, path, file.sha256, options));
        if (got.bytes != file.size)
            return Error(ErrorKind::conflict,
                         fmt::format("{} has {} bytes, its manifest says {}", file.name, got.bytes, file.size));
    }
    for (const std::string& each : folders) TRY_VOID(sync_folder(each));
    std::error_code code;
    fs::remove_all(target, code);  // a torn one of this step: there is no complete one
    fs::rename(temporary, target, code);
    if (code)
        return Error(ErrorKind::denied, fmt::format("cannot rename {}: {}", printable(temporary), code.message()));
    return sync_folder(folder);
}

// What a user may have meant whose URL leads to something above the folder of a run.
Result<std::string> nearby_run(ObjectStore& store) {
    std::string found;
    std::size_t seen = 0;
    TRY_VOID(store.list("", [&](const ObjectInfo& item) {
        const std::size_t at = item.key.find("/complete/step-");
        if (at != std::string::npos) found = item.key.substr(0, at);
        return found.empty() && ++seen < 5000;
    }));
    return found;
}

}  // namespace

Result<StoredManifest> read_stored_manifest(std::string_view json, const std::string& what) {
    TRY(StoredManifest manifest, codec::decode<StoredManifest>(json, what));
    const auto wrong = [&](const std::string& words) { return Error(ErrorKind::invalid, what + ": " + words); };
    if (manifest.format != 1) return wrong(fmt::format("format {}, this version knows 1", manifest.format));
    if (step_of_stored(manifest.name) != manifest.step) return wrong("its name is not of its step");
    std::int64_t bytes = 0;
    for (const StoredFile& file : manifest.files) {
        if (!is_inside(file.name)) return wrong("it names " + printable(file.name, 80) + ", which lies outside");
        if (!is_sha256(file.sha256) || file.size < 0) return wrong("it has no digest of " + printable(file.name, 80));
        bytes += file.size;
    }
    if (manifest.files.empty() || bytes != manifest.bytes) return wrong("its files do not add up");
    return manifest;
}

Result<std::vector<StoredName>> list_stored(ObjectStore& store, const TransferOptions& options) {
    std::vector<StoredName> names;
    TRY_VOID(store.list(
        std::string(kCompletePrefix),
        [&](const ObjectInfo& item) {
            std::string_view name = item.key;
            name.remove_prefix(kCompletePrefix.size());
            if (!name.ends_with(kManifestEnd)) return true;
            name.remove_suffix(kManifestEnd.size());
            if (const std::int64_t step = step_of_stored(name); step >= 0) names.push_back({std::string(name), step});
            return names.size() < kMostStoredFiles;
        },
        options));
    std::sort(names.begin(), names.end(),
              [](const auto& a, const auto& b) { return a.step != b.step ? a.step > b.step : a.name > b.name; });
    return names;
}

Result<StoredManifest> upload_checkpoint(ObjectStore& store, const std::string& folder, StoredManifest head,
                                         const TransferOptions& options) {
    head.name = fs::path(folder).filename().string();
    if (step_of_stored(head.name) != head.step)
        return Error(ErrorKind::invalid, printable(head.name, 60) + " is no name of a checkpoint");
    TRY(const auto files, files_below(folder));
    const auto digests = digests_of_program(folder);
    for (const std::string& name : files) {
        TRY(const ObjectInfo put, store.put_file(head.name + "/" + name, folder + "/" + name, options));
        const auto said = digests.find(name);
        if (said != digests.end() && said->second != put.sha256)
            return Error(ErrorKind::conflict,
                         fmt::format("{} is damaged: its SHA-256 is {}, the checkpoint's manifest says {}", name,
                                     put.sha256.substr(0, 16), said->second.substr(0, 16)));
        head.files.push_back({.name = name, .size = put.bytes, .sha256 = put.sha256});
        head.bytes += put.bytes;
    }
    if (head.files.empty())
        return Error(ErrorKind::conflict, printable(folder) + " was removed while it was being uploaded");
    head.uploaded_us = wall_clock_us();
    // Never in a colder tier: it is read to find out what there is.
    TransferOptions plain = options;
    plain.tier.clear();
    TRY_VOID(store.put_text(manifest_key(head.name), codec::encode(head), plain));
    return head;
}

Status prune_stored(ObjectStore& store, int keep) {
    TRY(const auto complete, list_stored(store));
    if (complete.empty()) return done();
    std::set<std::string> kept;
    for (std::size_t i = 0; i < complete.size(); ++i) {
        if (i < static_cast<std::size_t>(std::max(keep, 1)))
            kept.insert(complete[i].name);
        else
            TRY_VOID(store.remove(manifest_key(complete[i].name)));  // first: it is no checkpoint any more from here on
    }
    std::vector<std::string> gone;
    TRY_VOID(store.list("step-", [&](const ObjectInfo& item) {
        const std::string name = item.key.substr(0, item.key.find('/'));
        const std::int64_t step = step_of_stored(name);
        if (step >= 0 && step < complete.front().step && !kept.contains(name)) gone.push_back(item.key);
        return gone.size() < kMostListedObjects;
    }));
    for (const std::string& key : gone) TRY_VOID(store.remove(key));
    return done();
}

Result<std::optional<Restored>> restore_checkpoint(const std::vector<std::string>& urls, const std::string& folder,
                                                   const std::function<void(const RestoreProgress&)>& progress,
                                                   const std::function<bool()>& stop) {
    const TransferOptions options{.stop = stop, .moved = {}, .tier = ""};
    std::string passed_over;
    for (const std::string& text : urls) {
        TRY(const ObjectUrl url, read_object_url(text));
        TRY(const auto store, ObjectStore::open(url));
        TRY(const auto complete, list_stored(*store, options));
        for (const StoredName& each : complete) {
            auto json = store->get_text(manifest_key(each.name), kMostStoredManifest, options);
            auto manifest = json ? read_stored_manifest(*json, store->url_of(manifest_key(each.name)))
                                 : Result<StoredManifest>(json.error());
            const Status fetched =
                manifest ? fetch_checkpoint(*store, *manifest, folder, progress, stop) : Status(manifest.error());
            if (fetched) return std::optional(Restored{each.name, passed_over});
            // Damaged, or pruned meanwhile: the one before. Anything else may pass.
            const ErrorKind kind = fetched.error().kind();
            if (kind != ErrorKind::conflict && kind != ErrorKind::invalid && kind != ErrorKind::not_found)
                return fetched.error();
            passed_over +=
                fmt::format("{}{}: {}", passed_over.empty() ? "" : "; ", each.name, fetched.error().message());
        }
        if (complete.empty() && &text == &urls.back()) {
            TRY(const std::string near, nearby_run(*store));
            if (!near.empty())
                return Error(ErrorKind::not_found, "there is no complete checkpoint at " + url.text(), {},
                             "there are some at " + store->url_of(near));
        }
    }
    if (!passed_over.empty()) return Error(ErrorKind::conflict, "no checkpoint can be restored: " + passed_over);
    return std::optional<Restored>();
}

}  // namespace stoker
