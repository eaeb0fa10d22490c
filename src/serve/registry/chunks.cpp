#include "serve/registry/chunks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/document.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/sha256.h"
#include "io/worker.h"
#include "serve/models/weights_file.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFiles = 20'000;
constexpr std::size_t kMostIndex = 64u << 20;

bool is_weights(const std::string& path) {
    return path.ends_with(".gguf") || path.ends_with(".safetensors") || path.ends_with(".onnx");
}
bool is_pickle(const std::string& path) {
    for (const char* end : {".bin", ".pt", ".pth", ".ckpt", ".pkl"})
        if (path.ends_with(end)) return true;
    return false;
}

// "model-00002-of-00004.safetensors": part 2 of 4, and what all of them are called.
struct PartOf {
    std::string whole;
    int part = 0, of = 0;
};
std::optional<PartOf> part_of(const std::string& path) {
    const std::size_t dot = path.rfind('.'), at = path.rfind("-of-");
    if (dot == std::string::npos || at == std::string::npos || at > dot || at < 6) return std::nullopt;
    const std::size_t dash = path.rfind('-', at - 1);
    if (dash == std::string::npos) return std::nullopt;
    const std::string part = path.substr(dash + 1, at - dash - 1), of = path.substr(at + 4, dot - at - 4);
    const auto digits = [](const std::string& text) {
        return !text.empty() && text.size() <= 6 && text.find_first_not_of("0123456789") == std::string::npos;
    };
    if (!digits(part) || !digits(of)) return std::nullopt;
    return PartOf{path.substr(0, dash) + path.substr(dot), std::stoi(part), std::stoi(of)};
}

Error no_part(const std::string& what, const std::string& part) {
    return Error(ErrorKind::invalid, fmt::format("{} is of several files, and {} is missing", what, part), {},
                 "name all of them, or the folder that they are in");
}

// Every part that names of files, or an index of safetensors, speak of.
Status check_parts(const std::vector<ModelSource>& sources) {
    std::map<std::string, std::pair<int, std::set<int>>> parts;
    std::set<std::string> paths, wholes;
    for (const ModelSource& source : sources) {
        paths.insert(source.path);
        if (!is_weights(source.path)) continue;
        const auto part = part_of(source.path);
        wholes.insert(part ? part->whole : source.path);
        if (!part) continue;
        auto& [of, seen] = parts[part->whole];
        of = std::max(of, part->of);
        seen.insert(part->part);
    }
    for (const auto& [whole, numbers] : parts)
        for (int i = 1; i <= numbers.first; ++i)
            if (!numbers.second.contains(i)) return no_part(whole, fmt::format("part {} of {}", i, numbers.first));
    for (const ModelSource& source : sources) {
        if (!source.path.ends_with(".safetensors.index.json")) continue;
        TRY(const std::string text, read_file(source.on_disk, kMostIndex));
        TRY(const Document index, Document::parse_json(text, source.on_disk));
        const Node* map = index.root().is_mapping() ? index.root().find("weight_map") : nullptr;
        if (map == nullptr || !map->is_mapping()) continue;
        const std::size_t slash = source.path.rfind('/');
        const std::string folder = slash == std::string::npos ? "" : source.path.substr(0, slash + 1);
        for (const Member& member : map->members)
            if (!paths.contains(folder + member.value->text))
                return no_part(source.path, printable(member.value->text, 100));
    }
    // Quantizations of one model, side by side as they are published: each is a model of its own here.
    std::vector<std::string> ggufs;
    for (const std::string& whole : wholes)
        if (whole.ends_with(".gguf")) ggufs.push_back(whole);
    if (ggufs.size() > 1)
        return Error(ErrorKind::invalid,
                     fmt::format("{} and {} are two models", printable(ggufs[0], 100), printable(ggufs[1], 100)), {},
                     "push one of them; other precisions are models or versions of their own");
    // The same weights a second time, as Mistral's own loader reads them.
    for (const std::string& whole : wholes)
        if (fs::path(whole).filename().string().starts_with("consolidated") && wholes.size() > 1)
            return Error(ErrorKind::invalid, fmt::format("{} is a second copy of the weights", printable(whole, 100)),
                         {}, "name the files of one of both, with the JSON files");
    return done();
}

Status add_folder(const std::string& folder, std::vector<ModelSource>& sources) {
    std::error_code code;
    fs::recursive_directory_iterator at(folder, code);
    for (; !code && at != fs::recursive_directory_iterator(); at.increment(code)) {
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        if (name.starts_with('.')) {
            if (at->is_directory(ignored)) at.disable_recursion_pending();
            continue;
        }
        if (!at->is_regular_file(ignored)) continue;  // through links, as caches of hubs have them
        sources.push_back({at->path().string(), at->path().lexically_relative(folder).string(),
                           static_cast<std::int64_t>(at->file_size(ignored))});
        if (sources.size() > kMostFiles)
            return Error(ErrorKind::invalid, fmt::format("{} has more than {} files", printable(folder), kMostFiles));
    }
    if (!code) return done();
    return Error(ErrorKind::unavailable, fmt::format("cannot list {}: {}", printable(folder), code.message()));
}

}  // namespace

