// The keys that stored secrets are sealed with (run/spec/secrets.h), looked after while a server runs: when the file of
// keys changes, or another version lies in the vault, what is stored is sealed anew at once, so that an old key can be
// taken away without a restart.
//
// STOKER_SECRETS_KEY_VAULT names a secret of Azure Key Vault, https://NAME.vault.azure.net/secrets/NAME, whose value is
// what the file of keys would be. It is asked for as the machine's managed identity: a token of the instance metadata
// service, at AZURE_POD_IDENTITY_AUTHORITY_HOST where that is set, of the identity AZURE_CLIENT_ID where there are
// several.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "io/log.h"

namespace stoker {

struct SealKeysOptions {
    std::string folder{};  // of the server
    std::shared_ptr<Log> log{};
    double file_every_s = 5, vault_every_s = 300, call_timeout_s = 20;
};

class SealKeys {
public:
    // Seals what is to be sealed before anybody reads it. Errors: as seal_secrets(); the vault does not answer.
    static Result<std::unique_ptr<SealKeys>> start(SealKeysOptions options);
    ~SealKeys();
    SealKeys(const SealKeys&) = delete;
    SealKeys& operator=(const SealKeys&) = delete;

private:
    explicit SealKeys(SealKeysOptions options);
    Status fetch();  // from the vault
    void run();
    std::string stamp() const;  // of the file: another, when it was written

    const SealKeysOptions options_;
    const std::string file_, vault_;
    std::string seen_;  // stamp, or text of the vault
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace stoker
