#include "server/router.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"

namespace stoker::api {
namespace {

constexpr ReadLimits kBodyLimits{.max_bytes = 1 << 20, .max_nodes = 200'000, .max_depth = 32, .max_aliases = 0};
constexpr std::size_t kMostText = 1024;

// "/runs/{run}/artifacts/{path...}" against a path, segment by segment; the last one may take the rest.
bool fits(std::string_view shape, std::string_view path, std::map<std::string, std::string, std::less<>>& found) {
    const auto want = split(shape, '/'), have = split(path, '/');
    for (std::size_t i = 0; i < want.size(); ++i) {
        const std::string_view part = want[i];
        if (part.starts_with('{') && part.ends_with("...}")) {
            if (i >= have.size()) return false;
            std::string rest;
            for (std::size_t j = i; j < have.size(); ++j) rest += (j == i ? "" : "/") + std::string(have[j]);
            found[std::string(part.substr(1, part.size() - 5))] = rest;
            return !rest.empty();
        }
        if (i >= have.size()) return false;
        if (part.starts_with('{')) {
            if (have[i].empty()) return false;
            found[std::string(part.substr(1, part.size() - 2))] = have[i];
        } else if (part != have[i]) {
            return false;
        }
    }
    return want.size() == have.size();
}

std::string ask_for(const Parameter& p) {
    switch (p.type) {
        case Parameter::Type::text: return "a text";
        case Parameter::Type::integer: return fmt::format("a whole number from {:g} to {:g}", p.low, p.high);
        case Parameter::Type::number: return fmt::format("a number from {:g} to {:g}", p.low, p.high);
        case Parameter::Type::flag: return "true or false";
        case Parameter::Type::choice: {
            std::vector<std::string> words(p.choices.begin(), p.choices.end());
            return "one of " + join(words, ", ");
        }
        case Parameter::Type::run: return "a run, like r-7";
        case Parameter::Type::time: return "a time, like 2026-11-21 or 2026-11-21T08:00:00Z";
    }
    return "";
}

bool good(const Parameter& p, std::string_view value) {
    switch (p.type) {
        case Parameter::Type::text:
            return value.size() <= kMostText && find_invalid_utf8(value) == std::string_view::npos;
        case Parameter::Type::integer: {
            std::int64_t number = 0;
            const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
            return code == std::errc() && end == value.data() + value.size() && static_cast<double>(number) >= p.low &&
                   static_cast<double>(number) <= p.high;
        }
        case Parameter::Type::number: {
            double number = 0;
            const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
            return code == std::errc() && end == value.data() + value.size() && std::isfinite(number) &&
                   number >= p.low && number <= p.high;
        }
        case Parameter::Type::flag: return value == "true" || value == "false";
        case Parameter::Type::choice: return std::find(p.choices.begin(), p.choices.end(), value) != p.choices.end();
        case Parameter::Type::run: return RunId::parse(value).has_value();
        case Parameter::Type::time: return parse_rfc3339(value).has_value();
    }
    return false;
}

}  // namespace

Matched match(std::string_view method, std::string_view path) {
    Matched matched;
    // The most particular shape wins: a fixed word before a parameter.
    for (const Route& route : routes()) {
        std::map<std::string, std::string, std::less<>> found;
        if (!fits(route.path, path, found)) continue;
        if (std::find(matched.allowed.begin(), matched.allowed.end(), route.method) == matched.allowed.end())
            matched.allowed.emplace_back(route.method);
        if (matched.route == nullptr && (route.method == method || (method == "HEAD" && route.method == "GET"))) {
            matched.route = &route;
            matched.path = std::move(found);
        }
    }
    if (!matched.allowed.empty()) {
        if (std::find(matched.allowed.begin(), matched.allowed.end(), "GET") != matched.allowed.end())
            matched.allowed.emplace_back("HEAD");
        matched.allowed.emplace_back("OPTIONS");
    } else {
        std::vector<std::string> known;
        for (const Route& route : routes()) known.emplace_back(route.path);
        if (path.size() <= 200)
            if (const auto near = nearest(path, known)) matched.nearest = *near;
    }
    return matched;
}

Status read_query(const Route& route, const HttpRequest& request, Parameters& parameters) {
    Problems problems;
    for (const auto& [name, value] : request.query) {
        const auto row = std::find_if(route.query.begin(), route.query.end(),
                                      [&, &wanted = name](const Parameter& p) { return p.name == wanted; });
        if (row == route.query.end()) {
            std::vector<std::string> known;
            for (const Parameter& p : route.query) known.emplace_back(p.name);
            const auto near = nearest(printable(name, 100), known);
            problems.push_back(
                {.message = fmt::format("{} {} has no parameter {}", route.method, route.path, printable(name, 100)),
                 .remedy = near            ? "did you mean " + *near + "?"
                           : known.empty() ? "it has none"
                                           : "it has " + join(known, ", "),
                 .pos = {"query", 0, 0}});
            continue;
        }
        const auto before = parameters.query.find(name);
        if (before != parameters.query.end() && !row->many) {
            problems.push_back({.message = fmt::format("{} is given twice", name), .pos = {"query", 0, 0}});
            continue;
        }
        bool all_good = true;
        for (const std::string_view each : row->many ? split(value, ',') : std::vector<std::string_view>{value})
            all_good = all_good && good(*row, each);
        if (!all_good) {
            problems.push_back({.message = fmt::format("{} is {}, expected {}", name,
                                                       value.empty() ? "empty" : printable(value, 100), ask_for(*row)),
                                .pos = {"query", 0, 0}});
            continue;
        }
        if (before != parameters.query.end())
            before->second += "," + value;
        else
            parameters.query.emplace(name, value);
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return done();
}

Result<RunId> run_in_path(const Exchange& exchange) {
    const std::string& text = exchange.parameters.path.find("run")->second;
    const auto id = RunId::parse(text);
    if (!id)
        return Error(ErrorKind::not_found, "there is no run " + printable(text, 100), {}, "a run is called like r-7");
    return *id;
}

Result<std::optional<std::uint64_t>> if_match(const HttpRequest& request) {
    const auto header = request.headers.find("If-Match");
    if (!header || trim(*header) == "*") return std::optional<std::uint64_t>();
    std::string_view text = trim(*header);
    std::uint64_t version = 0;
    if (text.size() > 2 && text.front() == '"' && text.back() == '"') {
        text = text.substr(1, text.size() - 2);
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), version);
        if (code == std::errc() && end == text.data() + text.size()) return std::optional(version);
    }
    return Error(ErrorKind::invalid, "If-Match is " + printable(*header, 60) + ", expected a version like \"7\", or *",
                 {"header", 0, 0}, "take the ETag of what it is about");
}

Result<Document> read_body(const Exchange& exchange, bool required) {
    const std::string& body = exchange.request.body;
    if (trim(body).empty() && !required) return Document::parse_json("{}", "body", kBodyLimits);
    if (body.size() > kBodyLimits.max_bytes)
        return Error(ErrorKind::exhausted,
                     fmt::format("the body has {} bytes, at most {} are taken", body.size(), kBodyLimits.max_bytes));
    auto document = Document::parse_json(body, "body", kBodyLimits);
    if (!document) {
        // Whatever is wrong with a body is the caller's to mend.
        Problems problems = document.error().problems();
        return Error(ErrorKind::invalid, std::move(problems));
    }
    if (!document->root().is_mapping())
        return Error(ErrorKind::invalid,
                     fmt::format("the body is {}, expected a mapping", to_string(document->root().kind)),
                     document->root().pos);
    return document;
}

}  // namespace stoker::api
