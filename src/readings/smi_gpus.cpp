#include "readings/smi_gpus.h"

#include "readings/gpu_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "readings/tool_size.h"

namespace stoker {
namespace {

// A driver and its GPUs keep a little: nvidia-smi of a T4 says 15360 MiB in one driver and 15109 in another.
constexpr double kMemoryShare = 0.95;

std::vector<std::string> words_of_gpu_name(std::string_view name) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : std::string(name) + " ") {
        if (c != ' ' && c != '-' && c != '.' && c != '/') {
            word += c;
        } else if (!word.empty()) {
            words.push_back(lower(word));
            word.clear();
        }
    }
    return words;
}

bool has_gpu_word(const std::vector<std::string>& words, const Accelerator& accelerator) {
    const auto own = words_of_gpu_name(accelerator.name);
    return !own.empty() && std::find(words.begin(), words.end(), own.front()) != words.end();
}

// Another model than the size has, by the first word of the catalogue's name: "T4", "A100". Names nobody knows are not
// judged.
bool is_other_model(std::string_view name, const ToolSize& size, const Catalog& catalog) {
    const auto words = words_of_gpu_name(name);
    if (has_gpu_word(words, *size.accelerator)) return false;
    return std::any_of(catalog.accelerators().begin(), catalog.accelerators().end(), [&](const Accelerator& other) {
        return other.vendor == "NVIDIA" && has_gpu_word(words, other);
    });
}

std::string name_of_gpu(const SmiGpu& gpu) {
    return fmt::format("GPU {}", gpu.index.empty() ? gpu.bus : gpu.index);
}

void judge_faults(ReadingBuilder& out, const SmiGpu& gpu) {
    const std::string who = name_of_gpu(gpu);
    if (!gpu.broken.empty())
        out.check(
            "gpu-answers", gpu.place,
            {.verdict = HealthVerdict::fail,
             .message = fmt::format("{} does not answer: nvidia-smi says \"{}\"", who, printable(gpu.broken, 60)),
             .fix = "dmesg | grep -i -e nvrm -e xid, then restart the node; if it comes back, hand it back to the "
                    "cloud or the vendor",
             .peer = who});
    if (gpu.ecc_uncorrected.value_or(0) > 0)
        out.check("gpu-ecc", gpu.place,
                  {.verdict = HealthVerdict::fail,
                   .message = fmt::format("{} has {:g} uncorrected memory errors since its driver was loaded", who,
                                          *gpu.ecc_uncorrected),
                   .fix = "nvidia-smi -q -d ECC,ROW_REMAPPER; drain the node, nvidia-smi --gpu-reset -i " +
                          (gpu.index.empty() ? std::string("ID") : gpu.index) + ", and replace it if they come back",
                   .peer = who,
                   .measured = gpu.ecc_uncorrected,
                   .expected = 0,
                   .unit = "count",
                   .source = "any GPU: an uncorrected error is wrong data"});
    if (!gpu.remapped.empty())
        out.check(
            "gpu-remapping", gpu.place,
            {.verdict = contains(gpu.remapped, "fail") ? HealthVerdict::fail : HealthVerdict::warn,
             .message = fmt::format("{}: {}", who, gpu.remapped),
             .fix = contains(gpu.remapped, "fail") ? "replace the GPU: it has no spare rows left"
                                                   : "drain the node and reset the GPU: the remapping is done then",
             .peer = who});
    if (!gpu.slowed.empty())
        out.check("gpu-clocks", gpu.place,
                  {.verdict = HealthVerdict::warn,
                   .message = fmt::format("{} is slowed down: {}", who, gpu.slowed),
                   .fix = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER; look at cooling and power supply",
                   .peer = who});
    if (gpu.pcie_width && gpu.pcie_width_most && *gpu.pcie_width < *gpu.pcie_width_most)
        out.check("gpu-pcie", gpu.place,
                  {.verdict = HealthVerdict::warn,
                   .message = fmt::format("{} has {:g} of {:g} PCIe lanes", who, *gpu.pcie_width, *gpu.pcie_width_most),
                   .fix = "restart the node; if the lanes stay away, hand it back: the slot or the riser is at fault",
                   .peer = who,
                   .measured = gpu.pcie_width,
                   .expected = gpu.pcie_width_most,
                   .unit = "count",
                   .source = "what nvidia-smi says the GPU and the slot can do"});
    if (contains(gpu.mig, "*"))
        out.check("gpu-mig", gpu.place,
                  {.verdict = HealthVerdict::warn,
                   .message = fmt::format("{}: MIG was switched and waits for a reset ({})", who, gpu.mig),
                   .fix = "stop what uses the GPU, then nvidia-smi --gpu-reset -i " +
                          (gpu.index.empty() ? std::string("ID") : gpu.index),
                   .peer = who});
    else if (gpu.mig == "Enabled" && gpu.mig_told && gpu.mig_devices == 0)
        out.check("gpu-mig", gpu.place,
                  {.verdict = HealthVerdict::warn,
                   .message = fmt::format("{} is in MIG mode and has no MIG device: nothing can run on it", who),
                   .fix = "nvidia-smi mig -lgip, then nvidia-smi mig -cgi PROFILE -C; or nvidia-smi -mig 0",
                   .peer = who});
}

