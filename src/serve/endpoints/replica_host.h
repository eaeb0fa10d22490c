// Where replicas of endpoints live, as those who keep them see it: they are asked for, listed and ended by name, and
// their servers are asked how they are. A run of the platform is one (app/client/replica_runs.h).
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/endpoints/endpoint.h"
#include "serve/replicas/engine_signals.h"

namespace stoker {

// How replicas of an engine are asked: a row of data/serve/engines.tsv.
struct ServingTemplate {
    std::string engine, target, port_variable, host_variable, health, ready_word, models, metrics;
    double cold_start_s = 60;
};
// invalid, with the list of those that there are.
Result<const ServingTemplate*> find_serving_template(std::string_view engine);
const std::vector<ServingTemplate>& serving_templates();

enum class ReplicaPhase : std::uint8_t { queued, running, ended };
struct ReplicaFact {
    std::string name;  // "2.1"
    int revision = 0;
    std::string run;  // what names it where it lives
    std::string url;  // known while it runs
    ReplicaPhase phase = ReplicaPhase::queued;
    std::string why;  // it waits, or how it ended
};

struct ReplicaAddress {
    std::string authority;
    sockaddr_storage address{};
    socklen_t size = 0;
};
struct ReplicaProbe {
    bool well = false;
    double connect_s = -1;            // to open a connection; negative: not measured
    double answer_s = -1;             // until it had said how it is
    std::vector<std::string> models;  // that it serves; none: it did not say
    std::string problem;
};

class ReplicaHost {
public:
    virtual ~ReplicaHost() = default;
    // What names it there. The same `key` is the same replica, however often it is asked for.
    virtual Result<std::string> start(const Endpoint& endpoint, const EndpointRevision& revision,
                                      const std::string& name, const std::string& key) = 0;
    virtual Status end(const std::string& run) = 0;
    virtual Result<std::vector<ReplicaFact>> list(const Endpoint& endpoint) = 0;  // those that have not ended
    virtual ReplicaFact last_of(const std::string& run) = 0;                      // one that list() has no more

    virtual Result<ReplicaAddress> address(const std::string& url) = 0;
    virtual ReplicaProbe probe(const ServingTemplate& how, const std::string& url) = 0;
    virtual std::optional<EngineSignals> signals(const ServingTemplate& how, const std::string& url,
                                                 const std::string& model) = 0;
    // Of this machine, where its replicas run here: all cores together, and those that replicas use; since the last
    // call.
    struct Processors {
        double cores = 0, busy = -1, replicas_cores = -1;
    };
    virtual Processors processors(const std::vector<std::string>& runs) = 0;
};

}  // namespace stoker
