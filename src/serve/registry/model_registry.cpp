#include "serve/registry/model_registry.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>
#include <unordered_set>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/codec.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/sha256.h"
#include "serve/registry/chunks.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostManifest = 64u << 20;
constexpr std::size_t kMostVersions = 100'000;
constexpr std::int64_t kPushForgottenUs = 24LL * 3600 * 1'000'000;
constexpr std::string_view kModels = "models/", kPushing = "pushing/", kChunks = "chunks/", kEnd = ".json",
                           kRemoved = ".removed";
constexpr const char* kCleaning = "cleaning.json";

bool is_model_name(std::string_view name) {
    return !name.empty() && name.size() <= 60 &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == std::string_view::npos &&
           name.front() != '.' && name.front() != '_' && name.front() != '-';
}

Error no_name(std::string_view name) {
    return Error(ErrorKind::invalid, fmt::format("'{}' is no name of a model", printable(name, 80)), {},
                 "letters in lower case, digits and . _ -, up to 60: llama-3-8b, or llama-3-8b@2 for a version");
}

bool is_inside(const std::string& path) {
    if (path.empty() || path.size() > 800 || path.find('\0') != std::string::npos) return false;
    for (const std::string_view part : split(path, '/'))
        if (part.empty() || part == "." || part == "..") return false;
    return true;
}

std::string chunk_key(const std::string& digest) {
    return fmt::format("{}{}/{}", kChunks, digest.substr(0, 2), digest);
}
std::string version_key(const ModelVersion& v) {
    return fmt::format("{}{}/{:06}-{}{}", kModels, v.name, v.version, v.digest.substr(0, 8), kEnd);
}
std::string pushing_key(const ModelVersion& v) {
    return fmt::format("{}{}-{}{}", kPushing, v.name, v.digest.substr(0, 16), kEnd);
}

std::string digest_of(const std::vector<ModelFile>& files) {
    Sha256 sum;
    for (const ModelFile& file : files) {
        sum.add(fmt::format("{} {}\n", file.bytes, file.path));
        for (const std::string& chunk : file.chunks) sum.add(chunk);
    }
    return hex(sum.finish());
}

Error file_error(std::string_view what, const std::string& path, int code) {
    return Error(code == ENOENT   ? ErrorKind::not_found
                 : code == ENOSPC ? ErrorKind::exhausted
                 : code == EACCES ? ErrorKind::denied
                                  : ErrorKind::unavailable,
                 fmt::format("cannot {} {}: {}", what, printable(path), std::strerror(code)));
}

// What several machines or people have in common who push: who it was.
std::string who() {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    const char* user = std::getenv("USER");
    return fmt::format("{}{}{}", user != nullptr ? user : "", user != nullptr ? "@" : "", host);
}

}  // namespace

std::string ModelVersion::ref() const {
    return version > 0 ? fmt::format("{}@{}", name, version) : name;
}

Result<ModelRef> read_model_ref(std::string_view text) {
    ModelRef ref;
    const std::size_t at = text.find('@');
    ref.name = std::string(text.substr(0, at));
    if (!is_model_name(ref.name)) return no_name(text);
    if (at == std::string_view::npos || text.substr(at + 1) == "latest") return ref;
    const std::string_view digits = text.substr(at + 1);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), ref.version);
    if (code != std::errc() || end != digits.data() + digits.size() || ref.version < 1 || ref.version > 999'999)
        return Error(ErrorKind::invalid, fmt::format("'{}' is no version", printable(digits, 40)), {},
                     fmt::format("{0}@1, or {0} alone for the newest", ref.name));
    return ref;
}

Result<ModelVersion> read_model_version(std::string_view json, const std::string& what) {
    TRY(ModelVersion version, codec::decode<ModelVersion>(json, what, {.max_bytes = kMostManifest}));
    const auto wrong = [&](const std::string& words) { return Error(ErrorKind::invalid, what + ": " + words); };
    if (version.format != 1) return wrong(fmt::format("format {}, this version of Stoker knows 1", version.format));
    if (!is_model_name(version.name)) return wrong("it has no name");
    if (version.chunk_bytes < 1 || version.chunk_bytes > (1 << 30)) return wrong("chunks of no sane size");
    std::int64_t bytes = 0;
    std::set<std::string_view> paths;
    for (const ModelFile& file : version.files) {
        if (!is_inside(file.path)) return wrong("it names " + printable(file.path, 80) + ", which lies outside");
        if (!paths.insert(file.path).second) return wrong("it names " + printable(file.path, 80) + " twice");
        if (file.bytes < 0 || file.bytes > (1LL << 50) ||
            static_cast<std::int64_t>(file.chunks.size()) !=
                (file.bytes + version.chunk_bytes - 1) / version.chunk_bytes)
            return wrong("the chunks of " + printable(file.path, 80) + " do not add up");
        if (!std::all_of(file.chunks.begin(), file.chunks.end(), is_sha256))
            return wrong("it has no digest of " + printable(file.path, 80));
        bytes += file.bytes;
    }
    if (version.files.empty() || bytes != version.bytes) return wrong("its files do not add up");
    if (digest_of(version.files) != version.digest) return wrong("its digest is not of its files");
    return version;
}

