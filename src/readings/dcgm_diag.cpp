// dcgmi diag -r N, with -j and without. Format: NVIDIA/DCGM nvvs/src/JsonOutput.cpp (DCGM 2 and 3: "DCGM GPU
// Diagnostic") and dcgmi/Diag.cpp (the table; DCGM 4 writes "DCGM Diagnostic" and results by entity);
// https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "readings/tool_reader.h"

namespace stoker {
namespace {

struct DiagResult {
    ToolPlace place;
    std::string test, gpus, status, said;
};

HealthVerdict diag_verdict(std::string_view status) {
    if (starts_with_ignore_case(status, "pass")) return HealthVerdict::pass;
    if (starts_with_ignore_case(status, "fail") || starts_with_ignore_case(status, "error")) return HealthVerdict::fail;
    if (starts_with_ignore_case(status, "warn")) return HealthVerdict::warn;
    return HealthVerdict::skipped;  // Skip, Not Run, and what a later version may say
}

// By what the test is about; dcgm-diagnostics.html says what each does.
std::string diag_fix(std::string_view test, std::string_view said) {
    const std::string name = lower(test) + " " + lower(said);
    if (contains(name, "page retirement") || contains(name, "row remap") || contains(name, "ecc") ||
        contains(name, "memory error"))
        return "drain the node; nvidia-smi -q -d ROW_REMAPPER,ECC; reset the GPU, and replace it if errors come back";
    if (contains(name, "persistence")) return "nvidia-smi -pm 1, or systemctl enable --now nvidia-persistenced";
    if (contains(name, "denylist") || contains(name, "blacklist"))
        return "rmmod nouveau; blacklist it and rebuild the initramfs";
    if (contains(name, "nvlink")) return "nvidia-smi nvlink -s and -e; systemctl status nvidia-fabricmanager";
    if (contains(name, "fabric manager")) return "systemctl restart nvidia-fabricmanager, of the driver's own version";
    if (contains(name, "thermal") || contains(name, "temperature"))
        return "look at the cooling: nvidia-smi -q -d TEMPERATURE,PERFORMANCE";
    if (contains(name, "cuda main") || contains(name, "cuda toolkit") || contains(name, "nvml"))
        return "the driver is not whole: reinstall it; nvidia-smi first";
    if (contains(name, "graphics process") || contains(name, "running process"))
        return "stop what uses the GPUs and run it again";
    if (contains(name, "pcie"))
        return "dmesg | grep -i -e aer -e pcie; nvidia-smi -q -d PCIE; restart, then hand the node back";
    return "take the node out of use, run dcgmi diag -r 3 again, and hand it back with nvidia-bug-report.sh if it "
           "fails again";
}

ToolReading judge_diag(ReadingBuilder& out, const std::vector<DiagResult>& results, std::string_view version) {
    std::size_t passed = 0, failed = 0, skipped = 0;
    const DiagResult* first = nullptr;
    if (!version.empty()) out.fact("dcgm", printable(version, 40));
    for (const DiagResult& each : results) {
        const HealthVerdict verdict = diag_verdict(each.status);
        if (verdict == HealthVerdict::pass) {
            ++passed;
            continue;
        }
        if (verdict == HealthVerdict::skipped) {
            ++skipped;
            continue;
        }
        failed += verdict == HealthVerdict::fail ? 1U : 0U;
        if (first == nullptr || (verdict == HealthVerdict::fail && diag_verdict(first->status) != verdict))
            first = &each;
        out.check("dcgm-diag", each.place,
                  {.verdict = verdict,
                   .message = fmt::format("{}{}: {}{}", each.test, each.gpus.empty() ? "" : " on GPU " + each.gpus,
                                          each.status, each.said.empty() ? "" : ": " + printable(each.said, 300)),
                   .fix = diag_fix(each.test, each.said),
                   .peer = each.gpus.empty() ? "" : "GPU " + each.gpus});
    }
    // A diagnosis in which nothing ran is no pass.
    if (passed > 0 || first == nullptr)
        out.check("dcgm-diag", results.front().place,
                  {.verdict = passed > 0 ? HealthVerdict::pass : HealthVerdict::skipped,
                   .message = fmt::format("{} passed{}", counted(passed, "test"),
                                          skipped > 0 ? fmt::format(", {} did not run", skipped) : "")});
    return out.finish(first == nullptr
                          ? fmt::format("dcgmi diag: {} passed", counted(passed, "test"))
                          : fmt::format("dcgmi diag: {} ({} failed)", first->test + ": " + first->status, failed));
}

// A warning is text, or an object with text in it.
std::string said_in(const Node* list) {
    std::string all;
    if (list == nullptr) return all;
    const auto add = [&](const Node& each) {
        const std::string_view text =
            each.is_mapping()
                ? text_at(&each, {"warning"}).empty() ? text_at(&each, {"message"}) : text_at(&each, {"warning"})
                : node_text(&each);
        if (!text.empty() && all.size() < 2000) all += (all.empty() ? "" : "; ") + std::string(text);
    };
    if (list->is_sequence())
        for (const auto& each : list->items) add(*each);
    else
        add(*list);
    return all;
}

void take_test(const Node& test, std::vector<DiagResult>& results) {
    const std::string name(text_at(&test, {"name"}));
    const Node* list = test.find("results");
    if (list == nullptr || !list->is_sequence()) return;
    for (const auto& each : list->items) {
        if (!each->is_mapping()) continue;
        std::string_view gpus = text_at(each.get(), {"gpu_ids"});
        if (gpus.empty()) gpus = text_at(each.get(), {"gpu_id"});
        if (gpus.empty()) gpus = text_at(each.get(), {"entity_id"});
        results.push_back({place_of(each->pos), name, std::string(gpus), std::string(text_at(each.get(), {"status"})),
                           said_in(each->find("warnings"))});
    }
}

}  // namespace

Result<ToolReading> read_dcgm_json(std::string_view text, const std::string& file, const ToolContext&) {
    ReadingBuilder out(Tool::dcgm_json, file);
    // dcgmi writes warnings before the object; blanks keep the places.
    std::string plain(text);
    for (std::size_t i = 0; i < plain.size() && plain[i] != '{'; ++i)
        if (plain[i] != '\n') plain[i] = ' ';
    TRY(const Document document, tool_json(plain, file));
    const Node* root = node_at(&document.root(), {"DCGM GPU Diagnostic"});
    if (root == nullptr) root = node_at(&document.root(), {"DCGM Diagnostic"});
    if (root == nullptr) root = &document.root();
    if (!root->is_mapping())
        return out.broken({1, 1}, "no object \"DCGM GPU Diagnostic\"", "dcgmi diag -r 3 -j > diag.json");
    std::vector<DiagResult> results;
    for (const char* key : {"runtime_error", "Runtime Error", "error"})
        if (const auto said = text_at(root, {key}); !said.empty())
            results.push_back({place_of(root->find(key)->pos), "run", "", "Fail", std::string(said)});
    const Node* categories = root->find("test_categories");
    if (categories != nullptr && categories->is_sequence())
        for (const auto& category : categories->items) {
            const Node* tests = node_at(category.get(), {"tests"});
            if (tests == nullptr || !tests->is_sequence()) continue;
            for (const auto& test : tests->items)
                if (test->is_mapping()) take_test(*test, results);
        }
    if (results.empty())
        return out.broken(place_of(root->pos), "no test is in it", "dcgmi diag -r 1 -j needs a running nv-hostengine");
    std::string_view version = text_at(root, {"version"});
    if (const auto driver = text_at(root, {"Driver Version Detected"}); !driver.empty())
        out.fact("driver", printable(driver, 40));
    return judge_diag(out, results, version);
}

Result<ToolReading> read_dcgm_text(std::string_view text, const std::string& file, const ToolContext&) {
    const ToolLines lines(text);
    ReadingBuilder out(Tool::dcgm_text, file);
    std::vector<DiagResult> results;
    std::string version;
    bool table = false, closed = false, metadata = false;
    for (std::size_t at = 0; at < lines.size(); ++at) {
        const std::string_view line = trim(lines[at]);
        const ToolPlace place{static_cast<std::uint32_t>(at + 1), 1};
        if (line.starts_with("| Diagnostic ")) table = true;
        closed = line.starts_with("+--") && line.ends_with("+");
        // "|-----  Metadata  ----------+---...|", also with + at its ends.
        if (line.starts_with("|---") || line.starts_with("+---")) {
            metadata = contains(line, "Metadata");
            continue;
        }
        if (!table || !line.starts_with('|') || !line.ends_with('|') || line.size() < 2) continue;
        const auto cells = split(line.substr(1, line.size() - 2), '|');
        if (cells.size() < 2) continue;
        const std::string_view name = trim(cells[0]), value = trim(cells[1]);
        if (name == "Diagnostic" || value.empty()) continue;
        if (metadata || name.ends_with(" Detected") || name == "DCGM Version") {
            if (name == "DCGM Version") version = value;
            if (name.starts_with("Driver Version")) out.fact("driver", printable(value, 40));
            continue;
        }
        const bool more =
            name.empty() || starts_with_ignore_case(name, "warning") || starts_with_ignore_case(name, "info");
        if (more) {
            // The words of the test above, broken into lines of the column; or more of its GPUs.
            if (results.empty()) continue;
            // DCGM 3: "Fail - GPU: 1" below "Pass - GPU: 0"; DCGM 4: "GPU1: Fail" below the test's own line.
            const std::string_view gpu = value.starts_with("GPU") ? trim(value.substr(0, value.find(':'))) : "";
            const std::string_view of_gpu = gpu.empty() ? "" : trim(between(value, ":", ""));
            if (name.empty() && tool_number(gpu.substr(std::min<std::size_t>(gpu.size(), 3))) && !of_gpu.empty() &&
                diag_verdict(of_gpu) != HealthVerdict::skipped) {
                const std::string test = results.back().test;
                if (diag_verdict(of_gpu) != HealthVerdict::pass)
                    results.push_back({place, test, std::string(gpu.substr(3)), std::string(of_gpu), {}});
            } else if (name.empty() && diag_verdict(value) != HealthVerdict::skipped && contains(value, "GPU:")) {
                const std::string test = results.back().test;
                results.push_back({place,
                                   test,
                                   std::string(trim(between(value, "GPU:", ""))),
                                   std::string(value.substr(0, value.find(' '))),
                                   {}});
            } else {
                auto& said = results.back().said;
                if (!starts_with_ignore_case(name, "info") && said.size() < 2000)
                    said += (said.empty() ? "" : " ") + std::string(value);
            }
            continue;
        }
        DiagResult result{place, std::string(name), {}, std::string(value.substr(0, value.find(" - "))), {}};
        // "Fail - GPU: 3", "Pass - All"
        if (const auto gpus = trim(between(value, " - ", "")); contains(gpus, "GPU")) {
            const std::size_t colon = gpus.find(':');
            result.gpus =
                trim(colon == std::string_view::npos ? gpus.substr(gpus.find("GPU") + 3) : gpus.substr(colon + 1));
        }
        // "| Error | GPU 3 has ... |" stands where a test could not run.
        if (starts_with_ignore_case(name, "error")) {
            result.status = "Fail";
            result.said = value;
        }
        results.push_back(std::move(result));
    }
    if (!table) return out.broken({1, 1}, "no table with the line \"Diagnostic\"", "dcgmi diag -r 3 > diag.txt");
    if (results.empty() || !closed)
        return out.broken({lines.last_line(), 1}, results.empty() ? "the table has no test" : "the table breaks off",
                          "dcgmi diag -r 3 > diag.txt");
    return judge_diag(out, results, version);
}

}  // namespace stoker
