#include "serve/replicas/engine_signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/embedded.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker {
namespace {

constexpr std::size_t kMostMetricsBytes = 8u << 20;

struct MetricSample {
    std::string_view name;
    std::vector<std::pair<std::string_view, std::string_view>> labels;  // values as written, escapes kept
    double value = 0;

    std::optional<std::string_view> label(std::string_view key) const {
        for (const auto& [name_of, value_of] : labels)
            if (name_of == key) return value_of;
        return std::nullopt;
    }
};

// One line of the exposition format. Nothing: it is malformed.
std::optional<MetricSample> read_sample(std::string_view line) {
    MetricSample sample;
    const std::size_t name_end = line.find_first_of("{ \t");
    if (name_end == std::string_view::npos || name_end == 0) return std::nullopt;
    sample.name = line.substr(0, name_end);
    line.remove_prefix(name_end);
    if (line.starts_with('{')) {
        line.remove_prefix(1);
        while (true) {
            line.remove_prefix(std::min(line.find_first_not_of(" \t,"), line.size()));
            if (line.starts_with('}')) break;
            const std::size_t quote = line.find("=\"");
            if (quote == std::string_view::npos) return std::nullopt;
            std::size_t end = quote + 2;
            while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
            if (end >= line.size()) return std::nullopt;
            sample.labels.emplace_back(trim(line.substr(0, quote)), line.substr(quote + 2, end - quote - 2));
            line.remove_prefix(end + 1);
        }
        line.remove_prefix(1);
    }
    const std::vector<std::string_view> rest = split_words(line);
    if (rest.empty() || rest.size() > 2) return std::nullopt;  // value, and perhaps a time stamp
    const std::string text(rest[0]);
    char* end = nullptr;
    sample.value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size()) return std::nullopt;
    return sample;
}

struct SignalRow {
    ServingEngine engine = ServingEngine::vllm;
    std::optional<double> EngineSignals::*signal = nullptr;
    std::string_view metric, label, label_value;
    double scale = 1;
};

std::optional<double> EngineSignals::*signal_named(std::string_view name) {
    static const std::map<std::string_view, std::optional<double> EngineSignals::*> signals = {
        {"waiting", &EngineSignals::waiting},
        {"running", &EngineSignals::running},
        {"kv_share", &EngineSignals::kv_share},
        {"kv_tokens", &EngineSignals::kv_tokens},
        {"prefix_queries", &EngineSignals::prefix_queries},
        {"prefix_hits", &EngineSignals::prefix_hits},
        {"prompt_tokens", &EngineSignals::prompt_tokens},
        {"output_tokens", &EngineSignals::output_tokens},
        {"prompt_seconds", &EngineSignals::prompt_seconds},
        {"output_seconds", &EngineSignals::output_seconds},
        {"preemptions", &EngineSignals::preemptions}};
    const auto found = signals.find(name);
    CHECK(found != signals.end());
    return found->second;
}

const std::vector<SignalRow>& signal_rows() {
    static const std::vector<SignalRow> rows = [] {
        const auto table = Tsv::read(embedded_bytes("serve/engine_metrics.tsv"), "serve/engine_metrics.tsv");
        CHECK(table.ok());
        auto column = [&table](std::string_view name) {
            const auto at = table->column(name);
            CHECK(at.ok());
            return *at;
        };
        std::vector<SignalRow> all;
        for (std::size_t i = 0; i < table->rows(); ++i) {
            const auto engine = enum_named<ServingEngine>(table->at(i, column("engine")));
            const auto scale = table->number(i, column("scale"));
            CHECK(engine && scale.ok());
            SignalRow row{.engine = *engine,
                          .signal = signal_named(table->at(i, column("signal"))),
                          .metric = table->at(i, column("metric")),
                          .scale = *scale};
            const std::string_view label = table->at(i, column("label"));
            if (const std::size_t equals = label.find('='); equals != std::string_view::npos) {
                row.label = label.substr(0, equals);
                row.label_value = label.substr(equals + 1);
            }
            all.push_back(row);
        }
        return all;
    }();
    return rows;
}

bool is_share(const SignalRow& row) {
    return row.signal == &EngineSignals::kv_share;
}

// vLLM says how its cache is made in the labels of a constant sample.
void read_cache_size(const MetricSample& sample, EngineSignals& signals) {
    auto number = [&sample](std::string_view a, std::string_view b) {
        for (const std::string_view key : {a, b})
            if (const auto text = sample.label(key)) return std::atof(std::string(*text).c_str());
        return 0.0;
    };
    if (sample.name != "vllm:cache_config_info" && sample.name != "sglang:cache_config_info") return;
    const double tokens = number("block_size", "page_size") * number("num_gpu_blocks", "num_pages");
    if (tokens > 0) signals.kv_tokens = signals.kv_tokens.value_or(0) + tokens;
}

}  // namespace

