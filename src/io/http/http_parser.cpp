#include "io/http/http_parser.h"

#include <fmt/format.h>
#include <llhttp.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "io/http/http_wire.h"

namespace stoker {
namespace {

constexpr std::string_view kMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

bool is_known_method(std::string_view method) {
    return method == "GET" || method == "POST" || method == "HEAD" || method == "PUT" || method == "PATCH" ||
           method == "DELETE" || method == "OPTIONS";
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// "name", "10.0.0.5:80", "[::1]:8042" (RFC 3986 3.2.2, without the rarely used percent-encoded names).
bool is_host(std::string_view host) {
    std::size_t end = 0;
    if (host.starts_with('[')) {
        end = host.find(']');
        if (end == std::string_view::npos || end < 3) return false;
        if (host.substr(1, end - 1).find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos)
            return false;
        ++end;
    } else {
        const auto allowed = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                   c == '_';
        };
        while (end < host.size() && allowed(host[end])) ++end;
        if (end == 0) return false;
    }
    if (end == host.size()) return true;
    const std::string_view port = host.substr(end + 1);
    return host[end] == ':' && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string trimmed_value(std::string_view value) {
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
    return std::string(value);
}

template <class Parser>
Parser& owner(llhttp_t* parser) {
    return *static_cast<Parser*>(parser->data);
}

template <class Parser>
llhttp_settings_t settings_of() {
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_header_field = [](llhttp_t* p, const char* at, std::size_t size) -> int {
        return owner<Parser>(p).on_header_name({at, size}) ? 0 : HPE_USER;
    };
    settings.on_header_value = [](llhttp_t* p, const char* at, std::size_t size) -> int {
        return owner<Parser>(p).on_header_value({at, size}) ? 0 : HPE_USER;
    };
    settings.on_chunk_extension_name = [](llhttp_t* p, const char*, std::size_t size) -> int {
        return owner<Parser>(p).on_padding(size) ? 0 : HPE_USER;
    };
    settings.on_chunk_extension_value = settings.on_chunk_extension_name;
    settings.on_body = [](llhttp_t* p, const char* at, std::size_t size) -> int {
        return owner<Parser>(p).on_body({at, size}) ? 0 : HPE_USER;
    };
    settings.on_message_complete = [](llhttp_t* p) -> int {
        owner<Parser>(p).on_complete();
        return HPE_PAUSED;  // what follows belongs to the next message
    };
    return settings;
}

const llhttp_settings_t& request_settings() {
    static const llhttp_settings_t settings = [] {
        llhttp_settings_t s = settings_of<HttpRequestParser>();
        s.on_headers_complete = [](llhttp_t* p) {
            p->upgrade = 0;  // we stay with HTTP/1.1, as a server may (RFC 9110 7.8)
            return owner<HttpRequestParser>(p).on_head_complete() ? 0 : -1;
        };
        return s;
    }();
    return settings;
}

const llhttp_settings_t& response_settings() {
    static const llhttp_settings_t settings = [] {
        llhttp_settings_t s = settings_of<HttpResponseParser>();
        s.on_headers_complete = [](llhttp_t* p) {
            p->upgrade = 0;
            return owner<HttpResponseParser>(p).on_head_complete();
        };
        s.on_header_field_complete = [](llhttp_t* p) {
            owner<HttpResponseParser>(p).on_header_name_end();
            return 0;
        };
        return s;
    }();
    return settings;
}

// How far llhttp came.
std::size_t bytes_taken(const llhttp_t& parser, std::string_view bytes) {
    const char* at = llhttp_get_error_pos(&parser);
    if (at == nullptr || at < bytes.data() || at > bytes.data() + bytes.size()) return bytes.size();
    return static_cast<std::size_t>(at - bytes.data());
}

std::string llhttp_reason(const llhttp_t& parser) {
    const char* reason = llhttp_get_error_reason(&parser);
    return reason != nullptr && *reason != '\0' ? reason : llhttp_errno_name(llhttp_get_errno(&parser));
}

}  // namespace

void FreeLlhttp::operator()(llhttp__internal_s* parser) const {
    delete parser;
}

HttpRequestParser::HttpRequestParser(HttpLimits limits) : limits_(limits), parser_(new llhttp_t) {}

bool HttpRequestParser::refuse(int status, std::string why) {
    if (state_ != State::refused) {
        refusal_status_ = status;
        refusal_ = std::move(why);
        state_ = State::refused;
    }
    return false;
}

HttpRequest HttpRequestParser::take() {
    HttpRequest request = std::move(request_);
    request_ = {};
    state_ = State::head;
    head_.clear();
    head_bytes_ = lines_ = line_bytes_ = raw_body_bytes_ = padding_bytes_ = 0;
    previous_ = '\0';
    expects_ = false;
    return request;
}

std::size_t HttpRequestParser::feed(std::string_view bytes) {
    std::size_t used = 0;
    if (state_ == State::head) used = feed_head(bytes);
    if (state_ == State::body && used < bytes.size()) used += feed_body(bytes.substr(used));
    return used;
}

// Collects the head up to the empty line and looks at every byte on the way: hostile bytes are refused as they come.
std::size_t HttpRequestParser::feed_head(std::string_view bytes) {
    std::size_t i = 0;
    bool ended = false;
    while (i < bytes.size() && !ended) {
        const char c = bytes[i];
        const auto byte = static_cast<unsigned char>(c);
        if (previous_ == '\r' && c != '\n') {
            refuse(400, "the head has a carriage return without a line feed");
        } else if (c == '\n') {
            if (previous_ != '\r') {
                refuse(400, "the head has a line feed without a carriage return");
            } else if (line_bytes_ == 0) {
                ended = lines_ > 0;  // empty lines before a request are passed over (RFC 9112 2.2)
            } else {
                ++lines_;
                line_bytes_ = 0;
            }
        } else if (c != '\r') {
            if ((byte < 0x20 && c != '\t') || byte == 0x7f) refuse(400, "the head holds a control character");
            if (line_bytes_ == 0 && (c == ' ' || c == '\t'))
                refuse(400, lines_ == 0 ? "the request line begins with a blank"
                                        : "a header is continued on the next line, which is obsolete");
            ++line_bytes_;
        }
        previous_ = c;
        ++i;
        if (++head_bytes_ > limits_.max_head_bytes)
            refuse(431, fmt::format("the head is longer than {} bytes", limits_.max_head_bytes));
        if (lines_ > limits_.max_headers + 1)
            refuse(431, fmt::format("the head has more than {} headers", limits_.max_headers));
        if (state_ == State::refused) return i;
    }
    head_.append(bytes.substr(0, i));
    if (!ended) return i;
    head_.erase(0, head_.find_first_not_of("\r\n"));
    if (!check_request_line()) return i;
    state_ = State::body;
    llhttp_init(parser_.get(), HTTP_REQUEST, &request_settings());
    parser_->data = this;
    request_.headers.items.reserve(lines_ - 1);
    const llhttp_errno_t code = llhttp_execute(parser_.get(), head_.data(), head_.size());
    const bool whole = code == HPE_PAUSED && bytes_taken(*parser_, head_) == head_.size();
    if (state_ != State::refused && code != HPE_OK && !whole)
        refuse(400, "the head is malformed: " + llhttp_reason(*parser_));
    return i;
}

// "GET /path HTTP/1.1", with one blank between the parts.
bool HttpRequestParser::check_request_line() {
    const std::string_view line = std::string_view(head_).substr(0, head_.find('\r'));
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    const std::string_view method = line.substr(0, first);
    if (first == std::string_view::npos || first == last || line.find(' ', first + 1) != last || !is_http_token(method))
        return refuse(400, "the request line must be METHOD /path HTTP/1.1, with one blank between the parts");
    const std::string_view target = line.substr(first + 1, last - first - 1);
    const std::string_view version = line.substr(last + 1);
    if (version != "HTTP/1.1" && version != "HTTP/1.0") {
        const bool well_formed = version.size() == 8 && version.starts_with("HTTP/") && version[6] == '.' &&
                                 is_digit(version[5]) && is_digit(version[7]);
        return well_formed ? refuse(505, "HTTP/1.1 and HTTP/1.0 are spoken here, not " + std::string(version))
                           : refuse(400, "the request line must end in HTTP/1.1");
    }
    http_1_0_ = version == "HTTP/1.0";
    if (method == "CONNECT" || method == "TRACE")
        return refuse(405, std::string(method) + " is not possible here; there are " + std::string(kMethods));
    if (!is_known_method(method))
        return refuse(501, fmt::format("there is no method {}; there are {}", printable(method, 40), kMethods));
    auto parts = read_http_target(target, limits_.encoded_slashes);
    if (!parts) return refuse(400, parts.error().message());
    request_.method = method;
    request_.target = target;
    request_.path = std::move(parts->path);
    request_.query = std::move(parts->query);
    return true;
}

bool HttpRequestParser::on_header_name(std::string_view name) {
    if (raw_body_bytes_ > 0) return on_padding(name.size());  // a trailer: nothing here has use for it
    request_.headers.items.emplace_back(std::string(name), "");
    return true;
}

bool HttpRequestParser::on_header_value(std::string_view value) {
    if (raw_body_bytes_ > 0) return on_padding(value.size());
    request_.headers.items.back().second += trimmed_value(value);
    return true;
}

bool HttpRequestParser::on_padding(std::size_t bytes) {
    padding_bytes_ += bytes;
    return padding_bytes_ <= limits_.max_head_bytes ||
           refuse(400, "the body has too many chunk extensions or trailers");
}

bool HttpRequestParser::on_head_complete() {
    keep_alive_ = llhttp_should_keep_alive(parser_.get()) != 0;
    return check_headers();
}

bool HttpRequestParser::check_headers() {
    int hosts = 0, lengths = 0, codings = 0;
    for (const auto& [name, value] : request_.headers.items) {
        if (!is_http_token(name)) return refuse(400, "a header has no name");
        if (find_invalid_utf8(value) != std::string_view::npos)
            return refuse(400, "the header " + printable(name, 60) + " is not UTF-8");
        if (equals_ignore_case(name, "host")) {
            if (++hosts > 1) return refuse(400, "the head has more than one Host");
            if (!is_host(value)) return refuse(400, "the Host is not a name or address with an optional port");
        } else if (equals_ignore_case(name, "content-length")) {
            if (++lengths > 1) return refuse(400, "the head has more than one Content-Length");
        } else if (equals_ignore_case(name, "transfer-encoding")) {
            if (++codings > 1 || !equals_ignore_case(value, "chunked"))
                return refuse(400, "the only Transfer-Encoding understood here is chunked");
            if (http_1_0_) return refuse(400, "HTTP/1.0 has no Transfer-Encoding");
        } else if (equals_ignore_case(name, "expect")) {
            if (!equals_ignore_case(value, "100-continue"))
                return refuse(417, "the only expectation understood here is 100-continue");
            expects_ = !http_1_0_;
        }
    }
    if (hosts == 0 && !http_1_0_) return refuse(400, "the head has no Host");
    if (lengths > 0 && codings > 0) return refuse(400, "the head has both Content-Length and Transfer-Encoding");
    if (lengths > 0 && parser_->content_length > limits_.max_body_bytes)
        return refuse(413, fmt::format("the body has {} bytes; at most {} are taken", parser_->content_length,
                                       limits_.max_body_bytes));
    if (codings == 0 && (lengths == 0 || parser_->content_length == 0)) expects_ = false;  // nothing to wait with
    return true;
}

std::size_t HttpRequestParser::feed_body(std::string_view bytes) {
    expects_ = false;  // it does not wait
    const std::size_t before = raw_body_bytes_;
    raw_body_bytes_ += bytes.size();
    const llhttp_errno_t code = llhttp_execute(parser_.get(), bytes.data(), bytes.size());
    const std::size_t used = code == HPE_OK ? bytes.size() : bytes_taken(*parser_, bytes);
    raw_body_bytes_ = before + used;
    if (code != HPE_OK && state_ != State::complete) refuse(400, "the body is malformed: " + llhttp_reason(*parser_));
    // The smallest chunk takes 6 bytes for one of the body; a size may have zeros in front.
    if (raw_body_bytes_ > 8 * limits_.max_body_bytes + limits_.max_head_bytes)
        refuse(400, "the chunks of the body are padded");
    return used;
}

bool HttpRequestParser::on_body(std::string_view piece) {
    if (request_.body.size() + piece.size() > limits_.max_body_bytes)
        return refuse(413, fmt::format("the body is longer than {} bytes", limits_.max_body_bytes));
    request_.body += piece;
    return true;
}

HttpResponseParser::HttpResponseParser(bool head_only, HttpLimits limits)
    : head_only_(head_only), limits_(limits), parser_(new llhttp_t) {
    begin();
}

void HttpResponseParser::begin() {
    llhttp_init(parser_.get(), HTTP_RESPONSE, &response_settings());
    parser_->data = this;
    response_ = {};
    state_ = State::head;
    in_name_ = false;
}

bool HttpResponseParser::broken(std::string why) {
    if (state_ != State::broken) wrong_ = std::move(why);
    state_ = State::broken;
    return false;
}

std::size_t HttpResponseParser::feed(std::string_view bytes) {
    std::size_t used = 0;
    while (used < bytes.size() && state_ != State::complete && state_ != State::broken) {
        const std::string_view rest = bytes.substr(used);
        const llhttp_errno_t code = llhttp_execute(parser_.get(), rest.data(), rest.size());
        const std::size_t taken = code == HPE_OK ? rest.size() : bytes_taken(*parser_, rest);
        used += taken;
        if (code != HPE_OK && code != HPE_PAUSED && code != HPE_USER) broken(llhttp_reason(*parser_));
        if (interim_ && code == HPE_PAUSED) {  // "100 Continue": the answer follows
            interim_ = false;
            if (!on_padding(16)) return used;  // also those without headers come to an end
            begin();
        }
        if (code == HPE_USER && state_ != State::broken) state_ = State::complete;  // on_piece has enough
    }
    return used;
}

void HttpResponseParser::finish() {
    if (state_ == State::complete || state_ == State::broken) return;
    if (state_ == State::body && llhttp_finish(parser_.get()) == HPE_OK && state_ == State::complete) return;
    if (state_ == State::complete) return;  // on_complete() pauses, which llhttp_finish() reports as an error
    broken(state_ == State::head ? "it closed the connection before the end of the head"
                                 : "it closed the connection before the end of the body");
}

bool HttpResponseParser::on_header_name(std::string_view name) {
    if (state_ != State::head) return on_padding(name.size());  // a trailer
    if (!in_name_) {
        response_.headers.items.emplace_back();
        head_bytes_ += 4;  // the colon, a blank and the line's end
    }
    in_name_ = true;
    response_.headers.items.back().first += name;
    if (response_.headers.items.size() > limits_.max_headers)
        return broken(fmt::format("its head has more than {} headers", limits_.max_headers));
    return on_padding(name.size());
}

bool HttpResponseParser::on_header_value(std::string_view value) {
    if (state_ == State::head) response_.headers.items.back().second += value;
    return on_padding(value.size());
}

bool HttpResponseParser::on_padding(std::size_t bytes) {
    head_bytes_ += bytes;
    return head_bytes_ <= limits_.max_head_bytes ||
           broken(fmt::format("its head is longer than {} bytes", limits_.max_head_bytes));
}

// What llhttp wants: 0 go on, 1 there is no body, -1 stop.
int HttpResponseParser::on_head_complete() {
    response_.status = parser_->status_code;
    if (response_.status == 101) return broken("it switched protocols, which nobody asked for"), -1;
    if (response_.status < 200) {
        interim_ = true;
        return 1;
    }
    for (auto& [name, value] : response_.headers.items) {
        value = trimmed_value(value);
        if (equals_ignore_case(name, "transfer-encoding") && !equals_ignore_case(value, "chunked"))
            return broken("its Transfer-Encoding is '" + printable(value, 60) + "', not chunked"), -1;
        if (equals_ignore_case(name, "content-encoding") && !equals_ignore_case(value, "identity") && !head_only_)
            return broken("its Content-Encoding is '" + printable(value, 60) + "', which was not asked for"), -1;
    }
    if (const auto type = response_.headers.find("content-type")) response_.content_type = *type;
    keep_alive_ = llhttp_should_keep_alive(parser_.get()) != 0;
    state_ = State::body;
    if (on_head) on_head();
    return head_only_ ? 1 : 0;
}

bool HttpResponseParser::on_body(std::string_view piece) {
    if (on_piece) {
        stopped_ = !on_piece(piece);
        return !stopped_;
    }
    body_bytes_ += piece.size();
    if (body_bytes_ > limits_.max_body_bytes)
        return broken(fmt::format("its body is longer than {} bytes", limits_.max_body_bytes));
    response_.body += piece;
    return true;
}

void HttpResponseParser::on_complete() {
    if (!interim_) state_ = State::complete;
}

}  // namespace stoker
