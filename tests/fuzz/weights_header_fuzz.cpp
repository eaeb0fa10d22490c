// Any bytes as a file of weights: refused with a message, or a header whose weights lie within the file.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "serve/models/weights_header.h"

// A trap, where CHECK would end the program so that libFuzzer keeps no input.
#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace stoker;
    const auto header = read_weights_header(source_of_text("fuzz", {reinterpret_cast<const char*>(data), size}));
    if (!header) {
        REQUIRE(!header.error().text().empty());
        return 0;
    }
    REQUIRE(std::isfinite(header->parameters) && header->parameters >= 0 && header->tensors >= 0);
    REQUIRE(header->format == WeightsFormat::onnx || header->weight_bytes <= static_cast<double>(size));
    return 0;
}
