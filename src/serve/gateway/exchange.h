// One request, from its admission to its one settlement: reserved, sent upstream at once, shown to the client when the
// reservation is durable, counted, and ended when the settlement is. Whatever ends it, it is settled exactly once and
// gives back what it holds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "govern/ledger/ledger_record.h"
#include "govern/limits/limit_book.h"
#include "io/http/http_parser.h"
#include "serve/fleet/board.h"
#include "serve/fleet/breaker.h"
#include "serve/fleet/route.h"
#include "serve/gateway/answers.h"
#include "serve/gateway/idempotency.h"
#include "serve/gateway/limit_messages.h"
#include "serve/gateway/setup.h"
#include "serve/gateway/token_count.h"
#include "serve/gateway/traces.h"
#include "serve/wire/body_scan.h"
#include "serve/wire/choice_tally.h"
#include "serve/wire/sse.h"
#include "serve/wire/usage.h"

namespace stoker::gateway {

class Loop;
class GatewayClient;
class UpstreamConnection;
struct Choices;

class Exchange {
public:
    Exchange(Loop& loop, GatewayClient& client, std::shared_ptr<const Setup> setup, const KeySetup& key,
             const wire::Endpoint& endpoint);
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    // False: it was refused, with an answer, and is over. The deployment of a path, where it names one, is the model.
    bool begin(HttpRequest request, const std::string& deployment = {});
    // Of limits that another gateway counts. Nothing: it did not answer.
    void share_told(const std::optional<AdmitDecision>& decision);
    std::uint64_t asked_for() const { return asked_for_; }  // what it waits for; 0: for no such thing

    // From the upstream; of which connection, since a request may be on two of them.
    void upstream_sent(UpstreamConnection* connection, std::string_view bytes);
    void upstream_closed(const UpstreamConnection* connection);
    void upstream_failed(const UpstreamConnection* connection, ReplicaOutcome outcome);
    // From the client and the loop.
    void client_left();
    void client_drained();  // there is room again
    void committed();       // the ledger is durable further than before, or has failed
    void sweep(std::int64_t now_us);
    void its_turn();         // it was held, and a replica is there
    void waited_too_long();  // it was held, and its time is up
    void setup_changed(const Setup& setup, std::int64_t now_us);
    void cut(LedgerOutcome outcome, const Refusal& why);  // by us: with an event where something was shown
    std::optional<MarkEntry> mark();                      // if it moved since the last one
    bool streaming() const { return streaming_ || stream_open_; }
    bool head_shown() const { return head_shown_; }
    bool over() const { return over_; }
    std::string request_id() const { return request_text(reserve_.request); }

private:
    struct LimitScope {
        std::uint64_t id = 0;
        const KeyLimits* limits = nullptr;
    };
    struct Waiting {
        HttpRequest request;
        wire::BodyScan scan;
    };
    bool refuse(const Refusal& why);
    void set_aside(const wire::BodyScan& scan, std::string_view body);
    LimitAsk limit_ask() const;
    bool go_on(const HttpRequest& request, const wire::BodyScan& scan);
    KeyLimits limits_here(const LimitScope& scope) const;
    void take_back_limits();
    void settle_limits(std::int64_t used_tokens, std::uint64_t charged_picousd);
    bool extend_limits(std::int64_t tokens, std::uint64_t picousd);
    void limits_changed(const LimitScope& scope, std::int64_t unused_tokens);
    void count_by(const ModelSetup& model);
    std::uint32_t prompt_counted() const;  // where nobody says what was read
    std::optional<Refusal> claim_name(std::string_view key, const HttpRequest& request, bool& replayed);
    bool take_cap();
    void leave_cap(std::uint64_t charged);
    void cap_changed();
    // Its model cannot take it: the next one of the fallback list, from here on. False: there is none.
    bool fall_back();
    // Nothing of an answer was shown but perhaps the head of a stream: as if the upstream had not begun one. False:
    // more was.
    bool begin_again();
    void forget_request();  // it is not sent again
    void make_request(const HttpRequest& request, const wire::BodyScan& scan);
    RouteDecision choose_replica(const Choices& choices);
    void attempt(bool fresh = false);
    void send_to(const Choices& choices, const RouteDecision& decision, bool fresh);
    // A second replica for a request whose first byte does not come: exchange_hedge.cpp.
    void hedge();
    void swap_sent();
    bool take_first(UpstreamConnection* connection, std::string_view bytes);
    void drop_other();
    void leave_replica(ReplicaOutcome outcome, double retry_after_s = 0);
    void on_head();
    bool on_piece(std::string_view piece);
    bool on_event(std::string_view event);
    bool on_data(std::string_view event, std::string_view data);
    void on_complete();
    void begin_message();  // of the Anthropic API, which the upstream left out
    bool says_it_is_whole() const;
    void end_without_done();
    void end_stream(std::string_view last_event);
    void show(std::string_view bytes);
    void emit(std::string_view event);
    std::string last_piece(std::string_view event) const;  // of the body
    void push();
    bool extend();
    std::uint32_t counted_out() const;  // about, while it goes on
    std::uint32_t all_counted_out() const;
    std::vector<wire::ChoiceSeen>* pieces() { return choices_ ? choices_->pieces() : nullptr; }
    wire::Usage used(SettleRecord& record, bool partial);
    void learn_from(const wire::Usage& used);  // for those of whom nobody says it
    bool settle(LedgerOutcome outcome, int status, bool partial);
    void finish(std::string final_bytes);
    void complete();
    void fail(LedgerOutcome outcome, const Refusal& why);
    std::string head_of_answer(int status, std::string_view type) const;
    void nobody_takes_it(RouteReason reason, double pause_s);
    bool hold(RouteReason reason);
    void no_longer_held();
    void take_load(const BoardReplica& replica, double now_s);
    void prefilled();
    void name_model(const std::string& upstream_name);
    void open_stream();
    void tell_board(LedgerOutcome outcome, const wire::Usage& used);
    void tell_figures(const SettleRecord& record);
    void begin_trace(const HttpRequest& request);
    void tell_trace(const SettleRecord& record);
    void tell_access(const SettleRecord& record);
    Dialect dialect() const;
    void drop_upstream();
    void ledger_failed();

