// What gateways tell each other of limits that they share: to the home what goes on at one of them and what it wants to
// begin, back what it may. Uses are told whole and not as differences, so that a message that is lost or comes twice
// changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "govern/limits/limit_book.h"

namespace stoker::gateway {

using ScopeId = Id<'s'>;

// Of one scope (a key, a project, the cap of a model) at one gateway.
struct ScopeUse {
    ScopeId scope;
    std::int64_t concurrent = 0;
    std::uint64_t spent = 0, reserved = 0;  // pico-dollars
};
// Tokens that were set aside and not used; negative: used beyond that.
struct ScopeRefund {
    ScopeId scope;
    std::int64_t limit = 0, burst = 0, tokens = 0;
};
struct ScopeWant {
    ScopeId scope;
    std::int64_t requests = 0, request_burst = 0, token_limit = 0, token_burst = 0, concurrent = 0;
    std::uint64_t budget = 0;
    std::int64_t tokens = 0;
    std::uint64_t picousd = 0;

    KeyLimits limits() const {
        return {.requests = {.limit = requests, .burst = request_burst},
                .tokens = {.limit = token_limit, .burst = token_burst},
                .concurrent = concurrent,
                .budget_picousd = budget};
    }
};
// One request: all of its scopes, or none.
struct LimitAsk {
    std::vector<ScopeWant> wants;
};
struct LimitMessage {
    std::string process;  // of the sender; another one after each start
    std::uint64_t gateway = 0, sequence = 0;
    bool whole = false;  // what `uses` does not name is not used
    std::vector<ScopeUse> uses;
    std::vector<ScopeRefund> refunds;
    std::vector<LimitAsk> asks;
};
struct LimitVerdict {
    int refusal = 0;  // LimitRefusal
    std::int64_t retry_after_s = 0;
    bool money_is_spent = false;
    std::int64_t requests = 0, request_burst = 0, requests_left = 0, requests_reset_ns = 0;
    std::int64_t tokens = 0, token_burst = 0, tokens_left = 0, tokens_reset_ns = 0;
};
struct LimitReply {
    bool known = true;      // false: tell all, and ask again
    bool settling = false;  // the home has just begun: ask again
    std::vector<LimitVerdict> verdicts;
    std::vector<ScopeUse> elsewhere;  // of what was named: all but the sender's
};

// What the home keeps on disk, for its next process.
struct HeardOf {
    std::uint64_t gateway = 0;
    std::vector<ScopeUse> uses;
};
struct HomeRecord {
    std::int64_t at_us = 0;  // by the wall clock
    std::vector<HeardOf> gateways;
};

template <class V>
void fields(V& visit, HeardOf& heard) {
    visit("gateway", heard.gateway);
    visit("uses", heard.uses);
}
template <class V>
void fields(V& visit, HomeRecord& record) {
    visit("at_us", record.at_us);
    visit("gateways", record.gateways);
}
template <class V>
void fields(V& visit, ScopeUse& use) {
    visit("concurrent", use.concurrent);
    visit("reserved", use.reserved);
    visit("scope", use.scope);
    visit("spent", use.spent);
}
template <class V>
void fields(V& visit, ScopeRefund& refund) {
    visit("burst", refund.burst);
    visit("limit", refund.limit);
    visit("scope", refund.scope);
    visit("tokens", refund.tokens);
}
template <class V>
void fields(V& visit, ScopeWant& want) {
    visit("budget", want.budget);
    visit("concurrent", want.concurrent);
    visit("picousd", want.picousd);
    visit("request_burst", want.request_burst);
    visit("requests", want.requests);
    visit("scope", want.scope);
    visit("token_burst", want.token_burst);
    visit("token_limit", want.token_limit);
    visit("tokens", want.tokens);
}
template <class V>
void fields(V& visit, LimitAsk& ask) {
    visit("wants", ask.wants);
}
template <class V>
void fields(V& visit, LimitMessage& message) {
    visit("asks", message.asks);
    visit("gateway", message.gateway);
    visit("process", message.process);
    visit("refunds", message.refunds);
    visit("sequence", message.sequence);
    visit("uses", message.uses);
    visit("whole", message.whole);
}
template <class V>
void fields(V& visit, LimitVerdict& verdict) {
    visit("money_is_spent", verdict.money_is_spent);
    visit("refusal", verdict.refusal);
    visit("request_burst", verdict.request_burst);
    visit("requests", verdict.requests);
    visit("requests_left", verdict.requests_left);
    visit("requests_reset_ns", verdict.requests_reset_ns);
    visit("retry_after_s", verdict.retry_after_s);
    visit("token_burst", verdict.token_burst);
    visit("tokens", verdict.tokens);
    visit("tokens_left", verdict.tokens_left);
    visit("tokens_reset_ns", verdict.tokens_reset_ns);
}
template <class V>
void fields(V& visit, LimitReply& reply) {
    visit("elsewhere", reply.elsewhere);
    visit("known", reply.known);
    visit("settling", reply.settling);
    visit("verdicts", reply.verdicts);
}

// All scopes or none: what was taken of the first ones comes back when a later one refuses.
AdmitDecision admit_all(LimitBook& book, const LimitAsk& ask, std::int64_t now_ns);
LimitVerdict verdict_of(const AdmitDecision& decision);
AdmitDecision decision_of(const LimitVerdict& verdict);

}  // namespace stoker::gateway
