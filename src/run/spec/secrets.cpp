#include "run/spec/secrets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/digest.h"
#include "base/paths.h"
#include "base/text.h"
#include "io/files.h"
#include "io/random_bytes.h"
#include "io/seal.h"

namespace stoker {
namespace {

constexpr std::string_view kReference = "secret://", kOfServer = "secret://env/", kOfFile = "secret://file/",
                           kStored = "secret://stored/", kAsFile = "#file";
constexpr std::size_t kMostSecretBytes = 32 * 1024;
constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kMostOfSeal = 100;  // bytes that a seal adds

std::string secrets_folder(const std::string& folder) {
    return folder + "/secrets";
}

Status write_private(const std::string& path, std::string_view text) {
    const std::string temporary = path + "." + random_hex(6) + ".tmp";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool whole = fd >= 0;
    for (std::string_view rest = text; whole && !rest.empty();) {
        const ssize_t put = ::write(fd, rest.data(), rest.size());
        whole = put > 0;
        if (whole) rest.remove_prefix(static_cast<std::size_t>(put));
    }
    whole = whole && ::fsync(fd) == 0;
    if (fd >= 0) ::close(fd);
    if (whole && ::rename(temporary.c_str(), path.c_str()) == 0) return done();
    ::unlink(temporary.c_str());
    return Error(ErrorKind::unavailable, "cannot write " + printable(path));
}

// By way of links, too.
bool really_lies_in(const std::string& file, const std::string& folder) {
    std::error_code code;
    const std::string real = std::filesystem::weakly_canonical(file, code).string();
    return lies_in(real, std::filesystem::weakly_canonical(folder, code).string());
}

// Of this installation: with it, an id says nothing of a value that somebody guesses.
Result<std::string> secrets_key(const std::string& folder) {
    const std::string at = secrets_folder(folder), file = at + "/key";
    std::error_code code;
    std::filesystem::create_directories(at, code);
    ::chmod(at.c_str(), 0700);
    if (!std::filesystem::exists(file, code)) TRY_VOID(write_private(file, random_hex(32)));
    return read_file(file, 1000);
}

Result<std::vector<std::string>> keys_in(std::string_view text) {
    std::vector<std::string> keys;
    for (const std::string_view line : split_lines(text)) {
        if (trim(line).empty() || trim(line).starts_with('#')) continue;
        TRY(std::string key, read_seal_key(line));
        keys.push_back(std::move(key));
    }
    return keys;
}

// Of this process, as somebody fetched them.
struct GivenKeys {
    std::mutex mutex;  // guards keys
    std::vector<std::string> keys;
};
GivenKeys& given_keys() {
    static GivenKeys given;
    return given;
}

// The first seals, all open; none: nothing is sealed.
Result<std::vector<std::string>> seal_keys() {
    constexpr std::size_t kMostKeys = 16 * 1024;
    {
        const std::lock_guard guard(given_keys().mutex);
        if (!given_keys().keys.empty()) return given_keys().keys;
    }
    const char *file = std::getenv("STOKER_SECRETS_KEY_FILE"), *value = std::getenv("STOKER_SECRETS_KEY");
    std::string text = value == nullptr ? "" : value;
    if (file != nullptr && *file != '\0') {
        auto read = read_file(file, kMostKeys);
        if (!read)
            return Error(read.error().kind(),
                         fmt::format("cannot read the keys of stored secrets in {}", printable(file, 200)), {},
                         "STOKER_SECRETS_KEY_FILE names a file that the server's user can read");
        text = std::move(*read);
    }
    TRY(std::vector<std::string> keys, keys_in(text));
    if (keys.empty() && file != nullptr && *file != '\0')
        return Error(ErrorKind::invalid, fmt::format("there is no key in {}", printable(file, 200)), {},
                     "openssl rand -hex 32");
    return keys;
}

Result<std::string> opened(const std::vector<std::string>& keys, const std::string& id, std::string bytes) {
    if (!is_sealed(bytes)) return bytes;
    for (const std::string& key : keys)
        if (is_sealed_with(key, bytes)) return open_sealed(key, id, bytes);
    return Error(
        ErrorKind::denied,
        keys.empty() ? "it is sealed, and there is no key" : "it is sealed with a key that is not among those given",
        {}, "STOKER_SECRETS_KEY_FILE names the file of keys; an older one stands below the newest there");
}

bool is_id(std::string_view text) {
    return text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Error no_such_reference(std::string_view variable, std::string_view value) {
    // Not the value: it may be a secret that was written where a reference belongs.
    return Error(ErrorKind::invalid,
                 fmt::format("environment.{}: a reference of {} characters that means nothing", printable(variable, 60),
                             value.size()),
                 {}, "secret://env/NAME names a variable of the server, secret://file/PATH a file of it");
}

// The reference under which the value lies now.
Result<std::string> keep_plain(const std::string& folder, const std::string& plain) {
    TRY(const std::string key, secrets_key(folder));
    const std::string id = sha256_hex(key + plain).substr(0, kIdDigits);
    const std::string path = secrets_folder(folder) + "/" + id;
    std::error_code code;
    if (std::filesystem::exists(path, code)) return std::string(kStored) + id;
    TRY(const auto keys, seal_keys());
    if (keys.empty()) {
        TRY_VOID(write_private(path, plain));
    } else {
        TRY(const std::string sealed, seal(keys.front(), id, plain));
        TRY_VOID(write_private(path, sealed));
    }
    return std::string(kStored) + id;
}

std::string_view without_file(std::string_view reference) {
    if (reference.ends_with(kAsFile)) reference.remove_suffix(kAsFile.size());
    return reference;
}

Status store_one(const std::string& folder, const std::string& variable, std::string& value) {
    const bool given = value.starts_with(kSecretValue);
    if (!given && value.starts_with(kReference)) {
        const std::string_view plain = without_file(value);
        const bool sound = (plain.starts_with(kOfServer) && plain.size() > kOfServer.size()) ||
                           (plain.starts_with(kOfFile) && plain.size() > kOfFile.size()) ||
                           (plain.starts_with(kStored) && is_id(plain.substr(kStored.size())));
        return sound ? done() : Status(no_such_reference(variable, value));
    }
    if (!given && (value.empty() || !names_a_secret(variable))) return done();
    const std::string plain = given ? value.substr(kSecretValue.size()) : value;
    if (plain.size() > kMostSecretBytes)
        return Error(ErrorKind::invalid, fmt::format("environment.{} has {} bytes, at most {} are kept",
                                                     printable(variable, 60), plain.size(), kMostSecretBytes));
    TRY(value, keep_plain(folder, plain));
    return done();
}

// The address without what stands behind its host; npos: it has nothing there.
std::size_t end_of_host(std::string_view to) {
    const std::size_t scheme = to.starts_with("https://") ? 8 : to.starts_with("http://") ? 7 : std::string_view::npos;
    if (scheme == std::string_view::npos) return scheme;
    const std::size_t end = to.find_first_of("/?#", scheme);
    if (end == std::string_view::npos) return to.find('@', scheme) == end ? end : to.size();
    return end + 1 == to.size() && to.find('@', scheme) == std::string_view::npos ? std::string_view::npos : end;
}

Status store_notify(const std::string& folder, NotifySpec& notify) {
    const std::size_t end = end_of_host(notify.to);
    if (end == std::string::npos) return done();
    if (const std::size_t at = notify.to.find(kStored); at != std::string::npos) {
        if (at == end + 1 && is_id(std::string_view(notify.to).substr(at + kStored.size()))) return done();
        return Error(ErrorKind::invalid, "notify: a reference that means nothing", {}, "write the address itself");
    }
    const std::size_t scheme = notify.to.find("://") + 3, user = notify.to.rfind('@', end);
    const std::size_t host = user == std::string::npos || user < scheme ? scheme : user + 1;
    TRY(const std::string reference, keep_plain(folder, notify.to));
    notify.to = notify.to.substr(0, scheme) + notify.to.substr(host, end - host) + "/" + reference;
    return done();
}

}  // namespace

bool is_secret_reference(std::string_view value) {
    return value.starts_with(kReference);
}

bool is_secret_file(std::string_view value) {
    return is_secret_reference(value) && !value.starts_with(kSecretValue) && value.ends_with(kAsFile);
}

bool names_a_secret(std::string_view variable) {
    std::string upper(variable);
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
    // Words between underscores: TOKENIZERS_PARALLELISM and MAX_TOKENS are none.
    std::string_view before;
    for (const std::string_view word : split(upper, '_')) {
        if (word == "TOKEN" || word == "SECRET" || word == "PASSWORD" || word == "PASSWD" || word == "CREDENTIALS" ||
            word == "APIKEY")
            return true;
        if (word == "KEY" && (before == "API" || before == "ACCESS" || before == "PRIVATE" || before == "ACCOUNT"))
            return true;
        before = word;
    }
    return false;
}

Status store_secrets(const std::string& folder, RunSpec& spec) {
    for (auto& [variable, value] : spec.environment) TRY_VOID(store_one(folder, variable, value));
    if (spec.notify)
        for (NotifySpec& notify : *spec.notify) TRY_VOID(store_notify(folder, notify));
    for (GraphStep& step : spec.steps) TRY_VOID(store_secrets(folder, step.run));
    return done();
}

Result<std::string> read_notify(const std::string& folder, std::string_view to) {
    const std::size_t at = to.find(kStored);
    return at == std::string_view::npos ? Result<std::string>(std::string(to)) : read_secret(folder, to.substr(at));
}

Result<std::string> read_secret(const std::string& folder, std::string_view reference) {
    reference = without_file(reference);
    if (reference.starts_with(kOfServer)) {
        const std::string name(reference.substr(kOfServer.size()));
        if (const char* value = std::getenv(name.c_str())) return std::string(value);
        return Error(ErrorKind::not_found,
                     fmt::format("{}: the server has no such variable", printable(reference, 200)), {},
                     "set it where the server is started");
    }
    const bool stored = reference.starts_with(kStored);
    if (!stored && !reference.starts_with(kOfFile))
        return Error(ErrorKind::invalid, "a reference that means nothing: " + printable(reference, 200));
    const std::string_view rest = reference.substr(stored ? kStored.size() : kOfFile.size());
    // From the root, with or without a second slash: a server has no folder that its users know.
    const std::string root = rest.starts_with('/') ? "" : "/";
    if (!stored && really_lies_in(root + std::string(rest), folder))
        return Error(ErrorKind::denied,
                     fmt::format("{}: the server's own folder is nobody's", printable(reference, 200)), {},
                     "name a file elsewhere");
    auto text =
        read_file((stored ? secrets_folder(folder) + "/" : root) + std::string(rest), kMostSecretBytes + kMostOfSeal);
    if (!text)
        return Error(text.error().kind(),
                     stored ? fmt::format("{} is not in {}/secrets (a restored journal has none)",
                                          printable(reference, 200), printable(folder))
                            : fmt::format("{}: the server cannot read the file", printable(reference, 200)),
                     {}, stored ? "submit it again, with the value" : "give the server's user the right to read it");
    if (stored) {
        TRY(const auto keys, seal_keys());
        auto plain = opened(keys, std::string(rest), std::move(*text));
        if (!plain)
            return Error(plain.error().kind(),
                         fmt::format("{}: {}", printable(reference, 200), plain.error().message()), {},
                         plain.error().problems().front().remedy);
        return plain;
    }
    if (text->ends_with('\n')) text->pop_back();
    return text;
}

Status use_seal_keys(std::string text) {
    TRY(std::vector<std::string> keys, keys_in(text));
    const std::lock_guard guard(given_keys().mutex);
    given_keys().keys = std::move(keys);
    return done();
}

Result<int> seal_secrets(const std::string& folder) {
    TRY(const auto keys, seal_keys());
    int sealed = 0;
    std::error_code code;
    for (std::filesystem::directory_iterator it(secrets_folder(folder), code), end; !code && it != end;
         it.increment(code)) {
        const std::string id = it->path().filename().string();
        if (!is_id(id)) continue;
        TRY(std::string bytes, read_file(it->path().string(), kMostSecretBytes + kMostOfSeal));
        if (keys.empty() ? !is_sealed(bytes) : is_sealed_with(keys.front(), bytes)) continue;
        auto plain = opened(keys, id, std::move(bytes));
        if (!plain)
            return Error(plain.error().kind(), fmt::format("a stored secret, {}: {}", id, plain.error().message()), {},
                         plain.error().problems().front().remedy);
        TRY(const std::string fresh, seal(keys.front(), id, *plain));
        TRY_VOID(write_private(it->path().string(), fresh));
        ++sealed;
    }
    return sealed;
}

void collect_secrets(const RunSpec& spec, std::set<std::string>& out) {
    for (const auto& [variable, value] : spec.environment)
        if (value.starts_with(kStored)) out.insert(std::string(without_file(value)));
    if (spec.notify)
        for (const NotifySpec& notify : *spec.notify)
            if (const std::size_t at = notify.to.find(kStored); at != std::string::npos)
                out.insert(notify.to.substr(at));
    for (const GraphStep& step : spec.steps) collect_secrets(step.run, out);
}

void forget_secrets(const std::string& folder, const std::set<std::string>& needed) {
    std::error_code code;
    for (std::filesystem::directory_iterator it(secrets_folder(folder), code), end; !code && it != end;
         it.increment(code)) {
        const std::string name = it->path().filename().string();
        std::error_code ignored;
        if (name != "key" && !needed.contains(std::string(kStored) + name))
            std::filesystem::remove(it->path(), ignored);
    }
}

}  // namespace stoker
