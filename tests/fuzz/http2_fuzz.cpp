// Any frames of a peer behind the preface, whole and in pieces: bounds hold, and who is told of a stream hears of its
// end no more than once.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "io/http/http2.h"

#define REQUIRE(expression)                  \
    do {                                     \
        if (!(expression)) __builtin_trap(); \
    } while (false)

namespace {

using namespace stoker;

constexpr Http2Limits kLimits{.request = {.max_head_bytes = 1024, .max_headers = 10, .max_body_bytes = 512},
                              .max_streams = 10,
                              .max_bodies_bytes = 1024};

struct FuzzedPeer final : Http2Handler {
    Http2Connection* wire = nullptr;
    std::set<std::int32_t> open;

    void on_head(std::int32_t stream, const HttpRequest& head, bool waits) override {
        REQUIRE(open.insert(stream).second && open.size() <= kLimits.max_streams);
        REQUIRE(head.path.starts_with('/') && head.headers.items.size() <= kLimits.request.max_headers);
        if (waits) wire->interim(stream);
    }
    void on_request(std::int32_t stream, HttpRequest request) override {
        REQUIRE(open.contains(stream) && request.body.size() <= kLimits.request.max_body_bytes);
        wire->head(stream, 200, {.items = {{"content-type", "text/plain"}}});
        wire->body(stream, request.body);
        if (request.path != "/open") wire->end(stream);
    }
    void on_refused(std::int32_t stream, int status, const std::string& why) override {
        REQUIRE(status >= 400 && status < 600 && !why.empty());
        open.insert(stream);
        wire->head(stream, status, {});
        wire->end(stream);
    }
    void on_room(std::int32_t stream) override { REQUIRE(open.contains(stream)); }
    void on_closed(std::int32_t stream) override { REQUIRE(open.erase(stream) == 1); }
};

void talk(std::string_view bytes, std::size_t step) {
    FuzzedPeer told;
    Http2Connection wire(kLimits, told);
    told.wire = &wire;
    wire.feed(kHttp2Preface);
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        wire.feed(bytes.substr(at, step));
        wire.take_out(out, out.size() + 4096);
    }
    wire.go_away();
    wire.take_out(out, out.size() + 4096);
    REQUIRE(wire.streams() <= kLimits.max_streams + told.open.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    talk(bytes, std::max<std::size_t>(size, 1));
    talk(bytes, 3);
    return 0;
}
