// How a driver talks to a keeper: one line of JSON there and one back, over a Unix socket in the gang's folder. After
// the answer the connection stays open until the keeper ends, so that a driver can wait for that.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "io/process.h"

namespace stoker {

enum class ControlVerb : std::uint8_t { status, signal, stop };
struct ControlRequest {
    ControlVerb verb = ControlVerb::status;
    std::uint64_t epoch = 0;  // of the server that asks; not looked at for status
    int signal = 0;
    double grace_s = 0;
};
struct ControlAnswer {
    bool ok = false;
    std::string detail;
    std::string status;  // of a status request: as in status.json
};

std::string to_line(const ControlRequest& request);
std::string to_line(const ControlAnswer& answer);
Result<ControlRequest> parse_request(std::string_view line);
Result<ControlAnswer> parse_answer(std::string_view line);

// One question to the keeper of `folder`. not_found: nobody listens; timed_out: no answer by the deadline.
class ControlClient {
public:
    static Result<ControlClient> connect(const std::string& folder, Deadline deadline);
    Result<ControlAnswer> ask(const ControlRequest& request, Deadline deadline);
    bool wait_for_end(Deadline deadline);  // of the keeper

private:
    explicit ControlClient(UniqueFd socket) : socket_(std::move(socket)) {}
    UniqueFd socket_;
};

// The keeper's side, for its poll() loop. A client that is slow or says nonsense is dropped, never waited for.
class ControlServer {
public:
    Status listen(const std::string& folder);
    void add_to(std::vector<pollfd>& waits) const;
    // Takes what has come and answers it.
    void serve(const std::function<ControlAnswer(const ControlRequest&)>& answer);

private:
    struct Client {
        UniqueFd socket;
        std::string said;
        std::chrono::steady_clock::time_point since;
        bool answered = false;
    };
    UniqueFd socket_;
    std::list<Client> clients_;
};

}  // namespace stoker
