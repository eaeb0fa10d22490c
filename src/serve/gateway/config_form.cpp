#include "serve/gateway/config_form.h"

namespace stoker::gateway {
namespace {

constexpr double kMostPrice = 1e6, kMostCount = 1e12, kMostImagePrice = 1000;

RecordTable<PriceForm> price_table() {
    RecordTable<PriceForm> t("price", "What a million tokens cost, in dollars; exact to a millionth of a dollar.");
    t.usd("input", &PriceForm::input, "A million prompt tokens; of speech a million characters.", "0.15", 0,
          kMostPrice);
    t.usd("cached_input", &PriceForm::cached_input,
          "Those that the upstream had cached; as input when nothing is said.", "0.03", 0, kMostPrice);
    t.usd("output", &PriceForm::output, "A million generated tokens.", "0.60", 0, kMostPrice);
    t.usd("request", &PriceForm::request, "A million requests, on top.", "10", 0, kMostPrice);
    t.usd("image", &PriceForm::image, "One image that is made, on top of tokens.", "0.04", 0, kMostImagePrice);
    return t;
}
RecordTable<ObjectiveForm> objective_table() {
    RecordTable<ObjectiveForm> t(
        "objective",
        "What the service of this model is held to: stoker serve objectives says how far it is "
        "kept, and writes alerts on how fast its error budget is spent.");
    t.seconds("first_token", &ObjectiveForm::first_token, "To the first token of a stream.", "2s", 0.001, 3600);
    t.seconds("answer", &ObjectiveForm::answer, "To the end of an answer.", "30s", 0.001, 86400);
    t.number("met", &ObjectiveForm::met, "So many of 100 requests keep the times; 95 when nothing is said.", "95", 50,
             99.999);
    t.number("availability", &ObjectiveForm::availability,
             "So many of 100 requests are answered, of those that the caller did not spoil; 99.9 when nothing is said.",
             "99.9", 50, 99.9999);
    t.number("days", &ObjectiveForm::days, "Over which both are kept; 28 when nothing is said.", "28", 1, 400);
    return t;
}
RecordTable<ModelForm> model_table() {
    RecordTable<ModelForm> t("model", "A name that clients send, and the servers that answer for it.");
    t.text("name", &ModelForm::name, "What clients call it.", "demo").required();
    t.list_of_text(
        "upstreams", &ModelForm::upstreams,
        "Servers that speak the OpenAI API, equal to each other: http://HOST:PORT or https://HOST, with the path "
        "before /v1 where there is one (https://NAME.openai.azure.com/openai).",
        "[\"http://127.0.0.1:18080\"]");
    t.text("endpoint", &ModelForm::endpoint,
           "In place of upstreams: an endpoint of stoker deploy --endpoint, under this name and at this price.",
           "chat");
    t.text("upstream_model", &ModelForm::upstream_model, "Its name there; the same when nothing is said.",
           "stoker-demo");
    t.text("key_env", &ModelForm::key_env, "The environment variable that holds the key for the upstreams.",
           "UPSTREAM_KEY");
    t.choice("key_header", &ModelForm::key_header,
             {{"authorization", KeyHeader::authorization},
              {"api-key", KeyHeader::api_key},
              {"x-api-key", KeyHeader::x_api_key}},
             "How that key is sent: authorization (Bearer) when nothing is said, api-key to Azure OpenAI, x-api-key to "
             "Anthropic.",
             "api-key");
    t.text(
        "api_version", &ModelForm::api_version,
        "Of Azure OpenAI where a deployment stands in the path: upstream_model names the deployment. Not with the path "
        "/openai/v1, which takes none.",
        "2024-10-21");
    t.text("ca", &ModelForm::ca, "Authorities to trust for https upstreams, PEM; the system's when nothing is said.",
           "ca.pem");
    t.text(
        "tokenizer", &ModelForm::tokenizer,
        "The model's own tokenizer, by which tokens are counted where no usage is told, as of a stream that was cut: "
        "tokenizer.json or the folder that it lies in, a GGUF, a file of tiktoken; relative to this file. An endpoint "
        "finds it beside its weights. Bytes are counted when nothing is said.",
        "/models/qwen3-8b/tokenizer.json");
    t.list_of_text("fallback", &ModelForm::fallback,
                   "Models that take a request which this one cannot, in this order, before anything was shown: no "
                   "replica, failed, busy, or its cap reached. The caller pays the price of the model it asked for.",
                   "[\"gpt-small\"]");
    t.usd("cap", &ModelForm::cap,
          "Money that all together may be charged for answers of this model in a budget period, at its price; then its "
          "fallback answers, or nobody.",
          "$500", 0, 1e7);
    t.record("objective", &ModelForm::objective, objective_table(), "What its service is held to.");
    t.list_of_text("projects", &ModelForm::projects, "Whose keys see it; all when nothing is said.", "[\"research\"]");
    t.record("price", &ModelForm::price, price_table(), "What it costs; nothing when nothing is said.");
    t.count("default_output_tokens", &ModelForm::default_output_tokens,
            "Set aside for a request that names no limit; grows by 512 while it streams. 1024 when nothing is said.",
            "1024", 1, 1e7);
    t.count("max_outstanding", &ModelForm::max_outstanding,
            "Requests that one upstream gets at once; any number when nothing is said.", "256", 1, 1e6);
    t.seconds("queue", &ModelForm::queue,
              "How long a request waits where each upstream has max_outstanding; refused at once when nothing is said.",
              "30s", 0.1, 3600);
    t.seconds("hedge", &ModelForm::hedge,
              "A request whose first byte has not come for so long is sent to a second replica as well, and whichever "
              "answers first is taken; of ten requests one at most. Never when nothing is said.",
              "2s", 0.1, 3600);
    return t;
}
template <class Form>
void add_limits(RecordTable<Form>& t, const char* whose) {
    const std::string of = whose;
    t.count("requests_per_minute", &Form::requests_per_minute, "Requests" + of + "; any number when nothing is said.",
            "600", 1, kMostCount);
    t.count("request_burst", &Form::request_burst,
            "Requests at once" + of + "; ten seconds' worth when nothing is said.", "100", 1, kMostCount);
    t.count("tokens_per_minute", &Form::tokens_per_minute,
            "Tokens in and out" + of + "; any number when nothing is said.", "60k", 1, kMostCount);
    t.count("token_burst", &Form::token_burst, "Tokens at once" + of + "; ten seconds' worth when nothing is said.",
            "20k", 1, kMostCount);
    t.count("concurrent", &Form::concurrent, "Requests under way" + of + "; any number when nothing is said.", "8", 1,
            1e6);
    t.usd("budget", &Form::budget,
          "Money in a period (budget_period)" + of + "; no request begins or goes on that it does not cover.", "$20", 0,
          1e7);
}
RecordTable<ProjectForm> project_table() {
    RecordTable<ProjectForm> t("project",
                               "A team: what all keys of one project may do together, beside what each may.");
    t.text("name", &ProjectForm::name, "As keys name it.", "research").required();
    add_limits(t, " of all its keys");
    return t;
}
RecordTable<KeyForm> key_table() {
    RecordTable<KeyForm> t("key", "Who may ask, for what, and how much. `stoker serve key NAME` makes one.");
    t.text("name", &KeyForm::name, "Of the person or the program; stands in the account.", "anna").required();
    t.text("sha256", &KeyForm::sha256, "Digest of the secret, 64 hex digits; the secret itself is nowhere kept.",
           "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae")
        .required();
    t.text("project", &KeyForm::project, "Whose models it sees, and whose account it is.", "research");
    t.list_of_text("models", &KeyForm::models,
                   "The only ones it may use; all that its project sees when nothing is said.", "[\"demo\"]");
    t.choice("role", &KeyForm::role,
             {{"viewer", Role::viewer},
              {"developer", Role::developer},
              {"operator", Role::operator_},
              {"admin", Role::admin},
              {"auditor", Role::auditor}},
             "developer when nothing is said; viewer and auditor list models and use none.", "developer");
    t.text("expires", &KeyForm::expires, "When it stops, UTC.", "2027-01-31T00:00:00Z");
    t.flag("revoked", &KeyForm::revoked, "It is refused at once, and its streams end within a second.");
    add_limits(t, "");
    return t;
}

}  // namespace

const RecordTable<GatewayForm>& gateway_table() {
    static const RecordTable<GatewayForm> table = [] {
        RecordTable<GatewayForm> t(
            "gateway",
            "What a gateway is told to be: stoker serve --config gateway.yaml. Keys, models, "
            "limits and prices hold from the moment the file is changed; the rest from the next start.");
        t.text("listen", &GatewayForm::listen,
               "ADDRESS:PORT; 127.0.0.1:8080 when nothing is said. Elsewhere than on loopback only with TLS.",
               "127.0.0.1:8080");
        t.text("tls_cert", &GatewayForm::tls_cert, "Certificate chain, PEM.", "gateway.pem");
        t.text("tls_key", &GatewayForm::tls_key, "Its key, PEM.", "gateway-key.pem");
        t.list_of_text("origins", &GatewayForm::origins,
                       "Web pages that may ask from a browser (CORS), as the browser names where they come from: "
                       "scheme, host and port; [\"*\"]: all of them. None when nothing is said.",
                       "[\"https://chat.example.org\"]");
        t.count("threads", &GatewayForm::threads, "Event loops; 1 when nothing is said.", "4", 1, 256);
        t.count("name", &GatewayForm::name,
                "A number of its own, where there are several gateways; 0 when nothing is said.", "1", 0, 65535);
        t.count("max_attempts", &GatewayForm::max_attempts,
                "Replicas that a request may be tried on before its first byte; 2 when nothing is said.", "2", 1, 16);
        t.bytes("max_body", &GatewayForm::max_body, "Of a request; 32MiB when nothing is said.", "32MiB", 0, kGiB);
        t.bytes("stream_buffer", &GatewayForm::stream_buffer,
                "Held for a client that reads slowly; then its upstream is not read. 64KiB when nothing is said.",
                "64KiB", 0, 64 * kMiB);
        t.choice("reservation", &GatewayForm::reservation,
                 {{"likely", Reservation::likely}, {"strict", Reservation::strict}},
                 "How a prompt is counted before it is answered: likely takes 2.5 bytes a token, strict one, which "
                 "nothing exceeds.",
                 "likely");
        t.choice("budget_period", &GatewayForm::budget_period,
                 {{"month", BudgetPeriod::month}, {"day", BudgetPeriod::day}, {"total", BudgetPeriod::total}},
                 "Since when money is counted against budgets, UTC; month when nothing is said.", "month");
        RecordTable<LedgerForm> ledger("ledger", "The account on disk.");
        ledger.text("folder", &LedgerForm::folder,
                    "One for each gateway; relative to this file. `ledger` when nothing is said.", "ledger");
        ledger.text(
            "database", &LedgerForm::database,
            "PostgreSQL in place of the folder, without a password (PGPASSFILE has it): a second gateway of the "
            "same `name` stands by there and takes over.",
            "postgresql://stoker@db.example.org/stoker");
        ledger.bytes("segment", &LedgerForm::segment,
                     "Of one file, written with zeros ahead of its use; 16MiB when nothing is said.", "16MiB", 0, kGiB);
        t.record("ledger", &GatewayForm::ledger, ledger, "Where the account is kept.");
        RecordTable<BatchForm> batches("batches", "Requests that are handed in as a file: /v1/files and /v1/batches.");
        batches.text("folder", &BatchForm::folder,
                     "Of files and of batches under way; relative to this file. `batches` when nothing is said.",
                     "batches");
        batches.count("at_once", &BatchForm::at_once,
                      "Lines under way, of all batches together; 0: there are no batches. 4 when nothing is said.", "4",
                      0, 256);
        batches.bytes("space", &BatchForm::space, "For all files together; 10GiB when nothing is said.", "10GiB", 0,
                      1024 * 1024 * kGiB);
        t.record("batches", &GatewayForm::batches, batches, "Files and batches.");
        RecordTable<SharedLimitsForm> shared("shared_limits",
                                             "Limits and budgets that several gateways keep together, each named with "
                                             "a number of its own; one of them, the home, counts for all.");
        shared.text("home", &SharedLimitsForm::home,
                    "Where the home listens, https except on loopback; in its own file nothing is said.",
                    "https://gateway-1.example:8443");
        shared
            .text("secret_env", &SharedLimitsForm::secret_env,
                  "The environment variable that holds the secret by which they know each other.", "GATEWAYS_SECRET")
            .required();
        shared.text("ca", &SharedLimitsForm::ca, "Authorities to trust for the home, PEM; the system's by default.",
                    "ca.pem");
        t.record("shared_limits", &GatewayForm::shared_limits, shared, "Where there are several gateways.");
        RecordTable<TraceForm> traces("traces",
                                      "A span of each request, for a collector of OpenTelemetry (OTLP over HTTP, "
                                      "JSON). No prompt and no answer is in it.");
        traces.text("to", &TraceForm::to, "Where the collector listens; /v1/traces is added.", "http://127.0.0.1:4318")
            .required();
        traces.number("share", &TraceForm::share,
                      "So many of 100 requests, of those that bring no traceparent, which decides; all when nothing is "
                      "said.",
                      "10", 0, 100);
        traces.text("header_env", &TraceForm::header_env,
                    "The environment variable that holds a header for the collector, as authorization: Bearer KEY.",
                    "COLLECTOR_HEADER");
        t.record("traces", &GatewayForm::traces, traces, "Where spans of requests go; nowhere when nothing is said.");
        RecordTable<AccessLogForm> access("access_log",
                                          "A line for each request, however it ended. No prompt, no answer and no "
                                          "secret is in it; docs/guides/gateway.md has its fields.");
        access.text("file", &AccessLogForm::file, "Where it is written; relative to this file.", "access.log")
            .required();
        access.choice("format", &AccessLogForm::format, {{"json", LogFormat::json}, {"logfmt", LogFormat::logfmt}},
                      "JSON when nothing is said.", "json");
        access.bytes("max_bytes", &AccessLogForm::max_bytes,
                     "Then FILE becomes FILE.1, and what was that FILE.2; 64MiB.", "64MiB", 0, 64 * kGiB);
        access.count("keep", &AccessLogForm::keep, "So many old ones; 4.", "4", 0, 1000);
        t.record("access_log", &GatewayForm::access_log, access,
                 "Where requests are told; nowhere when nothing is said.");
        RecordTable<TimeoutForm> times("timeouts", "How long is waited.");
        times.seconds("connect", &TimeoutForm::connect, "For an upstream to accept; 1s.", "1s", 0.01, 60);
        times.seconds("first_byte", &TimeoutForm::first_byte, "For the first byte of its answer; 120s.", "120s", 0.01,
                      86400);
        times.seconds("silence", &TimeoutForm::silence, "Between bytes of an answer; 30s.", "30s", 0.01, 86400);
        times.seconds("head", &TimeoutForm::head, "For the head of a request; 10s.", "10s", 0.1, 3600);
        times.seconds("idle", &TimeoutForm::idle, "For the next request; 75s.", "75s", 0.1, 86400);
        times.seconds("slow_consumer", &TimeoutForm::slow_consumer, "For a client that reads nothing; 30s.", "30s", 0.1,
                      3600);
        times.seconds("drain", &TimeoutForm::drain, "For streams after TERM; 300s.", "300s", 0, 86400);
        t.record("timeouts", &GatewayForm::timeouts, times, "How long is waited.");
        t.list_of("models", &GatewayForm::models, model_table(), "What can be asked for, beside endpoints.");
        t.list_of("projects", &GatewayForm::projects, project_table(), "Teams, and their limits.");
        t.list_of("keys", &GatewayForm::keys, key_table(), "Who may ask.").required();
        return t;
    }();
    return table;
}

}  // namespace stoker::gateway