Result<ModelRegistry> ModelRegistry::open(std::string_view url) {
    TRY(const ObjectUrl where, read_object_url(url));
    TRY(auto store, ObjectStore::open(where));
    return ModelRegistry(std::move(store));
}

Result<ModelRegistry::Keys> ModelRegistry::keys_of(const std::string& name) {
    Keys found;
    const std::string prefix = std::string(kModels) + name + "/";
    TRY_VOID(store_->list(prefix, [&](const ObjectInfo& item) {
        std::string_view rest = item.key;
        rest.remove_prefix(std::min(prefix.size(), rest.size()));
        int number = 0;
        const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
        if (code != std::errc() || end != rest.data() + 6 || number < 1) return true;
        if (!rest.ends_with(kEnd) && !rest.ends_with(kRemoved)) return true;
        found.highest = std::max(found.highest, number);
        if (rest.ends_with(kEnd)) found.versions.emplace_back(number, item.key);
        return found.versions.size() < kMostVersions;
    }));
    return found;
}

Result<std::vector<std::string>> ModelRegistry::names() {
    std::set<std::string> names;
    TRY_VOID(store_->list(std::string(kModels), [&](const ObjectInfo& item) {
        const std::string_view rest = std::string_view(item.key).substr(kModels.size());
        if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos)
            if (is_model_name(rest.substr(0, slash)) && rest.ends_with(kEnd)) names.emplace(rest.substr(0, slash));
        return names.size() < kMostVersions;
    }));
    return std::vector<std::string>(names.begin(), names.end());
}

Result<std::vector<int>> ModelRegistry::versions(const std::string& name) {
    TRY(const Keys keys, keys_of(name));
    std::vector<int> numbers;
    for (const auto& [number, key] : keys.versions)
        if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
    return numbers;
}

Result<ModelVersion> ModelRegistry::find(const ModelRef& ref) {
    if (!is_model_name(ref.name)) return no_name(ref.name);
    TRY(const Keys found, keys_of(ref.name));
    const auto& keys = found.versions;
    if (keys.empty()) {
        TRY(const std::vector<std::string> others, names());
        return Error(ErrorKind::not_found, fmt::format("{} has no model {}", url(), ref.name), {},
                     others.empty() ? "stoker models push NAME FILES puts one there"
                                    : "it has " + join(others, ", ").substr(0, 200));
    }
    const int number = ref.version > 0 ? ref.version : keys.back().first;
    std::vector<std::string> of_number;
    std::string all;
    for (const auto& [each, key] : keys) {
        if (each == number) of_number.push_back(key);
        if (all.size() < 200) all += (all.empty() ? "" : ", ") + std::to_string(each);
    }
    if (of_number.empty())
        return Error(ErrorKind::not_found, fmt::format("{} has no version {}", ref.name, number), {},
                     fmt::format("it has {}", all));
    if (of_number.size() > 1)
        return Error(ErrorKind::conflict, fmt::format("version {} of {} is being pushed twice", number, ref.name), {},
                     "both will choose another number: try again in a second");
    TRY(const std::string text, store_->get_text(of_number.front(), kMostManifest));
    TRY(ModelVersion version, read_model_version(text, store_->url_of(of_number.front())));
    if (version.name != ref.name || version.version != number)
        return Error(ErrorKind::invalid,
                     fmt::format("{} says that it is {}", store_->url_of(of_number.front()), version.ref()));
    return version;
}

