// Quotas, budgets, invoices and charges.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "govern/budget.h"
#include "govern/quota.h"
#include "run/decide/tenant_limits.h"
#include "run/state/rules.h"
#include "server/handlers.h"
#include "server/views_limits.h"

namespace stoker::api {
namespace {

constexpr std::size_t kMostRecordsLookedAt = 5000;

bool reaches_scope(const Actor& actor, const Tenants& tenants, const std::string& scope) {
    const auto level = parse_quota_scope(tenants, scope);
    if (!level) return false;
    if (actor.kind == PrincipalKind::core || actor.level == Level::provider) return true;
    // What limits the organisation limits its projects, too: they may see it.
    if (level->organisation) return actor.tenant.organisation == level->organisation;
    return reaches(actor, tenants.tenant_of(level->project));
}

QuotaList quotas_of(const EngineView& view, const Actor& actor) {
    const State& state = view.state;
    QuotaUse held(state.tenants), waiting(state.tenants);
    if (!held.empty()) {
        const auto count = [&](QuotaUse& use, const Run& run) {
            QuotaDemand demand = quota_demand(run.spec);
            if (demand.gpu_milli_of.empty() && run.live_attempt() != nullptr)
                for (const RankPlace& place : run.attempts.back().places) {
                    const NodeInfo* node = state.find_node(place.node);
                    for (unsigned i = 0; node != nullptr && i < node->devices.size() && i < 32; ++i)
                        if (place.devices >> i & 1)
                            demand.gpu_milli_of[node->devices[i].model] += run.spec.per_rank.gpu_milli;
                }
            use.hold(quota_owner(state.tenants.tenant_of(run.project), run.submitted_by), demand);
        };
        for (const RunId id : state.live) count(held, *state.find(id));
        for (const QueueKey& key : state.queue) count(waiting, *state.find(key.run));
    }
    QuotaList list;
    for (const auto& [key, entry] : state.tenants.quotas)
        if (reaches_scope(actor, state.tenants, entry.scope))
            list.items.push_back({.scope = entry.scope,
                                  .scope_name = scope_in_words(state.tenants, entry.scope),
                                  .resource = entry.resource,
                                  .guaranteed_milli = entry.guaranteed_milli,
                                  .deserved_milli = entry.deserved_milli,
                                  .limit_milli = entry.limit_milli,
                                  .used_milli = held.used_milli(entry.scope, entry.resource),
                                  .waiting_milli = waiting.used_milli(entry.scope, entry.resource)});
    return list;
}

BudgetList budgets_of(const EngineView& view, const std::shared_ptr<const PriceBook>& prices, const Actor& actor) {
    const Tenants& tenants = view.state.tenants;
    BudgetList list;
    const std::string month = month_of(view.now_us);
    for (const BudgetGate& gate : budget_scene(view.state, prices, view.now_us).gates) {
        if (!reaches_scope(actor, tenants, gate.scope)) continue;
        const BudgetEntry& entry = tenants.budgets.at({gate.scope, gate.unit});
        list.items.push_back({.scope = gate.scope,
                              .scope_name = scope_in_words(tenants, gate.scope),
                              .unit = gate.unit,
                              .limit_micro = gate.limit_micro,
                              .used_micro = gate.load.used_micro,
                              .rate_micro_per_h = gate.load.rate_micro_per_h,
                              .committed_micro = gate.load.committed_micro,
                              .on_exhausted = entry.on_exhausted,
                              .reserve = entry.reserve,
                              .month = month,
                              .ends_at = rfc3339(gate.ends_us),
                              .told = entry.month == month ? entry.told : std::vector<std::string>{}});
    }
    return list;
}

// After a change: how things stand now.
template <class View, class Show>
void tell_list(Service& service, const ExchangePtr& exchange, CommandBody what, const Show& show) {
    service.post(exchange, {.what = std::move(what)}, [&service, exchange, show](const Result<Ack>& ack) {
        if (!ack) return exchange->fail(ack.error());
        service.work(exchange, [&service, exchange, show] {
            service.ask<View>(
                exchange, [&](const EngineView& view) -> Result<View> { return show(view); },
                [exchange](const View& view) { exchange->send(codec::write(view)); });
        });
    });
}

Result<std::string> month_asked(const Parameters& p, const std::string& otherwise) {
    const std::string month = p.text("month", otherwise);
    if (month.empty() || month_window(month)) return month;
    return Error(ErrorKind::invalid, fmt::format("month is {}, expected one like 2026-11", printable(month, 40)),
                 {"query", 0, 0});
}

void add_tokens(const TokensCharged& charged, std::uint64_t seq, const Tenants& tenants, const Actor& actor,
                const std::string& month, std::vector<ChargeItem>& out) {
    for (const TokensCharged::Line& line : charged.lines) {
        const Tenant tenant = tenants.tenant_of(line.project);
        if (!reaches(actor, tenant) || (!month.empty() && month_of(line.from_us) != month)) continue;
        out.push_back({.record = seq,
                       .tokens = TokenItem{.account = charged.account,
                                           .requests = line.requests,
                                           .tokens_in = line.tokens_in,
                                           .cached_in = line.cached_in,
                                           .tokens_out = line.tokens_out,
                                           .price_version = line.price_version,
                                           .picousd = line.picousd},
                       .organisation = tenants.organisations.at(tenant.organisation).name,
                       .project = tenants.projects.at(line.project).name,
                       .user = line.user,
                       .from = rfc3339(line.from_us),
                       .to = rfc3339(line.to_us),
                       .resource = PricedResource::tokens,
                       .model = line.model,
                       .book = charged.book,
                       .microusd = line.microusd});
    }
}

}  // namespace

QuotaList all_quotas(const EngineView& view) {
    return quotas_of(view, Actor::part("metrics"));
}

BudgetList all_budgets(const EngineView& view, const std::shared_ptr<const PriceBook>& prices) {
    return budgets_of(view, prices, Actor::part("metrics"));
}

void list_quotas(Service& service, const ExchangePtr& exchange) {
    service.ask<QuotaList>(
        exchange,
        [actor = exchange->actor](const EngineView& view) -> Result<QuotaList> { return quotas_of(view, actor); },
        [exchange](const QuotaList& list) { exchange->send(codec::write(list)); });
}

void set_quota(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<QuotaBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    tell_list<QuotaList>(service, exchange,
                         SetQuota{{.scope = body->scope,
                                   .resource = body->resource,
                                   .guaranteed_milli = body->guaranteed_milli,
                                   .deserved_milli = body->deserved_milli,
                                   .limit_milli = body->limit_milli}},
                         [actor = exchange->actor](const EngineView& view) { return quotas_of(view, actor); });
}

void list_budgets(Service& service, const ExchangePtr& exchange) {
    service.ask<BudgetList>(
        exchange,
        [actor = exchange->actor, prices = service.prices()](const EngineView& view) -> Result<BudgetList> {
            return budgets_of(view, prices, actor);
        },
        [exchange](const BudgetList& list) { exchange->send(codec::write(list)); });
}

void set_budget(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<BudgetBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    tell_list<BudgetList>(service, exchange,
                          SetBudget{.budget = {.scope = body->scope,
                                               .unit = body->unit,
                                               .limit_micro = body->limit_micro,
                                               .on_exhausted = body->on_exhausted,
                                               .reserve = body->reserve},
                                    .remove = body->remove},
                          [actor = exchange->actor, prices = service.prices()](const EngineView& view) {
                              return budgets_of(view, prices, actor);
                          });
}

void get_invoice(Service& service, const ExchangePtr& exchange) {
    const auto asked = month_asked(exchange->parameters, "");
    if (!asked) return exchange->fail(asked.error());
    service.ask<Invoice>(
        exchange,
        [month = *asked, actor = exchange->actor,
         currency = service.prices()->currency](const EngineView& view) -> Result<Invoice> {
            const Tenants& tenants = view.state.tenants;
            Invoice invoice{.month = month.empty() ? month_of(view.now_us) : month, .currency = currency};
            const auto window = *month_window(invoice.month);
            invoice.charged_to = rfc3339(std::min(window.to_us, view.now_us));
            for (const auto& [key, sum] : view.state.charges) {
                const Tenant tenant = tenants.tenant_of(key.project);
                if (key.month != invoice.month || !reaches(actor, tenant)) continue;
                invoice.items.push_back({.organisation = tenants.organisations.at(tenant.organisation).name,
                                         .project = tenants.projects.at(key.project).name,
                                         .user = key.user,
                                         .resource = key.resource,
                                         .model = key.model,
                                         .micro_hours = sum.micro_hours,
                                         .gpu_micro_hours = sum.gpu_micro_hours,
                                         .microusd = sum.microusd,
                                         .priced = sum.priced,
                                         .tokens = sum.tokens,
                                         .requests = sum.requests});
                invoice.total_microusd += sum.microusd;
                invoice.priced = invoice.priced && sum.priced;
            }
            return invoice;
        },
        [exchange](const Invoice& invoice) { exchange->send(codec::write(invoice)); });
}

void list_charges(Service& service, const ExchangePtr& exchange) {
    const auto month = month_asked(exchange->parameters, "");
    if (!month) return exchange->fail(month.error());
    const auto after = static_cast<std::uint64_t>(exchange->parameters.integer("after", 0));
    struct Page {
        struct Body {
            std::uint64_t seq = 0;
            std::uint32_t kind = 0;
            std::string text;
        };
        std::vector<Body> bodies;  // of charges
        std::uint64_t last = 0, end = 0;
        Tenants tenants;
    };
    using PagePtr = std::shared_ptr<Page>;
    service.ask_journal<PagePtr>(
        exchange,
        [after](const EngineView& view) -> Result<PagePtr> {
            if (view.journal == nullptr)
                return Error(ErrorKind::unsupported, "charges are read from a running server only");
            auto page = std::make_shared<Page>();
            page->end = view.state.seq;
            page->tenants.organisations = view.state.tenants.organisations;
            page->tenants.projects = view.state.tenants.projects;
            if (after >= page->end) return page;
            std::size_t looked_at = 0;
            TRY_VOID(view.journal->read(after, [&](const JournalRecord& record) -> Result<bool> {
                page->last = record.seq;
                if ((record.kind == UsageCharged::kKind || record.kind == TokensCharged::kKind) && !record.redacted)
                    page->bodies.push_back({record.seq, record.kind, record.body});
                return ++looked_at < kMostRecordsLookedAt;
            }));
            return page;
        },
        [exchange, month = *month, currency = service.prices()->currency](const PagePtr& page) {
            ChargeList list;
            list.currency = currency;
            for (const auto& [seq, kind, text] : page->bodies) {
                const auto body = decode_body(kind, 1, text, seq);
                if (!body) return exchange->fail(body.error());
                if (const auto* tokens = std::get_if<TokensCharged>(&*body)) {
                    add_tokens(*tokens, seq, page->tenants, exchange->actor, month, list.items);
                    continue;
                }
                const auto& charged = std::get<UsageCharged>(*body);
                const Tenant tenant = page->tenants.tenant_of(charged.project);
                if (!reaches(exchange->actor, tenant)) continue;
                if (!month.empty() && month_of(charged.from_us) != month) continue;
                for (const UsageCharged::Line& line : charged.lines)
                    list.items.push_back({.record = seq,
                                          .run = charged.attempt.run,
                                          .attempt = charged.attempt.text(),
                                          .organisation = page->tenants.organisations.at(tenant.organisation).name,
                                          .project = page->tenants.projects.at(charged.project).name,
                                          .user = charged.user,
                                          .from = rfc3339(charged.from_us),
                                          .to = rfc3339(charged.to_us),
                                          .resource = line.resource,
                                          .node = line.node,
                                          .model = line.model,
                                          .book = charged.book,
                                          .milli = line.milli,
                                          .micro_hours = line.micro_hours,
                                          .microusd = line.microusd,
                                          .credit = charged.credit,
                                          .priced = line.priced});
            }
            if (page->last != 0 && page->last < page->end) list.next_after = static_cast<std::int64_t>(page->last);
            exchange->send(codec::write(list));
        });
}

}  // namespace stoker::api