Result<EngineReading> read_engine_metrics(std::string_view text, std::string_view model) {
    if (text.size() > kMostMetricsBytes)
        return Error(ErrorKind::exhausted,
                     fmt::format("metrics of {} MiB; at most {} are read", text.size() >> 20, kMostMetricsBytes >> 20));
    std::vector<MetricSample> samples;
    bool names_this_model = false;
    std::uint32_t number = 0;
    for (const std::string_view raw : split_lines(text)) {
        ++number;
        const std::string_view line = trim(raw);
        if (line.empty() || line.starts_with('#')) continue;
        auto sample = read_sample(line);
        if (!sample)
            return Error(ErrorKind::invalid, fmt::format("no sample of Prometheus: {}", printable(line, 60)),
                         {"metrics", number, 1});
        names_this_model = names_this_model || (!model.empty() && sample->label("model_name") == model);
        samples.push_back(std::move(*sample));
    }
    EngineReading reading;
    struct Sum {
        double sum = 0;
        int count = 0;
    };
    std::vector<Sum> sums(signal_rows().size());
    for (const MetricSample& sample : samples) {
        if (names_this_model && sample.label("model_name") && *sample.label("model_name") != model) continue;
        read_cache_size(sample, reading.signals);
        for (std::size_t i = 0; i < sums.size(); ++i) {
            const SignalRow& row = signal_rows()[i];
            if (sample.name != row.metric || !std::isfinite(sample.value)) continue;
            if (!row.label.empty() && sample.label(row.label) != row.label_value) continue;
            sums[i].sum += sample.value * row.scale;
            sums[i].count += 1;
        }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const SignalRow& row = signal_rows()[i];
        if (sums[i].count == 0) continue;
        if (!reading.engine) reading.engine = row.engine;
        if (row.engine != *reading.engine || (reading.signals.*row.signal)) continue;
        reading.signals.*row.signal = is_share(row) ? std::clamp(sums[i].sum / sums[i].count, 0.0, 1.0) : sums[i].sum;
    }
    return reading;
}

void AgedSignals::read(const EngineSignals& signals, double now_s) {
    before_ = std::exchange(last_, signals);
    before_s_ = std::exchange(last_s_, now_s);
    const bool anew =
        before_ && before_->prompt_tokens && signals.prompt_tokens && *signals.prompt_tokens < *before_->prompt_tokens;
    if (anew) before_.reset();
}

void AgedSignals::restarted() {
    last_.reset();
    before_.reset();
}

std::optional<EngineSignals> AgedSignals::at(double now_s) const {
    if (!last_ || now_s - last_s_ > max_age_s_) return std::nullopt;
    return last_;
}

AgedSignals::Rates AgedSignals::rates(double now_s) const {
    Rates rates;
    if (!before_ || !at(now_s)) return rates;
    auto grown = [this](std::optional<double> EngineSignals::*signal) -> std::optional<double> {
        if (!((*last_).*signal) || !((*before_).*signal)) return std::nullopt;
        return *((*last_).*signal) - *((*before_).*signal);
    };
    auto rate = [](std::optional<double> tokens, std::optional<double> seconds) -> std::optional<double> {
        if (!tokens || !seconds || *tokens <= 0 || *seconds <= 0) return std::nullopt;
        return *tokens / *seconds;
    };
    const double clock_s = last_s_ - before_s_, running = std::max(1.0, last_->running.value_or(1));
    const auto prompt = grown(&EngineSignals::prompt_tokens), output = grown(&EngineSignals::output_tokens);
    rates.prompt_tokens_per_s = rate(prompt, grown(&EngineSignals::prompt_seconds));
    if (const auto each = rate(output, grown(&EngineSignals::output_seconds)))
        rates.output_tokens_per_s = *each * running;
    rates.seen_prompt_tokens_per_s = rate(prompt, clock_s);
    rates.seen_output_tokens_per_s = rate(output, clock_s);
    const auto queries = grown(&EngineSignals::prefix_queries), hits = grown(&EngineSignals::prefix_hits);
    if (queries && hits && *queries > 0) rates.prefix_hit_share = std::clamp(*hits / *queries, 0.0, 1.0);
    return rates;
}

}  // namespace stoker