Status ModelRegistry::send(const ModelVersion& version, const std::vector<ModelSource>& sources,
                           const ModelTransfer& transfer, ModelPushed& out) {
    ChunkProgress progress(transfer, version.bytes, "sending");
    std::mutex counting;
    std::set<std::string> begun;  // by digest: chunks of zeros, or of two files that are the same
    return for_each_chunk(version, transfer, [&](std::size_t f, std::size_t i) -> Status {
        const std::string& digest = version.files[f].chunks[i];
        const std::int64_t size = chunk_size(version, f, i);
        {
            const std::lock_guard guard(counting);
            if (!begun.insert(digest).second) {
                progress.add(size);
                return done();
            }
        }
        const TransferOptions options{.stop = transfer.stop, .moved = nullptr, .tier = ""};
        const auto there = store_->head(chunk_key(digest));
        if (!there && there.error().kind() != ErrorKind::not_found) return there.error();
        const bool has = there.ok() && there->bytes == size;
        if (!has) {
            TRY(std::string body,
                read_chunk(sources[f].on_disk, static_cast<std::int64_t>(i) * version.chunk_bytes, size));
            if (hex(sha256(body)) != digest)
                return Error(ErrorKind::conflict, printable(sources[f].on_disk) + " changed while it was being sent",
                             {}, "push it when whatever writes it is done");
            TRY_VOID(store_->put_text(chunk_key(digest), std::move(body), options));
        }
        progress.add(size);
        const std::lock_guard guard(counting);
        (has ? out.shared_bytes : out.sent_bytes) += size;
        return done();
    });
}

