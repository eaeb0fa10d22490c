#include "deploy/image_name.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDigestMark = "@sha256:";
constexpr std::size_t kHexDigits = 64, kMostName = 255, kMostTag = 128;
constexpr std::array<std::string_view, 3> kFileTransports = {"oci", "oci-archive", "docker-archive"};

bool all_of(std::string_view text, std::string_view allowed) {
    return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

Error wrong_image(std::string_view text, const std::string& why) {
    return Error(ErrorKind::invalid, "the image " + printable(text) + " " + why, {},
                 "name an image of a registry such as docker.io/library/python:3.12, a folder with an OCI bundle or "
                 "layout, or a file that `podman save` or `docker save` wrote");
}

// The grammar of the distribution specification, as far as it keeps nonsense from the tools that fetch.
Status check_registry_name(std::string_view given, const ImageName& name) {
    constexpr std::string_view kPath = "abcdefghijklmnopqrstuvwxyz0123456789._-/";
    constexpr std::string_view kTag = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const std::size_t slash = name.place.find('/');
    const std::string_view path = std::string_view(name.place).substr(slash + 1);
    if (name.place.size() > kMostName || !all_of(path, kPath) || path.front() == '/' || path.front() == '-' ||
        path.back() == '/' || path.find("//") != std::string_view::npos || path.find("/-") != std::string_view::npos)
        return wrong_image(given,
                           "is no file here, and no name of an image: those have lower-case letters, digits, "
                           "and . _ - / only");
    if (!all_of(name.registry(), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-:[]") ||
        name.registry().front() == '-')
        return wrong_image(given, "names no registry before its first slash");
    if (!name.tag.empty() && (name.tag.size() > kMostTag || !all_of(name.tag, kTag) || name.tag.front() == '-'))
        return wrong_image(given, "has no sound tag after its last colon");
    return done();
}

// "python:3.12" is docker.io/library/python:3.12; a first part with a dot or a port, or localhost, is a registry.
std::string with_registry(std::string_view path) {
    const std::size_t slash = path.find('/');
    const std::string_view first = path.substr(0, slash);
    const bool registry = slash != std::string_view::npos &&
                          (first.find_first_of(".:") != std::string_view::npos || first == "localhost");
    if (registry) return std::string(path);
    return (slash == std::string_view::npos ? "docker.io/library/" : "docker.io/") + std::string(path);
}

Result<ImageName> file_name(std::string_view given, const std::string& path, std::string_view transport) {
    ImageName name{.transport = std::string(transport), .place = path, .tag = {}, .digest = {}};
    std::error_code code;
    if (!transport.empty()) return name;
    if (fs::is_directory(path, code)) {
        if (!fs::exists(path + "/config.json", code) && fs::exists(path + "/oci-layout", code)) name.transport = "oci";
        return name;
    }
    if (!fs::is_regular_file(path, code)) return wrong_image(given, "does not exist");
    // Which of the two it is shows only inside; whoever pins it looks.
    name.transport = "oci-archive";
    return name;
}

}  // namespace

std::string ImageName::registry() const {
    return transport == "docker" ? place.substr(0, place.find('/')) : std::string();
}

std::string ImageName::text() const {
    std::string text = transport.empty() || transport == "docker" ? place : transport + ":" + place;
    if (!tag.empty()) text += ":" + tag;
    return digest.empty() ? text : text + "@" + digest;
}

std::string enroot_name(const ImageName& name) {
    if (name.transport != "docker") return {};
    const std::size_t slash = name.place.find('/');
    std::string text = name.place.substr(slash + 1);
    // Enroot's own registry where none is named is Docker's, which answers under another name than "docker.io".
    if (name.registry() != "docker.io")
        text = name.registry() + "#" + text;
    else if (text.starts_with("library/"))
        text.erase(0, std::string_view("library/").size());
    const std::string& version = name.digest.empty() ? name.tag : name.digest;
    return version.empty() ? text : text + ":" + version;
}

std::string pyxis_image(const std::string& written) {
    if (written.starts_with('/') || written.starts_with('.')) return written;
    const auto name = parse_image_name(written, "/");
    const std::string known = name ? enroot_name(*name) : std::string();
    return known.empty() ? written : known;
}

std::string digest_of_image(std::string_view text) {
    const std::size_t at = text.rfind(kDigestMark);
    if (at == std::string_view::npos || text.size() - at - kDigestMark.size() != kHexDigits) return {};
    const std::string_view digest = text.substr(at + 1);
    return all_of(digest.substr(7), "0123456789abcdef") ? std::string(digest) : std::string();
}

bool is_pinned_image(std::string_view text) {
    return !digest_of_image(text).empty();
}

Result<ImageName> parse_image_name(std::string_view given, const std::string& folder) {
    std::string_view text = trim(given);
    if (text.empty()) return wrong_image(given, "has no name");
    if (find_invalid_utf8(text) != std::string_view::npos || text.find('\0') != std::string_view::npos)
        return wrong_image(given, "is not UTF-8");
    const std::string digest = digest_of_image(text);
    if (!digest.empty()) text.remove_suffix(digest.size() + 1);
    for (const std::string_view transport : kFileTransports) {
        if (!text.starts_with(transport) || text.substr(transport.size()).substr(0, 1) != ":") continue;
        const fs::path path = (fs::path(folder) / text.substr(transport.size() + 1)).lexically_normal();
        TRY(ImageName name, file_name(given, path.string(), transport));
        name.digest = digest;
        return name;
    }
    bool registry = false;
    for (const std::string_view prefix : {"docker://", "docker:"})
        if (!registry && text.starts_with(prefix)) text.remove_prefix(prefix.size()), registry = true;
    const std::string path = (fs::path(folder) / text).lexically_normal().string();
    std::error_code code;
    if (!registry && digest.empty() && (text[0] == '/' || text[0] == '.' || text[0] == '~' || fs::exists(path, code)))
        return file_name(given, path, "");
    if (digest.empty() && text.find('@') != std::string_view::npos)
        return wrong_image(given, "has no sound digest: expected @sha256: and 64 digits of 0-9 and a-f");
    ImageName name{.transport = "docker", .place = {}, .tag = {}, .digest = digest};
    const std::size_t colon = text.rfind(':');
    if (colon != std::string_view::npos && text.find('/', colon) == std::string_view::npos) {
        name.tag = text.substr(colon + 1);
        text = text.substr(0, colon);
        if (name.tag.empty()) return wrong_image(given, "has nothing after its last colon");
    }
    if (name.tag.empty() && digest.empty()) name.tag = "latest";
    name.place = with_registry(text);
    TRY_VOID(check_registry_name(given, name));
    return name;
}

}  // namespace stoker
