// The gateway: clients of the OpenAI API on one side, upstreams that speak it on the other, an account between them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "govern/ledger/ledger.h"
#include "io/http/http.h"
#include "serve/gateway/setup.h"

namespace stoker::gateway {

struct Shared;
class Loop;

// What answers routes that are no relays: blocking, on threads of their own. `key` and `project`: who asks.
struct SideApi {
    std::function<bool(std::string_view path)> takes;
    std::function<HttpResponse(const HttpRequest& request, const std::string& key, const std::string& project)> answer;
};

class Gateway {
public:
    // Recovers the ledger, then listens. Errors as of Ledger::open and of the listener.
    static Result<std::unique_ptr<Gateway>> start(GatewayOptions options, std::shared_ptr<const Setup> setup);
    ~Gateway();
    Gateway(const Gateway&) = delete;
    Gateway& operator=(const Gateway&) = delete;

    std::uint16_t port() const;
    // A door for requests of this process itself: without TLS, on loopback, for whoever knows the secret and names the
    // key that it asks for, as x-stoker-key.
    std::uint16_t own_port() const;
    const std::string& own_secret() const;
    void set_side(std::shared_ptr<const SideApi> side);  // null: there is none
    const Ledger::Recovery* recovery() const;            // null: no account is kept
    void set_setup(std::shared_ptr<const Setup> setup);  // requests under way keep theirs, unless their key is gone
    // Takes no more; what is under way may end until the deadline, then it is cut. All is settled.
    void stop(std::chrono::steady_clock::time_point deadline);

private:
    explicit Gateway(std::unique_ptr<Shared> shared);
    const std::unique_ptr<Shared> shared_;
    std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace stoker::gateway
