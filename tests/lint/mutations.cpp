// Damaged inputs through the whole of the linter: every front end, every finder, every rule.
//
//   lint_mutations --runs 300 [--kind k8s] [--seed 1] [--keep FOLDER] [SEED FILE...]
//
// For each kind, seeds are the examples of data/lint of that kind and the files named; a run takes one, damages it
// (bytes, tokens, splices of two, truncation, repetition, deep nesting, aliases of aliases, NUL, CRLF, byte order
// marks, UTF-16) and checks it. It fails when a run takes more than 50 ms per 100 kB (ten times that under a
// sanitizer), when it holds more than 64 bytes per byte of input (384 KiB for less than 6 KiB), when a finding stands
// outside of the file, or when two runs of one input differ. What failed is kept in FOLDER. A crash is the sanitizer's
// to tell; --seed and the number of the run make the same input again.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "lint/check.h"
#include "lint/read.h"

#if defined(__SANITIZE_ADDRESS__)
#define STOKER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STOKER_ASAN 1
#endif
#endif
#ifdef STOKER_ASAN
// Of sanitizer/allocator_interface.h, which g++ has without the header.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                              void (*on_free)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* block);
}
#endif

using namespace stoker;
using namespace stoker::lint;

namespace {

// What is held now and the most that was held, in bytes asked for. One thread.
std::size_t held = 0, most_held = 0;
#ifdef STOKER_ASAN
void on_malloc(const volatile void*, std::size_t size) {
    most_held = std::max(most_held, held += size);
}
void on_free(const volatile void* block) {
    const std::size_t size = block ? __sanitizer_get_allocated_size(block) : 0;
    held -= std::min(held, size);
}
constexpr double kSlower = 10;
#else
constexpr double kSlower = 1;
#endif

}  // namespace

#if !defined(STOKER_ASAN) && defined(__GLIBC__)
// All that is asked for, by libyaml too; in sizes that glibc rounds up.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);
}
static void* counted(void* block) {
    if (block) most_held = std::max(most_held, held += malloc_usable_size(block));
    return block;
}
static void uncount(void* block) {
    if (block) held -= std::min(held, malloc_usable_size(block));
}
extern "C" void* malloc(std::size_t size) {
    return counted(__libc_malloc(size));
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
    return counted(__libc_calloc(count, size));
}
extern "C" void* realloc(void* block, std::size_t size) {
    uncount(block);
    return counted(__libc_realloc(block, size));
}
extern "C" void free(void* block) {
    uncount(block);
    __libc_free(block);
}
#endif

namespace {

constexpr double kMostSecondsPerByte = 0.050 / 100e3, kMostSecondsAtLeast = 0.050;
// Below 7 KiB the same for all: libyaml takes 68 KiB before it reads a byte, and 330 KiB for a row of brackets; a chart
// of 5 KiB was seen to hold 392 KiB.
constexpr std::size_t kMostHeldPerByte = 64, kLeastBytes = 7168;

struct Seed {
    std::string path, text;
};

std::map<int, std::vector<Seed>> seeds_by_kind(const std::vector<std::string>& files) {
    std::map<int, std::vector<Seed>> seeds;
    const auto put = [&](std::string path, std::string text) {
        const Kinds kinds = classify(path, text);
        for (int kind = 0; kind < kKinds; ++kind)
            if (kinds.has(static_cast<Kind>(kind))) seeds[kind].push_back({path, text});
    };
    for (const RulePage& head : rule_pages())
        for (const RuleExample& example : whole_rule_page(head.id).examples)
            for (const auto& [path, text] : example.files) put(path, text);
    for (const std::string& name : files) {
        std::ifstream in(name, std::ios::binary);
        std::stringstream text;
        text << in.rdbuf();
        if (text.str().size() < 64 << 10) put(name, text.str());
    }
    return seeds;
}

constexpr std::string_view kTokens[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        "(",
                                        ")",
                                        "\"",
                                        "'",
                                        "`",
                                        "\\",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        " ",
                                        ":",
                                        ": ",
                                        "- ",
                                        "#",
                                        "//",
                                        "/*",
                                        "*/",
                                        "${",
                                        "{{",
                                        "}}",
                                        "$(",
                                        "<<EOF\n",
                                        "<<-EOF\n",
                                        "EOF\n",
                                        "|\n",
                                        ">\n",
                                        "&a ",
                                        "*a",
                                        "<<: ",
                                        "---\n",
                                        "...\n",
                                        "?",
                                        "!",
                                        "=",
                                        "=>",
                                        ",",
                                        ";",
                                        "&&",
                                        "||",
                                        "|",
                                        "'''",
                                        "@",
                                        "%",
                                        "null",
                                        "true",
                                        "0",
                                        "-1",
                                        "1e999",
                                        "99999999999999999999",
                                        "\xC3\xA9",
                                        "\xE2\x82\xAC",
                                        "\xF0\x9F\x98\x80",
                                        "\xFF",
                                        "\x80",
                                        "#SBATCH ",
                                        "resource ",
                                        "for ",
                                        "if ",
                                        "[for x in y: ",
                                        "param ",
                                        "locals {",
                                        "apiVersion: v1\n",
                                        "Standard_ND96asr_v4",
                                        "nvidia.com/gpu",
                                        "!!binary ",
                                        "!!map ",
                                        "\xEF\xBB\xBF"};

class Mutator {
public:
    explicit Mutator(std::uint64_t seed) : random_(seed) {}

