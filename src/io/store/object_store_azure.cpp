// Azure Blob Storage: REST with Shared Key or a shared access signature;
// https://learn.microsoft.com/rest/api/storageservices. Blocks carry their MD5, which the store compares. A managed
// identity would be a third way to sign, here: a bearer token of the metadata service in place of the key.
#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "formats/xml_text.h"
#include "io/http/client_connection.h"
#include "io/process.h"
#include "io/store/object_store_protocol.h"

namespace stoker::objects {
namespace {

constexpr const char* kAzureVersion = "2021-12-02";
// Of Azurite, published in its documentation; what UseDevelopmentStorage=true means.
constexpr const char* kEmulatorAccount = "devstoreaccount1";
constexpr const char* kEmulatorKey =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

class AzureProtocol final : public Protocol {
public:
    AzureProtocol(std::string root, std::unique_ptr<StoreWire> wire) : root_(std::move(root)), wire_(std::move(wire)) {}

    Status put(const std::string& key, std::string body, const std::string& tier, Patience& patience) override {
        HttpHeaders headers = with_sum(body);
        headers.add("x-ms-blob-type", "BlockBlob");
        if (!tier.empty()) headers.add("x-ms-access-tier", tier);
        return sent({.method = "PUT", .path = path(key), .headers = std::move(headers), .body = std::move(body)},
                    patience);
    }

    // Blocks that are never put into a list vanish after a week by themselves.
    Result<std::string> begin(const std::string&, const std::string&, Patience&) override { return std::string(); }

    Result<std::string> part(const std::string& key, const std::string&, int number, std::int64_t, std::string body,
                             Patience& patience) override {
        std::string id = base64(fmt::format("stoker-{:08}", number));
        HttpHeaders headers = with_sum(body);
        TRY_VOID(sent({.method = "PUT",
                       .path = path(key),
                       .query = {{"blockid", id}, {"comp", "block"}},
                       .headers = std::move(headers),
                       .body = std::move(body)},
                      patience));
        return id;
    }

    Status finish(const std::string& key, const std::string&, const std::vector<std::string>& parts,
                  const std::string& tier, Patience& patience) override {
        std::string body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
        for (const std::string& id : parts) body += "<Latest>" + id + "</Latest>";
        body += "</BlockList>";
        HttpHeaders headers = with_sum(body);
        if (!tier.empty()) headers.add("x-ms-access-tier", tier);
        return sent({.method = "PUT",
                     .path = path(key),
                     .query = {{"comp", "blocklist"}},
                     .headers = std::move(headers),
                     .body = std::move(body)},
                    patience);
    }

    void abandon(const std::string&, const std::string&) override {}

    Result<ObjectInfo> head(const std::string& key, Patience& patience) override {
        return wire_->head(key, path(key), patience);
    }
    Status get(const std::string& key, std::int64_t from, const std::string& etag,
               const std::function<bool(std::string_view)>& on_piece, Patience& patience) override {
        return wire_->get(path(key), from, etag, on_piece, patience);
    }

    Result<ObjectPage> list(const std::string& prefix, const std::string& from, Patience& patience) override {
        QueryItems query{{"comp", "list"}, {"prefix", prefix}, {"restype", "container"}};
        if (!from.empty()) query.emplace_back("marker", from);
        TRY(const auto response, wire_->call({.method = "GET", .path = root_, .query = query}, patience));
        const auto xml = parse_xml(response.body);
        if (!xml) return Error(ErrorKind::unavailable, "the store's answer cannot be read: " + xml.error().message());
        ObjectPage page;
        if (const XmlElement* blobs = xml->find("Blobs")) {
            for (const XmlElement& each : blobs->children) {
                if (each.name != "Blob") continue;
                ObjectInfo& item = page.items.emplace_back();
                item.key = each.text_of("Name");
                const XmlElement* properties = each.find("Properties");
                if (properties == nullptr) continue;
                item.bytes = std::strtoll(std::string(properties->text_of("Content-Length")).c_str(), nullptr, 10);
                item.etag = properties->text_of("Etag");
            }
        }
        page.next = xml->text_of("NextMarker");
        return page;
    }

