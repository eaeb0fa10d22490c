#include "workload/foreign_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/table.h"
#include "base/text.h"
#include "catalog/names.h"

namespace stoker {

namespace {

bool one_of_words(std::string_view word, std::string_view words) {
    const auto all = split_words(words);
    return std::find(all.begin(), all.end(), word) != all.end();
}

bool is_a_digit(char c) {
    return c >= '0' && c <= '9';
}

// The number that a text begins with, and what stands behind it.
std::optional<std::pair<double, std::string_view>> leading_number(std::string_view text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
    return std::pair(number, trim(text.substr(static_cast<std::size_t>(end - text.data()))));
}

// "two weeks" as 2 and "weeks".
std::optional<std::pair<double, std::string_view>> spelled_number(std::string_view text) {
    static constexpr std::string_view kNames[] = {"one",   "two",   "three", "four", "five",   "six",
                                                  "seven", "eight", "nine",  "ten",  "eleven", "twelve"};
    const std::size_t blank = text.find_first_of(" -");
    const std::string_view first = text.substr(0, blank);
    const std::string_view rest = blank == std::string_view::npos ? std::string_view() : trim(text.substr(blank + 1));
    if (first == "a" || first == "an") return std::pair(1.0, rest);
    if (first == "half") return std::pair(0.5, rest.starts_with("a ") ? trim(rest.substr(2)) : rest);
    for (std::size_t k = 0; k < std::size(kNames); ++k)
        if (kNames[k] == first) return std::pair(static_cast<double>(k + 1), rest);
    return std::nullopt;
}

std::string short_number(double number) {
    return fmt::format("{:.6g}", number);
}

// As a person writes it: in the largest unit that it is a whole number of.
std::string written_seconds(double seconds) {
    for (const auto& [unit, size] : {std::pair("d", 86400.0), std::pair("h", 3600.0), std::pair("m", 60.0)})
        if (seconds >= size && std::fmod(seconds, size) == 0) return short_number(seconds / size) + unit;
    return short_number(seconds) + "s";
}

// ---- Durations ------------------------------------------------------------------------------------------------------

// 24:00:00, 1-12:00:00, 90:00 of Slurm and PBS.
std::optional<double> clock_seconds(std::string_view text) {
    double days = 0;
    if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
        const auto number = leading_number(text.substr(0, dash));
        if (!number || !number->second.empty()) return std::nullopt;
        days = number->first;
        text.remove_prefix(dash + 1);
    }
    std::vector<double> parts;
    for (const std::string_view part : split(text, ':')) {
        const auto number = part.empty() || !is_a_digit(part[0]) ? std::nullopt : leading_number(part);
        if (!number || !number->second.empty()) return std::nullopt;
        parts.push_back(number->first);
    }
    if (parts.size() == 3) return days * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2];
    if (parts.size() == 2 && days > 0) return days * 86400 + parts[0] * 3600 + parts[1] * 60;
    return std::nullopt;
}

// P14D, PT12H30M.
std::optional<double> iso_seconds(std::string_view text) {
    if (text.size() < 3 || (text[0] != 'P' && text[0] != 'p')) return std::nullopt;
    text.remove_prefix(1);
    bool time = false, any = false;
    double seconds = 0;
    while (!text.empty()) {
        if (text[0] == 'T' || text[0] == 't') {
            time = true;
            text.remove_prefix(1);
            continue;
        }
        const auto number = leading_number(text);
        if (!number || number->second.empty()) return std::nullopt;
        const char unit = static_cast<char>(number->second[0] & ~0x20);
        const double size = unit == 'W'           ? 604800
                            : unit == 'D'         ? 86400
                            : unit == 'H'         ? 3600
                            : unit == 'M' && time ? 60
                            : unit == 'S'         ? 1
                                                  : 0;
        if (size == 0) return std::nullopt;
        seconds += number->first * size;
        any = true;
        text = number->second.substr(1);
    }
    return any ? std::optional(seconds) : std::nullopt;
}

