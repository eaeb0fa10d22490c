// What the readers of tools share: a text by its lines, and a reading that is filled note by note.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "readings/tool_output.h"

namespace stoker {

struct ToolPlace {
    std::uint32_t line = 1, column = 1;
};
// The lines of a text without what a terminal adds (colour codes), with places that are those of the file. The views
// live as long as the object, which is not copied.
class ToolLines {
public:
    explicit ToolLines(std::string_view text);
    ToolLines(const ToolLines&) = delete;
    ToolLines& operator=(const ToolLines&) = delete;
    std::size_t size() const { return lines_.size(); }
    std::string_view operator[](std::size_t index) const { return lines_[index]; }
    std::uint32_t last_line() const { return lines_.empty() ? 1 : static_cast<std::uint32_t>(lines_.size()); }

private:
    std::string plain_;
    std::vector<std::string_view> lines_;
};

// One finding: a line of the file, and the check that it decides.
struct ToolFinding {
    HealthLayer layer = HealthLayer::device;
    HealthVerdict verdict = HealthVerdict::skipped;
    std::string message, fix{};
    std::string peer{};
    std::optional<double> measured{}, expected{};
    std::string unit{}, source{};
};

// At most this many notes of a file are kept; the worst are what is left.
inline constexpr std::size_t kMostToolNotes = 200;

class ReadingBuilder {
public:
    ReadingBuilder(Tool tool, const std::string& file) {
        reading_.tool = tool;
        reading_.file = file;
    }
    void fact(std::string name, std::string value);
    // Told and not judged.
    void tell(ToolPlace place, HealthLayer layer, std::string message);
    // A note, and a check of this name.
    void check(std::string name, ToolPlace place, ToolFinding finding);
    // The same for a line that may come a thousand times: kept once for each key, with how many there were.
    void repeated(std::string name, const std::string& key, ToolPlace place, const ToolFinding& finding);
    void needs_cuda(std::string cuda, std::string what, bool brings_compat, ToolPlace place);
    // When the image's name says which.
    void needs_cuda_of_image(const std::string& image, ToolPlace place);
    Error broken(ToolPlace place, std::string what, std::string remedy) const;
    std::size_t checks() const { return reading_.checks.size(); }
    ToolReading finish(std::string conclusion);

private:
    struct Repeat {
        std::string name;
        ToolPlace place;
        ToolFinding finding;
        std::size_t count = 0;
    };
    ToolReading reading_;
    std::map<std::string, std::size_t, std::less<>> at_;
    std::vector<Repeat> repeats_;
};

// The whole of `text` as a number; nothing else.
std::optional<double> tool_number(std::string_view text);
// The number that `text` begins with: 34 of "34C", 15360 of "15360MiB".
std::optional<double> leading_number(std::string_view text);
bool contains(std::string_view text, std::string_view part);
// What stands between `before` and `after` (or the end of the text); empty: `before` is not there.
std::string_view between(std::string_view text, std::string_view before, std::string_view after);
std::string counted(std::size_t count, std::string_view one);  // "1 GPU", "3 GPUs"
ToolPlace place_at(std::string_view text, std::size_t offset);
ToolPlace place_of(const SourcePos& pos);

// JSON of a foreign tool, large as listings are; one that breaks off is an error with its place.
Result<Document> tool_json(std::string_view text, const std::string& file);
// A scalar's text; empty when it is absent, null or no scalar. `path` goes down by keys.
std::string_view node_text(const Node* node);
const Node* node_at(const Node* node, std::initializer_list<std::string_view> path);
std::string_view text_at(const Node* node, std::initializer_list<std::string_view> path);

// One reader each; the file that holds it is named after it.
Result<ToolReading> read_smi_table(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_smi_query(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_smi_xml(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_smi_csv(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_smi_topology(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_nccl_log(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_ib_bandwidth(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_nccl_tests(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_kubernetes(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_dcgm_json(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_dcgm_text(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_azure_skus(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_azure_usage(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_azure_nic(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_azure_extension(std::string_view text, const std::string& file, const ToolContext& context);

Result<ToolReading> read_kernel_log(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_dcgm_metrics(std::string_view text, const std::string& file, const ToolContext& context);
Result<ToolReading> read_program_log(std::string_view text, const std::string& file, const ToolContext& context);

bool is_xid_line(std::string_view line);     // of a kernel log
bool is_kernel_line(std::string_view line);  // its first, or one of NVIDIA's driver
bool is_smi_query_head(std::string_view line);
bool is_dcgm_metric(std::string_view line);  // of a DCGM exporter
// A traceback, or a line whose meaning is known, is the last that a program said.
bool ends_with_an_error(std::string_view text);
// The line of the table with the versions.
bool is_smi_banner(std::string_view line);
// Whether smi_csv's header is what nvidia-smi --query-gpu writes.
bool is_smi_csv_header(std::string_view line);

}  // namespace stoker
