#include "io/http/http2.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "io/http/http_target.h"

namespace stoker {
namespace {

constexpr std::int32_t kStreamWindow = 256 * 1024, kConnectionWindow = 1024 * 1024;
constexpr std::size_t kMostQueued = 2000;  // frames that the peer does not take, and that are not of answers
constexpr std::size_t kSentKept = 64 * 1024;
constexpr std::size_t kOfAHeader = 32;  // RFC 9113 6.5.2: what one costs beside its bytes

std::string_view view_of(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_nv field_of(std::string_view name, std::string_view value) {
    // nghttp2 copies them, and changes nothing.
    return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
            reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
            NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

struct Http2Connection::Callbacks {
    static Http2Connection& of(void* user) { return *static_cast<Http2Connection*>(user); }

    static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) of(user).streams_.try_emplace(frame->hd.stream_id);
        return 0;
    }

    static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                         const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
        Stream* stream = of(user).find(frame->hd.stream_id);
        if (stream == nullptr) return 0;
        const HttpLimits& limits = of(user).limits_.request;
        stream->head_bytes += name_size + value_size + kOfAHeader;
        if (stream->head_bytes > limits.max_head_bytes || stream->request.headers.items.size() >= limits.max_headers) {
            stream->refused = 431;
            // A bit more is read, so that it can be answered.
            return stream->head_bytes > 4 * limits.max_head_bytes ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
        }
        if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;  // a trailer: nothing here has use for it
        const std::string_view key = view_of(name, name_size), text = view_of(value, value_size);
        if (key == ":method")
            stream->request.method = text;
        else if (key == ":path")
            stream->path = text;
        else if (key == ":authority")
            stream->authority = text;
        else if (!key.starts_with(':'))
            stream->request.headers.add(std::string(key), std::string(text));
        return 0;
    }

    static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
            of(user).head_complete(frame->hd.stream_id, last);
        else if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && last)
            of(user).request_complete(frame->hd.stream_id);
        else if (frame->hd.type == NGHTTP2_PING || frame->hd.type == NGHTTP2_SETTINGS ||
                 frame->hd.type == NGHTTP2_PRIORITY || (frame->hd.type == NGHTTP2_DATA && frame->hd.length == 0))
            of(user).idle_frame();
        return 0;
    }

    static int on_data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes, std::size_t size,
                       void* user) {
        of(user).take_body(stream, view_of(bytes, size));
        return 0;
    }

    static int on_close(nghttp2_session*, std::int32_t stream, std::uint32_t code, void* user) {
        of(user).forget(stream, code != NGHTTP2_NO_ERROR);
        return 0;
    }

    // The answer is out and the request is not read to its end: it need not be sent.
    static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
        if (frame->hd.type != NGHTTP2_DATA || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
        const Stream* stream = of(user).find(frame->hd.stream_id);
        if (stream != nullptr && !stream->whole)
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
        return 0;
    }

    static ssize_t read_body(nghttp2_session*, std::int32_t id, std::uint8_t* buffer, std::size_t size,
                             std::uint32_t* flags, nghttp2_data_source*, void* user) {
        Stream* stream = of(user).find(id);
        if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        const std::size_t taken = std::min(size, stream->out.size() - stream->sent);
        if (taken == 0 && !stream->ended) {
            stream->deferred = true;
            return NGHTTP2_ERR_DEFERRED;
        }
        std::memcpy(buffer, stream->out.data() + stream->sent, taken);
        stream->sent += taken;
        if (stream->sent == stream->out.size()) {
            std::string().swap(stream->out);
            stream->sent = 0;
            if (stream->ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
        } else if (stream->sent > kSentKept) {
            stream->out.erase(0, std::exchange(stream->sent, 0));
        }
        std::deque<Event>& events = of(user).events_;
        if (events.empty() || events.back().what != What::room || events.back().stream != id)
            events.push_back({What::room, id});
        return static_cast<ssize_t>(taken);
    }
};

