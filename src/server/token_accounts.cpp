#include "server/token_accounts.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {
namespace {

constexpr double kMostGateway = 65'535;

SourcePos place_of(const std::map<std::string, SourcePos>& at, const char* key) {
    const auto found = at.find(key);
    return found == at.end() ? SourcePos{} : found->second;
}

bool names_a_project(std::string_view text) {
    const std::size_t slash = text.find('/');
    return slash != std::string_view::npos && slash > 0 && slash + 1 < text.size() &&
           text.find('/', slash + 1) == std::string_view::npos;
}

RecordTable<TokenProject> token_project_table() {
    return RecordTable<TokenProject>("token project", "To whom the keys of a gateway's project are charged.")
        .text("gateway", &TokenProject::gateway, "The project as the gateway's file names it.", "research")
        .required()
        .text("charge", &TokenProject::charge, "The project of this server.", "hospital/imaging")
        .required();
}

}  // namespace

bool TokenAccount::in_database() const {
    return account.starts_with("postgresql://") || account.starts_with("postgres://");
}

const std::string& TokenAccount::charged_to(std::string_view project) const {
    const auto found = std::find_if(projects.begin(), projects.end(),
                                    [&](const TokenProject& each) { return each.gateway == project; });
    return found == projects.end() ? others : found->charge;
}

RecordTable<TokenAccount> token_account_table() {
    return RecordTable<TokenAccount>("token account",
                                     "An account of a gateway (stoker serve), whose tokens are charged to projects of "
                                     "this server: all that is in it, each once, in the month in which its request "
                                     "ended.")
        .text("account", &TokenAccount::account,
              "Its folder (`ledger` of the gateway's file), or the address of its database.", "/srv/gateway/ledger")
        .required()
        .count("gateway", &TokenAccount::gateway, "Of a database, which account: `name` of the gateway's file.", "2", 0,
               kMostGateway)
        .list_of("projects", &TokenAccount::projects, token_project_table(), "To whom its projects are charged.")
        .text("others", &TokenAccount::others, "To whom the keys of every other project are charged.",
              "default/default")
        .required();
}

void check_token_accounts(const TokenAccounts& accounts, Problems& problems) {
    std::set<std::pair<std::string, int>> seen;
    for (const TokenAccount& each : accounts) {
        if (!seen.insert({each.account, each.gateway.value_or(-1)}).second)
            problems.push_back({"tokens: this account is named twice, and would be charged once", "keep one of them",
                                place_of(each.at, "account")});
        if (each.in_database() != each.gateway.has_value())
            problems.push_back(
                {each.gateway ? "tokens: a folder is the account of one gateway"
                              : "tokens: a database has accounts of several gateways",
                 each.gateway ? "leave gateway out" : "add gateway: and the `name` of the gateway's file",
                 place_of(each.at, each.gateway ? "gateway" : "account")});
        if (!each.others.empty() && !names_a_project(each.others))
            problems.push_back(
                {fmt::format("tokens: others is {}, expected ORGANISATION/PROJECT", printable(each.others, 60)),
                 "default/default is there from the start", place_of(each.at, "others")});
        std::set<std::string> named;
        for (const TokenProject& project : each.projects) {
            if (!project.charge.empty() && !names_a_project(project.charge))
                problems.push_back(
                    {fmt::format("tokens: charge is {}, expected ORGANISATION/PROJECT", printable(project.charge, 60)),
                     "stoker project list", place_of(project.at, "charge")});
            if (!named.insert(project.gateway).second)
                problems.push_back({fmt::format("tokens: two rows of {}", printable(project.gateway, 60)),
                                    "keep one of them", place_of(project.at, "gateway")});
        }
    }
}

std::string exact_text(const TokenAccounts& accounts) {
    std::string text;
    for (const TokenAccount& each : accounts) {
        text += fmt::format("{}\n{}\n{}\n", each.account, each.gateway.value_or(-1), each.others);
        for (const TokenProject& project : each.projects)
            text += fmt::format(" {}\1{}\n", project.gateway, project.charge);
    }
    return text;
}

}  // namespace stoker
