// The versions of the server's configuration that are kept at hand; the journal has every one. Nothing here reads what
// they say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/state/records.h"

namespace stoker {

inline constexpr std::size_t kMostConfigBytes = 256 << 10;   // of one text
inline constexpr std::size_t kMostConfigVersions = 100;      // the newest
inline constexpr std::size_t kMostConfigHistory = 4u << 20;  // bytes of their texts together

struct ConfigVersion {
    std::uint64_t version = 0;
    std::int64_t at_us = 0;
    std::string actor, note, digest, text;         // digest: SHA-256 of the text, in hex
    std::map<std::string, std::string> overrides;  // what the command line said instead, by key
    friend bool operator==(const ConfigVersion&, const ConfigVersion&) = default;
};
template <class V>
void fields(V& visit, ConfigVersion& version) {
    visit("actor", version.actor);
    visit("at_us", version.at_us);
    visit("digest", version.digest);
    visit("note", version.note);
    visit("overrides", version.overrides);
    visit("text", version.text);
    visit("version", version.version);
}

using ConfigVersions = std::vector<ConfigVersion>;  // the last one is the newest

std::uint64_t newest_version(const ConfigVersions& versions);  // 0: there is none
const ConfigVersion* find_version(const ConfigVersions& versions, std::uint64_t version);
// There is no such version, or its text is in the journal only.
Error no_such_version(const ConfigVersions& versions, std::uint64_t version);

// The version that these words make, or none when they are in force already. invalid: too long, or no UTF-8.
Result<std::optional<ConfigChanged>> next_version(const ConfigVersions& versions, std::string text, std::string note,
                                                  const std::optional<std::map<std::string, std::string>>& overrides);
// Adds it, and lets the oldest go. False: it does not follow the newest.
bool add_version(ConfigVersions& versions, const Record& record, const ConfigChanged& body);

}  // namespace stoker
