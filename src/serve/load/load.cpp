#include "serve/load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

#include "base/document.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "io/worker.h"
#include "serve/load/stream_reader.h"

namespace stoker {
namespace {

// The authority, and the path that goes before every target.
struct SplitUrl {
    std::string server, path;
};
SplitUrl split_url(const std::string& url) {
    const std::size_t scheme = url.find("://");
    const std::size_t slash = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
    if (slash == std::string::npos) return {url, ""};
    std::string path = url.substr(slash);
    while (path.ends_with('/')) path.pop_back();
    if (path.ends_with("/v1")) path.resize(path.size() - 3);
    return {url.substr(0, slash), path};
}

Result<std::unique_ptr<HttpClient>> connect_to(const LoadTarget& target, double timeout_s) {
    return HttpClient::make(
        {.url = split_url(target.url).server, .ca_pem = target.ca_pem, .connect_timeout_s = std::min(timeout_s, 10.0)});
}

HttpCall call_to(const LoadTarget& target, std::string method, std::string_view route, double timeout_s) {
    HttpCall call{
        .method = std::move(method), .target = split_url(target.url).path + std::string(route), .timeout_s = timeout_s};
    if (!target.key.empty()) call.headers.add("Authorization", "Bearer " + target.key);
    return call;
}

// Words of four letters that no two prompts begin with alike: a prefix cache has nothing to give.
std::string random_words(std::int64_t count, SplitMix& random) {
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) {
        if (i > 0) text += ' ';
        for (int letter = 0; letter < 4; ++letter) text += static_cast<char>('a' + random.below(26));
    }
    return text;
}

std::string body_of(const LoadTarget& target, const LoadPlan& plan, std::string prompt, std::int64_t output_tokens,
                    bool stream) {
    Json body = Json::object();
    body.set("model", target.model).set("max_tokens", output_tokens).set("stream", stream);
    if (stream) body.set("stream_options", Json::object().set("include_usage", true));
    if (plan.ignore_eos) body.set("ignore_eos", true);
    if (target.api == LoadApi::completions)
        body.set("prompt", std::move(prompt));
    else
        body.set("messages", Json::array().push(Json::object().set("role", "user").set("content", std::move(prompt))));
    return body.dump(0);
}

std::string_view route_of(const LoadTarget& target) {
    return target.api == LoadApi::chat ? "/v1/chat/completions" : "/v1/completions";
}

// What a refusal says: the message of an OpenAI error, or the beginning of the body.
std::string said_refusal(const HttpResponse& response) {
    const auto document = Document::parse_json(response.body, "answer");
    const Node* error = document && document->root().is_mapping() ? document->root().find("error") : nullptr;
    const Node* message = error != nullptr && error->is_mapping() ? error->find("message") : nullptr;
    return fmt::format("HTTP {}: {}", response.status,
                       printable(message != nullptr ? message->text : response.body, 120));
}

std::int64_t drawn_length(double mean, double cv, SplitMix& random) {
    if (cv <= 0 || mean <= 1) return std::max<std::int64_t>(1, std::llround(mean));
    const double sigma = std::sqrt(std::log1p(cv * cv));
    return std::max<std::int64_t>(1, std::llround(mean * std::exp(sigma * random.normal() - sigma * sigma / 2)));
}

struct Shared {
    const LoadTarget& target;
    const LoadPlan& plan;
    const std::atomic<bool>& stop;
    std::atomic<std::int64_t>& finished;
    std::vector<double> due;  // open loop
    double start_s = 0;
    std::atomic<int> next{0};
    std::vector<LoadRecord> records;  // each written by one thread
};

// used: the connection has carried a request before; then a server may close it at any moment, which is nobody's
// failure.
void one_request(Shared& shared, std::unique_ptr<HttpClient>& client, bool used, LoadRecord& record, int number) {
    SplitMix random(SplitMix::mix(shared.plan.seed) + static_cast<std::uint64_t>(number));
    const std::string prompt =
        random_words(drawn_length(shared.plan.prompt_words, shared.plan.prompt_cv, random), random);
    const std::int64_t output = drawn_length(shared.plan.output_tokens, shared.plan.output_cv, random);
    StreamReader reader;
    HttpCall call = call_to(shared.target, "POST", route_of(shared.target), shared.plan.timeout_s);
    call.headers.add("Content-Type", "application/json");
    call.body = body_of(shared.target, shared.plan, prompt, output, true);
    const double deadline_s = monotonic_seconds() + shared.plan.timeout_s;
    bool late = false;
    call.on_piece = [&](std::string_view piece) {
        const double now_s = monotonic_seconds();
        reader.add(piece, now_s - shared.start_s);
        late = now_s > deadline_s;
        return !late && !shared.stop;
    };
    record.sent_s = monotonic_seconds() - shared.start_s;
    if (shared.plan.requests_per_second <= 0) record.scheduled_s = record.sent_s;
    auto answer = client->call(call);
    if (!answer && used && !late && reader.first_text_s() < 0 && answer.error().kind() == ErrorKind::unavailable) {
        if (auto made = connect_to(shared.target, shared.plan.timeout_s)) client = std::move(made).value();
        answer = client->call(call);
    }
    record.end_s = monotonic_seconds() - shared.start_s;
    if (answer) record.status = answer->status;
    if (late || (!answer && answer.error().kind() == ErrorKind::timed_out))
        record.error = fmt::format("not answered within {:g} s", shared.plan.timeout_s);
    else if (!answer)
        record.error = answer.error().message();
    else if (answer->status / 100 != 2)
        record.error = said_refusal(*answer);
    else if (!reader.error().empty())
        record.error = reader.error();
    else if (reader.first_text_s() < 0 && !reader.done())
        record.error = "the answer is no stream of events";
    else if (!reader.done())
        record.error = "the stream ended before [DONE]";
    if (reader.first_text_s() >= 0) record.ttft_s = reader.first_text_s() - record.scheduled_s;
    record.gaps_s = reader.gaps_s();
    record.counted = reader.usage().has_value();
    record.output_tokens = reader.usage() ? reader.usage()->completion_tokens : reader.chunks_with_text();
    record.prompt_tokens = reader.usage() ? reader.usage()->prompt_tokens : 0;
}

void send_requests(Shared& shared) {
    std::unique_ptr<HttpClient> client;
    bool used = false;
    while (!shared.stop) {
        const int number = shared.next.fetch_add(1);
        if (number >= shared.plan.requests) return;
        LoadRecord& record = shared.records[static_cast<std::size_t>(number)];
        if (!shared.due.empty()) {
            record.scheduled_s = shared.due[static_cast<std::size_t>(number)];
            for (double left_s; (left_s = record.scheduled_s - (monotonic_seconds() - shared.start_s)) > 0;) {
                if (shared.stop) return;
                std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left_s, 0.1)));
            }
        }
        if (!client) {
            auto made = connect_to(shared.target, shared.plan.timeout_s);
            if (!made) {
                record.error = made.error().message();
                return;
            }
            client = std::move(made).value();
            used = false;
        }
        one_request(shared, client, used, record, number);
        used = true;
        if (!record.error.empty()) client.reset();  // what is left of its answer is nobody's
        ++shared.finished;
    }
}

}  // namespace

