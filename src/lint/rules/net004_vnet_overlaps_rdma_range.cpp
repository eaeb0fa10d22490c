#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace stoker::lint {

namespace {

struct Net004Range {
    std::uint32_t address = 0;
    int bits = 0;
};
// a.b.c.d/n
std::optional<Net004Range> net004_range(std::string_view text) {
    Net004Range range;
    const char* at = text.data();
    const char* end = at + text.size();
    for (int part = 0; part < 4; ++part) {
        unsigned value = 0;
        const auto [next, error] = std::from_chars(at, end, value);
        if (error != std::errc{} || value > 255) return std::nullopt;
        range.address = (range.address << 8) | value;
        at = next;
        if (at == end || *at != (part < 3 ? '.' : '/')) return std::nullopt;
        ++at;
    }
    const auto [next, error] = std::from_chars(at, end, range.bits);
    if (error != std::errc{} || next != end || range.bits < 0 || range.bits > 32) return std::nullopt;
    return range;
}
bool net004_meets(const Net004Range& a, const Net004Range& b) {
    const int bits = std::min(a.bits, b.bits);
    return bits == 0 || (a.address >> (32 - bits)) == (b.address >> (32 - bits));
}

}  // namespace

void check_net004(const Bundle& bundle, Report& report) {
    const Net004Range reserved{(172u << 24) | (16u << 16), 16};
    each_resource(bundle, [&](const Resource& network) {
        if (network.type != ResourceType::vnet && network.type != ResourceType::subnet && !is_az(network)) return;
        for (const Value* prefix : network.all(Attr::address_prefix)) {
            const auto range = prefix->known() ? net004_range(prefix->text) : std::nullopt;
            if (!range || !net004_meets(*range, reserved)) continue;
            const Resource* user = nullptr;
            each_beside(bundle, network, [&](const Resource& other) {
                if (!user && has_rdma(other, report)) user = &other;
            });
            if (!user) return;
            // A network and its subnets are one mistake.
            const std::string address = network.address.substr(0, network.address.find('#'));
            Finding* finding =
                report.add(*prefix, address,
                           fmt::format("{} overlaps 172.16.0.0/16, which InfiniBand sizes use for IP over "
                                       "InfiniBand: routes collide on every node",
                                       prefix->text));
            if (finding)
                report.relate(finding, *user->get(Attr::size).source, user->get(Attr::size).span,
                              "the InfiniBand size");
            return;
        }
    });
}

}  // namespace stoker::lint