bool is_calendar_day(std::string_view text) {
    int numbers = 0;
    for (const std::string_view separator : {"-", "/", "."}) {
        const auto parts = split(text.substr(0, text.find_first_of(" T")), separator[0]);
        if (parts.size() != 3) continue;
        numbers = static_cast<int>(std::count_if(parts.begin(), parts.end(), [](std::string_view part) {
            return !part.empty() && part.size() <= 4 && std::all_of(part.begin(), part.end(), is_a_digit);
        }));
        if (numbers == 3) return true;
    }
    const std::string word = lower(text);
    for (const std::string_view day :
         {"monday",  "tuesday", "wednesday", "thursday",  "friday",  "saturday", "sunday",   "tomorrow", "today",
          "tonight", "next ",   "end of ",   "eod",       "eow",     "eom",      "january",  "february", "april",
          "june",    "july",    "august",    "september", "october", "november", "december", "christmas"})
        if (word.find(day) != std::string::npos) return true;
    return false;
}

// What a word such as "months" or "fortnights" counts, in seconds; nothing for one that is no unit.
std::optional<double> unit_seconds(std::string_view unit) {
    struct Word {
        std::string_view names;
        double seconds;
    };
    static constexpr Word kWords[] = {
        {"month months mo mon mth", 30 * 86400.0},
        {"quarter quarters", 91 * 86400.0},
        {"fortnight fortnights", 14 * 86400.0},
        {"yr yrs annum", 365 * 86400.0},
        {"wk wks", 604800},
        {"night nights", 12 * 3600.0},
        {"msec msecs millis milliseconds millisecond", 1e-3},
        {"weekend weekends", 60 * 3600.0},
    };
    for (const Word& word : kWords)
        if (one_of_words(unit, word.names)) return word.seconds;
    static const std::vector<std::string> kNames = {"seconds", "minutes", "hours", "days", "weeks", "years",
                                                    "second",  "minute",  "hour",  "day",  "week",  "year"};
    constexpr double kSizes[] = {1, 60, 3600, 86400, 604800, 365.25 * 86400};
    const auto near = unit.size() > 2 ? nearest(unit, kNames) : std::nullopt;
    for (std::size_t k = 0; near && k < kNames.size(); ++k)
        if (kNames[k] == *near) return kSizes[k % 6];
    return std::nullopt;
}

std::string duration_remedy(std::string_view key, std::string_view text) {
    text = trim(text);
    const std::string word = lower(text);
    if (word.empty()) return {};
    if (const auto seconds = clock_seconds(text)) return fmt::format("write {}: {}", key, written_seconds(*seconds));
    if (const auto seconds = iso_seconds(text)) return fmt::format("write {}: {}", key, written_seconds(*seconds));
    if (is_calendar_day(text))
        return key == "deadline" ? "a deadline is how long the work may take, from its start: write the days that are "
                                   "left, as deadline: 14d"
                                 : fmt::format("a duration is meant, not a day: write {}: 12h", key);
    if (key == "every" && (word.find("step") != std::string::npos || word.find("epoch") != std::string::npos ||
                           word.find("iter") != std::string::npos))
        return "time is counted, not steps: write every: 30m; left out, the interval that loses least is computed";
    struct Often {
        std::string_view names;
        std::string_view written;
    };
    static constexpr Often kOften[] = {{"hourly", "1h"},   {"daily nightly", "1d"},          {"weekly", "7d"},
                                       {"monthly", "30d"}, {"yearly annual annually", "1y"}, {"overnight", "12h"}};
    for (const Often& often : kOften)
        if (one_of_words(word, often.names)) return fmt::format("write {}: {}", key, often.written);
    // "within 14d", "<14d", "14d max", "~ 2 weeks": the words around the amount say nothing more.
    std::string_view rest = word;
    for (bool cut = true; cut;) {
        cut = false;
        for (const std::string_view before :
             {"within", "under", "up to", "max", "at most", "about", "ca.", "less than", "<=", "<", "~", "≤", "in "})
            if (rest.starts_with(before)) rest = trim(rest.substr(before.size())), cut = true;
        for (const std::string_view behind : {"max", "maximum", "at most", "or less", "wall", "total"})
            if (rest.ends_with(behind)) rest = trim(rest.substr(0, rest.size() - behind.size())), cut = true;
    }
    auto number = leading_number(rest);
    if (!number) number = spelled_number(rest);
    if (!number) return {};
    if (number->second.empty())
        return fmt::format("write the unit: {}: {}d for days, {}h for hours, {}m for minutes", key,
                           short_number(number->first), short_number(number->first), short_number(number->first));
    std::string_view unit = number->second;
    if (unit.starts_with('-')) unit = trim(unit.substr(1));
    if (const auto size = unit_seconds(unit))
        return fmt::format("write {}: {}", key, written_seconds(number->first * *size));
    static constexpr std::string_view kTaken[] = {"s", "m", "h", "d", "w", "y", "ms", "us", "min"};
    if (rest.size() != word.size() && std::find(std::begin(kTaken), std::end(kTaken), unit) != std::end(kTaken))
        return fmt::format("write {}: {}{}", key, short_number(number->first), unit);
    // 1d12: the last number lacks its unit.
    if (is_a_digit(word.back()) && is_a_digit(word.front()))
        return fmt::format("write the last unit, too, as {}: {}h", key, word);
    return {};
}