void judge_memory(ReadingBuilder& out, const SmiGpu& gpu, const ToolSize& size) {
    if (!gpu.memory_total_mib || size.node == nullptr || size.accelerator == nullptr || gpu.mig == "Enabled") return;
    const bool part = size.node->accelerators < 1;
    const double expected = part ? size.node->accelerator_memory.v
                                 : (size.accelerator->usable_memory.v > 0 ? size.accelerator->usable_memory.v
                                                                          : size.accelerator->memory.v * 0.95);
    if (expected <= 0) return;
    const double measured = *gpu.memory_total_mib * 1048576.0, line = kMemoryShare * expected;
    out.check(
        "gpu-memory", gpu.place,
        {.verdict = measured >= line ? HealthVerdict::pass : HealthVerdict::fail,
         .message = fmt::format("{} {} has {:.1f} GiB, {} has {:.1f} GiB for programs", name_of_gpu(gpu), gpu.name,
                                measured / 1073741824.0, size.name, expected / 1073741824.0),
         .fix = measured >= line ? "" : "the node is not of this size, or the GPU is split: nvidia-smi -L",
         .peer = name_of_gpu(gpu),
         .measured = measured,
         .expected = line,
         .unit = "bytes",
         .source = fmt::format("the catalogue's {}; fails below {:g} of it", size.accelerator->name, kMemoryShare)});
}

}  // namespace

std::optional<SmiTrouble> smi_trouble(const ToolLines& lines) {
    struct Line {
        std::string_view text, what, fix;
    };
    // The sentences of nvidia-smi and NVML, and of the shell that finds no nvidia-smi.
    static constexpr Line known[] = {
        {"Driver/library version mismatch",
         "the driver's kernel module and its library are of different versions: it was updated and not reloaded",
         "restart the node (or unload nvidia_uvm, nvidia_drm, nvidia_modeset and nvidia, then modprobe nvidia)"},
        {"couldn't communicate with the NVIDIA driver", "nvidia-smi is there and no driver is loaded",
         "lsmod | grep nvidia; dkms status: after a new kernel the module has to be built again; with Secure Boot it "
         "has "
         "to be signed"},
        {"No devices were found", "the driver runs and sees no GPU",
         "lspci | grep -i nvidia; dmesg | grep -i -e nvrm -e xid: a GPU that fell off the bus takes a restart"},
        {"No devices found", "the driver runs and sees no GPU",
         "lspci | grep -i nvidia; dmesg | grep -i -e nvrm -e xid: a GPU that fell off the bus takes a restart"},
        {"GPU is lost", "a GPU fell off the bus",
         "dmesg | grep -i xid (79); restart the node, and hand it back if it happens again"},
        {"Unable to determine the device handle", "a GPU does not answer the driver",
         "dmesg | grep -i xid (79: it fell off the bus); restart the node, and hand it back if it happens again"},
        {"Insufficient Permissions", "nvidia-smi may not open the devices of the GPUs",
         "ls -l /dev/nvidia*; in a container: its devices have to be passed in (--gpus all)"},
        {"nvidia-smi: command not found", "there is no nvidia-smi: the driver is not installed, or not yet",
         "wait 5 to 10 minutes for the driver extension and look again: az vm extension show --instance-view -g GROUP "
         "--vm-name VM -n NvidiaGpuDriverLinux"},
        {"nvidia-smi: not found", "there is no nvidia-smi: the driver is not installed, or not yet",
         "wait 5 to 10 minutes for the driver extension and look again"},
        {"Failed to initialize NVML", "the driver's library cannot be opened",
         "lsmod | grep nvidia; in a container: start it with --gpus all, and look for a cgroup that was reloaded"},
    };
    for (std::size_t i = 0; i < std::min<std::size_t>(lines.size(), 200); ++i)
        for (const Line& each : known) {
            const std::size_t at = lines[i].find(each.text);
            if (at != std::string_view::npos)
                return SmiTrouble{{static_cast<std::uint32_t>(i + 1), static_cast<std::uint32_t>(at + 1)},
                                  std::string(each.what),
                                  std::string(each.fix)};
        }
    return std::nullopt;
}

