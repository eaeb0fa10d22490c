// Charges to projects what gateways have settled for tokens: reads their accounts (govern/ledger) again and again, and
// tells the core what is new, as one command whose record says up to where it goes. So each request is charged once,
// whoever is killed when; and invoices, charges, usage and budgets have machines and tokens from one journal.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io/log.h"
#include "io/segment_home.h"
#include "run/engine/engine.h"
#include "server/token_accounts.h"

namespace stoker {

using OpenTokenAccount = std::function<Result<std::shared_ptr<SegmentHome>>(const TokenAccount&)>;

struct TokenChargesOptions {
    OpenTokenAccount open_database{};  // none: only folders are read
    std::shared_ptr<Log> log{};
    bool by_itself = true;  // looks again and again; else when it is told to
};

class TokenCharges {
public:
    // The engine outlives it.
    TokenCharges(Engine& engine, TokenChargesOptions options);
    ~TokenCharges();
    TokenCharges(const TokenCharges&) = delete;
    TokenCharges& operator=(const TokenCharges&) = delete;

    void stop();
    void use(TokenAccounts accounts);
    // Once: charges what was there at the look before, which is on disk by now.
    void look();
    // What is wrong with accounts, as of the last look: of each in the order of the configuration, or empty.
    std::vector<std::string> faults() const;

private:
    Status charge(const TokenAccount& account);
    void run();

    Engine& engine_;
    const TokenChargesOptions options_;

    std::mutex look_mutex_;                                       // one look at a time; guards what follows
    std::map<std::string, std::uint64_t> seen_;                   // the last record at the look before, by account
    std::map<std::string, std::shared_ptr<SegmentHome>> opened_;  // databases
    std::map<std::string, std::string> places_;                   // of each account in this look, where it was found

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    TokenAccounts accounts_;
    std::vector<std::string> faults_;
    bool stopping_ = false, fresh_ = false;
    std::thread thread_;
};

}  // namespace stoker
