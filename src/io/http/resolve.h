// Names of hosts, with a deadline: the resolver of the system has none that a caller could set.
#pragma once

#include <netdb.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace stoker {

struct FreeAddresses {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;
// As ::getaddrinfo; another one for tests.
using Resolver = std::function<int(const char*, const char*, const addrinfo*, addrinfo**)>;

// The stream addresses of the host, which may be an address itself. unavailable: it has none. timed_out: no answer by
// the deadline; the thread that asked is left behind until the system gives up, and when too many are, names are
// refused at once.
Result<Addresses> resolve(const std::string& host, int port, std::chrono::steady_clock::time_point deadline,
                          const Resolver& resolver = ::getaddrinfo);

}  // namespace stoker
