// Where a server keeps its state, and how others find the one that runs there.
#include <cstdlib>
#include <filesystem>

#include "base/document.h"
#include "base/text.h"
#include "io/files.h"
#include "server/server.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostServerFile = 1 << 20;

}  // namespace

std::string address_file(const std::string& folder) {
    return folder + "/server.json";
}

Result<std::string> state_folder(const std::string& given) {
    const auto absolute = [](const std::string& path) {
        std::error_code code;
        const fs::path full = fs::absolute(path, code).lexically_normal();
        std::string text = code ? path : full.string();
        while (text.size() > 1 && text.back() == '/') text.pop_back();
        return text;
    };
    if (!given.empty()) return absolute(given);
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    };
    if (const std::string folder = variable("STOKER_FOLDER"); !folder.empty()) return absolute(folder);
    if (const std::string state = variable("XDG_STATE_HOME"); state.starts_with('/'))
        return absolute(state + "/stoker");
    const std::string home = variable("HOME");
    if (!home.starts_with('/'))
        return Error(ErrorKind::invalid, "HOME is not set, so there is no usual place for what Stoker keeps", {},
                     "name one with --folder or STOKER_FOLDER");
    return absolute(home + "/.local/state/stoker");
}

Result<ServerAddress> server_of(const std::string& folder) {
    const std::string path = address_file(folder);
    std::error_code code;
    if (!fs::exists(path, code)) return Error(ErrorKind::not_found, "no server is running on " + folder);
    TRY(const std::string text, read_file(path, kMostServerFile));
    TRY(const Document document, Document::parse_json(text, path));
    const Node* url = document.root().find("url");
    const Node* pid = document.root().find("pid");
    const Node* ca = document.root().find("ca_pem");
    if (url == nullptr || pid == nullptr)
        return Error(ErrorKind::invalid, "expected url and pid", {path, 1, 1}, "stoker up writes this file anew");
    TRY(const std::string token, read_file(folder + "/token", kMostServerFile));
    return ServerAddress{.url = url->text,
                         .token = std::string(trim(token)),
                         .ca_pem = ca == nullptr ? "" : ca->text,
                         .pid = static_cast<std::int64_t>(pid->number)};
}

}  // namespace stoker
