// The HTTP API, /api/v1: routes over an engine. The same object answers sockets and, without one, the commands of this
// process, so that `stoker ps` prints what the API says.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "govern/actor.h"
#include "govern/price_book.h"
#include "io/http/http.h"
#include "io/log.h"
#include "observe/gpu/gpu_fleet.h"
#include "observe/series.h"
#include "run/engine/engine.h"
#include "server/config_control.h"
#include "server/metrics.h"
#include "server/openapi.h"

namespace stoker {

class AuditTrail;
class IdleGuard;
class SingleSignOn;
class Desk;
namespace api {
class FirstAdmin;
}

struct ApiOptions {
    std::string token;                      // Bearer; empty: callers are trusted (this process)
    Actor actor = Actor::part("api");       // whom callers act as, and the journal names
    std::string prices_file;                // price book (govern/price_book.h); empty: nothing has a price
    PriceBook prices;                       // where there is no file
    std::shared_ptr<ConfigControl> config;  // of a server; none: its configuration is only looked at
    double max_wait_s = 30;                 // of a long poll
    // Names a browser may call us by, beside localhost and plain addresses (a guard against DNS rebinding). "*.x" is
    // any one label before ".x".
    std::vector<std::string> host_names;
    // What /metrics says about what carries the requests.
    std::function<void(api::MetricsText&)> more_metrics;
    std::size_t max_waiting = 256;                     // long polls and streams at once; the next is answered 503
    bool check_prerequisites = true;                   // of a submitted run, before it is taken
    std::function<Status(const RunSpec&)> may_notify;  // of a submitted run; none: whomever it names
    std::shared_ptr<SeriesStore> series;  // of the observer; none: the folder's are read, where there are any
    std::shared_ptr<Log> log;             // of requests; none: nothing is said
    std::shared_ptr<AuditTrail> audit;    // of requests that change something or are refused; none: none is kept
    std::shared_ptr<api::FirstAdmin> first_admin;  // while nobody was made; none: nobody is made by a token
    std::shared_ptr<GpuFleet> gpus;                // of the agents of nodes; none: no report is taken
    std::shared_ptr<SingleSignOn> oidc;            // none: nobody logs in by a provider
    std::shared_ptr<IdleGuard> idle;               // none: nobody looks after what does nothing
    std::shared_ptr<Desk> desk;                    // none: files are neither planned nor deployed
    bool embedded = false;                         // ends with the command that carries it; told by /api/v1/version
};

class Api {
public:
    static Result<std::unique_ptr<Api>> make(Engine& engine, ApiOptions options);
    virtual ~Api() = default;
    // Any thread; answers from another one.
    virtual void handle(HttpRequest request, HttpReply reply) = 0;
    // From here on; what is being counted goes on with the old ones.
    virtual void set_prices(PriceBook prices) = 0;
    // Ends streams and long polls; what arrives afterwards is answered 503.
    virtual void stop() = 0;
};

}  // namespace stoker
