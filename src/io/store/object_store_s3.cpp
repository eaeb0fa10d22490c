// S3: REST with Signature Version 4; https://docs.aws.amazon.com/AmazonS3/latest/API. Every body is signed with its
// SHA-256, which the store compares with what it received.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "formats/xml_text.h"
#include "io/files.h"
#include "io/http/client_connection.h"
#include "io/process.h"
#include "io/sha256.h"
#include "io/store/object_store_protocol.h"

namespace stoker::objects {
namespace {

std::string s3_variable(const ObjectStoreOptions& options, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (std::string value = options.environment(name); !value.empty()) return value;
    return {};
}

class S3Protocol final : public Protocol {
public:
    S3Protocol(std::string root, std::string bucket, std::unique_ptr<StoreWire> wire)
        : root_(std::move(root)), bucket_(std::move(bucket)), wire_(std::move(wire)) {}

    Status put(const std::string& key, std::string body, const std::string& tier, Patience& patience) override {
        TRY([[maybe_unused]] auto done_,
            wire_->call({.method = "PUT", .path = path(key), .headers = with_tier(tier), .body = std::move(body)},
                        patience));
        return done();
    }

    Result<std::string> begin(const std::string& key, const std::string& tier, Patience& patience) override {
        TRY_VOID(abandon_others(key, patience));
        TRY(const auto response,
            wire_->call({.method = "POST", .path = path(key), .query = {{"uploads", ""}}, .headers = with_tier(tier)},
                        patience));
        TRY(const XmlElement xml, read_answer(response));
        if (xml.text_of("UploadId").empty()) return Error(ErrorKind::unavailable, "the store named no upload");
        return std::string(xml.text_of("UploadId"));
    }

    Result<std::string> part(const std::string& key, const std::string& upload, int number, std::int64_t,
                             std::string body, Patience& patience) override {
        TRY(const auto response, wire_->call({.method = "PUT",
                                              .path = path(key),
                                              .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}},
                                              .body = std::move(body)},
                                             patience));
        std::string etag = header_of(response, "etag");
        if (etag.empty()) return Error(ErrorKind::unavailable, "the store gave a part no ETag");
        return etag;
    }

    Status finish(const std::string& key, const std::string& upload, const std::vector<std::string>& parts,
                  const std::string&, Patience& patience) override {
        std::string body = "<CompleteMultipartUpload>";
        for (std::size_t i = 0; i < parts.size(); ++i)
            body +=
                fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, xml_escaped(parts[i]));
        body += "</CompleteMultipartUpload>";
        const auto response = wire_->call(
            {.method = "POST", .path = path(key), .query = {{"uploadId", upload}}, .body = std::move(body)}, patience);
        if (!response) {
            // A try whose answer was lost had completed it.
            if (response.error().kind() == ErrorKind::not_found && head(key, patience)) return done();
            return response.error();
        }
        // A long assembly is answered with 200 at once, and with how it went afterwards.
        TRY(const XmlElement xml, read_answer(*response));
        if (xml.name == "Error")
            return Error(ErrorKind::unavailable,
                         fmt::format("the store could not put {} together: {}: {}", key,
                                     printable(xml.text_of("Code"), 80), printable(xml.text_of("Message"), 200)));
        return done();
    }

    void abandon(const std::string& key, const std::string& upload) override {
        const ObjectStoreOptions once{.tries = 1};
        const TransferOptions none;
        Patience patience(once, none);
        (void)wire_->call({.method = "DELETE", .path = path(key), .query = {{"uploadId", upload}}}, patience);
    }

    Result<ObjectInfo> head(const std::string& key, Patience& patience) override {
        return wire_->head(key, path(key), patience);
    }
    Status get(const std::string& key, std::int64_t from, const std::string& etag,
               const std::function<bool(std::string_view)>& on_piece, Patience& patience) override {
        return wire_->get(path(key), from, etag, on_piece, patience);
    }

    Result<ObjectPage> list(const std::string& prefix, const std::string& from, Patience& patience) override {
        QueryItems query{{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", prefix}};
        if (!from.empty()) query.emplace_back("continuation-token", from);
        TRY(const auto response, wire_->call({.method = "GET", .path = root_ + "/", .query = query}, patience));
        TRY(const XmlElement xml, read_answer(response));
        ObjectPage page;
        const bool encoded = xml.text_of("EncodingType") == "url";
        for (const XmlElement& each : xml.children) {
            if (each.name != "Contents") continue;
            ObjectInfo& item = page.items.emplace_back();
            item.key = encoded ? decoded(each.text_of("Key")) : std::string(each.text_of("Key"));
            item.bytes = std::strtoll(std::string(each.text_of("Size")).c_str(), nullptr, 10);
            item.etag = each.text_of("ETag");
        }
        if (xml.text_of("IsTruncated") == "true") page.next = xml.text_of("NextContinuationToken");
        return page;
    }

    Status remove(const std::string& key, Patience& patience) override {
        const auto response = wire_->call({.method = "DELETE", .path = path(key)}, patience);
        if (!response && response.error().kind() != ErrorKind::not_found) return response.error();
        return done();
    }

private:
    std::string path(const std::string& key) const { return root_ + "/" + percent_encode(key, true); }

    static HttpHeaders with_tier(const std::string& tier) {
        HttpHeaders headers;
        if (!tier.empty()) headers.add("x-amz-storage-class", tier);
        return headers;
    }
    static Result<XmlElement> read_answer(const HttpResponse& response) {
        auto xml = parse_xml(response.body);
        if (!xml) return Error(ErrorKind::unavailable, "the store's answer cannot be read: " + xml.error().message());
        return xml;
    }
    static std::string decoded(std::string_view text) {
        std::string out;
        for (std::size_t i = 0; i < text.size(); ++i) {
            unsigned value = 0;
            if (text[i] == '%' && i + 2 < text.size() &&
                std::sscanf(std::string(text.substr(i + 1, 2)).c_str(), "%2x", &value) == 1) {
                out += static_cast<char>(value);
                i += 2;
            } else {
                out += text[i] == '+' ? ' ' : text[i];
            }
        }
        return out;
    }

    // What a killed server left half done would be paid for until somebody found it.
    Status abandon_others(const std::string& key, Patience& patience) {
        const auto response =
            wire_->call({.method = "GET", .path = root_ + "/", .query = {{"prefix", key}, {"uploads", ""}}}, patience);
        if (!response) {
            // Not everybody who may write may list uploads.
            if (response.error().kind() == ErrorKind::denied || response.error().kind() == ErrorKind::not_found ||
                response.error().kind() == ErrorKind::invalid)
                return done();
            return response.error();
        }
        TRY(const XmlElement xml, read_answer(*response));
        for (const XmlElement& each : xml.children)
            if (each.name == "Upload" && each.text_of("Key") == key)
                abandon(key, std::string(each.text_of("UploadId")));
        return done();
    }

    const std::string root_;  // of the path: empty when the bucket is in the host's name
    const std::string bucket_;
    const std::unique_ptr<StoreWire> wire_;
};

}  // namespace

