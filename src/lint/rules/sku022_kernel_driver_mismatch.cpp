// GRID drivers that do not fit the kernel or the size they are installed on, as the driver extension's page names them.
#include <fmt/format.h>

#include "lint/rules/common_cloud.h"

namespace stoker::lint {

namespace {

struct Sku022Driver {
    const Value* at = nullptr;
    int grid = 0;  // 16, 17
};

// NVIDIA-Linux-x86_64-550.144.06-grid-azure.run: branch 535 is GRID 16, 550 is GRID 17.
int sku022_grid(std::string_view word) {
    if (!contains_nocase(word, "grid")) return 0;
    if (word.find("-535.") != std::string_view::npos) return 16;
    if (word.find("-550.") != std::string_view::npos) return 17;
    return 0;
}

// linux-image-6.11.0-1015-azure, linux-azure-6.11: a package of the Azure kernel 6.11.
bool sku022_kernel(std::string_view word) {
    return word.starts_with("linux-") && word.find("azure") != std::string_view::npos &&
           word.find("-6.11") != std::string_view::npos;
}

bool sku022_nvv3(std::string_view size) {
    for (const std::string_view name : {"Standard_NV12s_v3", "Standard_NV24s_v3", "Standard_NV48s_v3"})
        if (equals_ignore_case(size, name)) return true;
    return false;
}

}  // namespace

void check_sku022(const File& file, Report& report) {
    Sku022Driver driver;
    const Value *kernel = nullptr, *size = nullptr;
    for_each_part(file, [&](const File& part) {
        for (const Command& command : part.script.commands) {
            if (command.name() == "echo" || command.name() == "printf") continue;
            for (const Value& word : command.words) {
                if (!word.known()) continue;
                if (const int grid = driver.at ? 0 : sku022_grid(word.text)) driver = {&word, grid};
                if (!kernel && sku022_kernel(word.text)) kernel = &word;
            }
        }
        for (const Resource& resource : part.resources)
            for (const Value* each : resource.all(Attr::size))
                if (!size && each->known() && sku022_nvv3(each->text)) size = each;
    });
    if (!driver.at) return;
    if (kernel) {
        Finding* finding = report.add(*driver.at, "grid-driver#kernel",
                                      fmt::format("GRID {} does not work with the Azure kernel 6.11", driver.grid));
        report.relate(finding, *kernel->source, kernel->span, "the kernel");
        if (finding) finding->advice = "keep the kernel of the image, or take GRID 18";
    } else if (size && driver.grid == 17) {
        Finding* finding =
            report.add(*driver.at, "grid-driver#size",
                       fmt::format("GRID 17 does not support {}: the NVv3 series ends at GRID 16", size->text));
        report.relate(finding, *size->source, size->span, "the size");
        if (finding) finding->advice = "install GRID 16 there (branch 535)";
    }
}

}  // namespace stoker::lint
