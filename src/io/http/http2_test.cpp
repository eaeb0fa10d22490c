// A peer of HTTP/2 that wants too much, gives up at once or sends what two readers could understand differently costs
// nobody else anything; what it reads is what was written for it.
#include "io/http/http2.h"

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

namespace stoker {
namespace {

// Answers each request with its path and how long its body was.
struct EchoStreams : Http2Handler {
    Http2Connection* wire = nullptr;
    std::vector<std::string> told;
    std::string answer;  // in place of that
    bool ends = true;

    void on_head(std::int32_t stream, const HttpRequest& head, bool) override {
        told.push_back("head " + head.path);
        if (head.path == "/no") on_refused(stream, 401, "no");
    }
    void on_request(std::int32_t stream, HttpRequest request) override {
        told.push_back("request " + request.path);
        wire->head(stream, 200, {.items = {{"content-type", "text/plain"}}});
        wire->body(stream, answer.empty() ? request.path + " " + std::to_string(request.body.size()) : answer);
        if (ends) wire->end(stream);
    }
    void on_refused(std::int32_t stream, int status, const std::string& why) override {
        told.push_back("refused " + std::to_string(status));
        wire->head(stream, status, {});
        wire->body(stream, why);
        wire->end(stream);
    }
    void on_room(std::int32_t) override {}
    void on_closed(std::int32_t) override { told.emplace_back("closed"); }
};

struct Http2 : testing::Test {
    Http2Limits limits{.request = {.max_head_bytes = 1024, .max_headers = 20, .max_body_bytes = 4096},
                       .max_streams = 8};
    EchoStreams echo;
    std::unique_ptr<Http2Connection> server;
    nghttp2_session* client = nullptr;
    std::map<std::int32_t, std::string> got;  // ":status" and the body
    std::map<std::int32_t, std::uint32_t> ended;
    std::uint32_t goodbye = UINT32_MAX;  // of GOAWAY
    std::string upload;
    bool reads = true;

    static Http2& of(void* user) { return *static_cast<Http2*>(user); }

    void SetUp() override {
        server = std::make_unique<Http2Connection>(limits, echo);
        echo.wire = server.get();
        nghttp2_session_callbacks* callbacks = nullptr;
        nghttp2_session_callbacks_new(&callbacks);
        nghttp2_session_callbacks_set_on_header_callback(
            callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                          const std::uint8_t* value, std::size_t size, std::uint8_t, void* user) {
                if (std::string(name, name + name_size) == ":status")
                    of(user).got[frame->hd.stream_id] = std::string(value, value + size) + " ";
                return 0;
            });
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
            callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes,
                          std::size_t size, void* user) {
                of(user).got[stream].append(bytes, bytes + size);
                return 0;
            });
        nghttp2_session_callbacks_set_on_stream_close_callback(
            callbacks, [](nghttp2_session*, std::int32_t stream, std::uint32_t code, void* user) {
                of(user).ended[stream] = code;
                return 0;
            });
        nghttp2_session_callbacks_set_on_frame_recv_callback(
            callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
                if (frame->hd.type == NGHTTP2_GOAWAY) of(user).goodbye = frame->goaway.error_code;
                return 0;
            });
        nghttp2_option* option = nullptr;
        nghttp2_option_new(&option);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_http_messaging(option, 1);  // of the client alone: it may write anything
        nghttp2_session_client_new2(&client, callbacks, this, option);
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(callbacks);
        nghttp2_submit_settings(client, 0, nullptr, 0);
    }
    void TearDown() override { nghttp2_session_del(client); }

    std::int32_t ask(const std::string& path, std::vector<std::pair<std::string, std::string>> more = {},
                     bool body = false) {
        more.insert(more.begin(),
                    {{":method", body ? "POST" : "GET"}, {":scheme", "http"}, {":path", path}, {":authority", "here"}});
        std::vector<nghttp2_nv> fields;
        for (auto& [name, value] : more)
            fields.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                              reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(), 0});
        nghttp2_data_provider provider{};
        provider.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* out, std::size_t size,
                                    std::uint32_t* flags, nghttp2_data_source*, void* user) -> ssize_t {
            std::string& rest = of(user).upload;
            const std::size_t taken = std::min(size, rest.size());
            std::copy_n(rest.data(), taken, out);
            rest.erase(0, taken);
            if (rest.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
            return static_cast<ssize_t>(taken);
        };
        return nghttp2_submit_request(client, nullptr, fields.data(), fields.size(), body ? &provider : nullptr,
                                      nullptr);
    }
    void send() {
        const std::uint8_t* bytes = nullptr;
        for (ssize_t size = 0; (size = nghttp2_session_mem_send(client, &bytes)) > 0;)
            server->feed({reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)});
    }
    void talk() {
        for (bool moved = true; moved;) {
            send();
            std::string out;
            moved = server->take_out(out, 1 << 20);
            nghttp2_session_mem_recv(client, reinterpret_cast<const std::uint8_t*>(out.data()), out.size());
        }
    }
};

TEST_F(Http2, AnswersStreamsBesideEachOther) {
    const auto one = ask("/v1/a%20b?x=1"), two = ask("/v1/c", {{"host", "here"}});
    upload = std::string(4096, 'x');
    const auto three = ask("/up", {}, true);
    talk();
    EXPECT_EQ(got[one], "200 /v1/a b 0");
    EXPECT_EQ(got[two], "200 /v1/c 0");
    EXPECT_EQ(got[three], "200 /up 4096");
    EXPECT_EQ(server->streams(), 0u);
    EXPECT_FALSE(server->over());
}