// ---- Counts and bytes -----------------------------------------------------------------------------------------------

std::string count_remedy(std::string_view key, std::string_view text) {
    const std::string word = lower(text);
    if (key == "zero") {
        for (const std::string_view whole : {"fsdp", "full_shard", "full-shard", "full"})
            if (word == whole) return "write zero: 3";
        const std::size_t digit = word.find_first_of("0123");
        if (digit != std::string::npos && word.size() < 10) return fmt::format("write zero: {}", word[digit]);
        return {};
    }
    if (one_of_words(word, "auto automatic best optimal any default null none"))
        return fmt::format("leave {} out: the plan finds it", key);
    if (one_of_words(word, "all max maximum unlimited inf infinite"))
        return key == "gpus" || key == "nodes" ? "leave it out: a plan finds how many; where: {max_nodes: 8} is a bound"
                                               : "";
    if (const auto spelled = spelled_number(word); spelled && spelled->second.empty())
        return fmt::format("write {}: {}", key, short_number(spelled->first));
    std::string_view rest = trim(text);
    while (!rest.empty() && std::string_view("~<>=≈ ").find(rest[0]) != std::string_view::npos)
        rest = trim(rest.substr(1));
    const auto number = leading_number(rest);
    if (!number) return {};
    if (const std::size_t dash = number->second.find_first_of("-–");
        dash < 3 && number->second.size() > dash + 1 &&
        number->second.find_first_of("0123456789") != std::string_view::npos)
        return "write one number; to see what the other changes, plan both and stoker compare them";
    std::string suffix = lower(number->second);
    suffix = suffix.substr(0, suffix.find(' '));
    static constexpr std::pair<std::string_view, std::string_view> kSuffixes[] = {
        {"bn", "B"}, {"bln", "B"}, {"mrd", "B"}, {"gt", "B"}, {"g", "B"}, {"mio", "M"}, {"mn", "M"}, {"mm", "M"},
        {"tn", "T"}, {"tt", "T"},  {"b", "B"},   {"m", "M"},  {"k", "k"}, {"t", "T"},   {"tsd", "k"}};
    for (const auto& [known, ours] : kSuffixes)
        if (suffix == known) return fmt::format("write {}: {}{}", key, short_number(number->first), ours);
    // "500 requests", "8 gpus": the key says of what.
    if (!suffix.empty() && suffix.size() > 2)
        return fmt::format("write the number alone: {}: {}", key, short_number(number->first));
    return number->second.empty() ? fmt::format("write {}: {}", key, short_number(number->first)) : std::string();
}

std::string bytes_remedy(std::string_view key, std::string_view text) {
    const auto number = leading_number(trim(text));
    if (!number) return {};
    const std::string unit = lower(number->second);
    static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
        {"terabyte terabytes tbyte tbytes", "TB"},
        {"gigabyte gigabytes gbyte gbytes gigs gig", "GB"},
        {"megabyte megabytes mbyte mbytes", "MB"},
        {"kilobyte kilobytes kbyte kbytes", "kB"},
        {"petabyte petabytes", "PB"},
        {"gibibyte gibibytes", "GiB"},
        {"tebibyte tebibytes", "TiB"},
        {"mebibyte mebibytes", "MiB"}};
    for (const auto& [words, ours] : kWords)
        if (one_of_words(unit, words)) return fmt::format("write {}: {}{}", key, short_number(number->first), ours);
    for (const std::string_view bit : {"bit", "bits"})
        if (unit.size() > bit.size() && unit.ends_with(bit)) {
            const char letter = static_cast<char>(unit[0] & ~0x20);
            if (std::string_view("KMGTP").find(letter) != std::string_view::npos)
                return fmt::format("write {}: {}{}B: eight bits are a byte", key, short_number(number->first / 8),
                                   letter);
        }
    if (unit.empty())
        return fmt::format("write the unit: {}: {}GB, {}GiB ...", key, short_number(number->first),
                           short_number(number->first));
    if (unit.size() == 1 && std::string_view("kmgtp").find(unit[0]) != std::string_view::npos)
        return fmt::format("write {}: {}{}B, or {}iB for powers of two", key, short_number(number->first), upper(unit),
                           upper(unit));
    return {};
}

