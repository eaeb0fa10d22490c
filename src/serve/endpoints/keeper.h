// Keeps the replicas of one endpoint: as many as the load wants, of the revision that is current, probed, and put up
// for the gateway with the share of work that each takes. One thread; every time comes in from outside, so that the
// same code runs on a virtual clock.
//
//     more           at once where decide_scale says so; one start is one start, however many wait
//     another        beside the ones that serve, which stay until it is ready, then drain
//     less           those that are not ready first, else those with least to finish; they end when they have
//     dead           another one takes its place: after 0.5 s, doubling to 30 s while they die soon
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/endpoints/endpoint.h"
#include "serve/endpoints/replica_host.h"
#include "serve/fleet/board.h"
#include "serve/fleet/scale.h"

namespace stoker {

class EndpointKeeper {
public:
    EndpointKeeper(Endpoint endpoint, ReplicaHost& host, std::uint64_t seed);

    const std::string& name() const { return endpoint_.name; }
    const std::shared_ptr<ReplicaBoard>& board() const { return board_; }
    void set(Endpoint endpoint);                // its file has changed
    void tick(double now_s);                    // what is due; at least ten times a second of its clock
    EndpointStatus status(double now_s) const;  // but for updated_at
    bool empty() const { return replicas_.empty(); }
    int level() const { return level_; }
    const std::map<int, double>& first_ready() const { return first_ready_s_; }  // by revision: when, on its clock

    static constexpr double kWindowS = 600;  // of what the endpoint is held against its plan by

private:
    struct Kept {
        std::string name, key, run, url, model;
        int revision = 0;
        std::uint64_t id = 0;
        ReplicaPhase phase = ReplicaPhase::queued;
        bool ready = false, failing = false, ejected = false, draining = false, told_to_end = false, adopted = false,
             asked = false;  // its start was
        double asked_s = 0, running_s = -1, ready_s = -1, start_s = 0, drained_by_s = 0, next_probe_s = 0,
               next_signals_s = 0;
        int failed_probes = 0;
        double slow_share = 1;  // halved for one much slower than the others
        ReplicaAddress address;
        std::shared_ptr<ReplicaLoad> load = std::make_shared<ReplicaLoad>();
        AgedSignals signals;
        double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;
        std::string why;
        std::optional<double> preempted_before;
    };
    struct Seen {  // of one second
        double at_s = 0, ready = 0, in_flight = 0;
        double running = -1, waiting = -1, kv_share = -1, preemptions = 0, connect_s = -1, answer_s = -1,
               host_busy = -1, replicas_cores = -1;
        bool tells_preemptions = false;
    };

    void look_at_runs(double now_s);
    void gone(Kept& replica, const std::string& why, double now_s);
    void look_at(Kept& replica, double now_s);
    void probe(Kept& replica, double now_s);
    void read_signals(Kept& replica, double now_s);
    void judge_replicas(double now_s);
    void scale(double now_s);
    void reach(double now_s);
    void start_one(int revision, double now_s);
    void drain(Kept& replica, double now_s);
    void put_up(double now_s);
    void see(double now_s);
    void read_tokenizer();
    int wanted(int revision) const;
    int count(int revision, bool ready_only) const;
    bool serves(int revision) const;  // gets requests now
    const ServingTemplate& how(int revision) const;
    double weight_of(const Kept& replica, double now_s) const;
    ServingEvidence evidence(double now_s) const;

    Endpoint endpoint_;
    ReplicaHost& host_;
    SplitMix random_;
    const std::shared_ptr<ReplicaBoard> board_ = std::make_shared<ReplicaBoard>();
    std::vector<std::unique_ptr<Kept>> replicas_;
    ScaleMemory memory_;
    ColdStart cold_start_;
    ScaleDecision last_decision_;
    int level_ = 0, serving_ = 0, next_number_ = 1, deaths_ = 0;
    std::int64_t starts_ = 0, failures_ = 0;
    double next_list_s_ = 0, next_scale_s_ = 0, next_judge_s_ = 0, next_start_s_ = 0, begun_s_ = -1;
    bool listed_ = false;  // what lives of earlier gateways is known
    std::string last_failure_, trouble_;
    std::uint64_t last_id_ = 0;
    std::deque<Seen> seen_;
    std::map<int, double> first_ready_s_;
    double connect_s_ = -1, answer_s_ = -1;
    double processors_cores_ = 0;
    std::string tokenizer_of_;  // the file that tokenizer_ was read of, or could not be
    std::shared_ptr<const tokens::Tokenizer> tokenizer_;
};

}  // namespace stoker
