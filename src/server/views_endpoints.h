// What the API says about endpoints, and what requests about them and about posted files carry. As in views.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/result.h"
#include "serve/endpoints/endpoint.h"

namespace stoker::api {

struct EndpointItem {
    std::string name, state, engine, project, user;  // state: unkept, where no gateway keeps it
    int revision = 0, least = 0, most = 0;
    bool stopped = false;
    // As a gateway said in the last ten seconds; left out where none did.
    std::optional<int> ready, wanted;
    std::optional<std::int64_t> queued, requests, failed;
    std::optional<double> first_token_s{};  // of the current revision: from its deployment to its first token
};
struct EndpointList {
    std::vector<EndpointItem> items;
};
struct EndpointRevisionView {
    int revision = 0;
    std::string created_at, engine, model, source;
    ServingPromise planned;
    std::optional<double> first_ready_s{}, first_token_s{};  // after its deployment; left out: not yet
};
// One figure that the plan promised, of the last ten minutes.
struct EndpointFigure {
    std::string figure, unit;
    double planned = 0, low = 0, high = 0, measured = 0;
    bool worse = false, better = false;
};
struct EndpointCause {
    std::string cause, what, fix;
    std::vector<std::string> evidence;
    double cost_s = 0;
};
struct EndpointView {
    EndpointItem endpoint;
    std::map<std::string, int> split;  // by revision: shares; empty: all goes to one
    double idle_s = 0;
    std::vector<EndpointRevisionView> revisions;
    std::optional<EndpointStatus> status;
    std::vector<EndpointFigure> figures;
    std::vector<EndpointCause> causes;
};

struct FileBody {
    std::string text, name, folder;
};
struct DeployBody {
    std::string text, name, folder;
    std::optional<int> least, most;
};
struct ScaleBody {
    std::optional<int> least, most;
    std::optional<double> idle_s;
};
struct EndpointRollbackBody {
    std::optional<int> revision;
};

// Of a FileBody or a DeployBody.
template <class Body>
Status has_text(const Body& body) {
    constexpr std::ptrdiff_t kMost = 65'536;  // characters, as the schema counts them
    if (std::count_if(body.text.begin(), body.text.end(), [](char c) { return (c & 0xC0) != 0x80; }) > kMost)
        return Error(ErrorKind::invalid, "text is longer than 65536 characters", {}, "a workload file is some lines");
    if (!body.text.empty()) return done();
    return Error(ErrorKind::invalid, "text is missing: the file itself", {}, "send {\"text\": \"kind: training...\"}");
}

template <class V>
void fields(V& visit, EndpointItem& v) {
    visit("engine", v.engine);
    visit("failed", v.failed);
    visit("first_token_s", v.first_token_s);
    visit("least", v.least);
    visit("most", v.most);
    visit("name", v.name);
    visit("project", v.project);
    visit("queued", v.queued);
    visit("ready", v.ready);
    visit("requests", v.requests);
    visit("revision", v.revision);
    visit("state", v.state);
    visit("stopped", v.stopped);
    visit("user", v.user);
    visit("wanted", v.wanted);
}
template <class V>
void fields(V& visit, EndpointList& v) {
    visit("items", v.items);
}
template <class V>
void fields(V& visit, EndpointRevisionView& v) {
    visit("created_at", v.created_at);
    visit("engine", v.engine);
    visit("first_ready_s", v.first_ready_s);
    visit("first_token_s", v.first_token_s);
    visit("model", v.model);
    visit("planned", v.planned);
    visit("revision", v.revision);
    visit("source", v.source);
}
template <class V>
void fields(V& visit, EndpointFigure& v) {
    visit("better", v.better);
    visit("figure", v.figure);
    visit("high", v.high);
    visit("low", v.low);
    visit("measured", v.measured);
    visit("planned", v.planned);
    visit("unit", v.unit);
    visit("worse", v.worse);
}
template <class V>
void fields(V& visit, EndpointCause& v) {
    visit("cause", v.cause);
    visit("cost_s", v.cost_s);
    visit("evidence", v.evidence);
    visit("fix", v.fix);
    visit("what", v.what);
}
template <class V>
void fields(V& visit, EndpointView& v) {
    visit("causes", v.causes);
    visit("endpoint", v.endpoint);
    visit("figures", v.figures);
    visit("idle_s", v.idle_s);
    visit("revisions", v.revisions);
    visit("split", v.split);
    visit("status", v.status);
}
template <class V>
void fields(V& visit, FileBody& v) {
    visit("folder", v.folder);
    visit("name", v.name);
    visit("text", v.text);
}
template <class V>
void fields(V& visit, DeployBody& v) {
    visit("folder", v.folder);
    visit("least", v.least);
    visit("most", v.most);
    visit("name", v.name);
    visit("text", v.text);
}
template <class V>
void fields(V& visit, ScaleBody& v) {
    visit("idle_s", v.idle_s);
    visit("least", v.least);
    visit("most", v.most);
}
template <class V>
void fields(V& visit, EndpointRollbackBody& v) {
    visit("revision", v.revision);
}

}  // namespace stoker::api
