// The one table that reads the workload file, checks its keys, and makes its JSON Schema and reference page.
// Longer than 500 lines because it is one table: a line or two for each key of the file, and what others call it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "catalog/names.h"
#include "workload/foreign_values.h"
#include "workload/workload_form.h"

namespace stoker {
namespace {

// Of what learns from answers that it writes itself.
constexpr const char* kTwoHalves =
    "plan its two halves as stages: stages: [{name: write, kind: batch-inference, traffic: {requests: 64k, "
    "prompt_tokens: 500, output_tokens: 2000}}, {name: learn, after: [write], kind: fine-tuning, method: full, data: "
    "{examples: 64k, sequence: 2500}}]; requests are prompts x answers to each";

constexpr double kDay = 86'400, kYear = 365.25 * kDay;
constexpr double kMostTokens = 1e18, kMostExamples = 1e15, kMostSequence = 1e7, kMostParameters = 1e15,
                 kMostFlops = 1e24;
constexpr double kMostBytes = 1e18, kMostRate = 1e9;
constexpr double kSmall = 1e-9;  // "more than zero" for bounds that include their ends

FieldInfo field_info(std::string type, std::string description, std::string example,
                     std::vector<std::string> choices = {}) {
    FieldInfo info;
    info.type = std::move(type);
    info.description = std::move(description);
    info.example = std::move(example);
    info.choices = std::move(choices);
    return info;
}

FieldInfo whole_number(std::string key, std::string description, std::string example, double low, double high) {
    FieldInfo info = field_info("whole number", std::move(description), std::move(example));
    info.key = std::move(key);
    info.low = low;
    info.high = high;
    return info;
}

// A list of names (or one name) that remembers where each item stands, as "sizes.0", for the messages of resolve_where.
template <class T, class C>
void names(RecordTable<T>& table, const std::string& key, std::vector<std::string> C::*member, std::string description,
           std::string example) {
    FieldInfo info = field_info("list of text", std::move(description), std::move(example));
    info.key = key;
    table.custom(key, info, [info, key, member](const Node& node, T& record, Problems& problems) {
        for (const Node* item : table_detail::items_of(node, info, true, problems)) {
            std::string text;
            if (!table_detail::read_text(*item, info, text, problems)) continue;
            for (const std::string_view name : split(text, ',')) {  // "eastus, westeurope" is what people answer
                record.at[fmt::format("{}.{}", key, (record.*member).size())] = item->pos;
                (record.*member).emplace_back(trim(name));
            }
        }
    });
}

// A choice whose words go by other names elsewhere, "half:fp16 mixed:bf16": those are not read, so that files stay
// alike, but answered.
template <class T, class M, class C>
void choice_known_as(RecordTable<T>& table, const std::string& key, M C::*member,
                     const std::vector<std::pair<std::string, table_detail::unwrapped_t<M>>>& choices,
                     std::string description, std::string example, std::string_view elsewhere) {
    FieldInfo info = field_info("one of", std::move(description), std::move(example));
    info.key = key;
    for (const auto& each : choices) info.choices.push_back(each.first);
    table.custom(key, info, [=](const Node& node, T& record, Problems& problems) {
        std::string_view meant;
        for (const std::string_view pair : split_words(elsewhere)) {
            const std::size_t colon = pair.find(':');
            if (node.is_scalar() && fold_name(pair.substr(0, colon)) == fold_name(node.text))
                meant = pair.substr(colon + 1);
        }
        const bool ours = std::any_of(info.choices.begin(), info.choices.end(),
                                      [&](const std::string& word) { return fold_name(word) == fold_name(node.text); });
        std::size_t index = 0;
        if (!meant.empty() && !ours)
            problems.push_back({fmt::format("{}: expected {}, found '{}' (did you mean {}?)", key,
                                            join_or(info.choices), printable(node.text, 40), meant),
                                "", node.pos});
        else if (table_detail::read_choice(node, info, index, problems))
            record.*member = choices[index].second;
    });
}

// Words that no choice says, and what to write for what they mean.
struct OtherwiseWritten {
    std::string_view words;
    std::string remedy;
};

template <class T, class M, class C>
void choice_or_remedy(RecordTable<T>& table, const std::string& key, M C::*member,
                      const std::vector<std::pair<std::string, table_detail::unwrapped_t<M>>>& choices,
                      std::string description, std::string example, const std::vector<OtherwiseWritten>& others) {
    FieldInfo info = field_info("one of", std::move(description), std::move(example));
    info.key = key;
    for (const auto& each : choices) info.choices.push_back(each.first);
    table.custom(key, info, [=](const Node& node, T& record, Problems& problems) {
        for (const OtherwiseWritten& other : others)
            for (const std::string_view word : split_words(other.words))
                if (node.is_scalar() && fold_name(word) == fold_name(node.text))
                    return problems.push_back({fmt::format("{}: expected {}, found '{}'", key, join_or(info.choices),
                                                           printable(node.text, 40)),
                                               other.remedy, node.pos});
        std::size_t index = 0;
        if (table_detail::read_choice(node, info, index, problems)) record.*member = choices[index].second;
    });
}

// Bytes per second, written 64GB/s or 64GB.
template <class T>
void bandwidth(RecordTable<T>& table, const std::string& key, std::optional<Bytes> T::*member, std::string description,
               std::string example) {
    FieldInfo info = field_info("bytes per second", std::move(description), std::move(example));
    info.key = key;
    table.custom(key, info, [key, member](const Node& node, T& record, Problems& problems) {
        std::string_view text = node.text;
        // 10Gb/s is how links are written, in bits: eight times less than the letters read as bytes.
        if (const std::string bytes = bits_per_second_in_bytes(text); node.is_scalar() && !bytes.empty())
            return problems.push_back({fmt::format("{}: '{}' is written in bits, as links are; expected bytes per "
                                                   "second such as 64GB/s",
                                                   key, printable(text, 40)),
                                       fmt::format("write {}: {}: eight bits are a byte", key, bytes), node.pos});
        if (text.ends_with("/s")) text.remove_suffix(2);
        const auto parsed = node.is_scalar() ? parse_bytes(trim(text))
                                             : Result<Bytes>(Error(ErrorKind::invalid, "expected bytes per second"));
        if (!parsed)
            problems.push_back({key + ": " + parsed.error().message(), "write it as 64GB/s", node.pos});
        else if (parsed->v < 1 || parsed->v > 1e18)
            problems.push_back({key + ": the bandwidth must be more than zero and below 1e18 bytes/s", "", node.pos});
        else
            record.*member = *parsed;
    });
}

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

Choices<Precision> precisions() {
    Choices<Precision> out;
    for (const std::string& name : precision_names()) {
        if (const auto precision = precision_from(name)) out.emplace_back(name, *precision);
    }
    return out;
}

Choices<std::string> words(const std::vector<std::string>& all) {
    Choices<std::string> out;
    for (const std::string& word : all) out.emplace_back(word, word);
    return out;
}

RecordTable<ModelForm> model_table() {
    RecordTable<ModelForm> table(
        "model",
        "What is trained or served: a name of the catalogue, a config.json, a number of parameters, or the shape.");
    table.shorthand(
        "a name of the catalogue such as llama-3-8b, the path of a config.json, or a number of parameters such as 7B",
        [](const Node& node, ModelForm& form, Problems& problems) {
            const std::string text(trim(node.text));
            if ((node.kind != NodeKind::string && node.kind != NodeKind::number) || text.empty()) return false;
            if (node.kind == NodeKind::number || parse_count(text)) {
                FieldInfo info = field_info("count", "", "7B");
                info.key = "parameters";
                info.low = 1;
                info.high = kMostParameters;
                double count = 0;
                if (table_detail::read_number(node, info, count, problems))
                    form.parameters = count;
                else
                    form.broken = true;
                form.at["parameters"] = node.pos;
                return true;
            }
            // 235B-A22B: so many in all, so many for each token.
            if (const std::size_t dash = text.find("-A"); dash != std::string::npos) {
                const auto all = parse_count(text.substr(0, dash)), active = parse_count(text.substr(dash + 2));
                if (all && active && *all <= kMostParameters && *active < *all) {
                    form.parameters = *all;
                    form.active_parameters = *active;
                    form.at["parameters"] = form.at["active_parameters"] = node.pos;
                    return true;
                }
            }
            const bool path = text.ends_with(".json");
            (path ? form.config : form.name) = text;
            form.at[path ? "config" : "name"] = node.pos;
            return true;
        });
    table.text("name", &ModelForm::name, "A model of the catalogue, or one of its aliases.", "llama-3-8b");
    table.other_names({"model_name", "model_id", "model_type"});
    table.text("config", &ModelForm::config,
               "The config.json of a Hugging Face model; the path is relative to this file.", "path/to/config.json");
    table.text("family", &ModelForm::family, "Which family the shape is taken from when only the parameters are known.",
               "llama");
    table.count("parameters", &ModelForm::parameters, "How many parameters it has.", "70B", 1, kMostParameters);
    table.count("params", &ModelForm::parameters, "Short for parameters.", "70B", 1, kMostParameters);
    table.other_names({"num_parameters", "model_size", "n_params"});
    table.count("active_parameters", &ModelForm::active_parameters,
                "Mixtures of experts of which only the size is known: parameters that one token passes through.", "32B",
                1, kMostParameters);
    table.other_names({"active_params", "activated_parameters"});
    choice_or_remedy(
        table, "kind", &ModelForm::kind,
        {{"decoder", ModelKind::decoder},
         {"encoder", ModelKind::encoder},
         {"encoder-decoder", ModelKind::encoder_decoder},
         {"cnn", ModelKind::cnn},
         {"vit", ModelKind::vit},
         {"diffusion", ModelKind::diffusion}},
        "The kind of network; a decoder when nothing is said.", "",
        {{"llm gpt causal_lm transformer", "write kind: decoder"},
         {"bert embedding reranker", "write kind: encoder"},
         {"seq2seq t5 speech asr", "write kind: encoder-decoder"},
         {"unet detector segmentation resnet yolo", "write kind: cnn; what denoises is kind: diffusion"},
         {"mlp dnn gnn graph tabular rnn lstm recommender dlrm gan",
          "say its work by the sample: {kind: cnn, parameters: 5M, forward_flops: 2e8, activation_bytes: 400kB, "
          "sample_unit: row}"}});
    const auto whole = [&](const char* key, std::optional<int> ModelForm::*member, const char* description,
                           const char* example, double low,
                           double high) { table.count(key, member, description, example, low, high); };
    whole("layers", &ModelForm::layers, "Transformer layers, of both stacks together.", "80", 1, 10'000);
    table.other_names({"num_layers", "num_hidden_layers", "n_layer", "n_layers", "depth"});
    whole("decoder_layers", &ModelForm::decoder_layers,
          "Of an encoder-decoder: how many of the layers are the decoder's.", "12", 0, 10'000);
    whole("hidden", &ModelForm::hidden, "Hidden size.", "8192", 1, 1e6);
    table.other_names({"hidden_size", "d_model", "n_embd", "dim", "hidden_dim", "width"});
    whole("heads", &ModelForm::heads, "Attention heads.", "64", 1, 65'536);
    table.other_names({"num_heads", "num_attention_heads", "n_head", "n_heads"});
    whole("kv_heads", &ModelForm::kv_heads, "Key/value heads; as many as heads when nothing is said.", "8", 1, 65'536);
    table.other_names({"num_key_value_heads", "num_kv_heads", "n_kv_heads"});
    whole("head_dim", &ModelForm::head_dim, "Width of a head; hidden / heads when nothing is said.", "128", 1, 65'536);
    whole("ffn", &ModelForm::ffn, "Width of the feed-forward part.", "28672", 1, 1e7);
    table.other_names({"intermediate_size", "ffn_dim", "d_ff", "mlp_dim", "ffn_hidden_size"});
    whole("vocab", &ModelForm::vocabulary, "Tokens of the vocabulary.", "128256", 1, 1e7);
    table.other_names({"vocabulary", "vocab_size", "vocabulary_size"});
    whole("max_sequence", &ModelForm::max_sequence, "Longest sequence it was made for.", "8192", 1, 1e9);
    table.other_names({"max_position_embeddings", "n_positions", "context_length", "max_seq_len"});
    whole("experts", &ModelForm::experts, "Routed experts of a layer.", "256", 0, 65'536);
    table.other_names({"num_experts", "n_experts", "num_local_experts"});
    whole("active_experts", &ModelForm::active_experts, "Experts that one token visits.", "8", 1, 65'536);
    table.other_names({"num_experts_per_tok", "top_k", "experts_per_token"});
    whole("expert_ffn", &ModelForm::expert_ffn, "Width of one expert; ffn when nothing is said.", "2048", 1, 1e7);
    table.other_names({"moe_intermediate_size"});
    whole("shared_expert_ffn", &ModelForm::shared_expert_ffn, "Width of the shared experts together.", "2048", 0, 1e7);
    whole("dense_layers", &ModelForm::dense_layers, "Layers without experts.", "3", 0, 10'000);
    whole("q_lora_rank", &ModelForm::q_lora_rank, "Latent attention: rank of the queries.", "1536", 0, 1e6);
    whole("kv_lora_rank", &ModelForm::kv_lora_rank, "Latent attention: rank of keys and values.", "512", 1, 1e6);
    whole("rope_head_dim", &ModelForm::rope_head_dim, "Latent attention: rotary part of a head.", "64", 1, 65'536);
    whole("nope_head_dim", &ModelForm::nope_head_dim, "Latent attention: the other part of a head.", "128", 1, 65'536);
    whole("v_head_dim", &ModelForm::v_head_dim, "Latent attention: width of a value head.", "128", 1, 65'536);
    whole("sliding_window", &ModelForm::sliding_window, "Tokens that attention looks back, where it is bounded.",
          "4096", 1, 1e9);
    whole("learned_positions", &ModelForm::learned_positions, "Rows of a learned position table.", "512", 0, 1e7);
    table.flag("gated", &ModelForm::gated, "Feed-forward with a gate (SwiGLU): three matrices instead of two.");
    table.flag("tied_embeddings", &ModelForm::tied_embeddings, "The output head is the embedding table.");
    table.flag("biases", &ModelForm::biases, "Linear layers have biases.");
    table.choice("norm", &ModelForm::layer_norm, {{"rmsnorm", false}, {"layernorm", true}}, "Kind of normalisation.");
    table.count("forward_flops", &ModelForm::forward_flops,
                "Of what learns from samples (images, rows): FLOP of the forward pass of one.", "8.2e9", 1, kMostFlops);
    table.bytes("activation_bytes", &ModelForm::activation_bytes,
                "Of the same: activations kept for one sample at 16 bit.", "100MB", 1, kMostBytes);
    table.text("sample_unit", &ModelForm::sample_unit, "What one sample is called.", "image");
    return table;
}

RecordTable<DataSpec> data_table() {
    RecordTable<DataSpec> table("data", "What is learned from, or worked through.");
    table.count("tokens", &DataSpec::tokens, "Tokens of the data set; in all when there are no epochs.", "150B", 1,
                kMostTokens);
    table.other_names({"dataset_tokens", "train_tokens", "total_tokens", "num_tokens"});
    table.count("examples", &DataSpec::examples, "Sequences, images or records of the data set.", "52000", 1,
                kMostExamples);
    table.other_names({"samples", "images", "records", "rows", "num_examples", "documents"});
    table.count("sequence", &DataSpec::sequence, "Tokens of one sequence.", "8192", 1, kMostSequence);
    table.other_names({"seq_len", "seq_length", "sequence_length", "context_length", "max_seq_len", "block_size"});
    table.count("epochs", &DataSpec::epochs, "How often the data is gone through.", "3", 1e-6, 1e6);
    table.other_names({"num_epochs", "num_train_epochs"});
    table.bytes("bytes", &DataSpec::bytes, "Size of the data set on storage.", "150GB", 1, kMostBytes);
    table.other_names({"dataset_size", "data_size"});
    table.bytes("bytes_per_example", &DataSpec::bytes_per_example, "Size of one example on storage.", "110kB", 1,
                kMostBytes);
    bandwidth(table, "storage_bandwidth", &DataSpec::storage_bandwidth_per_second,
              "What storage delivers to all nodes together.", "10GB/s");
    table.seconds("decode_per_example", &DataSpec::decode_per_example,
                  "Time of one vCPU to decode and augment an example.", "7ms", kSmall, kDay);
    table.count("image_size", &DataSpec::image_size,
                "Pixels of an edge of the images, the shorter one of videos, where they are not of the model's own "
                "size (stoker catalog models "
                "NAME).",
                "512", 16, 16'384);
    table.other_names({"resolution", "image_resolution", "img_size"});
    table.text("region", &DataSpec::region,
               "Where the data lies. The plan stays near it, and says what a copy costs where it runs elsewhere.",
               "westeurope");
    table.other_names({"data_region", "storage_region", "bucket_region"});
    return table;
}

RecordTable<BatchSpec> batch_table() {
    RecordTable<BatchSpec> table("batch", "How much is learned from in one step, on all devices together.");
    table.count("global_tokens", &BatchSpec::global_tokens,
                "Tokens of one optimizer step; as sequences, a number that ranks can share.", "4M", 1, 1e12);
    table.count("global_examples", &BatchSpec::global_examples, "Sequences or images of one optimizer step.", "1024", 1,
                1e9);
    table.other_names({"batch_size", "global_batch_size", "train_batch_size"});
    table.count("micro", &BatchSpec::micro, "Sequences or images on a device at once.", "2", 1, 1e6);
    table.other_names({"micro_batch_size", "per_device_batch_size", "per_device_train_batch_size"});
    return table;
}

RecordTable<TrafficSpec> traffic_table() {
    RecordTable<TrafficSpec> table("traffic", "The requests.");
    table.count("requests_per_second", &TrafficSpec::requests_per_second, "Mean rate at the busiest time.", "12", 1e-6,
                kMostRate);
    table.other_names({"rps", "qps", "request_rate", "rate"});
    table.count("prompt_tokens", &TrafficSpec::prompt_tokens, "Mean tokens of a prompt.", "1500", 1, kMostSequence);
    table.other_names({"input_tokens", "prompt_length", "input_length", "isl", "tokens", "sequence"});
    table.count("output_tokens", &TrafficSpec::output_tokens, "Mean tokens of an answer.", "300", 1, kMostSequence);
    table.other_names(
        {"max_tokens", "completion_tokens", "generated_tokens", "output_length", "osl", "max_new_tokens"});
    table.count("prompt_tokens_cv", &TrafficSpec::prompt_tokens_cv,
                "Spread of the prompts: standard deviation over mean.", "1.0", 0, 20);
    table.count("output_tokens_cv", &TrafficSpec::output_tokens_cv,
                "Spread of the answers: standard deviation over mean.", "0.8", 0, 20);
    table.count("arrival_cv", &TrafficSpec::arrival_cv,
                "Spread of the time between requests; 1 is Poisson, more is bursty.", "1.0", 0, 100);
    table.count("requests", &TrafficSpec::requests, "Batch: how many in all.", "1M", 1, kMostExamples);
    table.count("concurrency", &TrafficSpec::concurrency,
                "Clients who each wait for their answer before they ask again, in place of a rate: requests in flight.",
                "64", 1, 1e9);
    table.other_names({"concurrent_users", "concurrent_requests", "clients"});
    table.count(
        "users", &TrafficSpec::users,
        "People who have access, in place of a rate. A share of them is active at the busiest time, and reads and "
        "thinks between requests.",
        "500", 1, 1e10);
    table.other_names({"employees", "seats", "num_users", "people"});
    table.count("streams", &TrafficSpec::streams,
                "Speech models: conversations that are heard as they are spoken, in place of a rate: each asks again "
                "when another traffic.audio of it has been said.",
                "200", 1, 1e9);
    table.other_names({"calls", "live_streams", "audio_streams", "channels", "concurrent_streams"});
    table.count("active_share", &TrafficSpec::active_share,
                "The share of the users who are active at the busiest time; by use_case when nothing is said.", "0.2",
                kSmall, 1);
    table.other_names({"active_users", "active_fraction"});
    table.seconds("think_time", &TrafficSpec::think_time,
                  "Mean time from an answer to the same client's next request: of users by use_case when nothing is "
                  "said, none with concurrency.",
                  "60s", kSmall, kDay);
    table.count("requests_per_minute", &TrafficSpec::requests_per_minute,
                "Requests of one active user in a minute, in place of think_time.", "0.8", 1e-6, 1e4);
    table.other_names({"requests_per_user", "prompts_per_minute"});
    table.count(
        "cached_prompt_tokens", &TrafficSpec::cached_prompt_tokens,
        "Mean tokens of a prompt that the engine has in its cache already: a system prompt, the conversation so "
        "far, documents.",
        "1000", 0, kMostSequence);
    table.other_names({"prefix_tokens", "cached_tokens", "prefix"});
    table.count("steps", &TrafficSpec::steps, "Diffusion models: denoising steps of one image.", "30", 1, 10'000);
    table.other_names({"num_inference_steps", "sampling_steps", "denoising_steps"});
    table.flag("guidance", &TrafficSpec::guidance,
               "Diffusion models: classifier-free guidance, which passes through the network twice in every step.",
               "true");
    table.seconds("audio", &TrafficSpec::audio, "Speech models: mean length of what is heard in one request.", "30s",
                  0.01, kDay);
    table.other_names({"audio_seconds", "audio_length"});
    table.count("image_size", &TrafficSpec::image_size,
                "Pixels of an edge of the images, the shorter one of videos, where they are not of the model's own "
                "size (stoker catalog models "
                "NAME).",
                "512", 16, 16'384);
    table.other_names({"resolution", "image_resolution", "img_size"});
    table.text("region", &TrafficSpec::region,
               "Where the requests come from: users, a gateway, another service. The plan stays near it.",
               "westeurope");
    table.other_names({"users_region", "user_region", "gateway_region", "client_region"});
    return table;
}

RecordTable<SpeculationSpec> speculation_table() {
    RecordTable<SpeculationSpec> table("speculation", "Tokens are guessed ahead, and checked together.");
    table.count("tokens_ahead", &SpeculationSpec::tokens_ahead, "Tokens that are guessed for one step.", "3", 0, 16);
    table.other_names({"num_speculative_tokens", "nextn", "draft_length"});
    table.count("acceptance", &SpeculationSpec::acceptance,
                "Probability that a guess is right, when those before it were; 0.7 when nothing is said.", "0.7", 0,
                0.99);
    table.other_names({"acceptance_rate", "accept_rate"});
    table.count("draft_parameters", &SpeculationSpec::draft_parameters,
                "Parameters of the draft model; none where the model has layers of its own for it (MTP).", "1B", 0,
                1e12);
    table.other_names({"draft_model", "draft"});
    return table;
}

RecordTable<LatencySpec> latency_table() {
    RecordTable<LatencySpec> table("latency", "Limits; p95 means that 95 of 100 requests are faster.");
    const auto limit = [&](const char* key, std::optional<Seconds> LatencySpec::*member, const char* description,
                           const char* example) { table.seconds(key, member, description, example, 1e-6, kDay); };
    limit("ttft_p50", &LatencySpec::ttft_p50, "Time to the first token.", "300ms");
    limit("ttft_p95", &LatencySpec::ttft_p95, "Time to the first token.", "800ms");
    table.other_names({"ttft", "time_to_first_token"});
    limit("ttft_p99", &LatencySpec::ttft_p99, "Time to the first token.", "2s");
    limit("tpot_p50", &LatencySpec::tpot_p50, "Time of each further token.", "30ms");
    limit("tpot_p95", &LatencySpec::tpot_p95, "Time of each further token.", "50ms");
    table.other_names({"tpot", "itl", "time_per_output_token", "inter_token_latency"});
    limit("tpot_p99", &LatencySpec::tpot_p99, "Time of each further token.", "200ms");
    limit("e2e_p95", &LatencySpec::e2e_p95, "Time to the last token.", "20s");
    table.other_names({"e2e", "end_to_end"});
    limit("p95", &LatencySpec::p95, "Time of a request, for models that do not generate tokens.", "50ms");
    table.other_names({"latency_p95", "latency_ms"});
    return table;
}

RecordTable<ObjectiveSpec> objective_table() {
    RecordTable<ObjectiveSpec> table("objective", "What is wanted, and within which limits.");
    choice_known_as(
        table, "minimize", &ObjectiveSpec::minimize,
        {{"cost", Minimize::cost}, {"time", Minimize::time}, {"energy", Minimize::energy}},
        "What the best plan has least of.", "cost",
        "price:cost money:cost speed:time latency:time throughput:time duration:time carbon:energy power:energy");
    table.other_names({"optimize", "optimise", "minimise", "goal", "optimize_for"});
    table.seconds("deadline", &ObjectiveSpec::deadline, "When the work must be done, from its start.", "14d", 1,
                  100 * kYear);
    table.other_names({"max_time", "max_duration", "time_limit", "finish_within", "max_hours"});
    table.usd("budget", &ObjectiveSpec::budget, "What it may cost: in all, or a month of a service.", "$20k", 0.01,
              1e12);
    table.count("confidence", &ObjectiveSpec::confidence,
                "Probability with which deadline and budget are to be kept; 0.9 when nothing is said.", "0.9", 0.01,
                0.999);
    table.record("latency", &ObjectiveSpec::latency, latency_table(), "How fast answers must be.");
    table.flag(
        "survive_one_replica_lost", &ObjectiveSpec::survive_one_replica_lost,
        "The limits hold also while one node is down: as surely as with all of them when this says true, by the middle "
        "estimate when nothing is said, and not at all where where.nodes or where.gpus fixes the machines or "
        "where.max_nodes leaves no room for one more.",
        "true");
    return table;
}

RecordTable<WhereSpec> where_table() {
    RecordTable<WhereSpec> table("where", "Where it may run, and on what.");
    names(table, "cloud", &WhereSpec::clouds,
          "azure, aws, gcp, on-prem, this-machine or another of the catalogue; any: all. Azure when nothing is said.",
          "azure");
    table.other_names({"provider", "clouds"});
    names(
        table, "regions", &WhereSpec::regions,
        "Regions that may be used. When nothing is said: those of your home (stoker config home), else well-known ones "
        "that ordinary subscriptions can use; farther ones come after them.",
        "[eastus, westeurope]");
    table.other_names({"location", "locations", "zone"});
    names(table, "sizes", &WhereSpec::sizes, "VM sizes that may be used; all when nothing is said.",
          "[Standard_ND96isr_H100_v5]");
    table.other_names({"size", "vm_size", "instance_type", "machine_type", "sku", "skus", "vm", "node_type", "flavor"});
    names(table, "residency", &WhereSpec::residency,
          "Geographies that the data may not leave, such as eu, us, uk, switzerland.", "eu");
    table.other_names({"data_residency", "geography", "geo"});
    choice_known_as(table, "spot", &WhereSpec::spot,
                    {{"never", SpotUse::never}, {"allowed", SpotUse::allowed}, {"only", SpotUse::only}},
                    "Whether capacity that can be taken away may be used.", "allowed",
                    "yes:allowed true:allowed preferred:allowed no:never false:never always:only required:only");
    table.other_names({"preemptible", "low_priority"});
    choice_known_as(table, "os", &WhereSpec::os, words({"linux", "windows"}),
                    "Operating system, which changes the price.", "linux",
                    "ubuntu:linux debian:linux rhel:linux win:windows");
    names(table, "accelerators", &WhereSpec::accelerators,
          "Accelerators that may be used, by name, start of a name or vendor; all when nothing is said.",
          "[h100, h200]");
    table.other_names({"accelerator", "gpu", "gpu_type", "gpu_model"});
    table.count("max_nodes", &WhereSpec::max_nodes, "At most so many nodes.", "64", 1, 1e6);
    table.other_names({"max_vms", "max_instances"});
    table.custom("gpus", whole_number("gpus", "Exactly so many GPUs in all.", "64", 1, 1e6),
                 [](const Node& node, WhereSpec& where, Problems& problems) {
                     double count = 0;
                     if (table_detail::read_number(node, whole_number("gpus", "", "64", 1, 1e6), count, problems))
                         where.gpus = count;
                 });
    table.other_names({"num_gpus", "gpu_count", "n_gpus", "number_of_gpus", "world_size"});
    FieldInfo nodes = field_info(
        "count or file",
        "Exactly so many nodes, or the YAML file that describes on-prem nodes, or the list of such a file itself. An "
        "endpoint with so many nodes and no rate: how much do they hold?",
        "8");
    table.custom("nodes", nodes, [](const Node& node, WhereSpec& where, Problems& problems) {
        if (node.is_sequence() && !node.items.empty()) {  // read in full once the catalogue takes them
            where.nodes_here = true;
            for (const auto& one : node.items) {
                const Node* name = one->is_mapping() ? one->find("name") : nullptr;
                if (name != nullptr && name->is_scalar()) where.names_here.push_back(name->text);
            }
            return;
        }
        if (node.kind == NodeKind::string && !parse_count(node.text)) {
            where.nodes_file = node.text;
            if (trim(node.text).empty())
                problems.push_back(
                    {"nodes: expected a number of nodes, or the file that describes them", "", node.pos});
            return;
        }
        double count = 0;
        if (table_detail::read_number(node, whole_number("nodes", "", "8", 1, 1e6), count, problems))
            where.nodes = count;
    });
    table.other_names({"num_nodes", "node_count", "instances", "instance_count", "vms", "vm_count", "machines",
                       "on_prem", "on_premises", "nodes_file", "inventory", "hosts"});
    table.seconds("commitment", &WhereSpec::commitment,
                  "Capacity is reserved and used so long, so that reserved prices count.", "1y", kDay, 10 * kYear);
    table.other_names({"reserved", "reservation"});
    FieldInfo rate = field_info(
        "number, pair or bracket",
        "How often one spot node is taken away in an hour: a figure (half to double of it is covered), a pair such as "
        "[0.02, 0.4], or the bracket that Azure shows for a size and region, 5-10%. When nothing is said: your "
        "settings (stoker config evictions), else the catalogue.",
        "0.1");
    table.custom("evictions_per_hour", rate, [](const Node& node, WhereSpec& where, Problems& problems) {
        std::string text = node.text;
        if (node.is_sequence() && node.items.size() == 2)
            text = fmt::format("{} - {}", node.items[0]->text, node.items[1]->text);
        where.evictions_per_hour = node.is_scalar() || node.is_sequence() ? parse_eviction_rate(text) : std::nullopt;
        if (!where.evictions_per_hour)
            problems.push_back({fmt::format("evictions_per_hour: expected how often one spot node is taken away in an "
                                            "hour, found '{}'",
                                            printable(text, 40)),
                                "write 0.1, [0.02, 0.4] or 5-10%: more than zero, at most 60", node.pos});
    });
    table.other_names({"eviction_rate", "evictions", "interruption_rate", "preemption_rate", "spot_eviction_rate"});
    table.count("on_demand_replicas", &WhereSpec::on_demand_replicas,
                "A service on spot: replicas that are had on demand, and stay when all spot nodes are taken.", "2", 1,
                1e6);
    table.other_names({"on_demand_floor", "on_demand_base_capacity", "base_ondemand_fallback_replicas"});
    return table;
}

RecordTable<LayoutSpec> layout_table() {
    RecordTable<LayoutSpec> table("layout", "Degrees of parallelism that are pinned; what is left out is searched.");
    const auto degree = [&](const char* key, std::optional<double> LayoutSpec::*member, const char* description,
                            const char* example, double low, double high) {
        const FieldInfo info = whole_number(key, description, example, low, high);
        table.custom(key, info, [info, member](const Node& node, LayoutSpec& layout, Problems& problems) {
            double value = 0;
            if (table_detail::read_number(node, info, value, problems)) layout.*member = value;
        });
    };
    degree("tensor", &LayoutSpec::tensor, "Tensor parallel degree.", "8", 1, 4096);
    table.other_names({"tp", "tensor_parallel", "tensor_parallel_size"});
    degree("pipeline", &LayoutSpec::pipeline, "Pipeline stages.", "4", 1, 10'000);
    table.other_names({"pp", "pipeline_parallel", "pipeline_parallel_size"});
    degree("virtual_stages", &LayoutSpec::virtual_stages,
           "Interleaved chunks per stage: any number that divides its layers.", "2", 1, 1000);
    degree("context", &LayoutSpec::context, "Context parallel degree.", "2", 1, 4096);
    table.other_names({"cp", "context_parallel"});
    degree("expert", &LayoutSpec::expert, "Expert parallel degree.", "8", 1, 65'536);
    table.other_names({"ep", "expert_parallel"});
    degree("data", &LayoutSpec::data, "Data parallel degree.", "16", 1, 1e6);
    table.other_names({"dp", "data_parallel"});
    degree("zero", &LayoutSpec::zero, "ZeRO stage, 3 is FSDP.", "3", 0, 3);
    table.other_names({"zero_stage", "stage"});
    degree("micro_batch", &LayoutSpec::micro_batch, "Sequences or images on a device at once.", "2", 1, 1e6);
    table.other_names({"micro_batch_size"});
    degree("shard_group", &LayoutSpec::shard_group, "Ranks that share one copy of the states (HSDP).", "8", 1, 1e6);
    table.choice("recompute", &LayoutSpec::recompute, words({"none", "selective", "full"}),
                 "Activations that are computed again in the backward pass.");
    table.other_names({"activation_checkpointing", "gradient_checkpointing", "recomputation"});
    degree("recompute_layers", &LayoutSpec::recompute_layers,
           "Full recompute of so many layers in each chunk of each stage; all of them when nothing is said.", "2", 1,
           10'000);
    table.other_names({"recompute_num_layers"});
    table.flag("sequence_parallel", &LayoutSpec::sequence_parallel,
               "Split what tensor parallelism leaves whole along the sequence.");
    table.flag("offload", &LayoutSpec::offload, "Optimizer states in host memory.");
    return table;
}

RecordTable<LoraSpec> lora_table() {
    RecordTable<LoraSpec> table("lora", "The adapters of LoRA and QLoRA.");
    table.count("rank", &LoraSpec::rank, "Rank of the adapters.", "16", 1, 65'536);
    table.choice("targets", &LoraSpec::targets, words({"all-linear", "attention"}), "Which matrices get one.");
    return table;
}

RecordTable<CheckpointSettings> checkpoint_table() {
    RecordTable<CheckpointSettings> table("checkpoint", "How progress is saved.");
    table.seconds("every", &CheckpointSettings::every,
                  "Time between checkpoints; the best one is computed when nothing is said.", "30m", 1, kYear);
    table.other_names({"interval", "checkpoint_interval", "frequency"});
    bandwidth(table, "write_bandwidth", &CheckpointSettings::write_bandwidth_per_second,
              "What storage takes from all nodes together. Left out: 2 GB/s a node, up to 64 GB/s.", "10GB/s");
    table.flag(
        "asynchronous", &CheckpointSettings::asynchronous,
        "Training goes on while the checkpoint is written. Left out: where the framework can (megatron, nemo, fsdp, "
        "pytorch).");
    return table;
}

RecordTable<FrontSpec> front_table() {
    RecordTable<FrontSpec> table("front", "A service before the model that needs no GPU, on machines of its own.");
    table.text("image", &FrontSpec::image, "Its container image.", "registry.example/gateway:1.4");
    table.list_of_text("command", &FrontSpec::command,
                       "Program and arguments; those of the image when nothing is said.", "[python3, gateway.py]");
    table.count("port", &FrontSpec::port, "Where it answers; 8080 when nothing is said.", "8080", 1, 65'535);
    table.text("health", &FrontSpec::health, "A path that answers when it is ready.", "/healthz");
    table.seconds("cpu_per_request", &FrontSpec::cpu_per_request,
                  "Time of one vCPU for one request; 10 ms when nothing is said.", "20ms", 1e-6, kDay);
    table.count("cpus", &FrontSpec::cpus, "vCPUs of one pod; 1 when nothing is said.", "2", 0.1, 256);
    table.bytes("memory", &FrontSpec::memory, "Memory of one pod; 1 GiB when nothing is said.", "2GiB", 1 << 20,
                4096 * kGiB);
    return table;
}

RecordTable<DiskSpec> disk_table() {
    RecordTable<DiskSpec> table("disk", "The data disk of every VM.");
    table.choice("type", &DiskSpec::type,
                 words({"standard-hdd", "standard-ssd", "premium-ssd", "premium-ssd-v2", "ultra"}),
                 "Kind of managed disk.", "premium-ssd");
    table.bytes("size", &DiskSpec::size, "Size of one disk.", "1TiB", kGiB, 65'536 * kGiB);
    bandwidth(table, "throughput", &DiskSpec::throughput_per_second, "What one disk delivers, where it can be chosen.",
              "200MB/s");
    return table;
}

// People call things by other names. They are told ours, so that files stay alike.
struct Synonym {
    std::string_view word;
    WorkloadKind kind;
};
constexpr Synonym kSynonyms[] = {
    {"train", WorkloadKind::training},
    {"pretraining", WorkloadKind::training},
    {"pretrain", WorkloadKind::training},
    {"fromscratch", WorkloadKind::training},
    {"finetune", WorkloadKind::fine_tuning},
    {"sft", WorkloadKind::fine_tuning},
    {"lora", WorkloadKind::fine_tuning},
    {"qlora", WorkloadKind::fine_tuning},
    {"serving", WorkloadKind::inference},
    {"serve", WorkloadKind::inference},
    {"infer", WorkloadKind::inference},
    {"endpoint", WorkloadKind::inference},
    {"realtime", WorkloadKind::inference},
    {"deploy", WorkloadKind::inference},
    {"deployment", WorkloadKind::inference},
    {"prediction", WorkloadKind::inference},
    {"batch", WorkloadKind::batch_inference},
    {"scoring", WorkloadKind::batch_inference},
    {"batchscoring", WorkloadKind::batch_inference},
    {"offline", WorkloadKind::batch_inference},
    {"embed", WorkloadKind::embedding},
    {"embeddings", WorkloadKind::embedding},
    {"search", WorkloadKind::embedding},
    {"etl", WorkloadKind::preprocessing},
    {"datapipeline", WorkloadKind::preprocessing},
    {"prepare", WorkloadKind::preprocessing},
    {"jupyter", WorkloadKind::notebook},
    {"dev", WorkloadKind::notebook},
    {"devtest", WorkloadKind::notebook},
    {"rendering", WorkloadKind::simulation},
    {"render", WorkloadKind::simulation},
    {"cad", WorkloadKind::simulation},
    {"cae", WorkloadKind::simulation},
    {"visualisation", WorkloadKind::simulation},
    {"visualization", WorkloadKind::simulation},
    {"hpc", WorkloadKind::simulation},
};

void read_kind(const Node& node, WorkloadForm& workload, Problems& problems) {
    workload.kind_given = true;
    std::vector<std::string> all;
    for (const auto& each : workload_kinds()) all.push_back(each.first);
    if (node.is_scalar()) {
        const std::string word = fold_name(node.text);
        for (const auto& [name, kind] : workload_kinds()) {
            if (fold_name(name) != word) continue;
            workload.kind = kind;
            return;
        }
        for (const Synonym& synonym : kSynonyms) {
            if (synonym.word != word) continue;
            workload.kind = synonym.kind;  // good enough to check the rest of the file by
            problems.push_back({fmt::format("kind: there is no kind '{}' (did you mean {}?)", printable(node.text, 40),
                                            to_string(synonym.kind)),
                                "the kinds are " + join(all, ", "), node.pos});
            return;
        }
    }
    workload.kind_unknown = true;
    if (!node.is_scalar()) {
        problems.push_back({fmt::format("kind: expected one word, found {}", to_string(node.kind)),
                            "the kinds are " + join(all, ", "), node.pos});
        return;
    }
    const auto near = nearest(node.text, all);
    problems.push_back({fmt::format("kind: there is no kind '{}'{}", printable(node.text, 40),
                                    near ? " (did you mean " + *near + "?)" : ""),
                        "the kinds are " + join(all, ", "), node.pos});
}

RecordTable<WorkloadForm> make_workload_table() {
    RecordTable<WorkloadForm> table(
        "workload", "One file for plan, check, run and serve: what is to be done, with which limits, and where.");
    FieldInfo version = field_info("one of", "Version of this format; left out, it is 1.", "1", {"1"});
    table.custom("version", version, [](const Node& node, WorkloadForm&, Problems& problems) {
        if (node.is_scalar() && node.text == "1") return;
        problems.push_back(
            {fmt::format("version: this Stoker reads version 1, not {}",
                         node.is_scalar() ? printable(node.text, 40) : std::string(to_string(node.kind))),
             "write version: 1, or use the Stoker that wrote the file", node.pos});
    });
    table.text("name", &Workload::name, "A name for people.", "nightly-embeddings");
    std::vector<std::string> kinds;
    for (const auto& each : workload_kinds()) kinds.push_back(each.first);
    FieldInfo kind = field_info("one of", "What is to be done.", "training", kinds);
    kind.required = kind.asked = true;
    table.custom("kind", kind, read_kind);
    table.other_names({"type", "task", "phase", "workload"});

    const RecordTable<ModelForm> model = model_table();
    FieldInfo model_info = field_info("model", model.info().description, "llama-3-8b");
    model_info.record = model.shared_info();
    table.custom("model", model_info, [model](const Node& node, WorkloadForm& workload, Problems& problems) {
        const std::size_t before = problems.size();
        workload.form = model.read(node, problems);
        workload.form.given = true;
        workload.form.broken = problems.size() != before;
        workload.form.pos = node.pos;
    });
    table.record("data", &Workload::data, data_table(), "What is learned from, or worked through.");
    table.record("batch", &Workload::batch, batch_table(), "How much is learned from in one step.");
    choice_known_as(table, "precision", &WorkloadForm::given_precision, precisions(),
                    "Number format of the computation, and of stored weights in inference. Left out: what the model is "
                    "published or was trained in, then 16 bits, then fp32, the first that a device runs.",
                    "bf16",
                    "half:fp16 float16:fp16 16:bf16 mixed:bf16 amp:bf16 bfloat16:bf16 float32:fp32 single:fp32 32:fp32 "
                    "float8:fp8 e4m3:fp8 8bit:int8 awq:int4 gptq:int4 nf4:int4 4bit:int4 mxfp4:fp4 nvfp4:fp4");
    table.other_names({"dtype", "quantization", "quantisation", "number_format"});
    FieldInfo kv = field_info("one of", "Number format of the KV cache.", "fp8", precision_names());
    kv.key = "kv_precision";
    table.custom("kv_precision", kv, [kv](const Node& node, WorkloadForm& workload, Problems& problems) {
        std::size_t index = 0;
        if (!table_detail::read_choice(node, kv, index, problems)) return;
        workload.kv_precision = precision_from(kv.choices[index]).value_or(Precision::bf16);
        workload.kv_given = true;
    });
    choice_or_remedy(table, "method", &WorkloadForm::given_method,
                     {{"full", Method::full}, {"lora", Method::lora}, {"qlora", Method::qlora}},
                     "Fine-tuning: all weights, adapters, or adapters on 4-bit weights.", "qlora",
                     {{"sft finetune finetuning full_finetuning", "write method: full, or lora for adapters"},
                      {"dpo orpo kto ipo simpo preference",
                       "write loss: dpo, ipo, kto, orpo or simpo; method says which weights learn: full, lora or "
                       "qlora"},
                      {"grpo ppo rlhf rl rloo rlvr reinforce", kTwoHalves}});
    choice_or_remedy(table, "loss", &WorkloadForm::loss,
                     {{"sft", Loss::sft},
                      {"dpo", Loss::dpo},
                      {"ipo", Loss::ipo},
                      {"kto", Loss::kto},
                      {"orpo", Loss::orpo},
                      {"simpo", Loss::simpo}},
                     "Fine-tuning: what an example teaches. sft: its tokens; dpo, ipo, orpo, simpo: the two answers of "
                     "a pair; kto: one that was judged. dpo, ipo and kto read them with a frozen reference as well.",
                     "dpo",
                     {{"crossentropy finetune supervised", "write loss: sft, or leave it out"},
                      {"grpo ppo rlhf rl rloo rlvr reinforce", kTwoHalves}});
    table.other_names({"rl", "preference", "alignment", "loss_type"});
    table.record("lora", &Workload::lora, lora_table(), "The adapters of LoRA and QLoRA.");
    choice_known_as(table, "optimizer", &Workload::optimizer, words({"adamw", "adam8bit", "sgd", "adafactor", "muon"}),
                    "Its states are often most of the memory.", "adamw",
                    "adam:adamw adamw8bit:adam8bit paged_adamw_8bit:adam8bit momentum:sgd");
    choice_known_as(
        table, "framework", &Workload::framework,
        words({"megatron", "fsdp", "deepspeed", "pytorch", "torchtitan", "megatron-deepspeed", "nanotron", "composer",
               "transformers", "vllm", "tensorrt-llm", "sglang", "tgi", "deepspeed-mii", "llama.cpp"}),
        "What trains or serves it, and is known to reach what: chosen when nothing is said.", "fsdp",
        "torch:pytorch ddp:pytorch fsdp2:fsdp megatron-lm:megatron nemo:megatron zero:deepspeed "
        "hf-trainer:transformers hf_trainer:transformers huggingface:transformers trl:transformers "
        "accelerate:transformers axolotl:transformers llama-factory:transformers peft:transformers "
        "llm-foundry:composer gpt-neox:megatron-deepspeed mii:deepspeed-mii "
        "trtllm:tensorrt-llm tensorrt:tensorrt-llm llamacpp:llama.cpp ollama:llama.cpp");
    table.text("framework_version", &Workload::framework_version,
               "Release of the engine that serves. Releases of vllm before 0.8, and of tensorrt-llm before 1.0, are "
               "planned as they were measured; left out: as today's are.",
               "0.6.3");
    table.other_names({"engine_version", "vllm_version"});
    table.choice(
        "stack", &WorkloadForm::stack, {{"stock", Stack::stock}, {"tuned", Stack::tuned}},
        "How far the stack is tuned. stock: what its defaults reach, as a plain script has them. tuned: compiled "
        "or built as an engine, as published records are. Left out: as the framework is usually run.",
        "stock");
    table.flag("compiled", &Workload::compiled, "torch.compile or the like.");
    table.flag("flash_attention", &Workload::flash_attention, "Attention that keeps no score matrix.", "true");
    table.record("traffic", &Workload::traffic, traffic_table(), "The requests of an inference workload.");
    table.record("front", &Workload::front, front_table(),
                 "A service before the model that needs no GPU: a gateway, what prepares and finishes requests.");
    table.other_names({"frontend", "gateway", "preprocessor"});
    table.record("speculation", &Workload::speculation, speculation_table(),
                 "Speculative decoding of an inference workload.");
    table.other_names({"speculative_config", "speculative", "speculative_decoding", "mtp"});
    table.record("objective", &Workload::objective, objective_table(), "What is wanted, and within which limits.");
    table.other_names({"goal", "goals", "constraints", "limits"});
    table.record("where", &Workload::where, where_table(), "Where it may run, and on what.");
    table.record("layout", &Workload::layout, layout_table(), "Pinned parallelism.");
    table.record("checkpoint", &Workload::checkpoint, checkpoint_table(), "How progress is saved.");
    table.record("disk", &Workload::disk, disk_table(), "The data disk of every VM.");
    choice_known_as(
        table, "orchestrator", &Workload::orchestrator,
        words({"aks", "azure-ml", "vmss", "cyclecloud-slurm", "batch", "ray", "slurm", "kubernetes", "local"}),
        "Chosen, with reasons, when nothing is said.", "aks",
        "k8s:kubernetes cyclecloud:cyclecloud-slurm azureml:azure-ml aml:azure-ml azure-batch:batch");
    table.other_names({"scheduler", "platform"});
    FieldInfo use =
        field_info("one of", "Sets defaults for a known use; see stoker template list.", "chatbot", use_case_names());
    use.key = "use_case";
    table.custom("use_case", use, [use](const Node& node, WorkloadForm& workload, Problems& problems) {
        std::size_t index = 0;
        if (table_detail::read_choice(node, use, index, problems)) workload.use_case = use.choices[index];
    });
    table.flag("sensitive", &Workload::sensitive,
               "Isolation, private network and audit, for medical, security and personal data.");
    table.other_names({"security", "security_level", "confidential", "private", "compliance"});
    table.flag("interruptible", &Workload::interruptible, "May be stopped and resumed, as spot capacity does.", "true");
    table.other_names({"resumable", "fault_tolerant"});
    table.count("models_served", &Workload::models_served, "Models of this size on one machine.", "4", 1, 1000);
    table.other_names({"models", "model_count", "num_models"});
    table.bytes("memory", &Workload::memory, "Preprocessing, notebook, simulation: memory the work needs.", "32GiB", 1,
                kMostBytes);
    table.count("vcpu_hours", &Workload::vcpu_hours, "Preprocessing, simulation: amount of CPU work.", "400", kSmall,
                1e12);
    table.count("gpu_hours", &Workload::gpu_hours, "Preprocessing, simulation: amount of GPU work, on a T4.", "40",
                kSmall, 1e12);
    table.seconds("period", &Workload::period, "Notebook or endpoint: how long it is kept.", "8h", 60, 100 * kYear);
    table.other_names({"duration", "hours", "lease", "uptime"});
    names(table, "needs", &Workload::needs, "Software that must be there.", "[pytorch, jupyter]");
    table.other_names({"software", "requirements", "packages", "image"});
    table.record("run", &Workload::run, run_section_table(),
                 "How it is started: stoker run and stoker submit read this.");
    return table;
}

}  // namespace

const std::vector<std::pair<std::string, WorkloadKind>>& workload_kinds() {
    static const std::vector<std::pair<std::string, WorkloadKind>> kinds = {
        {"training", WorkloadKind::training},   {"fine-tuning", WorkloadKind::fine_tuning},
        {"inference", WorkloadKind::inference}, {"batch-inference", WorkloadKind::batch_inference},
        {"embedding", WorkloadKind::embedding}, {"preprocessing", WorkloadKind::preprocessing},
        {"notebook", WorkloadKind::notebook},   {"simulation", WorkloadKind::simulation}};
    return kinds;
}

const std::vector<std::string>& use_case_names() {
    static const std::vector<std::string> names = {"autonomous-vehicles",     "chatbot",
                                                   "code-assistant",          "edge-iot",
                                                   "healthcare-records",      "image-generation",
                                                   "image-recognition",       "llm-inference-aks",
                                                   "medical-imaging",         "notebook",
                                                   "predictive-analytics",    "robotics",
                                                   "scientific-simulation",   "security-analytics",
                                                   "self-driving-perception", "summarisation",
                                                   "text-generation",         "video-analysis",
                                                   "video-processing"};
    return names;
}

const RecordTable<WorkloadForm>& workload_table() {
    static const RecordTable<WorkloadForm> table = make_workload_table();
    return table;
}

const RecordInfo& workload_record() {
    return workload_table().info();
}

}  // namespace stoker
