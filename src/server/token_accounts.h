// Which gateways' accounts a server charges to its projects: `tokens:` of its configuration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"

namespace stoker {

struct TokenProject {
    std::string gateway, charge;  // a project of the gateway's file; ORGANISATION/PROJECT of this server
    std::map<std::string, SourcePos> at{};
};
struct TokenAccount {
    std::string account;         // a folder, or the address of a database
    std::optional<int> gateway;  // of a database, which of its accounts: `name` of the gateway's file
    std::vector<TokenProject> projects;
    std::string others;  // to whom keys of any other project are charged
    std::map<std::string, SourcePos> at{};

    bool in_database() const;
    // Where tokens of a project of the gateway go.
    const std::string& charged_to(std::string_view project) const;
};
using TokenAccounts = std::vector<TokenAccount>;

RecordTable<TokenAccount> token_account_table();
void check_token_accounts(const TokenAccounts& accounts, Problems& problems);
std::string exact_text(const TokenAccounts& accounts);

}  // namespace stoker
