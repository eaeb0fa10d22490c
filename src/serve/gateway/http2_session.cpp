#include "serve/gateway/http2_session.h"

#include "base/text.h"
#include "io/process.h"
#include "serve/gateway/exchange.h"
#include "serve/gateway/loop.h"
#include "serve/gateway/session.h"

namespace stoker::gateway {
namespace {

constexpr std::size_t kMostOut = 64 * 1024;  // in frames that the socket has not taken: more stays with its stream
constexpr double kGoodbyeS = 2;
constexpr std::int64_t kForgiveEveryUs = 1'000'000;
constexpr std::uint32_t kResetsForgiven = 20, kIdleFramesForgiven = 100;

bool have_passed(std::int64_t since_us, std::int64_t now_us, double seconds) {
    return static_cast<double>(now_us - since_us) > seconds * kUs;
}

// They speak of the connection, which is not HTTP/1.1.
bool is_of_connection(std::string_view name) {
    return name == "connection" || name == "transfer-encoding" || name == "keep-alive";
}

}  // namespace

Http2Stream::Http2Stream(Loop& loop, Http2Session& connection, std::int32_t id, bool own)
    : GatewayClient(loop, own), connection_(connection), id_(id), window_us_(monotonic_clock_us()) {
    known_as(connection.peer());
}

void Http2Stream::begin(const HttpRequest& head, bool waits) {
    // Before the body is read: who may not ask has nothing to send.
    if (asks_what_may_be(head)) {
        hear(head);
        return say_what_may_be();
    }
    if (const auto why = authenticate(head)) return refuse(*why);
    if (waits) connection_.wire().interim(id_);
}

void Http2Stream::refuse_head(int status, const std::string& why) {
    refuse({.status = status,
            .type = status == 503 ? "overloaded" : "invalid_request_error",
            .code = status == 503   ? "overloaded"
                    : status == 413 ? "request_too_large"
                                    : "bad_request",
            .message = why,
            .retry_after_s = status == 503 ? 1 : 0});
}

void Http2Stream::leave() {
    aside_ = 0;
    leave_exchange();
}

void Http2Stream::aside_done(const HttpResponse& response) {
    aside_ = 0;
    answer(response.status, response.content_type, response.body);
}

void Http2Stream::queue(std::string_view bytes) {
    if (head_sent_) return connection_.wire().body(id_, bytes);
    head_ += bytes;
    constexpr std::string_view kEnd = "\r\n\r\n";
    const std::size_t end = head_.find(kEnd);
    if (end == std::string::npos) return;
    const std::string whole = std::exchange(head_, {});
    send_head(std::string_view(whole).substr(0, end));
    connection_.wire().body(id_, std::string_view(whole).substr(end + kEnd.size()));
}

void Http2Stream::send_head(std::string_view text) {
    head_sent_ = true;
    HttpHeaders headers;
    int status = 500;
    for (const std::string_view line : split_lines(text)) {
        if (line.starts_with("HTTP/1.1 ")) {
            status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
            continue;
        }
        const std::size_t colon = line.find(": ");
        if (colon == std::string_view::npos || is_of_connection(line.substr(0, colon))) continue;
        headers.add(lower(line.substr(0, colon)), std::string(line.substr(colon + 2)));
    }
    connection_.wire().head(id_, status, headers);
}

void Http2Stream::flush() {
    connection_.pump();
}

std::size_t Http2Stream::backlog() const {
    return head_.size() + connection_.wire().backlog(id_);
}

void Http2Stream::end() {
    ended_ = true;
    connection_.wire().end(id_);
    flush();
}

void Http2Stream::send_whole(std::string_view answer) {
    queue(answer);
    end();
}

void Http2Stream::exchange_done(bool) {
    loop_.poller().bury(std::shared_ptr<void>(std::move(exchange_)));
    end();
}

void Http2Stream::read_on() {
    stuck_us_ = 0;
    tell_room();
}

void Http2Stream::cut_as_slow() {
    cut_slow_exchange();
}

void Http2Stream::sweep(std::int64_t now_us) {
    const Timeouts& timeouts = setup_->timeouts;
    if (backlog() == 0)
        stuck_us_ = 0;
    else if (stuck_us_ == 0)
        stuck_us_ = now_us;
    else if (have_passed(stuck_us_, now_us, timeouts.slow_consumer_s)) {
        cut_slow_exchange();
        return connection_.wire().reset(id_);
    }
    if (exchange_) return exchange_->sweep(now_us);
    if (aside_ != 0 || ended_ || !have_passed(window_us_, now_us, timeouts.body_window_s)) return;
    const std::size_t there = connection_.wire().received(id_);
    if (there < window_bytes_ + timeouts.body_window_bytes) return refuse(late_request());
    window_us_ = now_us;
    window_bytes_ = there;
}

Http2Session::Http2Session(Loop& loop, Session& session, bool own)
    : loop_(loop),
      session_(session),
      own_(own),
      wire_({.request = limits_of_requests(*loop.shared().setup()),
             .max_bodies_bytes = 2 * loop.shared().setup()->max_body_bytes},
            *this),
      since_us_(monotonic_clock_us()),
      forgiven_us_(since_us_) {
    ++loop_.shared().counters.http2_connections;
}

const std::string& Http2Session::peer() const {
    return session_.peer();
}

void Http2Session::feed(std::string_view bytes) {
    busy_ = true;
    wire_.feed(bytes);
    busy_ = false;
    pump();
}

void Http2Session::pump() {
    if (busy_ || session_.closed()) return;
    busy_ = true;
    bool more = true;
    while (more && session_.backlog() < kMostOut && !session_.closed()) {
        std::string& out = session_.out();
        more = wire_.take_out(out, out.size() + kMostOut - session_.backlog());
        session_.send_out();
    }
    busy_ = false;
    if (session_.closed()) return;
    if (wire_.calmed() && !std::exchange(calmed_, true)) ++loop_.shared().counters.http2_calmed;
    if (wire_.over() && session_.backlog() == 0) return session_.close();
    session_.watch();
}

void Http2Session::sweep(std::int64_t now_us) {
    if (now_us - forgiven_us_ >= kForgiveEveryUs) {
        forgiven_us_ = now_us;
        wire_.forgive_some(kResetsForgiven, kIdleFramesForgiven);
    }
    std::vector<std::int32_t> ids;
    ids.reserve(streams_.size());
    for (const auto& [id, stream] : streams_) ids.push_back(id);
    for (const std::int32_t id : ids)
        if (Http2Stream* stream = session_.closed() ? nullptr : find(id)) stream->sweep(now_us);
    const double idle_s = loop_.shared().setup()->timeouts.idle_s;
    if (streams_.empty() && have_passed(since_us_, now_us, idle_s)) wire_.go_away();
    // A head that never ends is a stream for nghttp2, and for nobody else.
    if (streams_.empty() && have_passed(since_us_, now_us, idle_s + kGoodbyeS)) return session_.close();
    pump();
}

void Http2Session::drain() {
    wire_.go_away();
    pump();
}

void Http2Session::leave() {
    for (auto& [id, stream] : streams_) {
        stream->leave();
        loop_.poller().bury(std::shared_ptr<void>(std::move(stream)));
    }
    streams_.clear();
}

void Http2Session::cut_as_slow() {
    for (const auto& [id, stream] : streams_) stream->cut_as_slow();
}

Http2Stream* Http2Session::find(std::int32_t stream) const {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? nullptr : found->second.get();
}

Http2Stream& Http2Session::stream_of(std::int32_t stream) {
    auto& known = streams_[stream];
    if (!known) known = std::make_unique<Http2Stream>(loop_, *this, stream, own_);
    return *known;
}

void Http2Session::on_head(std::int32_t stream, const HttpRequest& head, bool waits) {
    if (!session_.closed()) stream_of(stream).begin(head, waits);
}

void Http2Session::on_request(std::int32_t stream, HttpRequest request) {
    if (Http2Stream* known = find(stream)) known->take(std::move(request));
}

void Http2Session::on_refused(std::int32_t stream, int status, const std::string& why) {
    if (!session_.closed()) stream_of(stream).refuse_head(status, why);
}

void Http2Session::on_room(std::int32_t stream) {
    if (Http2Stream* known = find(stream)) known->read_on();
}

void Http2Session::on_closed(std::int32_t stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    since_us_ = monotonic_clock_us();
    found->second->leave();
    loop_.poller().bury(std::shared_ptr<void>(std::move(found->second)));
    streams_.erase(found);
}

}  // namespace stoker::gateway
