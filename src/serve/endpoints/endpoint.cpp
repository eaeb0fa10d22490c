#include "serve/endpoints/endpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/api_time.h"
#include "base/codec.h"
#include "base/newer_keys.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker {
namespace {

constexpr std::size_t kMostName = 50, kMostFile = 8u << 20, kMostRevisions = 50;
constexpr std::int64_t kFreshUs = 10'000'000;
constexpr std::string_view kFile = ".endpoint.json", kStatus = ".status.json";

template <class T>
Result<T> read_json(const std::string& path) {
    TRY(const std::string text, read_file(path, kMostFile));
    TRY(const Document document, Document::parse_json(text, path));
    Problems problems;
    T value;
    codec::read(document.root(), "", value, problems);
    codec::pass_over_unknown_keys(problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems)).while_doing("reading " + path);
    return value;
}

}  // namespace

const EndpointRevision* Endpoint::find(int revision) const {
    for (const EndpointRevision& each : revisions)
        if (each.number == revision) return &each;
    return nullptr;
}

std::optional<double> seconds_after_deploy(const EndpointRevision& revision, std::string_view at) {
    const auto deployed_us = parse_rfc3339(revision.created_at), at_us = at.empty() ? std::nullopt : parse_rfc3339(at);
    if (!deployed_us || !at_us || *at_us < *deployed_us) return std::nullopt;
    return static_cast<double>(*at_us - *deployed_us) / 1e6;
}

bool is_endpoint_name(std::string_view name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
               c == '_';
    };
    return !name.empty() && name.size() <= kMostName && std::all_of(name.begin(), name.end(), plain) &&
           name.front() != '.' && name.front() != '-';
}

Status set_bounds(Endpoint& endpoint, std::optional<int> least, std::optional<int> most, std::optional<double> idle_s) {
    if (least) endpoint.least = *least;
    if (most) endpoint.most = *most;
    if (idle_s) endpoint.idle_s = *idle_s;
    if (endpoint.least > endpoint.most)
        return Error(ErrorKind::invalid,
                     fmt::format("from {} to {} replicas is no range", endpoint.least, endpoint.most), {},
                     "give the least and the most together");
    return done();
}

Status go_back(Endpoint& endpoint, std::optional<int> revision) {
    int chosen = revision.value_or(0);
    if (!revision)
        for (const EndpointRevision& each : endpoint.revisions)
            if (each.number < endpoint.current) chosen = std::max(chosen, each.number);
    if (endpoint.find(chosen) == nullptr)
        return Error(revision ? ErrorKind::not_found : ErrorKind::conflict,
                     revision ? fmt::format("{} has no revision {}", endpoint.name, chosen)
                              : fmt::format("{} has no revision before {}", endpoint.name, endpoint.current),
                     {}, fmt::format("stoker endpoints describe {} lists them", endpoint.name));
    endpoint.current = chosen;
    endpoint.split.clear();
    return done();
}

Result<Endpoint> EndpointFolder::read(const std::string& name) const {
    if (!is_endpoint_name(name))
        return Error(ErrorKind::invalid, fmt::format("'{}' is no name of an endpoint", printable(name, 80)), {},
                     fmt::format("letters, digits and . _ -, up to {}", kMostName));
    auto endpoint = read_json<Endpoint>(fmt::format("{}/{}{}", folder_, name, kFile));
    if (!endpoint && endpoint.error().kind() == ErrorKind::not_found)
        return Error(ErrorKind::not_found, fmt::format("there is no endpoint {}", name), {},
                     "stoker endpoints lists them, stoker deploy FILE --endpoint makes one");
    return endpoint;
}

