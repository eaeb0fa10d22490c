// Whoever hands a saved output over gets the right reader, one conclusion in the right order, and never a crash.
#include "readings/tool_output.h"

#include <gtest/gtest.h>

#include "readings/tool_reader.h"
#include "readings/tool_samples.h"

namespace stoker {
namespace {

const Catalog& tool_catalog() {
    static const Catalog catalog = [] {
        auto read = Catalog::embedded();
        CHECK(read.ok());
        return std::move(*read);
    }();
    return catalog;
}
ToolContext sized(const char* size) {
    return {.size = size, .catalog = &tool_catalog()};
}
ToolReport report_of(const std::vector<std::string_view>& texts, const ToolContext& context) {
    std::vector<ToolFile> files;
    for (const auto text : texts) files.push_back({"f" + std::to_string(files.size()), std::string(text)});
    auto report = read_tool_files(files, context);
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().text());
    return report.ok() ? *report : ToolReport{};
}

// A file that is read by the wrong reader is judged by the wrong lines.
TEST(ToolOutput, EveryFormatIsRecognisedByItsContent) {
    for (const auto& [name, text] : samples::all()) EXPECT_EQ(word_of(recognise(text)), name) << text.substr(0, 200);
    EXPECT_EQ(recognise(""), Tool::unknown);
    EXPECT_EQ(recognise("apiVersion: v1\nkind: Pod\n"), Tool::kubernetes);
    EXPECT_EQ(recognise("---\napiVersion: v1\nitems:\n- apiVersion: v1\n"), Tool::kubernetes);
    EXPECT_EQ(recognise("kind: training\nmodel: x\n"), Tool::unknown);
    EXPECT_EQ(recognise("bash: nvidia-smi: command not found\n"), Tool::nvidia_smi);
    EXPECT_EQ(recognise("name, value, other\n1, 2, 3\n"), Tool::unknown);
    EXPECT_EQ(recognise(R"({"hello": 1})"), Tool::unknown);
}

// PowerShell writes UTF-16, editors a mark: the same file all the same.
TEST(ToolOutput, EncodingsDoNotMatter) {
    std::string wide = "\xFF\xFE";
    for (const char c : samples::kSmiOld) wide += {c, '\0'};
    EXPECT_EQ(recognise(wide), Tool::nvidia_smi);
    EXPECT_EQ(report_of({wide}, sized("Standard_NC4as_T4_v3")).verdict(), HealthVerdict::pass);
    std::string windows;
    for (const char c : samples::kIbSlow) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
    EXPECT_EQ(report_of({"\xEF\xBB\xBF" + windows}, sized("Standard_ND96isr_H100_v5")).verdict(), HealthVerdict::fail);
}

// Someone hunts a slow GPU for a day, and a cable was bad.
TEST(ToolOutput, TheNetworkIsBlamedBeforeTheGpus) {
    std::string slow_gpus(samples::kNcclTests);
    for (const char* figure : {"472.71", "472.56", "474.20", "474.35"})
        slow_gpus.replace(slow_gpus.find(figure), 6, "120.00");
    const ToolReport both = report_of({slow_gpus, samples::kIbSlow}, sized("Standard_ND96isr_H100_v5"));
    EXPECT_TRUE(both.conclusion.starts_with("the network is at fault: ib_write_bw 94.1 of 380 Gbit/s on mlx5_3"))
        << both.conclusion;
    EXPECT_TRUE(contains(both.conclusion, "GPU figures are not judged until that is mended")) << both.conclusion;
    EXPECT_EQ(both.verdict(), HealthVerdict::fail);
    for (const HealthCheck& check : both.readings[0].checks)
        if (check.name == "nccl-bandwidth") {
            EXPECT_EQ(check.verdict, HealthVerdict::skipped);
        }

    const ToolReport gpus = report_of({slow_gpus}, sized("Standard_ND96isr_H100_v5"));
    EXPECT_TRUE(gpus.conclusion.starts_with("the GPUs or their node are at fault: bus bandwidth 120 of 460 GB/s"))
        << gpus.conclusion;
    ASSERT_FALSE(gpus.open.empty());
    EXPECT_TRUE(contains(gpus.open[0], "ib_write_bw")) << gpus.open[0];
}

// A timeout is the program's fault only when nothing below it is.
TEST(ToolOutput, ATimeoutIsNotBlamedOnTheCodeWhileTheNetworkIsDown) {
    const std::string timeout =
        "[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1523, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, "
        "Timeout(ms)=600000) ran for 600054 milliseconds before timing out.\n";
    EXPECT_TRUE(report_of({timeout}, {}).conclusion.starts_with("the program is at fault"))
        << report_of({timeout}, {}).conclusion;
    const ToolReport both = report_of({timeout, samples::kIbSlow}, sized("Standard_ND96isr_H100_v5"));
    EXPECT_TRUE(both.conclusion.starts_with("the network is at fault")) << both.conclusion;
    EXPECT_EQ(both.readings[0].verdict(), HealthVerdict::skipped);
}

TEST(ToolOutput, NodesWithDifferentDriversAreTold) {
    const ToolReport report = report_of({samples::kSmiOld, samples::kSmiCsv}, {});
    bool told = false;
    for (const ToolReading& reading : report.readings)
        for (const HealthCheck& check : reading.checks) told = told || check.name == "driver-versions";
    EXPECT_TRUE(told);
}

// Which file, where, and what is expected: for all files at once.
TEST(ToolOutput, UnreadableFilesAreNamedTogether) {
    const auto report =
        read_tool_files({{"a.txt", "hello\n"}, {"b.txt", ""}, {"good.txt", std::string(samples::kSmiOld)}}, {});
    ASSERT_FALSE(report.ok());
    ASSERT_EQ(report.error().problems().size(), 2U);
    EXPECT_EQ(report.error().problems()[0].pos.text(), "a.txt:1:1");
    EXPECT_TRUE(contains(report.error().problems()[0].remedy, "ib_write_bw"));
}

// A file that was cut off while it was copied: an error with its place, or a smaller truth, and never a crash.
TEST(ToolOutput, TruncatedAndDamagedFilesNeverCrash) {
    std::size_t errors = 0, read = 0;
    for (const auto& [name, text] : samples::all()) {
        Tool tool = Tool::unknown;
        for (const auto& [each, word] : enum_names(Tool{}))
            if (word == name) tool = each;
        for (const ToolContext& context : {ToolContext{}, sized("Standard_ND96isr_H100_v5")})
            for (std::size_t end = 0; end <= text.size(); end += 7) {
                const auto whole = read_tool_output(tool, text.substr(0, end), "cut", context);
                ++(whole.ok() ? read : errors);
                if (!whole.ok()) {
                    EXPECT_GE(whole.error().problems()[0].pos.line, 1U) << name << " cut at " << end;
                    EXPECT_EQ(whole.error().kind(), ErrorKind::invalid);
                }
            }
        // Bytes that are not the tool's, at every place.
        unsigned state = 12345;
        for (int round = 0; round < 300; ++round) {
            std::string damaged(text);
            for (int i = 0; i < 5; ++i) {
                state = state * 1664525U + 1013904223U;
                damaged[state % damaged.size()] =
                    "|+-:/[]{}\"\0\n\t\xff"
                    "09<>%"[(state >> 16) % 20];
            }
            const auto any = read_tool_output(tool, damaged, "damaged", sized("Standard_ND96isr_H100_v5"));
            ++(any.ok() ? read : errors);
            (void)read_tool_files({{"damaged", damaged}}, {});
        }
    }
    EXPECT_GT(errors, 1000U);
    EXPECT_GT(read, 1000U);
}

// A log of a day on 512 GPUs: bounded notes, the worst kept.
TEST(ToolOutput, NotesAreBounded) {
    std::string log;
    for (int i = 0; i < 3000; ++i)
        log += "gpu-a:1:2 [0] NCCL WARN something number " + std::to_string(i) + " of many kinds " +
               std::string(1, static_cast<char>('a' + i % 26)) + "\n";
    log += "gpu-a:1:2 [0] NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000\n";
    const ToolReport report = report_of({log}, {});
    ASSERT_EQ(report.readings.size(), 1U);
    EXPECT_LE(report.readings[0].notes.size(), kMostToolNotes);
    EXPECT_EQ(report.readings[0].notes.back().verdict, HealthVerdict::fail);
}

}  // namespace
}  // namespace stoker
