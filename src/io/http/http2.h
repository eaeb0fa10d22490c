// HTTP/2 of a server as a matter of bytes only: no sockets, no clock. nghttp2 reads and writes the frames; what a peer
// could make us do or keep with them has its bound here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/http.h"
#include "io/http/http_parser.h"

struct nghttp2_session;

namespace stoker {

inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Http2Limits {
    HttpLimits request;  // of one stream
    std::uint32_t max_streams = 100;
    std::size_t max_bodies_bytes = 64u << 20;  // of all requests that are read at once
    // Streams that end unfinished (CVE-2023-44487, rapid reset), and frames that carry nothing: so many at once, and
    // those of forgive_some() later.
    std::uint32_t max_resets = 200, max_idle_frames = 2000;
};

// Who serves the streams. Called between frames, where everything may be answered; of a stream that its client has
// given up before anybody heard of it nothing is told.
class Http2Handler {
public:
    virtual ~Http2Handler() = default;
    virtual void on_head(std::int32_t stream, const HttpRequest& head, bool waits) = 0;  // waits: for "100"
    virtual void on_request(std::int32_t stream, HttpRequest request) = 0;  // whole; not if it was answered before
    virtual void on_refused(std::int32_t stream, int status, const std::string& why) = 0;
    virtual void on_room(std::int32_t stream) = 0;    // some of its answer went out
    virtual void on_closed(std::int32_t stream) = 0;  // it is over; of those that were told of
};

class Http2Connection {
public:
    Http2Connection(Http2Limits limits, Http2Handler& handler);
    ~Http2Connection();
    Http2Connection(const Http2Connection&) = delete;
    Http2Connection& operator=(const Http2Connection&) = delete;

    void feed(std::string_view bytes);
    // Appends frames until there are `most` bytes or no more; false: there was none.
    bool take_out(std::string& out, std::size_t most);
    bool over() const;                       // nothing is to be read or sent any more
    bool calmed() const { return calmed_; }  // it was ended since the peer asks too much of us

    // An answer: its head, then its body in pieces.
    void interim(std::int32_t stream);  // "100 Continue"
    void head(std::int32_t stream, int status, const HttpHeaders& headers);
    void body(std::int32_t stream, std::string_view bytes);
    void end(std::int32_t stream);
    void reset(std::int32_t stream);                  // it is given up
    std::size_t backlog(std::int32_t stream) const;   // bytes of its body that wait for room
    std::size_t received(std::int32_t stream) const;  // bytes of the request's body
    void go_away();                                   // no further streams
    void forgive_some(std::uint32_t resets, std::uint32_t idle_frames);
    std::size_t streams() const { return streams_.size(); }

private:
    struct Callbacks;
    struct Stream {
        HttpRequest request;
        std::string path, authority;
        std::size_t head_bytes = 0;
        std::string out;  // of the body of the answer
        std::size_t sent = 0;
        int refused = 0;  // with this status
        bool told = false, whole = false, answered = false, ended = false, deferred = false;
    };
    enum class What : std::uint8_t { head, request, refused, room, closed };
    struct Event {
        What what;
        std::int32_t stream;
        std::string why = {};
    };
    Stream* find(std::int32_t stream);
    void refuse(std::int32_t stream, int status, std::string why);
    void head_complete(std::int32_t stream, bool last);
    void request_complete(std::int32_t stream);
    void take_body(std::int32_t stream, std::string_view bytes);
    void forget(std::int32_t stream, bool unfinished);
    void idle_frame();
    void calm();
    void tell();

    const Http2Limits limits_;
    Http2Handler& handler_;
    std::unique_ptr<nghttp2_session, void (*)(nghttp2_session*)> session_;
    std::map<std::int32_t, Stream> streams_;
    std::deque<Event> events_;
    std::size_t bodies_bytes_ = 0;
    std::uint32_t resets_ = 0, idle_frames_ = 0;
    bool telling_ = false, broken_ = false, calmed_ = false, leaving_ = false;
};

}  // namespace stoker