// ---- Choices --------------------------------------------------------------------------------------------------------

struct Choice {
    std::string_view key, words, remedy;
};
// Two thirds and more of such a training is the writing of answers, and that is planned as what it is.
constexpr std::string_view kLearnsFromItsAnswers =
    "the model writes answers and learns from them: plan both in one file, as stages: [{name: answers, kind: "
    "batch-inference, traffic: {requests: 320k, prompt_tokens: 300, output_tokens: 2000}, ...}, {name: update, kind: "
    "fine-tuning, data: {examples: 320k, sequence: 2300}, ...}]; requests and examples are prompts times answers of "
    "each times epochs";

constexpr Choice kChoices[] = {
    {"kind", "dpo orpo kto ipo simpo preference preferences preferencetuning alignment",
     "write kind: fine-tuning with loss: dpo, ipo, kto, orpo or simpo; data: {examples: 60k} counts pairs"},
    {"kind", "grpo ppo rlhf rl rlvr reinforcementlearning", kLearnsFromItsAnswers},
    {"kind", "distillation distill distil knowledgedistillation teacherstudent",
     "the teacher writes and the student learns: plan both in one file, as stages: [{name: write, kind: "
     "batch-inference, "
     "model: gpt-oss-120b, traffic: {requests: 500k, prompt_tokens: 500, output_tokens: 800}}, {name: learn, after: "
     "[write], kind: fine-tuning, model: qwen3-1.7b, method: full, data: {examples: 500k, sequence: 1500}}]"},
    {"kind", "sweep hpo tune hyperparametersearch hyperparameter gridsearch search",
     "write kind: training or fine-tuning, which plans one run of it; the runs are run: {command: ..., sweep: {lr: "
     "[1e-4, 3e-4], batch: [8, 16]}, parallel: 4}, or run: {command: ..., array: 64} for so many alike"},
    {"kind", "rag chatbot chat agent agents assistant copilot api app",
     "write kind: inference; what is retrieved counts in traffic: {prompt_tokens: 6000}, what repeats of it in "
     "cached_prompt_tokens"},
    {"kind", "transcription speech asr stt texttospeech tts ocr captioning",
     "write kind: batch-inference for a pile (traffic: {requests: 10k, audio: 40min}), or inference for what is heard "
     "as it is spoken (traffic: {streams: 50})"},
    {"kind", "diffusion imagegeneration images video videogeneration texttoimage texttovideo",
     "write kind: inference behind an endpoint, batch-inference for a pile; one request is one image or one video"},
    {"kind", "cluster gpu gpus vm machine workstation",
     "a plan begins with the work: training, fine-tuning, inference or another of the list; what machines cost is "
     "stoker cost SIZE"},
    {"precision", "fp8e4m3 fp8e5m2 e4m3 e5m2 float8 w8a8fp8", "write precision: fp8"},
    {"precision", "float float32 single full 32", "write precision: fp32"},
    {"precision", "awq gptq nf4 q4 q4km w4a16 4bit 4 int4awq", "write precision: int4"},
    {"precision", "w8a8 8bit 8 smoothquant", "write precision: int8, or fp8"},
    {"precision", "nvfp4 mxfp4", "write precision: fp4"},
    {"recompute", "true yes on 1 always everything", "write recompute: full, or selective for attention alone"},
    {"recompute", "false no off 0 never", "write recompute: none"},
    {"recompute", "block blocks uniform", "write recompute: full; of some layers alone recompute_layers: 2"},
    {"optimizer", "lion lamb adan sophia shampoo soap",
     "none of these is counted: the states of adamw are twice as many "
     "as those of sgd with momentum, adafactor's are few; take the "
     "one that holds as much"},
    {"framework", "hf huggingface trl axolotl unsloth llamafactory peft sft",
     "write framework: transformers, or leave it out: the plan chooses"},
    {"framework", "lightning pytorchlightning accelerate ddp", "write framework: pytorch, fsdp or deepspeed"},
    {"framework", "ollama llamacpp gguf", "write framework: llama.cpp"},
    {"framework", "triton nim trt tensorrt trtllm", "write framework: tensorrt-llm"},
    {"framework", "jax maxtext flax tensorflow keras",
     "no run of it is known here: leave framework out, and read the "
     "plan's interval with that in mind"},
    {"method", "freeze adapters peft dora prefix prompttuning ia3",
     "write method: lora: it takes about what these take"},
    {"method", "sft fullfinetune finetune dpo", "write method: full, lora or qlora"},
    {"method", "rlhf ppo grpo gspo rloo reinforce dapo rl", kLearnsFromItsAnswers},
    {"os", "ubuntu ubuntu2204 ubuntu2404 rhel debian centos rocky alma azurelinux suse", "write os: linux"},
    {"os", "win windowsserver windows11", "write os: windows"},
    {"type", "nvme local localssd ephemeral temp scratch",
     "local disks come with the size and are not chosen; a managed disk is premium-ssd-v2 or ultra where it must be "
     "fast"},
    {"type", "ssd", "write type: standard-ssd or premium-ssd"},
    {"type", "hdd", "write type: standard-hdd"},
};

