// How fast files are read and checked, one core, from memory:
//
//   bench_lint [--rounds 5] FOLDER
//
// Every file under FOLDER of a kind that is known. By kind: files a second and MB a second, of the front end with its
// finders, and with all rules that see one file; libyaml's own parse of the YAML ones beside it. One line of JSON at
// the end.
#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lint/check.h"
#include "lint/read.h"

using namespace stoker;
using namespace stoker::lint;

namespace {

struct Input {
    std::string path, text;
};

double seconds_since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void parse_with_libyaml(const std::string& text) {
    yaml_parser_t parser;
    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    for (bool done = false; !done;) {
        yaml_event_t event;
        if (yaml_parser_parse(&parser, &event) == 0) break;
        done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
}

template <typename F>
double fastest(int rounds, const std::vector<const Input*>& inputs, F&& each) {
    double best = 1e300;
    for (int round = 0; round < rounds; ++round) {
        const auto began = std::chrono::steady_clock::now();
        for (const Input* input : inputs) each(*input);
        best = std::min(best, seconds_since(began));
    }
    return best;
}

}  // namespace

int main(int count, char** words) {
    int rounds = 5;
    std::string folder;
    for (int i = 1; i < count; ++i) {
        if (std::string_view(words[i]) == "--rounds" && i + 1 < count)
            rounds = std::atoi(words[++i]);
        else
            folder = words[i];
    }
    if (folder.empty()) {
        std::fputs("usage: bench_lint [--rounds N] FOLDER\n", stderr);
        return 2;
    }
    std::vector<Input> inputs;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file() || entry.file_size() > kMostBytes) continue;
        std::ifstream in(entry.path(), std::ios::binary);
        std::stringstream text;
        text << in.rdbuf();
        inputs.push_back({entry.path().string(), text.str()});
    }
    std::sort(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) { return a.path < b.path; });
    std::array<std::vector<const Input*>, kKinds> by_kind;
    std::vector<const Input*> all;
    for (const Input& input : inputs) {
        const Kinds kinds = classify(input.path, input.text);
        if (!kinds.empty()) all.push_back(&input);
        for (int kind = 0; kind < kKinds; ++kind)
            if (kinds.has(static_cast<Kind>(kind))) by_kind[static_cast<std::size_t>(kind)].push_back(&input);
    }
    CheckOptions options;
    options.as_of = "2026-11-20";
    const Knowledge& knowledge = Knowledge::embedded();
    const auto read = [](const Input& input) { return read_file(input.path, input.text); };
    const auto check = [&](const Input& input) {
        const auto file = read(input);
        if (file) check_file(*file, options, knowledge);
    };
    for (const Input* input : all) check(*input);  // facts are read at the first question

    std::string json;
    fmt::print("{:<13} {:>6} {:>8}   {:>22}   {:>22}   {}\n", "kind", "files", "MB", "read: files/s  MB/s",
               "checked: files/s MB/s", "libyaml alone");
    const auto row = [&](std::string_view name, const std::vector<const Input*>& list, bool yaml) {
        if (list.empty()) return;
        double bytes = 0;
        for (const Input* input : list) bytes += static_cast<double>(input->text.size());
        const double n = static_cast<double>(list.size());
        const double reading = fastest(rounds, list, read), checking = fastest(rounds, list, check);
        const double peer =
            yaml ? fastest(rounds, list, [](const Input& input) { parse_with_libyaml(input.text); }) : 0;
        fmt::print("{:<13} {:>6} {:>8.2f}   {:>12.0f} {:>9.1f}   {:>12.0f} {:>9.1f}   {}\n", name, list.size(),
                   1e-6 * bytes, n / reading, 1e-6 * bytes / reading, n / checking, 1e-6 * bytes / checking,
                   yaml ? fmt::format("{:.0f} files/s, {:.1f} MB/s", n / peer, 1e-6 * bytes / peer) : "");
        json += fmt::format(
            "{}\"{}\": {{\"files\": {}, \"bytes\": {:.0f}, \"read_s\": {:.6f}, \"check_s\": {:.6f}, \"libyaml_s\": "
            "{:.6f}}}",
            json.empty() ? "" : ", ", name, list.size(), bytes, reading, checking, peer);
    };
    for (int kind = 0; kind < kKinds; ++kind) {
        const bool yaml = kind == static_cast<int>(Kind::k8s) || kind == static_cast<int>(Kind::compose) ||
                          kind == static_cast<int>(Kind::azureml);
        row(to_string(static_cast<Kind>(kind)), by_kind[static_cast<std::size_t>(kind)], yaml);
    }
    row("all", all, false);
    fmt::print("{{\"bench\": \"lint\", {}}}\n", json);
}
