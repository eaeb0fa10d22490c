#include "run/state/config_history.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "io/sha256.h"

namespace stoker {
namespace {

constexpr std::size_t kMostNoteBytes = 500;
constexpr std::size_t kMostOverrideBytes = 64 << 10;

}  // namespace

std::uint64_t newest_version(const ConfigVersions& versions) {
    return versions.empty() ? 0 : versions.back().version;
}

const ConfigVersion* find_version(const ConfigVersions& versions, std::uint64_t version) {
    const auto found = std::find_if(versions.begin(), versions.end(),
                                    [version](const ConfigVersion& each) { return each.version == version; });
    return found == versions.end() ? nullptr : &*found;
}

Error no_such_version(const ConfigVersions& versions, std::uint64_t version) {
    const std::uint64_t newest = newest_version(versions);
    if (newest == 0)
        return Error(ErrorKind::not_found, "there is no configuration yet", {},
                     "stoker config set FILE, or stoker up --config FILE");
    if (version >= 1 && version < versions.front().version)
        return Error(ErrorKind::not_found,
                     fmt::format("version {} of the configuration is not kept at hand any more", version), {},
                     "stoker journal show --object config has all of them");
    return Error(ErrorKind::not_found,
                 fmt::format("there is no version {} of the configuration: the newest is {}", version, newest));
}

Result<std::optional<ConfigChanged>> next_version(const ConfigVersions& versions, std::string text, std::string note,
                                                  const std::optional<std::map<std::string, std::string>>& overrides) {
    if (text.size() > kMostConfigBytes)
        return Error(ErrorKind::invalid,
                     fmt::format("the configuration has {} bytes, at most {} are kept", text.size(), kMostConfigBytes));
    if (find_invalid_utf8(text) != std::string_view::npos)
        return Error(ErrorKind::invalid, "the configuration is not UTF-8");
    if (note.size() > kMostNoteBytes || find_invalid_utf8(note) != std::string_view::npos)
        return Error(ErrorKind::invalid, fmt::format("a note has at most {} bytes of UTF-8", kMostNoteBytes));
    std::map<std::string, std::string> in_force = overrides          ? *overrides
                                                  : versions.empty() ? std::map<std::string, std::string>()
                                                                     : versions.back().overrides;
    std::size_t bytes = 0;
    for (const auto& [key, value] : in_force) bytes += key.size() + value.size();
    if (bytes > kMostOverrideBytes)
        return Error(ErrorKind::invalid, "the options of the command line are too long to be written down");
    const bool first = versions.empty();
    const bool nothing_said = first && text.empty() && in_force.empty();
    if (nothing_said || (!first && versions.back().text == text && versions.back().overrides == in_force))
        return std::optional<ConfigChanged>();
    std::string digest = hex(sha256(text));
    return std::optional(ConfigChanged{.version = newest_version(versions) + 1,
                                       .text = std::move(text),
                                       .note = std::move(note),
                                       .digest = std::move(digest),
                                       .overrides = std::move(in_force)});
}

bool add_version(ConfigVersions& versions, const Record& record, const ConfigChanged& body) {
    if (body.version != newest_version(versions) + 1) return false;
    versions.push_back({.version = body.version,
                        .at_us = record.at_us,
                        .actor = record.actor.text(),
                        .note = body.note,
                        .digest = body.digest,
                        .text = body.text,
                        .overrides = body.overrides});
    std::size_t bytes = 0, kept = 0;
    for (auto at = versions.rbegin(); at != versions.rend() && kept < kMostConfigVersions; ++at, ++kept) {
        bytes += at->text.size();
        if (bytes > kMostConfigHistory && kept > 0) break;
    }
    versions.erase(versions.begin(), versions.end() - static_cast<std::ptrdiff_t>(kept));
    return true;
}

}  // namespace stoker
