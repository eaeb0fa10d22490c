// Any bytes: the readers of quantities return a value in range or an error, and what the writers make of a value is
// read back within the digits that they show.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/units.h"

// A trap, where CHECK would end the program so that libFuzzer keeps no input.
#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

using namespace stoker;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto count = parse_count(text)) {
        REQUIRE(*count >= 0 && *count <= 1e24);
        const auto again = parse_count(format_count(*count));
        REQUIRE(again && std::fabs(*again - *count) <= 0.006 * *count);
    }
    if (const auto bytes = parse_bytes(text)) {
        REQUIRE(bytes->v >= 0 && bytes->v <= 1e21);
        REQUIRE(parse_bytes(format_bytes_gib(*bytes)).ok());
    }
    if (const auto seconds = parse_seconds(text)) {
        REQUIRE(seconds->v >= 0 && seconds->v <= 1e12);
        const auto again = parse_seconds(format_seconds(*seconds));
        REQUIRE(again && std::fabs(again->v - seconds->v) <= 0.06 * seconds->v);
    }
    if (const auto usd = parse_usd(text)) {
        REQUIRE(usd->micro() >= 0 && usd->dollars() <= 9e12);
        const auto again = parse_usd(format_usd(*usd));
        REQUIRE(again && std::fabs(again->dollars() - usd->dollars()) <= 0.51);
    }
    return 0;
}
