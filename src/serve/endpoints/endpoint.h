// An endpoint: a model's name, the revisions that answer for it, and how many replicas it may have. A file of a folder,
// written by whoever deploys or steers it and read by the gateway, which keeps it so; what the gateway says of it is a
// second file beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/endpoints/reality.h"

namespace stoker {

// Immutable: another program, model or bound is another revision.
struct EndpointRevision {
    int number = 0;
    std::string created_at;   // RFC 3339
    std::string engine;       // a row of data/serve/engines.tsv
    std::string spec;         // of the run that a replica is, as JSON, with {port}, {host} and {name} in its words
    std::string model;        // what its servers call it; empty: whatever /v1/models lists first
    std::string source;       // the workload file, and its digest
    std::string tokenizer;    // file of the model's own; empty: none was found
    int max_outstanding = 0;  // of one replica; 0: no bound
    double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;  // of one, until they are measured
    double cold_start_s = 0;                                   // until one was seen
    ServingPromise promise;
    // As a gateway saw it, RFC 3339; empty: not yet. Not part of what was deployed.
    std::string first_ready_at{}, first_token_at{};
};
// From the deployment that was accepted until then, in seconds; none: not yet.
std::optional<double> seconds_after_deploy(const EndpointRevision& revision, std::string_view at);

struct Endpoint {
    std::string name;
    int current = 0;                   // revision; 0: none
    std::map<std::string, int> split;  // by revision: shares; empty: all goes to the current one
    int least = 1, most = 1;
    double idle_s = 300;  // without a request, before it goes to zero
    double hold_s = 0;    // a request waits so long for a replica; 0: as long as a start may take
    bool stopped = false;
    // Whose replicas are: they run in this project (p-2), as this user, within the quotas of both. Empty: the
    // installation's own.
    std::string project, user;
    std::vector<EndpointRevision> revisions;

    const EndpointRevision* find(int revision) const;
};

template <class V>
void fields(V& visit, EndpointRevision& revision) {
    visit("cold_start_s", revision.cold_start_s);
    visit("created_at", revision.created_at);
    visit("decode_tokens_per_s", revision.decode_tokens_per_s);
    visit("engine", revision.engine);
    visit("first_ready_at", revision.first_ready_at);
    visit("first_token_at", revision.first_token_at);
    visit("max_outstanding", revision.max_outstanding);
    visit("model", revision.model);
    visit("number", revision.number);
    visit("prefill_tokens_per_s", revision.prefill_tokens_per_s);
    visit("promise", revision.promise);
    visit("source", revision.source);
    visit("spec", revision.spec);
    visit("tokenizer", revision.tokenizer);
}
template <class V>
void fields(V& visit, Endpoint& endpoint) {
    visit("current", endpoint.current);
    visit("hold_s", endpoint.hold_s);
    visit("idle_s", endpoint.idle_s);
    visit("least", endpoint.least);
    visit("most", endpoint.most);
    visit("name", endpoint.name);
    visit("project", endpoint.project);
    visit("revisions", endpoint.revisions);
    visit("split", endpoint.split);
    visit("stopped", endpoint.stopped);
    visit("user", endpoint.user);
}

struct ReplicaStatus {
    std::string name, run, url, state, why;
    int revision = 0;
    std::int64_t in_flight = 0, taken = 0;
    double age_s = 0, start_s = 0, weight = 0;
};
struct EndpointStatus {
    std::string name, state, cause, updated_at, last_failure;
    std::string gateway{};  // where it listens: https://gpu.example.org:8443
    int level = 0, ready = 0, revision = 0;
    std::int64_t queued = 0, starts = 0, failures = 0, requests = 0, failed = 0;
    double cold_start_s = 0;
    std::vector<ReplicaStatus> replicas;
    ServingEvidence evidence;
};
template <class V>
void fields(V& visit, ReplicaStatus& status) {
    visit("age_s", status.age_s);
    visit("in_flight", status.in_flight);
    visit("name", status.name);
    visit("revision", status.revision);
    visit("run", status.run);
    visit("start_s", status.start_s);
    visit("state", status.state);
    visit("taken", status.taken);
    visit("url", status.url);
    visit("weight", status.weight);
    visit("why", status.why);
}
template <class V>
void fields(V& visit, EndpointStatus& status) {
    visit("cause", status.cause);
    visit("cold_start_s", status.cold_start_s);
    visit("evidence", status.evidence);
    visit("failed", status.failed);
    visit("failures", status.failures);
    visit("gateway", status.gateway);
    visit("last_failure", status.last_failure);
    visit("level", status.level);
    visit("name", status.name);
    visit("queued", status.queued);
    visit("ready", status.ready);
    visit("replicas", status.replicas);
    visit("requests", status.requests);
    visit("revision", status.revision);
    visit("starts", status.starts);
    visit("state", status.state);
    visit("updated_at", status.updated_at);
}

// Letters, digits, - and . ; at most 50: it is part of names of runs.
bool is_endpoint_name(std::string_view name);

// What people do about an endpoint, each of it in its file; invalid, not_found, conflict: it cannot be.
Status set_bounds(Endpoint& endpoint, std::optional<int> least, std::optional<int> most, std::optional<double> idle_s);
Status go_back(Endpoint& endpoint, std::optional<int> revision);  // none: the one before

class EndpointFolder {
public:
    explicit EndpointFolder(std::string folder) : folder_(std::move(folder)) {}  // need not be there
    Result<std::vector<Endpoint>> list() const;                                  // by name
    Result<Endpoint> read(const std::string& name) const;                        // not_found
    // Reads it (or what `fresh` is, where there is none), lets it be changed and writes it; one at a time.
    Result<Endpoint> change(const std::string& name, bool may_make, const std::function<Status(Endpoint&)>& edit) const;
    Status remove(const std::string& name) const;

    Result<EndpointStatus> status(const std::string& name) const;  // not_found: no gateway has kept it yet
    // How a gateway said it is in the last ten seconds; nothing where none did.
    std::optional<EndpointStatus> fresh_status(const std::string& name, std::int64_t now_us) const;
    Status write_status(const EndpointStatus& status) const;
    std::uint64_t version() const;  // another one when an endpoint may have changed
    const std::string& path() const { return folder_; }

private:
    std::string folder_;
};

}  // namespace stoker
