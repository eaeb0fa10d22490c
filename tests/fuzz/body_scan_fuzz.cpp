// Any bytes of a client as the body of a request: what is taken is JSON to another reader too, an edit leaves JSON that
// says what it was made for, and a refusal has its place in the body.
#include <cstdint>
#include <string>

#include "base/json_scan.h"
#include "serve/wire/body_scan.h"

#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

using namespace stoker;
using namespace stoker::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view body(reinterpret_cast<const char*>(data), size);
    const BodyResult result = scan_body(body);
    if (!result.scan) {
        REQUIRE(!result.fault.what.empty() && result.fault.at <= size);
        return 0;
    }
    REQUIRE(scan_json(body).fault.empty());
    const std::string edited = with_edits(body, edits_for(*result.scan, "another", true));
    const BodyResult again = scan_body(edited);
    REQUIRE(again.scan && again.scan->include_usage);
    REQUIRE(result.scan->model.empty() || again.scan->model == "another");
    REQUIRE(again.scan->prompt_bytes == result.scan->prompt_bytes && again.scan->stream == result.scan->stream);
    return 0;
}