Result<std::vector<std::string>> list_models(const LoadTarget& target) {
    TRY(const auto client, connect_to(target, 10));
    TRY(const HttpResponse answer, client->call(call_to(target, "GET", "/v1/models", 10)));
    if (answer.status != 200)
        return Error(answer.status == 401 || answer.status == 403 ? ErrorKind::denied : ErrorKind::unavailable,
                     fmt::format("{}/v1/models: {}", target.url, said_refusal(answer)), {},
                     answer.status == 401 ? "name the variable that holds its key: --key-env NAME" : "");
    TRY(const Document document, Document::parse_json(answer.body, target.url + "/v1/models"));
    std::vector<std::string> names;
    const Node* data = document.root().is_mapping() ? document.root().find("data") : nullptr;
    if (data != nullptr && data->is_sequence())
        for (const auto& item : data->items)
            if (const Node* id = item->is_mapping() ? item->find("id") : nullptr; id != nullptr)
                names.push_back(id->text);
    if (names.empty())
        return Error(ErrorKind::unavailable, fmt::format("{}/v1/models lists no model", target.url), {},
                     "name one: --model NAME");
    return names;
}

Result<std::optional<PromptScale>> measure_prompt_scale(const LoadTarget& target, const LoadPlan& plan) {
    TRY(const auto client, connect_to(target, plan.timeout_s));
    SplitMix random(plan.seed ^ 0x5eed);
    double tokens[2] = {};
    const int counts[2] = {2, 10};
    for (int i = 0; i < 2; ++i) {
        HttpCall call = call_to(target, "POST", route_of(target), plan.timeout_s);
        call.headers.add("Content-Type", "application/json");
        call.body = body_of(target, plan, random_words(counts[i], random), 1, false);
        TRY(const HttpResponse answer, client->call(call));
        if (answer.status != 200)
            return Error(answer.status == 401 || answer.status == 403   ? ErrorKind::denied
                         : answer.status == 404 || answer.status == 400 ? ErrorKind::invalid
                                                                        : ErrorKind::unavailable,
                         fmt::format("{}{}: {}", target.url, route_of(target), said_refusal(answer)));
        const auto usage = usage_of(answer.body);
        if (!usage) return std::optional<PromptScale>();
        tokens[i] = static_cast<double>(usage->prompt_tokens);
    }
    PromptScale scale;
    scale.tokens_per_word = (tokens[1] - tokens[0]) / (counts[1] - counts[0]);
    if (scale.tokens_per_word <= 0) return std::optional<PromptScale>();
    scale.frame_tokens = std::max(0.0, tokens[0] - counts[0] * scale.tokens_per_word);
    return std::optional<PromptScale>(scale);
}

