// What stands between those who keep the replicas of a model and the loops that send requests to them: which replicas
// there are now, and what became of the requests. The keeper puts up a view, never changed afterwards; loops tell what
// arrives, what is held and how it ended. Any thread.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "serve/fleet/route.h"
#include "serve/fleet/scale.h"

namespace stoker::tokens {
class Tokenizer;
}

namespace stoker {

// Of one replica, over all loops; raised before a connection and lowered on every way out.
struct ReplicaLoad {
    std::atomic<std::uint32_t> outstanding{0};
    std::atomic<std::int64_t> waiting_prompt_tokens{0}, outstanding_decode_tokens{0};
    std::atomic<std::uint64_t> taken{0};

    // A server that was started again behind the same address may serve something else. False: it calls itself
    // otherwise than in its first answer of this endpoint, and is doubted until somebody has asked it who it is.
    bool answers_as(int endpoint, std::string_view model);
    bool doubted() const { return doubted_; }
    void trust();  // it was asked

private:
    std::mutex mutex_;
    std::map<int, std::string> model_;  // by endpoint
    std::atomic<bool> doubted_{false};
};

struct BoardReplica {
    std::uint64_t id = 0;  // of this process of it
    std::string name;      // "2.1": of revision 2
    int revision = 0;
    std::string url, authority;
    sockaddr_storage address{};
    socklen_t address_size = 0;
    std::string model;  // what it calls the model; empty: as clients do
    ReplicaState state = ReplicaState::starting;
    double weight = 1;
    double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;
    std::uint32_t max_outstanding = 0;  // 0: no limit
    std::shared_ptr<ReplicaLoad> load;
};

struct RevisionShare {
    int revision = 0;
    double share = 0;  // of the requests; any scale
};

struct BoardView {
    std::vector<BoardReplica> replicas;
    std::vector<RevisionShare> shares;
    bool open = true;                                    // false: stopped, and nothing is held
    double hold_s = 0;                                   // a request that nobody takes waits so long
    double ready_in_s = 0;                               // until the first one is there, while there is none
    std::shared_ptr<const tokens::Tokenizer> tokenizer;  // of the model; null: not known
    double tokens_per_s = 0;                             // of all that are ready; 0: not known
};

// One request that is over.
struct RequestSample {
    double at_s = 0;  // its end
    std::uint64_t replica = 0;
    std::string replica_name;
    int revision = 0;
    bool failed = false;         // of the replica's fault; the figures below are then nothing
    double queue_s = 0;          // held, before it was sent
    double ttft_s = 0;           // from its arrival to its first token; 0: no stream
    double upstream_ttft_s = 0;  // from its sending to its first token
    double tpot_s = 0;           // of the tokens after the first; 0: not known
    double prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
    double first_token_at_s = 0;  // on its clock; of no stream, the answer; 0: none, or it failed
    bool cold = false;            // it was held while no replica was ready
};

class ReplicaBoard {
public:
    std::shared_ptr<const BoardView> view() const { return std::atomic_load(&view_); }
    void set_view(std::shared_ptr<const BoardView> view) { std::atomic_store(&view_, std::move(view)); }

    // Of gateways.
    void arrived(double now_s, double prompt_tokens, double output_tokens);
    void held(double now_s, std::int64_t requests, double prompt_tokens);  // more, or less where negative
    void ended(RequestSample sample);
    // Tokens that an answer is expected to have: the mean of the last ones, and never more than was set aside.
    double expected_output(double reserved) const;

    // Of the keeper.
    struct Reading {
        LoadMeter::Rate burst, fast, slow;
        std::int64_t queued = 0;
        double queued_tokens = 0, last_active_s = -1;
        std::uint64_t requests = 0, failed = 0;  // ended, since the start
    };
    Reading read(double now_s, const ScalePolicy& policy) const;
    std::vector<RequestSample> samples(double since_s) const;  // the last kMostSamples of them
    std::map<int, double> first_tokens() const;                // by revision: the earliest that was seen

    static constexpr std::size_t kMostSamples = 4096;

private:
    std::shared_ptr<const BoardView> view_ = std::make_shared<BoardView>();
    mutable std::mutex mutex_;  // guards all below
    LoadMeter meter_;
    std::deque<RequestSample> samples_;
    std::map<int, double> first_tokens_;
    std::int64_t queued_ = 0;
    double queued_tokens_ = 0, last_active_s_ = -1, mean_output_ = 0;
    std::uint64_t requests_ = 0, failed_ = 0;
};

// One of the shares by its size; 0: there are none.
int draw_revision(const std::vector<RevisionShare>& shares, SplitMix& random);

}  // namespace stoker