Http2Connection::Http2Connection(Http2Limits limits, Http2Handler& handler)
    : limits_(limits), handler_(handler), session_(nullptr, nghttp2_session_del) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_option* option = nullptr;
    CHECK(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::on_sent);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_session* session = nullptr;
    CHECK(nghttp2_session_server_new2(&session, callbacks, this, option) == 0);
    session_.reset(session);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_.max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits_.request.max_head_bytes)}};
    CHECK(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0);
    CHECK(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) == 0);
}

Http2Connection::~Http2Connection() = default;

Http2Connection::Stream* Http2Connection::find(std::int32_t stream) {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? nullptr : &found->second;
}

void Http2Connection::feed(std::string_view bytes) {
    if (broken_ || calmed_) return;
    const ssize_t used =
        nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (used < 0) broken_ = true;
    if (!broken_ && nghttp2_session_get_outbound_queue_size(session_.get()) > kMostQueued) calm();
    tell();
}

bool Http2Connection::take_out(std::string& out, std::size_t most) {
    const std::size_t before = out.size();
    do {
        tell();
        while (!broken_ && out.size() < most) {
            const std::uint8_t* bytes = nullptr;
            const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
            if (size < 0) broken_ = true;
            if (size <= 0) break;
            out += view_of(bytes, static_cast<std::size_t>(size));
        }
    } while (!events_.empty() && !telling_);
    return out.size() > before;
}

bool Http2Connection::over() const {
    return broken_ ||
           (nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0);
}

void Http2Connection::refuse(std::int32_t stream, int status, std::string why) {
    find(stream)->refused = status;
    events_.push_back({What::refused, stream, std::move(why)});
}

void Http2Connection::head_complete(std::int32_t id, bool last) {
    Stream* stream = find(id);
    if (stream == nullptr) return;
    stream->whole = last;
    HttpRequest& request = stream->request;
    if (stream->refused != 0)
        return refuse(id, stream->refused,
                      fmt::format("the head has more than {} bytes or {} headers", limits_.request.max_head_bytes,
                                  limits_.request.max_headers));
    for (const auto& [name, value] : request.headers.items)
        if (find_invalid_utf8(value) != std::string_view::npos)
            return refuse(id, 400, "the header " + printable(name, 60) + " is not UTF-8");
    if (const auto host = request.headers.find("host");
        host && !stream->authority.empty() && *host != stream->authority)
        return refuse(id, 400, "Host and :authority are not the same");
    auto target = read_http_target(stream->path, limits_.request.encoded_slashes);
    if (!target) return refuse(id, 400, target.error().message());
    request.target = std::move(stream->path);
    request.path = std::move(target->path);
    request.query = std::move(target->query);
    const auto length = request.headers.find("content-length");
    std::uint64_t bytes = 0;  // nghttp2 has seen to it that it is a number
    if (length) std::from_chars(length->data(), length->data() + length->size(), bytes);
    if (bytes > limits_.request.max_body_bytes)
        return refuse(
            id, 413, fmt::format("the body has {} bytes; at most {} are taken", bytes, limits_.request.max_body_bytes));
    events_.push_back({What::head, id});
    if (last) events_.push_back({What::request, id});
}

void Http2Connection::request_complete(std::int32_t id) {
    Stream* stream = find(id);
    if (stream == nullptr) return;
    stream->whole = true;
    if (stream->refused == 0) events_.push_back({What::request, id});
}

void Http2Connection::take_body(std::int32_t id, std::string_view bytes) {
    Stream* stream = find(id);
    if (stream == nullptr || stream->refused != 0 || stream->answered) return;
    const std::size_t size = stream->request.body.size() + bytes.size();
    if (size > limits_.request.max_body_bytes)
        return refuse(id, 413, fmt::format("the body has more than {} bytes", limits_.request.max_body_bytes));
    if (bodies_bytes_ + bytes.size() > limits_.max_bodies_bytes)
        return refuse(id, 503, "too much is sent at once on this connection");
    stream->request.body += bytes;
    bodies_bytes_ += bytes.size();
}

