// The table of routes: what the server answers, what it checks before a handler runs, and what OpenAPI and the
// reference page say about it come from the same rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.h"
#include "base/document.h"
#include "base/table.h"
#include "base/text.h"
#include "govern/roles.h"
#include "server/service.h"

namespace stoker::api {

struct Parameter {
    enum class Type { text, integer, number, flag, choice, run, time };
    std::string_view name, description;
    Type type = Type::text;
    std::vector<std::string_view> choices = {};
    double low = 0, high = 0;         // of numbers
    std::string_view otherwise = {};  // what it means when it is left out
    bool many = false;                // may be given several times, or with commas
};

struct Answers {
    int status = 200;
    std::string_view description;
    std::string_view schema;  // a component; empty: no JSON
    std::string_view content_type = "application/json";
    std::vector<std::string_view> headers = {};
};

// Who may ask. There is no default: a row that does not say does not compile.
class Access {
public:
    static constexpr Access open() { return Access(std::nullopt); }  // anybody, without a token
    // By a role in the project that it is about, or above it.
    static constexpr Access tenant(Action action) { return Access(Right{action, Level::project}); }
    // By a role of an organisation, or of the provider.
    static constexpr Access organisation(Action action) { return Access(Right{action, Level::organisation}); }
    // By a role of the provider: it is about everybody's work, or about the installation.
    static constexpr Access provider(Action action) { return Access(Right{action, Level::provider}); }

    const std::optional<Right>& right() const { return right_; }  // none: open
    bool is_open() const { return !right_; }

private:
    explicit constexpr Access(std::optional<Right> right) : right_(right) {}
    std::optional<Right> right_;
};

using Handler = void (*)(Service&, const ExchangePtr&);

struct Route {
    std::string_view method, path;
    Access access;
    std::string_view operation, summary, description;
    std::vector<Parameter> query;
    std::string_view body;  // schema of the JSON that it takes; empty: none
    bool body_required = false;
    std::vector<Answers> answers;
    std::vector<int> problems;  // statuses of its own, beside those that every route has
    bool changes = false, if_match = false, idempotent = false;
    bool audited = true;  // false: what came every few seconds and was taken has no line in the audit trail
    Handler handler;
};

const std::vector<Route>& routes();
void add_config_routes(std::vector<Route>& all);  // parts of them
void add_tenant_routes(std::vector<Route>& all);
void add_user_routes(std::vector<Route>& all);
void add_limit_routes(std::vector<Route>& all);
void add_gpu_routes(std::vector<Route>& all);
void add_endpoint_routes(std::vector<Route>& all);

struct Matched {
    const Route* route = nullptr;  // nothing: see `allowed`
    std::map<std::string, std::string, std::less<>> path;
    std::vector<std::string> allowed;  // methods that this path has; empty: there is no such path
    std::string nearest;               // a path that there is
};
Matched match(std::string_view method, std::string_view path);

// Every parameter against the row; all problems together.
Status read_query(const Route& route, const HttpRequest& request, Parameters& parameters);

// The id in the path; a run that cannot be is not found.
Result<RunId> run_in_path(const Exchange& exchange);
// `"7"` or `*` of If-Match.
Result<std::optional<std::uint64_t>> if_match(const HttpRequest& request);
// JSON with strict limits; an empty body reads as {} where the row does not require one.
Result<Document> read_body(const Exchange& exchange, bool required);

template <class T>
Result<T> read_body_as(const Exchange& exchange, bool required = true) {
    TRY(const Document document, read_body(exchange, required));
    Problems problems;
    T value{};
    // What is left out has its default; null is no value of anything.
    for (const Member& member : document.root().members)
        if (member.value->kind == NodeKind::null)
            problems.push_back({.message = printable(member.key, 60) + " is null: leave it out, or give it a value",
                                .pos = member.value->pos});
    codec::read(document.root(), "body", value, problems);
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return value;
}

}  // namespace stoker::api
