// Records about who belongs here, how much they may take, and what they were charged. As in records.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "govern/price_book.h"
#include "govern/tenants.h"

namespace stoker {

// The tree of tenants grows; numbers are given in order, and the first of each is there without a record.
struct OrganisationMade {
    static constexpr std::uint32_t kKind = 31;
    OrganisationId organisation;
    std::string name;
};
struct ProjectMade {
    static constexpr std::uint32_t kKind = 32;
    ProjectId project;
    OrganisationId organisation;
    std::string name;
};

// Numbers are given in order.
struct KeyMade {
    static constexpr std::uint32_t kKind = 33;
    KeyId key;
    std::string name;
    bool service = false;
    Role role = Role::viewer;
    Level level = Level::project;
    ProjectId project;
    std::string sha256;
    std::int64_t expires_us = 0;
    std::string node{};  // of an agent's that tells of one alone
};
struct KeyRevoked {
    static constexpr std::uint32_t kKind = 34;
    KeyId key;
};

// A person or a program's account is as it says from here on, but for the password. Numbers are given in order.
struct UserSet {
    static constexpr std::uint32_t kKind = 35;
    UserEntry user;
};
// Whoever was logged in by the one before is not any more.
struct PasswordSet {
    static constexpr std::uint32_t kKind = 36;
    UserId user;
    std::string password;  // argon2id; shown to nobody (shown_body)
};
// Those that have expired by then are forgotten.
struct LoginMade {
    static constexpr std::uint32_t kKind = 37;
    LoginEntry login;
};
struct LoginEnded {
    static constexpr std::uint32_t kKind = 38;
    LoginId login;
};
// The key ends then.
struct KeyEnds {
    static constexpr std::uint32_t kKind = 39;
    KeyId key;
    std::int64_t expires_us = 0;
};

// A quota of one level and resource is as it says from here on; one that says nothing is none (govern/quota.h).
struct QuotaSet {
    static constexpr std::uint32_t kKind = 41;
    QuotaEntry quota;
};
// A limit of 0 and `removed`: there is none any more.
struct BudgetSet {
    static constexpr std::uint32_t kKind = 42;
    BudgetEntry budget;
    bool removed = false;
};
// A mark of a budget was reached in this month; it is told once (govern/budget.h).
struct BudgetReached {
    static constexpr std::uint32_t kKind = 43;
    std::string scope;
    BudgetUnit unit = BudgetUnit::usd;
    std::string month, mark;
    std::int64_t used_micro = 0, limit_micro = 0, rate_micro_per_h = 0;
};
// What the attempt held over [from, to), and what that costs by the price book in force. `credit`: it had ended at
// `from`, before what was charged; amounts are then below zero.
struct UsageCharged {
    static constexpr std::uint32_t kKind = 44;
    AttemptId attempt;
    ProjectId project = kDefaultProject;
    std::string user;  // the name of whoever submitted the run
    std::int64_t from_us = 0, to_us = 0;
    bool credit = false;
    std::int64_t gpu_micro_hours = 0;
    std::string book;  // the digest of the price book; empty: there is none
    struct Line {
        PricedResource resource = PricedResource::cpu;
        std::string node, model;
        std::int64_t milli = 0, micro_hours = 0, microusd = 0;
        bool priced = true;
    };
    std::vector<Line> lines;
};

// What the account of a gateway settled behind its record `after`, up to `up_to`, charged here. Lines are of one hour
// and one price each.
struct TokensCharged {
    static constexpr std::uint32_t kKind = 45;
    std::string account;
    std::uint64_t after = 0, up_to = 0;
    std::string book;  // the digest of the price book, for its mark-ups; empty: there is none
    struct Line {
        ProjectId project = kDefaultProject;
        std::string user, model;  // user: the name of the key
        std::int64_t price_version = 0, from_us = 0, to_us = 0;
        std::int64_t requests = 0, tokens_in = 0, cached_in = 0, tokens_out = 0;
        std::int64_t picousd = 0;  // as the gateway has it
        std::int64_t markup_bp = 0, microusd = 0, left = 0;
    };
    std::vector<Line> lines;
};

template <class V>
void fields(V& visit, OrganisationMade& body) {
    visit("name", body.name);
    visit("organisation", body.organisation);
}
template <class V>
void fields(V& visit, ProjectMade& body) {
    visit("name", body.name);
    visit("organisation", body.organisation);
    visit("project", body.project);
}

template <class V>
void fields(V& visit, KeyMade& body) {
    visit("expires_us", body.expires_us);
    visit("key", body.key);
    visit("level", body.level);
    visit("name", body.name);
    visit("node", body.node);
    visit("project", body.project);
    visit("role", body.role);
    visit("service", body.service);
    visit("sha256", body.sha256);
}
template <class V>
void fields(V& visit, KeyRevoked& body) {
    visit("key", body.key);
}
template <class V>
void fields(V& visit, UserSet& body) {
    visit("user", body.user);
}
template <class V>
void fields(V& visit, PasswordSet& body) {
    visit("password", body.password);
    visit("user", body.user);
}
template <class V>
void fields(V& visit, LoginMade& body) {
    visit("login", body.login);
}
template <class V>
void fields(V& visit, LoginEnded& body) {
    visit("login", body.login);
}
template <class V>
void fields(V& visit, KeyEnds& body) {
    visit("expires_us", body.expires_us);
    visit("key", body.key);
}
template <class V>
void fields(V& visit, QuotaSet& body) {
    visit("quota", body.quota);
}
template <class V>
void fields(V& visit, BudgetSet& body) {
    visit("budget", body.budget);
    visit("removed", body.removed);
}
template <class V>
void fields(V& visit, BudgetReached& body) {
    visit("limit_micro", body.limit_micro);
    visit("mark", body.mark);
    visit("month", body.month);
    visit("rate_micro_per_h", body.rate_micro_per_h);
    visit("scope", body.scope);
    visit("unit", body.unit);
    visit("used_micro", body.used_micro);
}
template <class V>
void fields(V& visit, UsageCharged::Line& line) {
    visit("micro_hours", line.micro_hours);
    visit("microusd", line.microusd);
    visit("milli", line.milli);
    visit("model", line.model);
    visit("node", line.node);
    visit("priced", line.priced);
    visit("resource", line.resource);
}
template <class V>
void fields(V& visit, UsageCharged& body) {
    visit("attempt", body.attempt);
    visit("book", body.book);
    visit("credit", body.credit);
    visit("from_us", body.from_us);
    visit("gpu_micro_hours", body.gpu_micro_hours);
    visit("lines", body.lines);
    visit("project", body.project);
    visit("to_us", body.to_us);
    visit("user", body.user);
}
template <class V>
void fields(V& visit, TokensCharged::Line& line) {
    visit("cached_in", line.cached_in);
    visit("from_us", line.from_us);
    visit("left", line.left);
    visit("markup_bp", line.markup_bp);
    visit("microusd", line.microusd);
    visit("model", line.model);
    visit("picousd", line.picousd);
    visit("price_version", line.price_version);
    visit("project", line.project);
    visit("requests", line.requests);
    visit("to_us", line.to_us);
    visit("tokens_in", line.tokens_in);
    visit("tokens_out", line.tokens_out);
    visit("user", line.user);
}
template <class V>
void fields(V& visit, TokensCharged& body) {
    visit("account", body.account);
    visit("after", body.after);
    visit("book", body.book);
    visit("lines", body.lines);
    visit("up_to", body.up_to);
}

}  // namespace stoker
