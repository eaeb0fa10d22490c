// What a kind of store does in one step each; object_store.cpp makes transfers of them. Only src/io includes this.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/http/http_client.h"
#include "io/store/object_store.h"
#include "io/store/request_sign.h"

namespace stoker::objects {

// How long one operation is tried: jittered waits that double, a store's Retry-After when it says one.
class Patience {
public:
    Patience(const ObjectStoreOptions& options, const TransferOptions& transfer, int tries = 0);
    // Waits before the next try; false: this error is final, the tries are used up, or it was stopped.
    bool again(const Error& error);
    bool stopped() const { return transfer_.stop && transfer_.stop(); }
    void progressed() { used_ = 0; }  // it goes on: the tries count anew

    double retry_after_s = -1;  // of the last answer; below 0: none
    bool transient = false;     // the last answer said that trying again may help

private:
    const ObjectStoreOptions& options_;
    const TransferOptions& transfer_;
    const int tries_;
    int used_ = 0;
};
Error cancelled_transfer();

struct WireCall {
    std::string method;
    std::string path;  // percent-encoded
    QueryItems query{};
    HttpHeaders headers{};
    std::string body{};
    std::function<bool(std::string_view)> on_piece{};
};

// Requests to one server, signed, tried again, from any thread.
class StoreWire {
public:
    struct Options {
        std::string url, ca_pem, host;
        std::function<void(const RequestToSign&, const std::string& body, HttpHeaders&, QueryItems&)> sign;
        // Of an answer that is no success.
        std::function<Error(const WireCall&, const HttpResponse&)> explain;
    };
    StoreWire(Options options, const ObjectStoreOptions& limits);
    ~StoreWire();
    Result<HttpResponse> call(WireCall call, Patience& patience);
    // As Protocol; S3 and Azure ask for them in the same words.
    Result<ObjectInfo> head(const std::string& key, std::string path, Patience& patience);
    Status get(std::string path, std::int64_t from, const std::string& etag,
               const std::function<bool(std::string_view)>& on_piece, Patience& patience);

private:
    Result<HttpResponse> once(WireCall& call, HttpCall& http, Patience& patience);
    struct Pool;
    const Options options_;
    const ObjectStoreOptions& limits_;
    const std::unique_ptr<Pool> pool_;
};

struct ObjectPage {
    std::vector<ObjectInfo> items;
    std::string next;  // empty: it was the last
};

class Protocol {
public:
    virtual ~Protocol() = default;
    // Keys are whole here: with the prefix.
    virtual Status put(const std::string& key, std::string body, const std::string& tier, Patience& patience) = 0;
    virtual Result<std::string> begin(const std::string& key, const std::string& tier, Patience& patience) = 0;
    // Numbered from 1. What finish() needs of it.
    virtual Result<std::string> part(const std::string& key, const std::string& upload, int number, std::int64_t offset,
                                     std::string body, Patience& patience) = 0;
    virtual Status finish(const std::string& key, const std::string& upload, const std::vector<std::string>& parts,
                          const std::string& tier, Patience& patience) = 0;
    virtual void abandon(const std::string& key, const std::string& upload) = 0;
    virtual Result<ObjectInfo> head(const std::string& key, Patience& patience) = 0;
    // From the byte `from` on, if its etag is still this one (empty: any). Tried once.
    virtual Status get(const std::string& key, std::int64_t from, const std::string& etag,
                       const std::function<bool(std::string_view)>& on_piece, Patience& patience) = 0;
    virtual Result<ObjectPage> list(const std::string& prefix, const std::string& from, Patience& patience) = 0;
    virtual Status remove(const std::string& key, Patience& patience) = 0;
};

// `options` outlives the protocol.
Result<std::unique_ptr<Protocol>> make_s3(const ObjectUrl& url, const ObjectStoreOptions& options);
Result<std::unique_ptr<Protocol>> make_azure(const ObjectUrl& url, const ObjectStoreOptions& options);
Result<std::unique_ptr<Protocol>> make_folder(const ObjectUrl& url);

// "NoSuchKey" and "The specified key does not exist." of an answer in XML.
struct StoreFault {
    std::string code, message;
};
StoreFault read_fault(const HttpResponse& response);
// Of an answer that is no success, by its status; `remedy` for 401 and 403.
Error fault_error(const HttpResponse& response, const std::string& what, const std::string& remedy_denied);
Result<std::int64_t> length_of(const HttpResponse& response);
std::string header_of(const HttpResponse& response, std::string_view name);
bool is_loopback_host(std::string_view host);

}  // namespace stoker::objects
