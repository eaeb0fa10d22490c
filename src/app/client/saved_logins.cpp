#include "app/client/saved_logins.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "base/api_time.h"
#include "base/codec.h"
#include "base/document.h"
#include "io/files.h"
#include "io/process.h"
#include "io/user_file.h"

namespace stoker {

template <class V>
void fields(V& visit, SavedLogin& login) {
    visit("expires_at", login.expires_at);
    visit("token", login.token);
    visit("user", login.user);
}

namespace {

constexpr std::size_t kMostLoginBytes = 1u << 20;
using SavedLogins = std::map<std::string, SavedLogin>;

// The same server with and without a slash behind it.
std::string plain(std::string url) {
    while (url.ends_with('/')) url.pop_back();
    return url;
}

Result<SavedLogins> load(const std::string& path) {
    SavedLogins logins;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return logins;
    TRY(const std::string text, read_file(path, kMostLoginBytes));
    TRY(const Document document, Document::parse_json(text, path));
    Problems problems;
    codec::read(document.root(), "logins", logins, problems);
    if (problems.empty()) return logins;
    problems.front().remedy = "remove the file, and log in again";
    return Error(ErrorKind::invalid, std::move(problems));
}

bool is_over(const SavedLogin& login) {
    const auto ends = parse_rfc3339(login.expires_at);
    return ends && *ends <= wall_clock_us();
}

}  // namespace

Result<std::string> saved_logins_path() {
    return user_file("XDG_CONFIG_HOME", ".config", "logins.json", "your logins");
}

Result<SavedLogin> saved_login(const std::string& url) {
    const auto path = saved_logins_path();
    if (!path) return SavedLogin{};  // no home, and nothing kept there
    TRY(const SavedLogins logins, load(*path));
    const auto found = logins.find(plain(url));
    return found == logins.end() || is_over(found->second) ? SavedLogin{} : found->second;
}

Status save_login(const std::string& url, const SavedLogin& login) {
    TRY(const std::string path, saved_logins_path());
    TRY(SavedLogins logins, load(path));
    std::erase_if(logins, [](const auto& each) { return is_over(each.second); });
    if (login.token.empty())
        logins.erase(plain(url));
    else
        logins[plain(url)] = login;
    const ::mode_t before = ::umask(0077);
    Status written = write_user_file(path, codec::write(logins).dump() + "\n");
    ::umask(before);
    return written;
}

}  // namespace stoker
