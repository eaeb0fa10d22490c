// What the API says about quotas, budgets, and what was charged. As in views.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "govern/price_book.h"
#include "govern/tenants.h"

namespace stoker::api {

struct QuotaView {
    std::string scope, scope_name, resource;
    std::optional<std::int64_t> guaranteed_milli, deserved_milli, limit_milli;
    std::int64_t used_milli = 0, waiting_milli = 0;
};
struct QuotaList {
    std::vector<QuotaView> items;
};
struct QuotaBody {
    std::string scope, resource;
    std::optional<std::int64_t> guaranteed_milli, deserved_milli, limit_milli;
};

struct BudgetView {
    std::string scope, scope_name;
    BudgetUnit unit = BudgetUnit::usd;
    std::int64_t limit_micro = 0, used_micro = 0, rate_micro_per_h = 0, committed_micro = 0;
    BudgetStop on_exhausted = BudgetStop::stop_all;
    bool reserve = false;
    std::string month, ends_at;
    std::vector<std::string> told;
};
struct BudgetList {
    std::vector<BudgetView> items;
};
struct BudgetBody {
    std::string scope;
    BudgetUnit unit = BudgetUnit::usd;
    std::int64_t limit_micro = 0;
    BudgetStop on_exhausted = BudgetStop::stop_all;
    bool reserve = false, remove = false;
};

struct InvoiceLine {
    std::string organisation, project, user;
    PricedResource resource = PricedResource::cpu;
    std::string model;
    std::int64_t micro_hours = 0, gpu_micro_hours = 0, microusd = 0;
    bool priced = true;
    std::int64_t tokens = 0, requests = 0;
};
struct Invoice {
    std::string month, currency, charged_to;
    std::vector<InvoiceLine> items;
    std::int64_t total_microusd = 0;
    bool priced = true;
};

// What a gateway charged with one price, exact, before its mark-up here.
struct TokenItem {
    std::string account;
    std::int64_t requests = 0, tokens_in = 0, cached_in = 0, tokens_out = 0, price_version = 0, picousd = 0;
};
// One line of a record of the journal: what was charged for one resource over one stretch of time.
struct ChargeItem {
    std::uint64_t record = 0;
    std::optional<RunId> run;         // of machines
    std::optional<TokenItem> tokens;  // of tokens
    std::string attempt, organisation, project, user, from, to;
    PricedResource resource = PricedResource::cpu;
    std::string node, model, book;
    std::int64_t milli = 0, micro_hours = 0, microusd = 0;
    bool credit = false, priced = true;
};
struct ChargeList {
    std::string currency;
    std::vector<ChargeItem> items;
    std::optional<std::int64_t> next_after;  // there may be more
};

template <class V>
void fields(V& visit, QuotaView& v) {
    visit("deserved_milli", v.deserved_milli);
    visit("guaranteed_milli", v.guaranteed_milli);
    visit("limit_milli", v.limit_milli);
    visit("resource", v.resource);
    visit("scope", v.scope);
    visit("scope_name", v.scope_name);
    visit("used_milli", v.used_milli);
    visit("waiting_milli", v.waiting_milli);
}
template <class V>
void fields(V& visit, QuotaList& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, QuotaBody& v) {
    visit("deserved_milli", v.deserved_milli);
    visit("guaranteed_milli", v.guaranteed_milli);
    visit("limit_milli", v.limit_milli);
    visit("resource", v.resource);
    visit("scope", v.scope);
}
template <class V>
void fields(V& visit, BudgetView& v) {
    visit("committed_micro", v.committed_micro);
    visit("ends_at", v.ends_at);
    visit("limit_micro", v.limit_micro);
    visit("month", v.month);
    visit("on_exhausted", v.on_exhausted);
    visit("rate_micro_per_h", v.rate_micro_per_h);
    visit("reserve", v.reserve);
    visit("scope", v.scope);
    visit("scope_name", v.scope_name);
    visit("told", v.told);
    visit("unit", v.unit);
    visit("used_micro", v.used_micro);
}
template <class V>
void fields(V& visit, BudgetList& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, BudgetBody& v) {
    visit("limit_micro", v.limit_micro);
    visit("on_exhausted", v.on_exhausted);
    visit("remove", v.remove);
    visit("reserve", v.reserve);
    visit("scope", v.scope);
    visit("unit", v.unit);
}
template <class V>
void fields(V& visit, InvoiceLine& v) {
    visit("gpu_micro_hours", v.gpu_micro_hours);
    visit("micro_hours", v.micro_hours);
    visit("microusd", v.microusd);
    visit("model", v.model);
    visit("organisation", v.organisation);
    visit("priced", v.priced);
    visit("project", v.project);
    visit("requests", v.requests);
    visit("resource", v.resource);
    visit("tokens", v.tokens);
    visit("user", v.user);
}
template <class V>
void fields(V& visit, Invoice& v) {
    visit("charged_to", v.charged_to);
    visit("currency", v.currency);
    visit("items", v.items);
    visit("month", v.month);
    visit("priced", v.priced);
    visit("total_microusd", v.total_microusd);
}
template <class V>
void fields(V& visit, TokenItem& v) {
    visit("account", v.account);
    visit("cached_in", v.cached_in);
    visit("picousd", v.picousd);
    visit("price_version", v.price_version);
    visit("requests", v.requests);
    visit("tokens_in", v.tokens_in);
    visit("tokens_out", v.tokens_out);
}
template <class V>
void fields(V& visit, ChargeItem& v) {
    visit("attempt", v.attempt);
    visit("book", v.book);
    visit("credit", v.credit);
    visit("from", v.from);
    visit("micro_hours", v.micro_hours);
    visit("microusd", v.microusd);
    visit("milli", v.milli);
    visit("model", v.model);
    visit("node", v.node);
    visit("organisation", v.organisation);
    visit("priced", v.priced);
    visit("project", v.project);
    visit("record", v.record);
    visit("resource", v.resource);
    visit("run", v.run);
    visit("to", v.to);
    visit("tokens", v.tokens);
    visit("user", v.user);
}
template <class V>
void fields(V& visit, ChargeList& v) {
    visit("currency", v.currency);
    visit("items", v.items);
    visit("next_after", v.next_after);
}

}  // namespace stoker::api