Result<std::vector<Endpoint>> EndpointFolder::list() const {
    std::vector<Endpoint> out;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
        const std::string name = entry.path().filename().string();
        if (!name.ends_with(kFile)) continue;
        auto endpoint = read(name.substr(0, name.size() - kFile.size()));
        if (!endpoint && endpoint.error().kind() == ErrorKind::not_found) continue;  // it was removed meanwhile
        if (!endpoint) return endpoint.error();
        out.push_back(std::move(*endpoint));
    }
    std::sort(out.begin(), out.end(), [](const Endpoint& a, const Endpoint& b) { return a.name < b.name; });
    return out;
}

Result<Endpoint> EndpointFolder::change(const std::string& name, bool may_make,
                                        const std::function<Status(Endpoint&)>& edit) const {
    std::error_code error;
    if (may_make) std::filesystem::create_directories(folder_, error);
    const std::string lock_path = folder_ + "/.lock";
    const UniqueFd lock(::open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    if (!lock && !may_make && errno == ENOENT) return read(name);  // not_found, in its words
    if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
        return Error(ErrorKind::unavailable, fmt::format("{}: {}", lock_path, std::strerror(errno)));
    auto found = read(name);
    if (!found && (!may_make || found.error().kind() != ErrorKind::not_found)) return found;
    Endpoint endpoint = found ? std::move(*found) : Endpoint{.name = name};
    TRY_VOID(edit(endpoint));
    // The oldest that nothing points at goes first.
    while (endpoint.revisions.size() > kMostRevisions) {
        const auto old = std::find_if(endpoint.revisions.begin(), endpoint.revisions.end(), [&](const auto& each) {
            return each.number != endpoint.current && !endpoint.split.contains(std::to_string(each.number));
        });
        if (old == endpoint.revisions.end()) break;
        endpoint.revisions.erase(old);
    }
    TRY_VOID(write_file_atomic(fmt::format("{}/{}{}", folder_, name, kFile), codec::write(endpoint).dump(2) + "\n"));
    return endpoint;
}

Status EndpointFolder::remove(const std::string& name) const {
    TRY_VOID(read(name));
    for (const std::string_view kind : {kFile, kStatus})
        if (const std::string path = fmt::format("{}/{}{}", folder_, name, kind);
            ::unlink(path.c_str()) != 0 && errno != ENOENT)
            return Error(ErrorKind::unavailable, fmt::format("{}: {}", path, std::strerror(errno)));
    return done();
}

Result<EndpointStatus> EndpointFolder::status(const std::string& name) const {
    return read_json<EndpointStatus>(fmt::format("{}/{}{}", folder_, name, kStatus));
}

std::optional<EndpointStatus> EndpointFolder::fresh_status(const std::string& name, std::int64_t now_us) const {
    auto told = status(name);
    if (!told) return std::nullopt;
    const auto at_us = parse_rfc3339(told->updated_at);
    if (!at_us || std::abs(now_us - *at_us) > kFreshUs) return std::nullopt;
    return std::move(*told);
}

Status EndpointFolder::write_status(const EndpointStatus& status) const {
    // No sync: it is told anew in a second.
    const std::string path = fmt::format("{}/{}{}", folder_, status.name, kStatus);
    const std::string text = codec::write(status).dump(0) + "\n";
    const std::string beside = path + ".new";
    const UniqueFd file(::open(beside.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600));
    if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::rename(beside.c_str(), path.c_str()) != 0)
        return Error(ErrorKind::unavailable, fmt::format("{}: {}", path, std::strerror(errno)));
    return done();
}

std::uint64_t EndpointFolder::version() const {
    std::uint64_t version = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
        if (!entry.path().string().ends_with(kFile)) continue;
        struct stat seen {};
        if (::stat(entry.path().c_str(), &seen) != 0) continue;
        const auto time = static_cast<std::uint64_t>(seen.st_mtim.tv_sec) * 1'000'000'000u +
                          static_cast<std::uint64_t>(seen.st_mtim.tv_nsec);
        version += (time ^ seen.st_ino) * 0x9e3779b97f4a7c15ULL;
    }
    return version;
}

}  // namespace stoker