Result<std::vector<ModelSource>> sources_of(const std::vector<std::string>& paths) {
    std::vector<ModelSource> sources;
    for (const std::string& path : paths) {
        std::error_code code;
        const fs::file_status kind = fs::status(path, code);
        if (fs::is_directory(kind)) {
            TRY_VOID(add_folder(path, sources));
        } else if (fs::is_regular_file(kind)) {
            sources.push_back(
                {path, fs::path(path).filename().string(), static_cast<std::int64_t>(fs::file_size(path, code))});
        } else {
            return Error(
                fs::exists(kind) ? ErrorKind::invalid : ErrorKind::not_found,
                fmt::format("{} is {}", printable(path), fs::exists(kind) ? "no file and no folder" : "not there"));
        }
    }
    std::sort(sources.begin(), sources.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    for (std::size_t i = 1; i < sources.size(); ++i)
        if (sources[i].path == sources[i - 1].path)
            return Error(ErrorKind::invalid,
                         fmt::format("{} and {} would both be {}", printable(sources[i - 1].on_disk),
                                     printable(sources[i].on_disk), printable(sources[i].path)));
    return sources;
}

Result<WeightsHeader> header_of_sources(const std::vector<ModelSource>& sources) {
    std::optional<WeightsHeader> header;
    std::string pickle;
    for (const ModelSource& source : sources) {
        if (is_pickle(source.path)) pickle = source.path;
        if (!is_weights(source.path)) continue;
        TRY(const WeightsSource file, source_of_file(source.on_disk));
        TRY(WeightsHeader one, read_weights_header(file));
        if (!header) {
            header = std::move(one);
        } else {
            TRY(header, add_shard(std::move(*header), one));
        }
    }
    if (!pickle.empty())
        return Error(ErrorKind::invalid,
                     fmt::format("{} is a pickle of PyTorch, which runs code when it is loaded", printable(pickle)), {},
                     header ? "name the files of safetensors and the JSON files, without it"
                            : "convert it to safetensors or GGUF");
    if (!header)
        return Error(ErrorKind::invalid, "there are no weights in what is to be pushed", {},
                     "files that end with .safetensors, .gguf or .onnx");
    TRY_VOID(check_parts(sources));
    return *std::move(header);
}

std::int64_t chunk_size(const ModelVersion& version, std::size_t file, std::size_t chunk) {
    return std::min(version.chunk_bytes,
                    version.files[file].bytes - static_cast<std::int64_t>(chunk) * version.chunk_bytes);
}

Result<std::string> read_chunk(const std::string& path, std::int64_t offset, std::int64_t bytes) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file)
        return Error(errno == EACCES ? ErrorKind::denied : ErrorKind::not_found,
                     fmt::format("cannot open {}: {}", printable(path), std::strerror(errno)));
    std::string body(static_cast<std::size_t>(bytes), '\0');
    std::size_t got = 0;
    while (got < body.size()) {
        const ssize_t n = ::pread(file.get(), body.data() + got, body.size() - got, offset + static_cast<off_t>(got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return Error(ErrorKind::unavailable,
                         fmt::format("cannot read {}: {}", printable(path), std::strerror(errno)));
        if (n == 0)
            return Error(ErrorKind::conflict, printable(path) + " became shorter while it was being read", {},
                         "push it when whatever writes it is done");
        got += static_cast<std::size_t>(n);
    }
    return body;
}

Result<std::string> get_chunk(ObjectStore& store, const std::string& key, const std::string& digest, std::int64_t bytes,
                              const ModelTransfer& transfer) {
    for (int again = 0;; ++again) {
        TRY(std::string body, store.get_text(key, static_cast<std::size_t>(bytes),
                                             {.stop = transfer.stop, .moved = nullptr, .tier = ""}));
        if (static_cast<std::int64_t>(body.size()) == bytes && hex(sha256(body)) == digest) return body;
        if (again == 1)
            return Error(ErrorKind::conflict, fmt::format("{} is not what was pushed", store.url_of(key)), {},
                         "stoker models verify says what else is; push the model again");
    }
}

Status for_each_chunk(const ModelVersion& version, const ModelTransfer& transfer,
                      const std::function<Status(std::size_t file, std::size_t chunk)>& each) {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t f = 0; f < version.files.size(); ++f)
        for (std::size_t i = 0; i < version.files[f].chunks.size(); ++i) all.emplace_back(f, i);
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    Status status = done();
    std::atomic<bool> failed{false};
    const auto work = [&] {
        for (;;) {
            const std::size_t at = next++;
            if (at >= all.size() || failed) return;
            Status one = transfer.stop && transfer.stop() ? Status(Error(ErrorKind::unavailable, "stopped"))
                                                          : each(all[at].first, all[at].second);
            if (one) continue;
            const std::lock_guard guard(mutex);
            if (!failed.exchange(true)) status = std::move(one);
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::min(all.size(), static_cast<std::size_t>(std::max(1, transfer.parallel))); ++i)
        threads.push_back(masked_thread("chunks", work));
    work();
    for (std::thread& each_thread : threads) each_thread.join();
    return status;
}

}  // namespace stoker