    std::string make(const std::vector<Seed>& seeds, const Seed& seed) {
        std::string text = seed.text;
        const int edits = 1 + static_cast<int>(random_.below(8));
        for (int i = 0; i < edits; ++i) edit(text, seeds);
        if (random_.below(50) == 0) bomb(text);
        if (random_.below(60) == 0) encode(text);
        if (text.size() > 256 << 10) text.resize(256 << 10);
        return text;
    }

private:
    std::size_t place(const std::string& text) { return text.empty() ? 0 : random_.below(text.size() + 1); }

    void edit(std::string& text, const std::vector<Seed>& seeds) {
        const std::size_t at = place(text), length = std::min(text.size() - at, 1 + random_.below(40));
        switch (random_.below(10)) {
            case 0:
                if (at < text.size()) text[at] = static_cast<char>(random_.next());
                break;
            case 1:
                if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random_.below(8)));
                break;
            case 2: text.erase(at, length); break;
            case 3: text.insert(at, text.substr(at, length)); break;
            case 4:
            case 5: text.insert(at, kTokens[random_.below(std::size(kTokens))]); break;
            case 6: {  // the rest of another
                const std::string& other = seeds[random_.below(seeds.size())].text;
                text = text.substr(0, at) + other.substr(std::min(place(other), other.size()));
                break;
            }
            case 7: text.resize(at); break;
            case 8: text.insert(at, 1, '\0' + static_cast<char>(random_.below(32))); break;
            default: {  // a token in place of a byte
                if (at < text.size()) text.replace(at, 1, kTokens[random_.below(std::size(kTokens))]);
            }
        }
    }

    static std::string repeated(std::string_view part, std::size_t times) {
        std::string text;
        for (std::size_t i = 0; i < times; ++i) text += part;
        return text;
    }

    void bomb(std::string& text) {
        const std::size_t many = 1 + random_.below(20'000), at = place(text);
        switch (random_.below(7)) {
            case 0: text.insert(at, repeated("[", many)); break;
            case 1: text.insert(at, repeated("{\"a\":", many)); break;
            case 2: text.insert(at, repeated("$(", many)); break;
            case 3: text.insert(at, repeated("((", many)); break;
            case 4: text.insert(at, repeated("x = {\n", many / 4)); break;
            case 5: {  // every level holds the one before nine times
                std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
                for (int level = 1; level < 12; ++level) {
                    bomb += fmt::format("a{0}: &a{0} [", level);
                    for (int i = 0; i < 9; ++i) bomb += fmt::format("{}*a{}", i ? ", " : "", level - 1);
                    bomb += "]\n";
                }
                text = bomb + text;
                break;
            }
            default: {  // ever deeper lines
                std::string lines;
                for (std::size_t depth = 0; depth < std::min<std::size_t>(many, 600); ++depth)
                    lines += repeated(" ", depth) + "a:\n";
                text.insert(at, lines);
            }
        }
    }

    void encode(std::string& text) {
        switch (random_.below(4)) {
            case 0: text = "\xEF\xBB\xBF" + text; break;
            case 1: {
                std::string wide = "\xFF\xFE";
                for (const char c : text) wide += c, wide += '\0';
                text = wide;
                break;
            }
            case 2: {
                std::string lines;
                for (const char c : text) lines += c == '\n' ? "\r\n" : std::string(1, c);
                text = lines;
                break;
            }
            default: text.insert(place(text), 1, '\0');
        }
    }

    SplitMix random_;
};

// All that a run says, to be compared with another.
std::string told(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& f : findings)
        text += fmt::format("{} {} {} {} {}\n", f.rule, f.span.begin, f.span.end, f.address, f.message);
    return text;
}

struct Outcome {
    std::string findings, wrong;
    double seconds = 0;
    std::size_t held = 0;
};