    Status remove(const std::string& key, Patience& patience) override {
        const auto response = wire_->call({.method = "DELETE", .path = path(key)}, patience);
        if (!response && response.error().kind() != ErrorKind::not_found) return response.error();
        return done();
    }

private:
    std::string path(const std::string& key) const { return root_ + "/" + percent_encode(key, true); }
    static HttpHeaders with_sum(const std::string& body) {
        HttpHeaders headers;
        if (const std::string sum = md5(body); !sum.empty()) headers.add("Content-MD5", base64(sum));
        return headers;
    }
    Status sent(WireCall call, Patience& patience) {
        TRY([[maybe_unused]] auto done_, wire_->call(std::move(call), patience));
        return done();
    }

    const std::string root_;  // of the path: the container, behind the account where the endpoint has it
    const std::unique_ptr<StoreWire> wire_;
};

std::map<std::string, std::string> read_connection_string(std::string_view text) {
    std::map<std::string, std::string> items;
    for (const std::string_view item : split(text, ';')) {
        const std::size_t equals = item.find('=');
        if (equals != std::string_view::npos)
            items[lower(trim(item.substr(0, equals)))] = std::string(trim(item.substr(equals + 1)));
    }
    if (lower(items["usedevelopmentstorage"]) == "true") {
        items.emplace("accountname", kEmulatorAccount);
        items.emplace("accountkey", kEmulatorKey);
        items.emplace("blobendpoint", fmt::format("http://127.0.0.1:10000/{}", kEmulatorAccount));
    }
    return items;
}

struct AzureAccess {
    std::string key, sas, endpoint;
    std::string source;  // the variable that it came from
};

AzureAccess find_access(const ObjectUrl& url, const ObjectStoreOptions& options) {
    AzureAccess access;
    if (const std::string text = options.environment("AZURE_STORAGE_CONNECTION_STRING"); !text.empty()) {
        auto items = read_connection_string(text);
        const std::string named = items["accountname"];
        if (named == url.account || (named.empty() && !items["sharedaccesssignature"].empty())) {
            access.key = items["accountkey"];
            access.sas = items["sharedaccesssignature"];
            access.endpoint = items["blobendpoint"];
            if (const std::string suffix = items["endpointsuffix"]; access.endpoint.empty() && !suffix.empty()) {
                const std::string scheme = items["defaultendpointsprotocol"];
                access.endpoint =
                    fmt::format("{}://{}.blob.{}", scheme.empty() ? "https" : scheme, url.account, suffix);
            }
            access.source = "AZURE_STORAGE_CONNECTION_STRING";
            if (!access.key.empty() || !access.sas.empty()) return access;
        }
    }
    access.key = options.environment("AZURE_STORAGE_KEY");
    access.source = "AZURE_STORAGE_KEY";
    if (!access.key.empty()) return access;
    access.sas = options.environment("AZURE_STORAGE_SAS_TOKEN");
    access.source = "AZURE_STORAGE_SAS_TOKEN";
    return access;
}

// "?sv=...&sig=..." as items, decoded, so that they are encoded again as everything else.
Result<QueryItems> read_sas(std::string_view token) {
    if (token.starts_with('?')) token.remove_prefix(1);
    QueryItems items;
    for (const std::string_view item : split(token, '&')) {
        const std::size_t equals = std::min(item.find('='), item.size());
        std::string value;
        const std::string_view raw = item.substr(std::min(equals + 1, item.size()));
        for (std::size_t i = 0; i < raw.size(); ++i) {
            unsigned byte = 0;
            if (raw[i] == '%' && i + 2 < raw.size() &&
                std::sscanf(std::string(raw.substr(i + 1, 2)).c_str(), "%2x", &byte) == 1) {
                value += static_cast<char>(byte);
                i += 2;
            } else {
                value += raw[i];
            }
        }
        items.emplace_back(std::string(item.substr(0, equals)), std::move(value));
    }
    for (const auto& [name, value] : items)
        if (name == "sig" && !value.empty()) return items;
    return Error(ErrorKind::invalid, "the shared access signature has no sig=", {},
                 "give the whole token, as az storage container generate-sas prints it");
}

}  // namespace

Result<std::unique_ptr<Protocol>> make_azure(const ObjectUrl& url, const ObjectStoreOptions& options) {
    const AzureAccess access = find_access(url, options);
    if (access.key.empty() && access.sas.empty())
        return Error(ErrorKind::denied,
                     fmt::format("there are no credentials for {}: none of AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN "
                                 "and AZURE_STORAGE_CONNECTION_STRING is set for {}",
                                 url.text(), url.account),
                     {},
                     "set one in the environment (of the server, for checkpoints and backups: stoker up); managed "
                     "identities are not used yet");
    std::string endpoint = url.endpoint.empty() ? access.endpoint : url.endpoint;
    while (endpoint.ends_with('/')) endpoint.pop_back();
    if (endpoint.empty()) endpoint = fmt::format("https://{}.blob.core.windows.net", url.account);
    // An emulator's has the account as a path.
    const std::size_t scheme = endpoint.find("://");
    const std::size_t slash = scheme == std::string::npos ? std::string::npos : endpoint.find('/', scheme + 3);
    std::string root = (slash == std::string::npos ? "" : endpoint.substr(slash)) + "/" + url.bucket;
    if (slash != std::string::npos) endpoint.resize(slash);
    TRY(const http::ServerUrl server,
        http::read_server_url(endpoint).while_doing("reading the endpoint of " + url.text()));
    AzureKey key{.account = url.account, .key = ""};
    QueryItems sas;
    if (!access.key.empty()) {
        const auto decoded = decode_base64(trim(access.key));
        if (!decoded || decoded->empty())
            return Error(ErrorKind::invalid, "the account key in " + access.source + " is not in base64", {},
                         "az storage account keys list prints it");
        key.key = *decoded;
    } else {
        TRY(sas, read_sas(trim(access.sas)).while_doing("reading " + access.source));
        // A workload file may name any endpoint, and whoever receives a signature can use it.
        const bool own = url.endpoint.empty() || is_loopback_host(server.host) ||
                         server.host == url.account + ".blob.core.windows.net" ||
                         server.host == url.account + ".blob.core.chinacloudapi.cn" ||
                         server.host == url.account + ".blob.core.usgovcloudapi.net";
        if (!own)
            return Error(ErrorKind::denied,
                         "a shared access signature is not sent to " + server.host + ", which only the URL names", {},
                         "name it in the environment: AZURE_STORAGE_CONNECTION_STRING with BlobEndpoint and "
                         "SharedAccessSignature");
        if (!server.tls && !is_loopback_host(server.host))
            return Error(ErrorKind::denied, "a shared access signature is not sent without TLS to " + server.host);
    }
    StoreWire::Options wire{
        .url = endpoint,
        .ca_pem = "",
        .host = server.authority,
        .sign =
            [key, sas](const RequestToSign& request, const std::string&, HttpHeaders& headers, QueryItems& query) {
                headers.add("x-ms-version", kAzureVersion);
                headers.add("x-ms-date", http_date(wall_clock_us() / 1'000'000));
                if (key.key.empty())
                    query.insert(query.end(), sas.begin(), sas.end());
                else
                    sign_azure(request, key, headers);
            },
        .explain =
            [account = url.account, container = url.bucket, source = access.source](const WireCall& call,
                                                                                    const HttpResponse& response) {
                return fault_error(response, fmt::format("az://{}/{} refuses {}", account, container, call.method),
                                   fmt::format("the credentials in {} were used for the account {}: do they belong to "
                                               "it, and may they list, read, write and delete there?",
                                               source, account));
            }};
    return std::unique_ptr<Protocol>(
        std::make_unique<AzureProtocol>(std::move(root), std::make_unique<StoreWire>(std::move(wire), options)));
}

}  // namespace stoker::objects
