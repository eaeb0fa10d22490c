// The table of nvidia-smi. Layout: the tool's own output, as documented at
// https://docs.nvidia.com/deploy/nvidia-smi/ and in the MIG user guide (https://docs.nvidia.com/datacenter/tesla/
// mig-user-guide/): drivers before 455 have two lines a GPU, later ones a third with the MIG mode; since 530 the first
// column is wider, and since 610 the banner says KMD Version and CUDA UMD Version.
#include <fmt/format.h>

#include "base/text.h"
#include "readings/smi_gpus.h"

namespace stoker {
namespace {

// The cells of "| a | b | c |"; nothing when the line is no row.
std::vector<std::string_view> cells_of_row(std::string_view line) {
    line = trim(line);
    if (line.size() < 2 || line.front() != '|' || line.back() != '|') return {};
    std::vector<std::string_view> cells;
    for (const std::string_view cell : split(line.substr(1, line.size() - 2), '|')) cells.push_back(trim(cell));
    return cells;
}

// 00000001:00:00.0
bool is_bus_id(std::string_view word) {
    const std::size_t colon = word.find(':');
    return colon != std::string_view::npos && word.find(':', colon + 1) != std::string_view::npos &&
           word.find('.') != std::string_view::npos &&
           word.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

bool is_broken_word(std::string_view text) {
    return contains(text, "ERR!") || contains(text, "GPU is lost") || contains(text, "Unknown Error") ||
           contains(text, "requires reset");
}

// "  0  Tesla T4            Off "; the last word is the persistence mode.
void read_head(const std::vector<std::string_view>& cells, SmiGpu& gpu) {
    auto words = split_words(cells[0]);
    if (!words.empty()) {
        gpu.index = words.front();
        words.erase(words.begin());
    }
    if (words.size() > 1 && (words.back() == "On" || words.back() == "Off" || words.back() == "N/A" ||
                             words.back() == "WDDM" || words.back() == "TCC" || words.back() == "MCDM"))
        words.pop_back();
    for (const std::string_view word : words) gpu.name += (gpu.name.empty() ? "" : " ") + std::string(word);
    const auto bus = split_words(cells[1]);
    if (!bus.empty()) gpu.bus = bus.front();
    gpu.ecc_uncorrected = tool_number(cells[2]);
    if (is_broken_word(cells[0]) || is_broken_word(cells[1])) gpu.broken = "ERR!";
}

// "N/A   34C    P8     9W /  70W" | "0MiB / 15360MiB" | "0%  Default"
void read_figures(const std::vector<std::string_view>& cells, SmiGpu& gpu) {
    for (const std::string_view word : split_words(cells[0])) {
        if (word.ends_with('C') && word.size() > 1 && leading_number(word)) gpu.temperature = leading_number(word);
        if (word.ends_with('W') && word.size() > 1 && leading_number(word))
            (gpu.power ? gpu.power_limit : gpu.power) = leading_number(word);
    }
    const std::size_t slash = cells[1].find('/');
    if (slash != std::string_view::npos && contains(cells[1], "MiB")) {
        gpu.memory_used_mib = leading_number(cells[1].substr(0, slash));
        gpu.memory_total_mib = leading_number(cells[1].substr(slash + 1));
    }
    const auto last = split_words(cells[2]);
    if (!last.empty() && last.front().ends_with('%')) gpu.utilisation = leading_number(last.front());
    // Old cards without a power meter write ERR! there, and are well; a lost GPU has it for its fan and memory too.
    if (is_broken_word(cells[1]) || is_broken_word(cells[2]) || cells[0].starts_with("ERR!")) gpu.broken = "ERR!";
}

class SmiTableReader {
public:
    SmiTableReader(std::string_view text, const std::string& file) : lines_(text), out_(Tool::nvidia_smi, file) {}

    Result<ToolReading> read(const ToolContext& context) {
        std::size_t at = 0;
        while (at < lines_.size() && !contains(lines_[at], "NVIDIA-SMI ")) ++at;
        const bool table = at < lines_.size() && is_smi_banner(lines_[at]);
        if (const auto trouble = smi_trouble(lines_); trouble && !table) {
            out_.check("gpu-driver", trouble->place,
                       {.verdict = HealthVerdict::fail, .message = trouble->what, .fix = trouble->fix});
            return out_.finish(trouble->what);
        }
        if (!table) return out_.broken({1, 1}, "no line with the driver's version", remedy());
        SmiSheet sheet;
        sheet.driver = first_word(between(lines_[at], "Driver Version:", ""));
        if (sheet.driver.empty()) sheet.driver = first_word(between(lines_[at], "KMD Version:", ""));
        sheet.cuda = first_word(between(lines_[at], "CUDA Version:", ""));
        if (sheet.cuda.empty()) sheet.cuda = first_word(between(lines_[at], "CUDA UMD Version:", ""));
        for (++at; at < lines_.size(); ++at) TRY_VOID(line(at, sheet));
        if (sheet.gpus.empty()) return out_.broken(end(), "the table ends before the first GPU", remedy());
        if (open_)
            return out_.broken(end(), fmt::format("the table breaks off within GPU {}", sheet.gpus.back().index),
                               remedy());
        return judge_smi(out_, sheet, context);
    }

private:
    static std::string remedy() { return "save the whole of it: nvidia-smi > nvidia-smi.txt"; }
    static std::string first_word(std::string_view text) {
        const auto words = split_words(text);
        return words.empty() ? std::string() : std::string(words.front());
    }
    ToolPlace end() const { return {lines_.last_line(), 1}; }

    Status line(std::size_t at, SmiSheet& sheet) {
        const std::string_view text = trim(lines_[at]);
        if (contains(text, "Processes:")) part_ = Part::processes;
        if (contains(text, "MIG devices:")) {
            part_ = Part::mig;
            for (SmiGpu& gpu : sheet.gpus) gpu.mig_told = true;
        }
        if (text.starts_with("+--") || text.starts_with("+==")) {
            if (open_ && figures_ == 0) return broken_gpu(at, sheet);
            open_ = false;
            return done();
        }
        const auto cells = cells_of_row(text);
        if (part_ == Part::mig && cells.size() == 4) {
            const auto ids = split_words(cells[0]);
            // "0    7   0   0": GPU, GPU instance, compute instance, MIG device.
            if (ids.size() == 4 && tool_number(ids[0]) && tool_number(ids[3]))
                for (SmiGpu& gpu : sheet.gpus)
                    if (gpu.index == ids[0]) ++gpu.mig_devices;
        }
        if (part_ != Part::gpus || cells.size() != 3) return done();
        const auto bus = split_words(cells[1]);
        const auto words = split_words(cells[0]);
        const bool head = !bus.empty() && !words.empty() && tool_number(words[0]) &&
                          (is_bus_id(bus[0]) || bus[0].starts_with("????") || bus[0] == "ERR!");
        if (head) {
            if (open_ && figures_ == 0) return broken_gpu(at, sheet);
            SmiGpu& gpu = sheet.gpus.emplace_back();
            gpu.place = {static_cast<std::uint32_t>(at + 1), 1};
            read_head(cells, gpu);
            open_ = true;
            figures_ = 0;
        } else if (open_) {
            SmiGpu& gpu = sheet.gpus.back();
            if (++figures_ == 1) read_figures(cells, gpu);
            if (figures_ == 2 && (cells[2].starts_with("Enabled") || cells[2].starts_with("Disabled")))
                gpu.mig = cells[2];
        }
        return done();
    }
    Status broken_gpu(std::size_t at, const SmiSheet& sheet) const {
        return out_.broken({static_cast<std::uint32_t>(at + 1), 1},
                           fmt::format("GPU {} has no line with its memory", sheet.gpus.back().index), remedy());
    }

    enum class Part : std::uint8_t { gpus, mig, processes };
    ToolLines lines_;
    ReadingBuilder out_;
    Part part_ = Part::gpus;
    bool open_ = false;  // within a GPU
    int figures_ = 0;    // lines of it after the first
};

}  // namespace

bool is_smi_banner(std::string_view line) {
    return contains(line, "NVIDIA-SMI ") && (contains(line, "Driver Version:") || contains(line, "KMD Version:"));
}

Result<ToolReading> read_smi_table(std::string_view text, const std::string& file, const ToolContext& context) {
    return SmiTableReader(text, file).read(context);
}

}  // namespace stoker