// Who may not ask is told before the body came, and the body is not waited for.
TEST_F(Http2, AnswersBeforeTheBodyIsRead) {
    upload = std::string(1 << 20, 'x');
    const auto stream = ask("/no", {}, true);
    talk();
    EXPECT_EQ(got[stream], "401 no");
    EXPECT_EQ(ended[stream], NGHTTP2_NO_ERROR);
    EXPECT_EQ(server->streams(), 0u);
}

TEST_F(Http2, RefusesWhatIsTooLargeOrNotClear) {
    const auto wide = ask("/", {{"x-long", std::string(1100, 'x')}});
    const auto two_hosts = ask("/", {{"host", "there"}});
    const auto up = ask("/a/../b");
    const auto long_body = ask("/", {{"content-length", "4097"}}, true);
    upload = std::string(4097, 'x');
    talk();
    EXPECT_EQ(got[wide].substr(0, 4), "431 ");
    EXPECT_EQ(got[two_hosts].substr(0, 4), "400 ");
    EXPECT_EQ(got[up].substr(0, 4), "400 ");
    EXPECT_EQ(got[long_body].substr(0, 4), "413 ");
    upload = std::string(4097, 'x');
    const auto no_length = ask("/", {}, true);
    talk();
    EXPECT_EQ(got[no_length].substr(0, 4), "413 ");
    EXPECT_EQ(goodbye, UINT32_MAX);
}

// Headers that only HTTP/1.1 has would be read differently behind us (smuggling).
TEST_F(Http2, TakesNoHeaderOfAConnection) {
    const auto stream = ask("/", {{"transfer-encoding", "chunked"}}, true);
    talk();
    EXPECT_EQ(ended[stream], NGHTTP2_PROTOCOL_ERROR);
    EXPECT_TRUE(echo.told.empty());
}

// Nothing is written beyond the peer's window; what waits can be asked for, and a peer that reads gets the rest.
TEST_F(Http2, WaitsForThePeersWindow) {
    echo.answer = std::string(200'000, 'y');
    const auto stream = ask("/");
    talk();
    EXPECT_EQ(got[stream].size(), 4 + 65535u);
    EXPECT_EQ(server->backlog(stream), 200'000u - 65535u);
    nghttp2_submit_window_update(client, 0, stream, 200'000);
    nghttp2_submit_window_update(client, 0, 0, 200'000);
    talk();
    EXPECT_EQ(got[stream].size(), 4 + 200'000u);
    EXPECT_EQ(ended[stream], NGHTTP2_NO_ERROR);
}

TEST_F(Http2, AStreamThatIsGivenUpIsToldOf) {
    echo.ends = false;
    const auto stream = ask("/");
    talk();
    nghttp2_submit_rst_stream(client, 0, stream, NGHTTP2_CANCEL);
    talk();
    EXPECT_EQ(echo.told, (std::vector<std::string>{"head /", "request /", "closed"}));
}

// CVE-2023-44487: streams that are begun and given up at once reach nobody, and their peer is sent away.
TEST_F(Http2, ARapidResetEndsTheConnectionAndReachesNobody) {
    talk();
    std::string burst;
    for (int i = 0; i < 300; ++i) {
        const auto stream = ask("/");
        const std::uint8_t* bytes = nullptr;
        for (ssize_t size = 0; (size = nghttp2_session_mem_send(client, &bytes)) > 0;)
            burst.append(bytes, bytes + size);
        nghttp2_submit_rst_stream(client, 0, stream, NGHTTP2_CANCEL);
        for (ssize_t size = 0; (size = nghttp2_session_mem_send(client, &bytes)) > 0;)
            burst.append(bytes, bytes + size);
    }
    server->feed(burst);
    talk();
    EXPECT_TRUE(echo.told.empty());
    EXPECT_TRUE(server->calmed());
    EXPECT_TRUE(server->over());
    EXPECT_EQ(goodbye, NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(Http2, ResetsNowAndThenAreForgiven) {
    echo.ends = false;
    for (int i = 0; i < 1000; ++i) {
        const auto stream = ask("/");
        talk();
        nghttp2_submit_rst_stream(client, 0, stream, NGHTTP2_CANCEL);
        talk();
        if (i % 20 == 19) server->forgive_some(20, 0);
    }
    EXPECT_FALSE(server->calmed());
}

TEST_F(Http2, FramesThatCarryNothingAreCounted) {
    for (int i = 0; i < 2100; ++i) {
        nghttp2_submit_ping(client, 0, nullptr);
        talk();
    }
    EXPECT_EQ(goodbye, NGHTTP2_ENHANCE_YOUR_CALM);
}

// More streams than there may be at once are refused; the others are served.
TEST_F(Http2, StreamsAtOnceAreBounded) {
    echo.ends = false;
    std::vector<std::int32_t> asked(20);
    for (auto& each : asked) each = ask("/");
    talk();
    EXPECT_EQ(server->streams(), 8u);
}

// What is under way ends as it would have; nothing new begins.
TEST_F(Http2, GoesAwayWhenItsStreamsAreDone) {
    echo.ends = false;
    const auto stream = ask("/");
    talk();
    server->go_away();
    talk();
    EXPECT_EQ(goodbye, NGHTTP2_NO_ERROR);
    EXPECT_FALSE(server->over());
    server->end(stream);
    talk();
    EXPECT_EQ(got[stream], "200 / 0");
    EXPECT_TRUE(server->over());
}

TEST_F(Http2, BytesThatAreNoHttp2EndIt) {
    server->feed("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(server->over());
}

}  // namespace
}  // namespace stoker