Status ModelRegistry::number(ModelVersion& version) {
    for (int round = 0; round < 20; ++round) {
        TRY(const Keys before, keys_of(version.name));
        version.version = before.highest + 1;
        if (version.version > 999'999) return Error(ErrorKind::exhausted, version.name + " has a million versions");
        const std::string key = version_key(version);
        TRY_VOID(store_->put_text(key, codec::encode(version)));
        TRY(const Keys after, keys_of(version.name));
        const auto others = std::count_if(after.versions.begin(), after.versions.end(), [&](const auto& each) {
            return each.first == version.version && each.second != key;
        });
        if (others == 0) return done();
        // Whoever sees another one gives way: of two that see each other both do, and come back at different times.
        TRY_VOID(store_->remove(key));
        const int wait_ms = std::stoi(random_hex(2), nullptr, 16) % (100 << std::min(round, 5));
        std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    }
    return Error(ErrorKind::conflict, "other pushes of " + version.name + " always took the number", {}, "try again");
}

Result<ModelPushed> ModelRegistry::push(const std::string& name, const std::vector<std::string>& paths,
                                        const std::string& note, const ModelTransfer& transfer) {
    if (!is_model_name(name)) return no_name(name);
    TRY(const std::vector<ModelSource> sources, sources_of(paths));
    ModelPushed out;
    ModelVersion& version = out.version;
    version.name = name;
    version.note = note;
    version.chunk_bytes = chunk_bytes_;
    version.created_by = who();
    TRY(version.header, header_of_sources(sources));
    for (const ModelSource& source : sources) {
        version.files.push_back({.path = source.path, .bytes = source.bytes, .chunks = {}});
        version.files.back().chunks.resize(static_cast<std::size_t>((source.bytes + chunk_bytes_ - 1) / chunk_bytes_));
        version.bytes += source.bytes;
    }
    {
        ChunkProgress progress(transfer, version.bytes, "reading");
        TRY_VOID(for_each_chunk(version, transfer, [&](std::size_t f, std::size_t i) -> Status {
            const std::int64_t size = chunk_size(version, f, i);
            TRY(const std::string body,
                read_chunk(sources[f].on_disk, static_cast<std::int64_t>(i) * chunk_bytes_, size));
            version.files[f].chunks[i] = hex(sha256(body));
            progress.add(size);
            return done();
        }));
    }
    version.digest = digest_of(version.files);
    TRY(const Keys there, keys_of(name));
    if (!there.versions.empty() &&
        there.versions.back().second.find("-" + version.digest.substr(0, 8)) != std::string::npos) {
        TRY(const ModelVersion newest, find({.name = name, .version = there.versions.back().first}));
        if (newest.digest == version.digest) {
            out.shared_bytes = newest.bytes;
            out.was_there = true;
            out.version = newest;
            return out;
        }
    }
    version.created_at = rfc3339(wall_clock_us());
    const std::string intent = pushing_key(version);
    TRY_VOID(store_->put_text(intent, codec::encode(version)));
    if (const auto cleaning = store_->head(kCleaning); cleaning || cleaning.error().kind() != ErrorKind::not_found) {
        (void)store_->remove(intent);
        if (!cleaning) return cleaning.error();
        return Error(ErrorKind::conflict, fmt::format("chunks of {} are being removed just now", url()), {},
                     "push again when that has ended; where it was cut off, stoker models clean ends it");
    }
    TRY_VOID(send(version, sources, transfer, out));
    TRY_VOID(number(version));
    (void)store_->remove(intent);  // one that stays is given up a day later
    return out;
}

Status ModelRegistry::fetch(const ModelVersion& version, const std::string& folder, const ModelTransfer& transfer) {
    std::error_code code;
    if (fs::exists(folder, code))
        return Error(ErrorKind::conflict, printable(folder) + " is there already", {},
                     "name a folder that is not there");
    const std::string part = folder + ".part";
    fs::create_directories(part, code);
    if (code) return Error(ErrorKind::denied, fmt::format("cannot make {}: {}", printable(part), code.message()));
    const UniqueFd alone(::open(part.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!alone) return file_error("open", part, errno);
    if (::flock(alone.get(), LOCK_EX | LOCK_NB) != 0)
        return Error(ErrorKind::conflict, printable(part) + " is being filled by another process");

    // What a fetch before this one left, and what has to come.
    std::vector<UniqueFd> files;
    std::vector<bool> old;
    std::int64_t missing = 0;
    std::set<std::string> folders{part};
    for (const ModelFile& file : version.files) {
        const std::string path = part + "/" + file.path;
        fs::create_directories(fs::path(path).parent_path(), code);
        if (code)
            return Error(ErrorKind::denied,
                         fmt::format("cannot make the folder of {}: {}", printable(path), code.message()));
        for (fs::path at = fs::path(path).parent_path(); at.string().size() > part.size(); at = at.parent_path())
            folders.insert(at.string());
        UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
        struct stat now {};
        if (!fd || ::fstat(fd.get(), &now) != 0) return file_error("write", path, errno);
        old.push_back(now.st_size > 0);
        if (now.st_size > file.bytes && ::ftruncate(fd.get(), file.bytes) != 0)
            return file_error("shorten", path, errno);
        missing += std::max<std::int64_t>(0, file.bytes - static_cast<std::int64_t>(now.st_blocks) * 512);
        files.push_back(std::move(fd));
    }
    struct statvfs disk {};
    if (::statvfs(part.c_str(), &disk) == 0) {
        const auto free = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
        if (missing > free)
            return Error(ErrorKind::exhausted, fmt::format("{} has {:.1f} GB free, and {} takes {:.1f} GB more",
                                                           printable(part), static_cast<double>(free) / 1e9,
                                                           version.ref(), static_cast<double>(missing) / 1e9));
    }
    ChunkProgress progress(transfer, version.bytes, "getting");
    TRY_VOID(for_each_chunk(version, transfer, [&](std::size_t f, std::size_t i) -> Status {
        const ModelFile& file = version.files[f];
        const std::int64_t size = chunk_size(version, f, i),
                           offset = static_cast<std::int64_t>(i) * version.chunk_bytes;
        const std::string path = part + "/" + file.path;
        if (old[f]) {
            const auto there = read_chunk(path, offset, size);
            if (there && hex(sha256(*there)) == file.chunks[i]) {
                progress.add(size);
                return done();
            }
        }
        TRY(const std::string body, get_chunk(*store_, chunk_key(file.chunks[i]), file.chunks[i], size, transfer));
        std::size_t written = 0;
        while (written < body.size()) {
            const ssize_t n = ::pwrite(files[f].get(), body.data() + written, body.size() - written,
                                       offset + static_cast<std::int64_t>(written));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return file_error("write", path, errno);
            written += static_cast<std::size_t>(n);
        }
        progress.add(size);
        return done();
    }));
    for (std::size_t f = 0; f < files.size(); ++f)
        if (::fsync(files[f].get()) != 0) return file_error("sync", part + "/" + version.files[f].path, errno);
    for (const std::string& each : folders) TRY_VOID(sync_folder(each));
    fs::rename(part, folder, code);
    if (code) return Error(ErrorKind::denied, fmt::format("cannot rename {}: {}", printable(part), code.message()));
    return sync_folder(fs::absolute(folder).parent_path().string());
}

Result<std::string> ModelRegistry::read(const ModelVersion& version, const std::string& path, std::size_t max_bytes) {
    for (const ModelFile& file : version.files) {
        if (file.path != path) continue;
        if (file.bytes > static_cast<std::int64_t>(max_bytes))
            return Error(ErrorKind::exhausted, fmt::format("{} of {} has {} bytes", path, version.ref(), file.bytes));
        std::string text;
        for (std::size_t i = 0; i < file.chunks.size(); ++i) {
            const std::int64_t size =
                std::min(version.chunk_bytes, file.bytes - static_cast<std::int64_t>(i) * version.chunk_bytes);
            TRY(const std::string body, get_chunk(*store_, chunk_key(file.chunks[i]), file.chunks[i], size, {}));
            text += body;
        }
        return text;
    }
    return Error(ErrorKind::not_found, fmt::format("{} has no {}", version.ref(), printable(path, 80)));
}

Result<std::vector<std::string>> ModelRegistry::verify(const ModelVersion& version, const ModelTransfer& transfer) {
    std::mutex adding;
    std::vector<std::string> problems;
    ChunkProgress progress(transfer, version.bytes, "comparing");
    TRY_VOID(for_each_chunk(version, transfer, [&](std::size_t f, std::size_t i) -> Status {
        const ModelFile& file = version.files[f];
        const std::int64_t size = chunk_size(version, f, i);
        const auto body = get_chunk(*store_, chunk_key(file.chunks[i]), file.chunks[i], size, transfer);
        if (!body && body.error().kind() != ErrorKind::not_found && body.error().kind() != ErrorKind::conflict)
            return body.error();
        progress.add(size);
        if (body) return done();
        const std::lock_guard guard(adding);
        if (problems.size() < 1000)
            problems.push_back(
                fmt::format("{}, from byte {}: {}", file.path, static_cast<std::int64_t>(i) * version.chunk_bytes,
                            body.error().kind() == ErrorKind::not_found ? "missing" : "not what was pushed"));
        return done();
    }));
    std::sort(problems.begin(), problems.end());
    return problems;
}

Status ModelRegistry::remove(const ModelVersion& version) {
    TRY_VOID(store_->put_text(fmt::format("{}{}/{:06}{}", kModels, version.name, version.version, kRemoved), "\n"));
    return store_->remove(version_key(version));
}

Result<ModelRegistry::Cleaned> ModelRegistry::clean(const ModelTransfer& transfer) {
    TRY_VOID(store_->put_text(kCleaning, fmt::format("{{\"since\": \"{}\"}}\n", rfc3339(wall_clock_us()))));
    const auto cleaned = [&]() -> Result<Cleaned> {
        Cleaned out;
        std::vector<std::string> pushes, models;
        TRY_VOID(store_->list(std::string(kPushing), [&](const ObjectInfo& item) {
            pushes.push_back(item.key);
            return pushes.size() < kMostVersions;
        }));
        for (const std::string& key : pushes) {
            const auto text = store_->get_text(key, kMostManifest);
            if (!text && text.error().kind() == ErrorKind::not_found) continue;  // has just ended
            if (!text) return text.error();
            const auto version = read_model_version(*text, key);
            const auto since = version ? parse_rfc3339(version->created_at) : std::nullopt;
            if (since && wall_clock_us() - *since < kPushForgottenUs)
                return Error(ErrorKind::conflict,
                             fmt::format("{} is being pushed by {} since {}", version->name, version->created_by,
                                         version->created_at),
                             {}, "clean when that has ended; a push that was cut off is given up after a day");
            out.given_up.push_back(version ? version->name : key);
            TRY_VOID(store_->remove(key));
        }
        TRY_VOID(store_->list(std::string(kModels), [&](const ObjectInfo& item) {
            if (item.key.ends_with(kEnd)) models.push_back(item.key);
            return models.size() < kMostVersions;
        }));
        if (models.size() == kMostVersions)
            return Error(ErrorKind::exhausted, fmt::format("{} has more than {} versions", url(), kMostVersions));
        std::unordered_set<std::string> live;
        for (const std::string& key : models) {
            TRY(const std::string text, store_->get_text(key, kMostManifest));
            TRY(const ModelVersion version, read_model_version(text, store_->url_of(key)));
            for (const ModelFile& file : version.files) live.insert(file.chunks.begin(), file.chunks.end());
        }
        std::vector<ObjectInfo> dead;
        TRY_VOID(store_->list(std::string(kChunks), [&](const ObjectInfo& item) {
            const std::string digest = item.key.substr(item.key.rfind('/') + 1);
            if (is_sha256(digest) && !live.contains(digest)) dead.push_back(item);
            return true;
        }));
        for (const ObjectInfo& each : dead) {
            if (transfer.stop && transfer.stop()) return Error(ErrorKind::unavailable, "stopped");
            TRY_VOID(store_->remove(each.key));
            ++out.chunks, out.bytes += each.bytes;
        }
        return out;
    }();
    TRY_VOID(store_->remove(kCleaning));
    return cleaned;
}

}  // namespace stoker