double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Outcome run(const Seed& input, Kind kind) {
    Outcome outcome;
    CheckOptions options;
    options.as_of = "2026-11-20";
    ReadOptions read;
    read.kind = kind;
    held = most_held = 0;
    const double began = processor_seconds();
    {
        const auto file = read_file(input.path, input.text, read);
        if (file) {
            const Bundle bundle{.folder = {}, .files = {file.get()}};
            const auto findings = check_bundle(bundle, options, Knowledge::embedded());
            outcome.findings = told(findings);
            for (const Finding& f : findings) {
                const bool inside = f.span.begin <= f.span.end && f.span.end <= input.text.size();
                if (!inside)
                    outcome.wrong =
                        fmt::format("{} stands at {}-{} of {}", f.rule, f.span.begin, f.span.end, input.text.size());
                if (!f.fix) continue;
                std::uint32_t end = 0;
                for (const Edit& edit : f.fix->edits) {
                    if (edit.span.begin < end || edit.span.end < edit.span.begin || edit.span.end > input.text.size())
                        outcome.wrong = fmt::format("the fix of {} is out of order", f.rule);
                    end = edit.span.end;
                }
            }
        }
    }
    outcome.seconds = processor_seconds() - began;
    outcome.held = most_held;
    const auto size = static_cast<double>(input.text.size());
    if (outcome.seconds > kSlower * std::max(kMostSecondsAtLeast, kMostSecondsPerByte * size))
        outcome.wrong = fmt::format("took {:.0f} ms for {} bytes", 1e3 * outcome.seconds, input.text.size());
    if (outcome.held > kMostHeldPerByte * std::max(input.text.size(), kLeastBytes))
        outcome.wrong = fmt::format("held {} bytes for {} bytes", outcome.held, input.text.size());
    return outcome;
}

}  // namespace

int main(int count, char** words) {
    std::uint64_t runs = 300, seed = 1;
    std::string only, keep;
    std::vector<std::string> files;
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        const auto value = [&] { return i + 1 < count ? words[++i] : ""; };
        if (word == "--runs")
            runs = std::strtoull(value(), nullptr, 10);
        else if (word == "--seed")
            seed = std::strtoull(value(), nullptr, 10);
        else if (word == "--kind")
            only = value();
        else if (word == "--keep")
            keep = value();
        else
            files.emplace_back(word);
    }
    const auto seeds = seeds_by_kind(files);
    // What is read once and kept for good counts for nobody's input.
    for (const auto& [kind, list] : seeds) run(list.front(), static_cast<Kind>(kind));
#ifdef STOKER_ASAN
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
#endif
    int failures = 0;
    for (const auto& [index, list] : seeds) {
        const Kind kind = static_cast<Kind>(index);
        if (!only.empty() && only != to_string(kind)) continue;
        double slowest = 0, most_per_byte = 0, total = 0;
        std::uint64_t bytes = 0, wrong = 0;
        for (std::uint64_t i = 0; i < runs; ++i) {
            const std::uint64_t one = SplitMix::mix(seed * 1'000'003 + i) ^ static_cast<std::uint64_t>(index);
            Mutator mutator(one);
            const Seed& from = list[one % list.size()];
            const Seed input{from.path, mutator.make(list, from)};
            Outcome outcome = run(input, kind);
            if (!outcome.wrong.empty() && outcome.wrong.starts_with("took"))
                outcome = run(input, kind);  // a busy machine
            if (outcome.wrong.empty() && i % 16 == 0 && run(input, kind).findings != outcome.findings)
                outcome.wrong = "two runs differ";
            slowest = std::max(slowest, outcome.seconds);
            total += outcome.seconds;
            bytes += input.text.size();
            if (input.text.size() >= kLeastBytes)
                most_per_byte =
                    std::max(most_per_byte, static_cast<double>(outcome.held) / static_cast<double>(input.text.size()));
            if (outcome.wrong.empty()) continue;
            if (++wrong <= 5) fmt::print("{} run {} of seed {}: {}\n", to_string(kind), i, seed, outcome.wrong);
            if (!keep.empty())
                std::ofstream(fmt::format("{}/{}-{}-{}", keep, to_string(kind), seed, i), std::ios::binary)
                    << input.text;
        }
        failures += wrong > 0;
        fmt::print(
            "{:<13} {:>9} runs of {:>4} seeds, {:>6.1f} MB/s, slowest {:>6.1f} ms, most held {:>5.1f} x input, {} "
            "wrong\n",
            to_string(kind), runs, list.size(), total > 0 ? 1e-6 * static_cast<double>(bytes) / total : 0,
            1e3 * slowest, most_per_byte, wrong);
        std::fflush(stdout);
    }
    return failures == 0 ? 0 : 1;
}
