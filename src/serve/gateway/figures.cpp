#include "serve/gateway/figures.h"

#include <fmt/format.h>

namespace stoker::gateway {
namespace {

constexpr double kPicoPerDollar = 1e12;

// A label's value: names of models are whatever the file says.
std::string label(const std::string& value) {
    std::string out;
    for (const char c : value) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

void head(std::string& out, const char* name, const char* type, const char* help) {
    out += fmt::format("# HELP stoker_gateway_{0} {2}\n# TYPE stoker_gateway_{0} {1}\n", name, type, help);
}

template <std::size_t N>
void histogram_of(std::string& out, const char* name, const std::string& model, const Histogram<N>& histogram,
                  const std::array<double, N>& bounds) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < N; ++i) {
        count += histogram.counts[i].load(std::memory_order_relaxed);
        out += fmt::format("stoker_gateway_{}_bucket{{model=\"{}\",le=\"{}\"}} {}\n", name, model, bounds[i], count);
    }
    count += histogram.counts[N].load(std::memory_order_relaxed);
    out += fmt::format(
        "stoker_gateway_{0}_bucket{{model=\"{1}\",le=\"+Inf\"}} {2}\nstoker_gateway_{0}_sum{{model=\"{1}\"}} {3}\n"
        "stoker_gateway_{0}_count{{model=\"{1}\"}} {2}\n",
        name, model, count, static_cast<double>(histogram.sum_us.load()) / 1e6);
}

}  // namespace

ModelFigures& FigureBook::of_model(std::uint64_t id, const std::string& name) {
    const std::lock_guard guard(mutex_);
    auto& there = models_[id];
    if (!there) {
        there = std::make_unique<ModelFigures>();
        there->name = label(name);
    }
    return *there;
}

ProjectFigures& FigureBook::of_project(std::uint64_t id, const std::string& name) {
    const std::lock_guard guard(mutex_);
    auto& there = projects_[id];
    if (!there) {
        there = std::make_unique<ProjectFigures>();
        there->name = label(name);
    }
    return *there;
}

std::string FigureBook::text() const {
    const std::lock_guard guard(mutex_);
    std::string out;
    if (models_.empty()) return out;
    head(out, "model_requests_total", "counter", "Requests that are over, by what became of them.");
    for (const auto& [id, each] : models_)
        for (const auto& [outcome, word] : enum_names(LedgerOutcome{}))
            if (const auto count = each->outcomes[static_cast<std::size_t>(outcome)].load(); count > 0)
                out += fmt::format("stoker_gateway_model_requests_total{{model=\"{}\",outcome=\"{}\"}} {}\n",
                                   each->name, word, count);
    head(out, "model_tokens_total", "counter", "Tokens charged; cached ones are input, too.");
    for (const auto& [id, each] : models_)
        for (const auto& [type, count] :
             {std::pair("input", &each->tokens_in), std::pair("cached", &each->tokens_cached),
              std::pair("output", &each->tokens_out)})
            out += fmt::format("stoker_gateway_model_tokens_total{{model=\"{}\",type=\"{}\"}} {}\n", each->name, type,
                               count->load());
    head(out, "model_fallbacks_total", "counter", "Requests that went on to a model of the fallback list.");
    for (const auto& [id, each] : models_)
        out += fmt::format("stoker_gateway_model_fallbacks_total{{model=\"{}\"}} {}\n", each->name,
                           each->fell_back.load());
    head(out, "objective_judged_total", "counter", "Requests that an objective was held against.");
    for (const auto& [id, each] : models_)
        if (each->judged > 0)
            out += fmt::format("stoker_gateway_objective_judged_total{{model=\"{}\"}} {}\n", each->name,
                               each->judged.load());
    head(out, "objective_missed_total", "counter", "Of those, how many missed it: not served, or served too slowly.");
    for (const auto& [id, each] : models_)
        if (each->judged > 0)
            for (const auto& [why, count] :
                 {std::pair("unavailable", &each->unavailable), std::pair("slow", &each->slow)})
                out += fmt::format("stoker_gateway_objective_missed_total{{model=\"{}\",why=\"{}\"}} {}\n", each->name,
                                   why, count->load());
    head(out, "first_token_seconds", "histogram", "From the request to its first token, of streams.");
    for (const auto& [id, each] : models_)
        histogram_of(out, "first_token_seconds", each->name, each->first_token, kSecondsBounds);
    head(out, "each_token_seconds", "histogram", "Of each further token, on average of one stream.");
    for (const auto& [id, each] : models_)
        histogram_of(out, "each_token_seconds", each->name, each->each_token, kTokenBounds);
    head(out, "request_seconds", "histogram", "From the request to the end of its answer.");
    for (const auto& [id, each] : models_)
        histogram_of(out, "request_seconds", each->name, each->duration, kSecondsBounds);
    head(out, "queue_seconds", "histogram", "Held until a replica took it, of those that were held.");
    for (const auto& [id, each] : models_) histogram_of(out, "queue_seconds", each->name, each->queue, kSecondsBounds);
    head(out, "project_requests_total", "counter", "Requests that are over.");
    for (const auto& [id, each] : projects_)
        out += fmt::format("stoker_gateway_project_requests_total{{project=\"{}\"}} {}\n", each->name,
                           each->requests.load());
    head(out, "project_tokens_total", "counter", "Tokens charged.");
    for (const auto& [id, each] : projects_)
        for (const auto& [type, count] : {std::pair("input", &each->tokens_in), std::pair("output", &each->tokens_out)})
            out += fmt::format("stoker_gateway_project_tokens_total{{project=\"{}\",type=\"{}\"}} {}\n", each->name,
                               type, count->load());
    head(out, "project_charged_usd_total", "counter", "Charged, in dollars.");
    for (const auto& [id, each] : projects_)
        out += fmt::format("stoker_gateway_project_charged_usd_total{{project=\"{}\"}} {}\n", each->name,
                           static_cast<double>(each->picousd.load()) / kPicoPerDollar);
    return out;
}

}  // namespace stoker::gateway
