// What the API says about the configuration of the server. As in views.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "server/config_control.h"

namespace stoker::api {

struct ConfigItem {
    std::uint64_t version = 0;  // 0: nothing was ever said
    std::string set_at, actor, note, digest;
    std::map<std::string, std::string> overrides;  // what the command line said instead, by key
    std::int64_t bytes = 0;                        // of the text
};
struct ConfigText {
    ConfigItem item;
    std::string text;
};
struct ConfigView {
    ConfigItem item;
    std::string text;
    std::vector<ConfigSetting> settings;  // as they are in force; none where no server runs
};
struct ConfigVersionList {
    std::vector<ConfigItem> items;  // newest first
};
struct ConfigSet {
    std::uint64_t version = 0;
    bool repeated = false;  // it was in force already
    std::vector<std::string> applied, needs_restart, overridden;
};

struct ConfigBody {
    std::optional<std::string> text;  // has to be there, and may say nothing
    std::string note;
};
struct RollbackBody {
    std::uint64_t version = 0;
    std::string note;
};

template <class V>
void fields(V& visit, ConfigItem& v) {
    visit("actor", v.actor);
    visit("bytes", v.bytes);
    visit("digest", v.digest);
    visit("note", v.note);
    visit("overrides", v.overrides);
    visit("set_at", v.set_at);
    visit("version", v.version);
}
template <class V>
void fields(V& visit, ConfigText& v) {
    visit("item", v.item);
    visit("text", v.text);
}
template <class V>
void fields(V& visit, ConfigView& v) {
    visit("item", v.item);
    visit("settings", v.settings);
    visit("text", v.text);
}
template <class V>
void fields(V& visit, ConfigVersionList& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, ConfigSet& v) {
    visit("applied", v.applied);
    visit("needs_restart", v.needs_restart);
    visit("overridden", v.overridden);
    visit("repeated", v.repeated);
    visit("version", v.version);
}
template <class V>
void fields(V& visit, ConfigBody& v) {
    visit("note", v.note);
    visit("text", v.text);
}
template <class V>
void fields(V& visit, RollbackBody& v) {
    visit("note", v.note);
    visit("version", v.version);
}

}  // namespace stoker::api
namespace stoker {
template <class V>
void fields(V& visit, ConfigSetting& v) {
    visit("key", v.key);
    visit("live", v.live);
    visit("pending_restart", v.pending_restart);
    visit("source", v.source);
    visit("value", v.value);
}
}  // namespace stoker