std::vector<double> arrival_times(const LoadPlan& plan) {
    std::vector<double> times;
    SplitMix random(plan.seed);
    double at_s = 0;
    for (int i = 0; i < plan.requests; ++i) {
        times.push_back(at_s);
        at_s += random.gamma(plan.arrival_shape) / plan.arrival_shape / plan.requests_per_second;
    }
    return times;
}

Result<LoadRun> run_load(const LoadTarget& target, const LoadPlan& plan, const std::atomic<bool>& stop,
                         std::atomic<std::int64_t>& finished) {
    TRY_VOID(connect_to(target, plan.timeout_s));
    Shared shared{.target = target, .plan = plan, .stop = stop, .finished = finished};
    if (plan.requests_per_second > 0) shared.due = arrival_times(plan);
    shared.records.resize(static_cast<std::size_t>(plan.requests));
    const int threads = std::min(plan.concurrency > 0 ? plan.concurrency : plan.most_in_flight, plan.requests);
    shared.start_s = monotonic_seconds();
    std::vector<std::thread> pool;
    for (int i = 0; i < threads; ++i) pool.push_back(masked_thread("load", [&shared] { send_requests(shared); }));
    for (std::thread& thread : pool) thread.join();
    LoadRun run;
    double first_s = -1;
    for (LoadRecord& record : shared.records) {
        if (record.end_s <= 0 && record.error.empty()) continue;  // never sent
        if (first_s < 0 || record.scheduled_s < first_s) first_s = record.scheduled_s;
        run.seconds = std::max(run.seconds, record.end_s - first_s);
        run.records.push_back(std::move(record));
    }
    return run;
}

}  // namespace stoker