ToolReading no_gpu_seen(ReadingBuilder& out) {
    out.check("gpu-driver", {1, 1},
              {.verdict = HealthVerdict::fail,
               .message = "the driver runs and sees no GPU",
               .fix = "lspci | grep -i nvidia; dmesg | grep -i -e nvrm -e xid"});
    return out.finish("the driver sees no GPU");
}

ToolReading judge_smi(ReadingBuilder& out, const SmiSheet& sheet, const ToolContext& context) {
    const ToolSize size = tool_size(context);
    if (!sheet.driver.empty()) out.fact("driver", sheet.driver);
    if (!sheet.cuda.empty()) out.fact("cuda", sheet.cuda);
    out.fact("gpus", std::to_string(sheet.gpus.size()));
    const ToolPlace first = sheet.gpus.empty() ? ToolPlace{} : sheet.gpus.front().place;
    std::string models;
    for (const SmiGpu& gpu : sheet.gpus)
        if (models != gpu.name) models += (models.empty() ? "" : ", ") + gpu.name;
    if (!models.empty()) out.fact("model", cut(models, 80));

    const auto found = static_cast<double>(sheet.gpus.size());
    const std::string have = counted(sheet.gpus.size(), "GPU");
    if (size.gpus) {
        out.check(
            "gpu-count", first,
            {.verdict = found >= *size.gpus ? HealthVerdict::pass : HealthVerdict::fail,
             .message = fmt::format("{}; {} has {:g}", have, size.name, *size.gpus),
             .fix = found >= *size.gpus
                        ? ""
                        : "nvidia-smi -L; dmesg | grep -i -e nvrm -e xid: one that fell off the bus takes a restart",
             .measured = found,
             .expected = size.gpus,
             .unit = "count",
             .source = size.gpus_source});
    } else {
        out.check(
            "gpu-count", first,
            {.message = fmt::format("{}: how many there should be was not said", have),
             .fix = say_the_size(sheet.gpus.empty() ? "" : sheet.gpus.front().name, sheet.gpus.size(), context.catalog),
             .measured = found,
             .unit = "count"});
    }
    for (const SmiGpu& gpu : sheet.gpus) {
        judge_faults(out, gpu);
        if (size.accelerator != nullptr && context.catalog != nullptr &&
            is_other_model(gpu.name, size, *context.catalog))
            out.check("gpu-model", gpu.place,
                      {.verdict = HealthVerdict::fail,
                       .message = fmt::format("{} is a {}; {} has the {}", name_of_gpu(gpu), gpu.name, size.name,
                                              size.accelerator->name),
                       .fix = "the node is not of this size: look at the pool or the VM that was made",
                       .peer = name_of_gpu(gpu)});
        judge_memory(out, gpu, size);
        if (gpu.temperature) judge_limit(out, "gpu-temperature", name_of_gpu(gpu), *gpu.temperature, gpu.place);
        if (gpu.memory_used_mib && gpu.memory_total_mib.value_or(0) > 0)
            judge_limit(out, "gpu-memory-used", name_of_gpu(gpu), *gpu.memory_used_mib / *gpu.memory_total_mib,
                        gpu.place);
    }
    if (std::none_of(sheet.gpus.begin(), sheet.gpus.end(),
                     [](const SmiGpu& gpu) {
                         return !gpu.broken.empty() || gpu.ecc_uncorrected.value_or(0) > 0 || !gpu.remapped.empty();
                     }) &&
        !sheet.gpus.empty())
        out.check(
            "gpu-faults", first,
            {.verdict = HealthVerdict::pass,
             .message = have + (sheet.gpus.size() == 1 ? " answers" : " answer") + "; no uncorrected memory error"});
    const std::string driver = sheet.driver.empty() ? "" : fmt::format(", driver {}", sheet.driver);
    return out.finish(fmt::format("{}{}{}", have, models.empty() ? "" : " (" + cut(models, 60) + ")", driver));
}

}  // namespace stoker
