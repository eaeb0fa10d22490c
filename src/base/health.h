// What a check of a node found. Measured by doctor/health_check, carried by drivers, decided on by run/decide/health;
// told by stoker doctor and stoker nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

// In the order in which they are looked at and told: a slow network looks like a slow device, and both like a bad
// model.
enum class HealthLayer : std::uint8_t { network, device, model };
// skipped: it could not run, or nobody knows what to expect. That is never a pass.
enum class HealthVerdict : std::uint8_t { skipped, pass, warn, fail };
// quick: about two seconds, before a gang. full: some minutes, on an idle node.
enum class HealthLevel : std::uint8_t { quick, full };

struct HealthCheck {
    HealthLayer layer = HealthLayer::device;
    std::string name;        // "link-bandwidth", stable, for the API
    std::string node, peer;  // peer: of a link; else empty
    HealthVerdict verdict = HealthVerdict::skipped;
    std::optional<double> measured, expected;  // expected: the line between pass and fail
    std::string unit;                          // of both: "bytes/s", "s", "bytes", "FLOP/s", "count"
    std::string source;                        // of the line: a file of data with its row, or "median of 9 nodes"
    std::string detail;                        // why it was skipped, or what else is known; one line
    std::string fix;                           // a command or a line to change; empty: none is known
};

struct HealthReport {
    std::vector<HealthCheck> checks;
    // The worst; skipped when nothing could be looked at.
    HealthVerdict verdict() const {
        HealthVerdict worst = HealthVerdict::skipped;
        for (const HealthCheck& check : checks) worst = std::max(worst, check.verdict);
        return worst;
    }
};

constexpr std::array<std::pair<HealthLayer, std::string_view>, 3> enum_names(HealthLayer) {
    return {{{HealthLayer::network, "network"}, {HealthLayer::device, "device"}, {HealthLayer::model, "model"}}};
}
constexpr std::array<std::pair<HealthVerdict, std::string_view>, 4> enum_names(HealthVerdict) {
    return {{{HealthVerdict::skipped, "skipped"},
             {HealthVerdict::pass, "pass"},
             {HealthVerdict::warn, "warn"},
             {HealthVerdict::fail, "fail"}}};
}
constexpr std::array<std::pair<HealthLevel, std::string_view>, 2> enum_names(HealthLevel) {
    return {{{HealthLevel::quick, "quick"}, {HealthLevel::full, "full"}}};
}

}  // namespace stoker