void Http2Connection::forget(std::int32_t id, bool unfinished) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) {
        resets_ += unfinished ? 1 : 0;  // one that nghttp2 did not let begin
    } else {
        const Stream& stream = found->second;
        unfinished = unfinished || !stream.ended;
        resets_ += unfinished ? 1 : 0;
        bodies_bytes_ -= stream.request.body.size();
        if (stream.told) events_.push_back({What::closed, id});
        streams_.erase(found);
    }
    if (resets_ > limits_.max_resets) calm();
}

void Http2Connection::idle_frame() {
    if (++idle_frames_ > limits_.max_idle_frames) calm();
}

void Http2Connection::calm() {
    if (std::exchange(calmed_, true)) return;
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
}

void Http2Connection::forgive_some(std::uint32_t resets, std::uint32_t idle_frames) {
    resets_ -= std::min(resets_, resets);
    idle_frames_ -= std::min(idle_frames_, idle_frames);
}

// Outside of nghttp2, so that whoever is told may do what it wants.
void Http2Connection::tell() {
    if (std::exchange(telling_, true)) return;
    while (!events_.empty()) {
        const Event event = std::move(events_.front());
        events_.pop_front();
        if (event.what == What::closed) {
            handler_.on_closed(event.stream);
            continue;
        }
        Stream* stream = find(event.stream);
        if (stream == nullptr) continue;
        switch (event.what) {
            case What::head: {
                stream->told = true;
                const auto expects = stream->request.headers.find("expect");
                handler_.on_head(event.stream, stream->request, expects && !stream->whole);
                break;
            }
            case What::request:
                if (stream->answered || stream->refused != 0) break;
                bodies_bytes_ -= stream->request.body.size();
                handler_.on_request(event.stream, std::exchange(stream->request, {}));
                break;
            case What::refused:
                if (stream->answered) break;
                stream->told = true;
                handler_.on_refused(event.stream, stream->refused, event.why);
                break;
            case What::room: handler_.on_room(event.stream); break;
            case What::closed: break;
        }
    }
    telling_ = false;
}

void Http2Connection::interim(std::int32_t stream) {
    const nghttp2_nv status = field_of(":status", "100");
    nghttp2_submit_headers(session_.get(), NGHTTP2_FLAG_NONE, stream, nullptr, &status, 1, nullptr);
}

void Http2Connection::head(std::int32_t id, int status, const HttpHeaders& headers) {
    Stream* stream = find(id);
    if (stream == nullptr || std::exchange(stream->answered, true)) return;
    const fmt::format_int code(status);
    std::vector<nghttp2_nv> fields = {field_of(":status", {code.data(), code.size()})};
    for (const auto& [name, value] : headers.items) fields.push_back(field_of(name, value));
    nghttp2_data_provider body{};
    body.read_callback = Callbacks::read_body;
    nghttp2_submit_response(session_.get(), id, fields.data(), fields.size(), &body);
}

void Http2Connection::body(std::int32_t id, std::string_view bytes) {
    Stream* stream = find(id);
    if (stream == nullptr || stream->ended) return;
    stream->out += bytes;
    if (std::exchange(stream->deferred, false)) nghttp2_session_resume_data(session_.get(), id);
}

void Http2Connection::end(std::int32_t id) {
    Stream* stream = find(id);
    if (stream == nullptr || std::exchange(stream->ended, true)) return;
    if (std::exchange(stream->deferred, false)) nghttp2_session_resume_data(session_.get(), id);
}

void Http2Connection::reset(std::int32_t id) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

std::size_t Http2Connection::backlog(std::int32_t id) const {
    const auto found = streams_.find(id);
    return found == streams_.end() ? 0 : found->second.out.size() - found->second.sent;
}

std::size_t Http2Connection::received(std::int32_t id) const {
    const auto found = streams_.find(id);
    return found == streams_.end() ? 0 : found->second.request.body.size();
}

void Http2Connection::go_away() {
    if (std::exchange(leaving_, true) || broken_) return;
    nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_.get()),
                          NGHTTP2_NO_ERROR, nullptr, 0);
}

}  // namespace stoker
