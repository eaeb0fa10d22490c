// Any JSON: a model is refused, or it has a shape whose parameters can be counted without dividing by zero or
// overflowing.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "catalog/hf_config.h"
#include "catalog/model_count.h"

// A trap, where CHECK would end the program so that libFuzzer keeps no input.
#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace stoker;
    const auto document = Document::parse_json({reinterpret_cast<const char*>(data), size}, "config.json");
    if (!document) return 0;
    const auto model = read_hf_config(*document, "fuzz");
    if (!model) {
        REQUIRE(!model.error().problems().empty() && !model.error().text().empty());
        return 0;
    }
    REQUIRE(model->layers > 0 && model->hidden > 0 && model->heads > 0 && model->kv_heads > 0 && model->head_dim > 0 &&
            model->ffn > 0);
    REQUIRE(model->heads % model->kv_heads == 0 && model->dense_layers <= model->layers &&
            model->decoder_layers <= model->layers);
    const ParameterCount count = count_parameters(*model);
    REQUIRE(std::isfinite(count.total) && count.total > 0 && count.active > 0 && count.active <= count.total);
    return 0;
}
