// Where a server listens, as people write it.
#include <arpa/inet.h>

#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "server/server.h"

namespace stoker {

bool ListenAddress::loopback() const {
    return address == "::1" || address.starts_with("127.");
}

Result<ListenAddress> parse_listen(std::string_view text) {
    ListenAddress listen;
    std::string_view host, port = text;
    if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        port = text.substr(colon + 1);
    }
    const auto wrong = [&](std::string_view what) {
        return Error(ErrorKind::invalid, fmt::format("{} in the address '{}'", what, printable(text, 60)), {},
                     "expected ADDRESS:PORT, such as 127.0.0.1:8042, [::1]:8042 or 0.0.0.0:8042");
    };
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host == "localhost") host = "127.0.0.1";
    if (host == "*") host = "0.0.0.0";
    if (!host.empty()) {
        in6_addr parsed{};
        const std::string name(host);
        if (::inet_pton(AF_INET, name.c_str(), &parsed) != 1 && ::inet_pton(AF_INET6, name.c_str(), &parsed) != 1)
            return wrong("no numeric address");
        listen.address = name;
    }
    unsigned number = 0;
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (failed != std::errc() || end != port.data() + port.size() || number > 65535) return wrong("no port");
    listen.port = static_cast<std::uint16_t>(number);
    return listen;
}

}  // namespace stoker