// The choices of "precision: expected fp32, tf32 or bf16, found 'x'".
std::vector<std::string> choices_in(std::string_view message) {
    std::vector<std::string> all;
    const std::size_t from = message.find("expected "), to = message.find(", found '");
    if (from == std::string_view::npos || to == std::string_view::npos || to < from) return all;
    std::string list(message.substr(from + 9, to - from - 9));
    if (const std::size_t last = list.rfind(" or "); last != std::string::npos) list.replace(last, 4, ", ");
    for (const std::string_view each : split(list, ',')) all.emplace_back(trim(each));
    return all;
}

std::string choice_remedy(std::string_view key, std::string_view text, std::string_view message) {
    const std::string word = fold_name(text);
    for (const Choice& choice : kChoices)
        if (choice.key == key)
            for (const std::string_view each : split_words(choice.words))
                if (fold_name(each) == word || (key == "os" && each.size() > 4 && word.starts_with(each)))
                    return std::string(choice.remedy);
    // One of the choices with more behind it, or the beginning of one alone.
    std::string fits;
    for (const std::string& choice : choices_in(message)) {
        const std::string folded = fold_name(choice);
        const bool near = word.size() >= 3 && (folded.starts_with(word) || word.starts_with(folded));
        if (near && !fits.empty()) return {};
        if (near) fits = choice;
    }
    return fits.empty() ? std::string() : fmt::format("write {}: {}", key, fits);
}

class ValueAnswers {
public:
    explicit ValueAnswers(Problems& problems) : problems_(problems) {}

    void look(const Node& node, int depth) {
        constexpr int kDeepest = 8;
        if (depth > kDeepest || !node.is_mapping()) return;
        const Member* before = nullptr;
        for (const Member& member : node.members) {
            if (!member.value) continue;
            cut_by_a_comma(member, before);
            if (member.value->is_scalar()) value(member);
            look(*member.value, depth + 1);
            before = &member;
        }
    }

private:
    // {budget: 20,000}: the comma ends the value, and 000 is a key.
    void cut_by_a_comma(const Member& member, const Member* before) {
        const bool digits = member.key.size() == 3 && std::all_of(member.key.begin(), member.key.end(), is_a_digit);
        if (!digits || !before || !before->value->is_scalar() || before->value->text.empty()) return;
        for (Problem& problem : problems_)
            if (problem.pos.line == member.key_pos.line && problem.pos.column == member.key_pos.column &&
                problem.message.starts_with("unknown key"))
                problem.remedy = fmt::format("a comma ends the value within braces: write {}: {}{}", before->key,
                                             before->value->text, member.key);
    }

