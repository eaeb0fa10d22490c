#include "server/seal_keys.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "base/document.h"
#include "base/text.h"
#include "io/http/http_client.h"
#include "io/worker.h"
#include "run/spec/secrets.h"
#include "server/log_events.h"
#include "server/webhook.h"

namespace stoker {
namespace {

constexpr std::string_view kVaultVersion = "7.4", kMetadataVersion = "2018-02-01";
constexpr std::string_view kMetadataHost = "http://169.254.169.254";
constexpr std::size_t kMostVaultAnswer = 256u << 10;

std::string text_of_variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(trim(value));
}

// A member of an object that is a text. unavailable, without anything of the answer: it may hold a secret.
Result<std::string> member_of(const HttpResponse& answer, const char* key, const std::string& who) {
    if (answer.status == 401 || answer.status == 403)
        return Error(ErrorKind::denied, fmt::format("{} answers {}", who, answer.status), {},
                     "give the machine's managed identity the role Key Vault Secrets User on that vault");
    if (answer.status == 404)
        return Error(ErrorKind::not_found, fmt::format("{} answers 404", who), {},
                     "STOKER_SECRETS_KEY_VAULT=https://VAULT.vault.azure.net/secrets/NAME, of a secret that is there");
    if (answer.status != 200) return Error(ErrorKind::unavailable, fmt::format("{} answers {}", who, answer.status));
    const auto document = Document::parse_json(answer.body, "answer");
    const Node* member = document ? document->root().find(key) : nullptr;
    if (member == nullptr || member->text.empty())
        return Error(ErrorKind::unavailable, fmt::format("{} answers without {}", who, key));
    return member->text;
}

Result<HttpResponse> vault_answer(const std::string& url, const std::string& query, std::string_view header,
                                  const std::string& value, double timeout_s) {
    TRY(const WebhookTarget target, webhook_target(url));
    TRY(auto client, HttpClient::make({.url = target.origin, .ca_pem = "", .own = {}}));
    HttpCall call;
    call.target = target.path + query;
    call.headers.add(std::string(header), value);
    call.timeout_s = timeout_s;
    call.max_body_bytes = kMostVaultAnswer;
    return client->call(call);
}

Result<std::string> key_text_of_vault(const std::string& vault, double timeout_s) {
    std::string metadata = text_of_variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    if (metadata.empty()) metadata = kMetadataHost;
    while (metadata.ends_with('/')) metadata.pop_back();
    const std::string client = text_of_variable("AZURE_CLIENT_ID");
    auto answer = vault_answer(metadata + "/metadata/identity/oauth2/token",
                               fmt::format("?api-version={}&resource=https%3A%2F%2Fvault.azure.net{}", kMetadataVersion,
                                           client.empty() ? "" : "&client_id=" + client),
                               "Metadata", "true", timeout_s);
    if (!answer)
        return std::move(answer.error())
            .while_doing("asking the instance metadata service for a token: it is there on machines of Azure only");
    TRY(const std::string token, member_of(*answer, "access_token", "the instance metadata service"));
    auto secret = vault_answer(vault, fmt::format("?api-version={}", kVaultVersion), "Authorization", "Bearer " + token,
                               timeout_s);
    if (!secret) return std::move(secret.error()).while_doing("asking the vault for the keys of stored secrets");
    return member_of(*secret, "value", "the vault");
}

}  // namespace

SealKeys::SealKeys(SealKeysOptions options)
    : options_(std::move(options)),
      file_(text_of_variable("STOKER_SECRETS_KEY_FILE")),
      vault_(text_of_variable("STOKER_SECRETS_KEY_VAULT")) {}

Result<std::unique_ptr<SealKeys>> SealKeys::start(SealKeysOptions options) {
    auto keys = std::unique_ptr<SealKeys>(new SealKeys(std::move(options)));
    if (!keys->vault_.empty() && !keys->file_.empty())
        return Error(ErrorKind::invalid, "STOKER_SECRETS_KEY_FILE and STOKER_SECRETS_KEY_VAULT are both set", {},
                     "keep one of the two");
    if (!keys->vault_.empty()) {
        if (!keys->vault_.starts_with("https://") && !keys->vault_.starts_with("http://127.0.0.1"))
            return Error(ErrorKind::invalid, "STOKER_SECRETS_KEY_VAULT is no https:// address", {},
                         "https://VAULT.vault.azure.net/secrets/NAME");
        TRY_VOID(keys->fetch());
    } else {
        keys->seen_ = keys->stamp();
    }
    TRY([[maybe_unused]] const int sealed, seal_secrets(keys->options_.folder));
    if (!keys->vault_.empty() || !keys->file_.empty())
        keys->thread_ = masked_thread("stoker-keys", [self = keys.get()] { self->run(); });
    return keys;
}

SealKeys::~SealKeys() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

Status SealKeys::fetch() {
    TRY(std::string text, key_text_of_vault(vault_, options_.call_timeout_s));
    if (options_.log)
        for (const std::string_view line : split_lines(text)) options_.log->hide(Secret(std::string(trim(line))));
    TRY_VOID(use_seal_keys(text));
    seen_ = std::move(text);
    return done();
}

std::string SealKeys::stamp() const {
    struct stat status {};
    if (file_.empty() || ::stat(file_.c_str(), &status) != 0) return {};
    return fmt::format("{} {} {} {}", status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

void SealKeys::run() {
    while (true) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait_for(
                lock, std::chrono::duration<double>(vault_.empty() ? options_.file_every_s : options_.vault_every_s),
                [this] { return stopping_; });
            if (stopping_) return;
        }
        Status looked = done();
        if (vault_.empty()) {
            std::string now = stamp();
            if (now == seen_) continue;
            seen_ = std::move(now);
        } else {
            const std::string before = seen_;
            looked = fetch();
            if (looked && seen_ == before) continue;
        }
        // With keys that do not open everything nothing is lost: what is sealed with the old one stays so, and is told.
        const auto sealed = looked ? seal_secrets(options_.folder) : Result<int>(looked.error());
        if (!options_.log) continue;
        if (sealed)
            options_.log->write(log_event("secrets.sealed"), {{"count", static_cast<std::int64_t>(*sealed)}});
        else
            options_.log->write(log_event("secrets.failed"), {{"error", sealed.error().message()}});
    }
}

}  // namespace stoker