    Loop& loop_;
    GatewayClient& client_;
    const std::shared_ptr<const Setup> setup_;
    const KeySetup& key_;
    const wire::Endpoint& endpoint_;
    const ModelSetup* model_ = nullptr;  // that answers
    const ModelSetup* asked_ = nullptr;  // that the client named, at whose price
    std::size_t fallback_at_ = 0;
    int attempts_here_ = 0;           // of model_
    std::uint64_t cap_reserved_ = 0;  // of model_
    bool capped_ = false;
    AdmitDecision admitted_;
    std::array<LimitScope, 2> scopes_;
    std::size_t scope_count_ = 0;
    bool shared_limits_ = false;  // another gateway counts them
    std::uint64_t asked_for_ = 0;
    std::unique_ptr<Waiting> waiting_;
    struct Trace {
        TraceParent own;
        std::string caller;
    };
    std::unique_ptr<Trace> trace_;  // null: it is not recorded
    ReserveRecord reserve_;
    std::uint64_t reserve_lsn_ = 0, settle_lsn_ = 0;
    std::int64_t reserved_tokens_ = 0;
    std::uint64_t reserved_picousd_ = 0;
    bool open_ended_ = false;  // the client set no limit: the reservation grows
    bool asked_usage_ = false, wants_stream_ = false;
    std::uint64_t images_ = 0;  // asked for
    std::optional<IdempotencyClaim> name_;
    std::optional<KeptAnswer> kept_;     // for name_, when it is durable
    std::vector<std::uint64_t> prefix_;  // blocks of the prompt
    std::uint64_t affinity_ = 0;         // of x-stoker-session or prompt_cache_key; 0: none

    std::string request_;      // to the upstream, until it answers
    std::size_t body_at_ = 0;  // in it
    std::string query_;        // as the client wrote it, with its '?'
    std::string forwarded_;    // headers of the client that go on, without any of the upstream's own
    // Where replicas of a model may call it differently: the body as it came, and the name that stands in request_ now.
    std::string original_, named_;
    wire::BodyScan scan_;
    UpstreamConnection* upstream_ = nullptr;
    std::uint64_t replica_ = 0;  // that it holds; 0: none
    double route_prompt_ = 0, route_output_ = 0;
    std::shared_ptr<ReplicaLoad> load_;  // of a replica of an endpoint
    RequestSample sample_;
    double expected_output_ = 0;
    // Of a request that is on two connections, the one that upstream_ and its likes are not.
    struct Sent {
        UpstreamConnection* upstream = nullptr;
        std::uint64_t replica = 0;
        double prompt = 0, output = 0;
        std::shared_ptr<ReplicaLoad> load;
        RequestSample sample;
        std::int64_t attempt_us = 0, last_us = 0;
    };
    std::unique_ptr<Sent> other_;
    std::vector<std::uint64_t> tried_;
    std::string attempts_text_;
    std::string answered_at_;  // the replica of the last attempt, for the access log, where one is kept
    int attempts_ = 0;
    bool held_now_ = false;
    std::uint64_t held_id_ = 0;
    std::int64_t held_us_ = 0, held_until_us_ = 0, beat_us_ = 0;
    std::optional<HttpResponseParser> parser_;
    bool answer_begun_ = false;

    bool streaming_ = false, stream_open_ = false, head_shown_ = false, ended_ = false, over_ = false, settled_ = false,
         ready_ = false, keep_ = true;
    wire::SseSplitter events_;
    std::string held_;   // until the reservation is durable
    std::string final_;  // until the settlement is
    std::string body_;   // of an answer that is no stream
    std::optional<wire::Usage> usage_;
    bool prompt_untold_ = false;                  // usage_.in is our count
    std::unique_ptr<wire::ChoiceTally> choices_;  // where several answers were asked for: usage_ is what it comes to
    std::uint32_t hidden_answers_ = 1;            // so many are written for one that is shown
    std::uint64_t answers_ = 1;                   // that were asked for
    bool finished_ = false;                       // one of them said why it ended
    std::uint64_t text_bytes_ = 0, sequence_ = 0;
    TokenCount count_;
    std::uint64_t prompt_bytes_ = 0, prompt_items_ = 0, media_parts_ = 0;
    std::uint32_t marked_out_ = 0;
    std::int64_t began_us_, attempt_us_ = 0, first_us_ = 0, last_us_ = 0;
};

}  // namespace stoker::gateway