Result<std::unique_ptr<Protocol>> make_s3(const ObjectUrl& url, const ObjectStoreOptions& options) {
    AwsKey key{.id = s3_variable(options, {"AWS_ACCESS_KEY_ID"}),
               .secret = s3_variable(options, {"AWS_SECRET_ACCESS_KEY"}),
               .session_token = s3_variable(options, {"AWS_SESSION_TOKEN"}),
               .region = url.region};
    if (key.region.empty()) key.region = s3_variable(options, {"AWS_REGION", "AWS_DEFAULT_REGION"});
    if (key.region.empty()) key.region = "us-east-1";
    if (key.id.empty() || key.secret.empty())
        return Error(ErrorKind::denied,
                     fmt::format("there are no credentials for {}: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not "
                                 "both set",
                                 url.text()),
                     {},
                     "set them, and AWS_SESSION_TOKEN for temporary ones, in the environment (of the server, for "
                     "checkpoints and "
                     "backups: stoker up); "
                     "profiles and instance roles are not read");
    for (const std::string* each : {&key.id, &key.secret, &key.session_token, &key.region})
        if (each->find_first_of(" \t\r\n") != std::string::npos)
            return Error(ErrorKind::invalid, "a variable AWS_... holds a blank or a line break", {}, "set it again");
    std::string endpoint = url.endpoint;
    if (endpoint.empty()) endpoint = s3_variable(options, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
    while (endpoint.ends_with('/')) endpoint.pop_back();
    std::string root = "/" + url.bucket;
    if (endpoint.empty()) {
        const std::string_view suffix = key.region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
        // A certificate for *.s3 covers no name with a dot in it.
        if (url.bucket.find('.') == std::string::npos) {
            endpoint = fmt::format("https://{}.s3.{}{}", url.bucket, key.region, suffix);
            root.clear();
        } else {
            endpoint = fmt::format("https://s3.{}{}", key.region, suffix);
        }
    }
    TRY(const http::ServerUrl server,
        http::read_server_url(endpoint).while_doing("reading the endpoint of " + url.text()));
    std::string ca_pem;
    if (const std::string file = s3_variable(options, {"AWS_CA_BUNDLE"}); !file.empty()) {
        TRY(ca_pem, read_file(file, 8u << 20).while_doing("reading AWS_CA_BUNDLE"));
    }
    // The authority as the client sends it, which is what the store signs with.
    const std::string host = server.authority;
    StoreWire::Options wire{
        .url = endpoint,
        .ca_pem = std::move(ca_pem),
        .host = host,
        .sign = [key](const RequestToSign& request, const std::string& body, HttpHeaders& headers,
                      QueryItems&) { sign_aws(request, key, hex(sha256(body)), wall_clock_us() / 1'000'000, headers); },
        .explain =
            [bucket = url.bucket, id = key.id, region = key.region](const WireCall& call,
                                                                    const HttpResponse& response) {
                const std::string what = fmt::format("s3://{} refuses {}", bucket, call.method);
                const std::string own = header_of(response, "x-amz-bucket-region");
                if (response.status == 301 || response.status == 307 ||
                    (response.status == 400 && !own.empty() && own != region))
                    return Error(ErrorKind::invalid, fmt::format("{}: the bucket is not in {}", what, region), {},
                                 own.empty() ? "set AWS_REGION to its region" : "set AWS_REGION=" + own);
                return fault_error(response, what,
                                   fmt::format("the key {} of AWS_ACCESS_KEY_ID was used: may it list, read, write and "
                                               "delete there?",
                                               printable(id, 40)));
            }};
    return std::unique_ptr<Protocol>(std::make_unique<S3Protocol>(
        std::move(root), url.bucket, std::make_unique<StoreWire>(std::move(wire), options)));
}

}  // namespace stoker::objects