    void value(const Member& member) {
        const Node& node = *member.value;
        for (Problem& problem : problems_) {
            if (problem.pos.line != node.pos.line || problem.pos.column != node.pos.column ||
                !problem.message.starts_with(member.key + ": "))
                continue;
            if (problem.message.find("did you mean") != std::string::npos) continue;
            const bool lists = problem.remedy.starts_with("the kinds are");
            if (!problem.remedy.empty() && problem.remedy != "write it as 64GB/s" && !lists) continue;
            const auto says = [&](std::string_view words) { return problem.message.find(words) != std::string::npos; };
            std::string remedy;
            if (says("expected a duration"))
                remedy = duration_remedy(member.key, node.text);
            else if (says("expected a count") || says("expected a whole number"))
                remedy = count_remedy(member.key, node.text);
            else if (says("expected an amount of memory"))
                remedy =
                    problem.remedy.empty() ? bytes_remedy(member.key, node.text) : rate_remedy(member.key, node.text);
            else if (says(", found '") || lists)
                remedy = choice_remedy(member.key, node.text, problem.message);
            if (!remedy.empty()) problem.remedy = std::move(remedy);
        }
    }

    static std::string rate_remedy(std::string_view key, std::string_view text) {
        if (const std::string bytes = bits_per_second_in_bytes(text); !bytes.empty())
            return fmt::format("write {}: {}: eight bits are a byte", key, bytes);
        std::string_view amount = trim(text);
        for (const std::string_view behind : {"ps", "/sec", "/second", " per second"})
            if (amount.ends_with(behind)) {
                amount.remove_suffix(behind.size());
                return fmt::format("write {}: {}/s", key, trim(amount));
            }
        return {};
    }

    Problems& problems_;
};

void amounts_in(const Node& node, int depth, std::vector<std::string>& found) {
    constexpr int kDeepest = 8;
    if (depth > kDeepest || !node.is_mapping()) return;
    for (const Member& member : node.members) {
        if (!member.value) continue;
        amounts_in(*member.value, depth + 1, found);
        if (!member.value->is_scalar()) continue;
        const std::string_view text = trim(member.value->text);
        const auto number = leading_number(text);
        if (!number) continue;
        // 500Gb: a capital before a small b is how bits are written.
        const std::string_view unit = number->second;
        if (unit.size() == 2 && unit[1] == 'b' && std::string_view("MGTP").find(unit[0]) != std::string_view::npos)
            found.push_back(fmt::format("{}: {} is read as bytes ({}{}B); were bits meant, it is {}{}B", member.key,
                                        text, short_number(number->first), unit[0], short_number(number->first / 8),
                                        unit[0]));
        // 20.000: a point between thousands elsewhere.
        const std::size_t point = text.find('.');
        if (member.key == "budget" && point != std::string_view::npos && point >= 1 && text.size() == point + 4 &&
            std::all_of(text.begin() + static_cast<std::ptrdiff_t>(point) + 1, text.end(), is_a_digit))
            found.push_back(
                fmt::format("budget: {} is read as {} dollars, with a decimal point; for thousands write "
                            "budget: {}{}",
                            text, short_number(number->first), text.substr(0, point), text.substr(point + 1)));
    }
}

}  // namespace

std::string bits_per_second_in_bytes(std::string_view text) {
    const auto number = leading_number(trim(text));
    if (!number || number->second.size() < 3) return {};
    const std::string_view unit = number->second;
    const char letter = static_cast<char>(unit[0] & ~0x20);
    if (std::string_view("KMGT").find(letter) == std::string_view::npos) return {};
    const std::string_view rest = unit.substr(1);
    for (const std::string_view bits : {"b/s", "bps", "bit/s", "bits/s", "bit", "bits", "bit/sec", "bits/sec", "b/sec"})
        if (rest == bits) return fmt::format("{}{}B/s", short_number(number->first / 8), letter);
    return {};
}

void answer_foreign_values(const Node& root, Problems& problems) {
    if (!problems.empty()) ValueAnswers(problems).look(root, 0);
}

std::vector<std::string> amounts_read_one_way(const Node& root) {
    std::vector<std::string> found;
    amounts_in(root, 0, found);
    return found;
}

}  // namespace stoker
