#include "base/table.h"

#include <gtest/gtest.h>

#include <map>

namespace stoker {
namespace {

enum class Precision { bf16, fp8 };
struct Data {
    double tokens = 0;
    std::optional<double> sequence;
    std::vector<std::string> regions;
};
struct Base {
    std::int64_t gpus = 1;
};
struct Workload : Base {
    Data data;
    std::optional<Data> more;
    std::vector<Data> mixes;
    Bytes memory;
    std::optional<Seconds> deadline;
    Usd budget;
    std::string name = "unnamed";
    bool spot = false;
    Precision precision = Precision::bf16;
    std::optional<Precision> fallback;
    std::vector<Precision> precisions;
    double share = 0;
    std::optional<int> retries;
    std::string odd;
    std::map<std::string, SourcePos> at;
};

const RecordTable<Data>& data_table() {
    static const RecordTable<Data> table =
        RecordTable<Data>("data", "What the model learns from.")
            .count("tokens", &Data::tokens, "Training tokens in all.", "150B")
            .required()
            .count("sequence", &Data::sequence, "Tokens of one sequence.", "8192", 1, 1e8)
            .list_of_text("regions", &Data::regions, "Where the data lies.")
            .shorthand("a number of tokens such as 150B", [](const Node& node, Data& data, Problems&) {
                const auto count = parse_count(node.text);
                if (count) data.tokens = *count;
                return count.ok();
            });
    return table;
}

const RecordTable<Workload>& workload_table() {
    static const RecordTable<Workload> table =
        RecordTable<Workload>("workload", "What is to be run.")
            .record("data", &Workload::data, data_table(), "The data.")
            .record("more", &Workload::more, data_table(), "More data.")
            .list_of("mixes", &Workload::mixes, data_table(), "Mixed | data.")
            .count("gpus", &Workload::gpus, "GPUs in all.", "64", 1, 100'000)
            .bytes("memory", &Workload::memory, "Memory wanted.", "80GB", 1e6, 1e15)
            .seconds("deadline", &Workload::deadline, "When it must end.", "14d")
            .usd("budget", &Workload::budget, "What it may cost.", "$20k", 0, 1e9)
            .text("name", &Workload::name, "A name.", "run-7")
            .flag("spot", &Workload::spot, "May be evicted.")
            .choice("precision", &Workload::precision, {{"bf16", Precision::bf16}, {"fp8", Precision::fp8}},
                    "Of the weights.")
            .choice("fallback", &Workload::fallback, {{"bf16", Precision::bf16}, {"fp8", Precision::fp8}},
                    "If that fails.")
            .list_of_choice("precisions", &Workload::precisions, {{"bf16", Precision::bf16}, {"fp8", Precision::fp8}},
                            "To try.")
            .number("share", &Workload::share, "A share.", "0.9", 0, 1)
            .count("retries", &Workload::retries, "How often.", "3")
            .custom("odd", {.type = "anything", .description = "Anything."},
                    [](const Node& node, Workload& workload, Problems&) { workload.odd = node.text; });
    return table;
}

struct Reading {
    Workload workload;
    std::string problems;
};
Reading read(const std::string& yaml) {
    const auto document = Document::parse_yaml(yaml, "w.yaml");
    if (!document) return {{}, document.error().text()};
    Problems problems;
    Workload workload = workload_table().read(document->root(), problems);
    return {std::move(workload), problems.empty() ? "" : Error(ErrorKind::invalid, std::move(problems)).text()};
}

// Every kind of field is read, optional ones are set only when written, inherited members work.
TEST(Table, ReadsEveryKindOfField) {
    const auto [w, problems] = read(
        "data: {tokens: 150B, sequence: 8192, regions: [westeurope, 7]}\nmore: 2T\nmixes: [{tokens: 1}, 5B]\ngpus: "
        "64\nmemory: 80GB\ndeadline: 14d\n"
        "budget: $20k\nname: 12\nspot: true\nprecision: FP-8\nprecisions: [bf16, fp8]\nshare: 0.5\nretries:\nodd: "
        "[x]\n");
    EXPECT_EQ(problems, "");
    EXPECT_EQ(w.data.tokens, 150e9);
    EXPECT_EQ(w.data.sequence, 8192);
    EXPECT_EQ(w.data.regions, (std::vector<std::string>{"westeurope", "7"}));
    EXPECT_EQ(w.more->tokens, 2e12);
    EXPECT_EQ(w.mixes.at(1).tokens, 5e9);
    EXPECT_EQ(w.gpus, 64);
    EXPECT_EQ(w.memory.v, 80e9);
    EXPECT_EQ(w.deadline->v, 14 * 86400);
    EXPECT_EQ(w.budget.dollars(), 20000);
    EXPECT_EQ(w.name, "12");
    EXPECT_TRUE(w.spot);
    EXPECT_EQ(w.precision, Precision::fp8);
    EXPECT_EQ(w.precisions.size(), 2u);
    EXPECT_FALSE(w.fallback.has_value());
    EXPECT_FALSE(w.retries.has_value());
}

// A record that keeps positions knows where each of its values, and itself, was written.
TEST(Table, KeepsThePlacesOfValues) {
    const auto [w, problems] = read("gpus: 64\ndata:\n  tokens: 1\n");
    EXPECT_EQ(w.at.at("gpus"), (SourcePos{"w.yaml", 1, 7}));
    EXPECT_EQ(w.at.at("data").line, 3u);
    EXPECT_EQ(w.at.at(""), (SourcePos{"w.yaml", 1, 1}));
    EXPECT_EQ(w.at.count("name"), 0u);
}

// All mistakes of a file are found at once, each with its place and what was expected.
TEST(Table, ReportsAllProblemsAtOnce) {
    const auto [w, problems] = read(
        "data: {tokens: [1], sequence: 0}\ngpus: 1.5\nmemory: 80\ndeadline: 7\nbudget: -5\nname: [x]\nspot: "
        "maybe\nprecision: fb8\nshare: 1.5\nretries: x\nprecison: bf16\nxyzzy: 1\n");
    EXPECT_EQ(problems,
              "error: tokens: expected a count such as 150B, found a list\n  at w.yaml:1:16\n"
              "error: sequence: 0 is out of bounds: it must be at least 1\n  at w.yaml:1:31\n"
              "error: gpus: expected a whole number, found 1.5\n  at w.yaml:2:7\n"
              "error: memory: '80' has no unit; expected an amount of memory such as 80GB, 80GiB, 512MiB or 1.5TB\n  "
              "at w.yaml:3:9\n"
              "error: deadline: '7' has no unit behind '7'; expected a duration such as 90m, 7d, 500ms, 1h30m, 14 days "
              "or 2w\n  at w.yaml:4:11\n"
              "error: budget: '-5' must not be negative; expected an amount of dollars such as $20k, 200 USD, 0.53 or "
              "$1.5M\n  at w.yaml:5:9\n"
              "error: name: expected text such as run-7, found a list\n  at w.yaml:6:7\n"
              "error: spot: expected yes or no, found the text 'maybe'\n  at w.yaml:7:7\n"
              "error: precision: expected bf16 or fp8, found 'fb8' (did you mean fp8?)\n  at w.yaml:8:12\n"
              "error: share: 1.5 is out of bounds: it must be at most 1\n  at w.yaml:9:8\n"
              "error: retries: 'x' is not a number Stoker understands; expected a count such as 70B, 15T, 350M, 8k, "
              "7e9 or 1_000_000\n  at w.yaml:10:10\n"
              "error: unknown key 'precison' in workload (did you mean precision?)\n  at w.yaml:11:1\n"
              "error: unknown key 'xyzzy' in workload\n  at w.yaml:12:1\n  known keys: data, more, mixes, gpus, "
              "memory, deadline, budget, name, spot, precision, fallback, precisions, share, retries, odd\n");
}

// A required key that is missing or empty is asked for with its meaning and an example.
TEST(Table, AsksForRequiredKeys) {
    EXPECT_EQ(read("data: {sequence: 5}\n").problems,
              "error: data needs the key tokens (Training tokens in all.)\n  at w.yaml:1:7\n  add for example tokens: "
              "150B\n");
    EXPECT_EQ(read("data: {tokens: }\n").problems.substr(0, 32), "error: data needs the key tokens");
    EXPECT_EQ(read("data: hello\n").problems,
              "error: data: expected a mapping, or a number of tokens such as 150B, found the text 'hello'\n  at "
              "w.yaml:1:7\n  its keys are tokens, sequence, regions\n");
    EXPECT_EQ(read("mixes: 5B\n").problems,
              "error: mixes: expected a list of data, found the text '5B'\n  at w.yaml:1:8\n");
    EXPECT_EQ(read("[1]\n").problems.substr(0, 52), "error: workload: expected a mapping, found a list\n  ");
}

// A file of nothing but mistakes gives a page of messages and not a megabyte.
TEST(Table, TheNumberOfProblemsIsLimited) {
    std::string yaml;
    for (int i = 0; i < 20'000; ++i) yaml += "unknown" + std::to_string(i) + ": 1\n";
    EXPECT_LT(read(yaml).problems.size(), 40'000u);
    EXPECT_NE(read(yaml).problems.find("more problems follow"), std::string::npos);
}

// Near is a third of the letters at most; case and separators do not count, swapped letters count once.
TEST(Table, NearestIsNear) {
    const std::vector<std::string> known = {"precision", "gpus", "data-parallel", "Standard_ND96isr_H100_v5"};
    EXPECT_EQ(nearest("precison", known), "precision");
    EXPECT_EQ(nearest("preicsion", known), "precision");
    EXPECT_EQ(nearest("GPU", known), "gpus");
    EXPECT_EQ(nearest("data_parallel", known), "data-parallel");
    EXPECT_EQ(nearest("Standard_ND96_H100", known), "Standard_ND96isr_H100_v5");
    EXPECT_EQ(nearest("memory", known), std::nullopt);
    const std::vector<std::string> traffic = {"requests", "requests_per_second", "prompt_tokens_cv", "prompt_tokens"};
    EXPECT_EQ(nearest("requests_per_s", traffic), "requests_per_second") << "cut short";
    EXPECT_EQ(nearest("prompt", traffic), "prompt_tokens");
    EXPECT_EQ(nearest("pro", traffic), std::nullopt);
    EXPECT_EQ(nearest("x", {"y"}), std::nullopt);
    EXPECT_EQ(nearest("", known), std::nullopt);
    EXPECT_EQ(nearest("ab", {"ac", "ad"}), "ac");
}

// Extending a copy leaves the original as it was.
TEST(Table, CopiesAreIndependent) {
    RecordTable<Data> copy = data_table();
    copy.list_of_text("extra", &Data::regions, "More.");
    EXPECT_EQ(copy.info().fields.size(), 4u);
    EXPECT_EQ(data_table().info().fields.size(), 3u);
}

// The schema names the keys, the required ones and the forms, closes the record and is itself JSON.
TEST(Table, JsonSchemaDescribesTheRecord) {
    const Json schema = workload_table().info().json_schema();
    EXPECT_EQ(schema.find("$schema")->dump(0), "\"https://json-schema.org/draft/2020-12/schema\"");
    EXPECT_EQ(schema.find("additionalProperties")->dump(0), "false");
    EXPECT_NE(schema.find("properties")->find("precision")->dump(0).find(R"("enum":["bf16","fp8"])"),
              std::string::npos);
    EXPECT_NE(schema.find("properties")->find("gpus")->dump(0).find(R"("minimum":1,"maximum":100000)"),
              std::string::npos);
    EXPECT_NE(schema.dump(0).find(R"("required":["tokens"])"), std::string::npos);
    EXPECT_TRUE(Document::parse_json(schema.dump(), "schema.json").ok());
}

// A known key in the wrong place, or under the name another tool gives it, is met with the place where it belongs.
TEST(Table, UnknownKeysAreFoundWhereTheyBelong) {
    struct Inner {
        double sequence = 0;
    };
    struct Outer {
        Inner data;
        double batch = 0;
    };
    RecordTable<Inner> inner("data", "d");
    inner.count("sequence", &Inner::sequence, "Tokens of one sequence.", "8192").other_names({"seq_len"});
    RecordTable<Outer> outer("workload", "w");
    outer.record("data", &Outer::data, inner, "Data.");
    outer.count("batch", &Outer::batch, "Batch.", "8").other_names({"batch_size"});
    const auto said = [&](const char* text) {
        const auto document = Document::parse_yaml(text, "w.yaml");
        Problems problems;
        outer.read(document->root(), problems);
        return problems.empty() ? std::string() : problems[0].message + " / " + problems[0].remedy;
    };
    EXPECT_EQ(said("sequence: 3"),
              "unknown key 'sequence' in workload (did you mean data.sequence?) / write data: {sequence: ...}");
    EXPECT_EQ(said("SeqLen: 3"),
              "unknown key 'SeqLen' in workload (did you mean data.sequence?) / write data: {sequence: ...}");
    EXPECT_EQ(said("batch-size: 3"), "unknown key 'batch-size' in workload (did you mean batch?) / ");
    EXPECT_EQ(said("data: {seq_len: 3}"), "unknown key 'seq_len' in data (did you mean sequence?) / ");
    EXPECT_EQ(said("data: {batch_size: 3}"),
              "unknown key 'batch_size' in data (batch belongs at the top, outside of data) / ");
    EXPECT_EQ(said("colour: 3"), "unknown key 'colour' in workload / known keys: data, batch");
}

// The reference page has a row for every key and a section for every record, each once.
TEST(Table, ReferencePageHasARowForEveryKey) {
    const std::string page = workload_table().info().reference_markdown();
    EXPECT_NE(page.find("| `gpus` | whole number, 1 to 100,000 |  | GPUs in all. | `64` |\n"), std::string::npos)
        << page;
    EXPECT_NE(page.find("| `tokens` | count | yes | Training tokens in all. | `150B` |\n"), std::string::npos) << page;
    EXPECT_NE(page.find("| `mixes` | [list of data](#data) |  | Mixed \\| data. |  |\n"), std::string::npos) << page;
    EXPECT_NE(page.find("Instead of the keys below: a number of tokens such as 150B.\n"), std::string::npos) << page;
    EXPECT_EQ(page.find("## data"), page.rfind("## data"));
}

}  // namespace
}  // namespace stoker
