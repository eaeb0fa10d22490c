// An upstream as its URL says it: the server, the path before /v1, and whom to trust as that server.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;

namespace stoker::gateway {

// "https://x.example/openai/v1/" as its server and the path that stands before /v1.
struct UpstreamUrl {
    std::string server, path;
};
UpstreamUrl split_url(const std::string& url);

// What may stand in a path as one segment.
bool is_path_word(std::string_view text);

// The system's authorities where none is given. Null: the text has no certificate.
std::shared_ptr<ssl_ctx_st> upstream_tls(const std::string& ca_pem);

}  // namespace stoker::gateway
