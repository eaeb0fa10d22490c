#include "readings/last_words.h"

#include <gmock/gmock.h>

#include "base/embedded.h"
#include "base/tsv.h"
#include "readings/tool_output.h"

namespace stoker {
namespace {

using testing::HasSubstr;

struct Case {
    const char *text, *name, *line, *where = "";
    bool consequence = false;
};

// As the programs print it; what stands around it is left out only where it says nothing.
const Case kCases[] = {
    {"step 11 loss 2.31\n"
     "Traceback (most recent call last):\n"
     "  File \"/work/train.py\", line 88, in <module>\n"
     "    main()\n"
     "  File \"/work/train.py\", line 61, in main\n"
     "    loss.backward()\n"
     "  File \"/usr/lib/python3/dist-packages/torch/_tensor.py\", line 487, in backward\n"
     "    torch.autograd.backward(\n"
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 "
     "GiB\n",
     "gpu-memory", "torch.OutOfMemoryError: CUDA out of memory. Tried", "train.py:61, in main"},
    // A failure on one rank, as torchrun tells it: the table at its end is no reason.
    {"[rank1]: Traceback (most recent call last):\n"
     "[rank1]:   File \"/work/data.py\", line 7, in load\n"
     "[rank1]:     open(path)\n"
     "[rank1]: FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-0001.bin'\n"
     "W0601 10:00:00.000000 139 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 7 closing signal "
     "SIGTERM\n"
     "Traceback (most recent call last):\n"
     "  File \"/usr/local/bin/torchrun\", line 8, in <module>\n"
     "    sys.exit(main())\n"
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
     "============================================================\n"
     "train.py FAILED\n"
     "------------------------------------------------------------\n",
     "file-missing", "'/data/shard-0001.bin'", "data.py:7, in load"},
    // Raised because of another: that one is known.
    {"Traceback (most recent call last):\n"
     "  File \"/work/run.py\", line 3, in load\n"
     "    import flash_attn\n"
     "ImportError: /venv/lib/flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE\n"
     "\n"
     "The above exception was the direct cause of the following exception:\n"
     "\n"
     "Traceback (most recent call last):\n"
     "  File \"/work/run.py\", line 9, in <module>\n"
     "    build()\n"
     "SetupFailed: attention is not there\n",
     "library-other", "undefined symbol", "run.py:3, in load"},
    {"Traceback (most recent call last):\n"
     "  File \"train.py\", line 12, in <module>\n"
     "    step()\n"
     "ValueError: the batch of step 7 is empty\n",
     "", "ValueError: the batch of step 7 is empty", "train.py:12"},
    // A library in C++ that gives up, after a message of Python's that was caught.
    {"checkpoint lost: [enforce fail at inline_container.cc:325] . unexpected pos 320 vs 252\n"
     "terminate called after throwing an instance of 'c10::Error'\n"
     "  what():  [enforce fail at inline_container.cc:325] . unexpected pos 320 vs 252\n"
     "frame #0: c10::ThrowEnforceNotMet(char const*, int) + 0x55 (0x7f45 in libc10.so)\n"
     "frame #1: <unknown function> + 0x2724a (0x7f4545f6424a in libc.so.6)\n",
     "disk-full", "inline_container.cc:325"},
    {"/bin/sh: 1: torchrun: not found\n", "program-missing", "torchrun: not found"},
    {"train.sh: line 3: nvidia-smi: command not found\n", "program-missing", "nvidia-smi: command not found"},
    {"python3: can't open file '/work/trian.py': [Errno 2] No such file or directory\n", "file-missing", "trian.py"},
    {"usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --learning-rate 3e-4\n", "arguments",
     "--learning-rate 3e-4"},
    {"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
     "Traceback (most recent call last):\n"
     "  File \"/work/train.py\", line 40, in <module>\n"
     "RuntimeError: DataLoader worker (pid 312) is killed by signal: Bus error. It is possible that dataloader's "
     "workers "
     "are out of shared memory. Please try to raise your shared memory limit.\n",
     "shm-full", "is killed by signal: Bus error", "train.py:40"},
    {"(EngineCore_0 pid=271) ERROR 06-12 07:16:23 [core.py:586] Traceback (most recent call last):\n"
     "(EngineCore_0 pid=271) ERROR 06-12 07:16:23 [core.py:586]   File "
     "\"/opt/venv/lib/python3.12/site-packages/vllm/v1/"
     "engine/core.py\", line 577, in run_engine_core\n"
     "(EngineCore_0 pid=271) ERROR 06-12 07:16:23 [core.py:586] ValueError: To serve at least one request with the "
     "models's "
     "max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (9.70 "
     "GiB). "
     "No available memory for the cache blocks.\n"
     "Traceback (most recent call last):\n"
     "  File \"/opt/venv/bin/vllm\", line 10, in <module>\n"
     "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
     "gpu-memory", "To serve at least one request"},
    {"0: Traceback (most recent call last):\n0:   File \"a.py\", line 1, in <module>\n"
     "0: ModuleNotFoundError: No module named 'deepspeed'\n"
     "srun: error: n1: task 0: Exited with exit code 1\n",
     "module-missing", "No module named 'deepspeed'", "a.py:1"},
    {"Traceback (most recent call last):\n"
     "  File \"/work/train.py\", line 5, in <module>\n"
     "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there was "
     "a "
     "network error, NCCL version 2.21.5\n",
     "other-rank", "remote process exited", "train.py:5", true},
    {"\x1b[31mRuntimeError\x1b[0m: nothing of this was a traceback\n", "", "RuntimeError: nothing of this"},
    {" 10%|#         | 1/10\r 20%|##        | 2/10\rKilled\n", "", "Killed"},
    {"[rank0]: RuntimeError: Error(s) in loading state_dict for Net:\n"
     "[rank0]: \tsize mismatch for fc.weight: copying a param with shape torch.Size([10, 8])\n",
     "checkpoint-other", "Net: size mismatch for fc.weight"},
};

TEST(LastWords, AreFoundAsProgramsPrintThem) {
    for (const Case& each : kCases) {
        const auto words = last_words(each.text);
        ASSERT_TRUE(words) << each.text;
        EXPECT_EQ(words->name, each.name) << each.text;
        EXPECT_THAT(words->line, HasSubstr(each.line)) << each.text;
        EXPECT_EQ(words->where, each.where) << each.text;
        EXPECT_EQ(words->consequence, each.consequence) << each.text;
        EXPECT_TRUE(words->told) << each.text;
    }
}

// A program that printed its progress and no reason: nothing is made up.
TEST(LastWords, NoReasonIsNone) {
    EXPECT_FALSE(last_words(""));
    EXPECT_FALSE(last_words("\n \n"));
    const auto quiet = last_words("step 1\nstep 2\n");
    ASSERT_TRUE(quiet);
    EXPECT_FALSE(quiet->told);
    EXPECT_EQ(quiet->line, "step 2");
    EXPECT_EQ(quiet->name, "");
    // What was said long before it ended, and survived, is no reason either.
    std::string long_ago = "cp: cannot stat 'x': No such file or directory\n";
    for (int i = 0; i < 100; ++i) long_ago += "step " + std::to_string(i) + "\n";
    EXPECT_FALSE(last_words(long_ago)->told);
}

// Whatever it prints: bytes, cut texts, lines without an end.
TEST(LastWords, AnyBytesAreRead) {
    const std::string all = kCases[1].text;
    for (std::size_t at = 0; at < all.size(); at += 3) {
        (void)last_words(std::string_view(all).substr(at));
        (void)last_words(std::string_view(all).substr(0, at));
    }
    std::string bytes;
    for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 7919 >> 3);
    const auto words = last_words(bytes);
    ASSERT_TRUE(words);
    EXPECT_LE(words->line.size(), 1300u);
}

// stoker doctor --read of what is left of a job, whatever wrote it.
TEST(LastWords, ALogOfAnyProgramIsRead) {
    const std::string log =
        "step 1\nstep 2\n" + std::string(kCases[0].text) + "srun: error: n1: task 0: Exited with exit code 1\n";
    const auto report = read_tool_files({{"slurm-7.out", log}}, {});
    ASSERT_TRUE(report) << report.error().message();
    ASSERT_EQ(report->readings.size(), 1u);
    const ToolReading& reading = report->readings[0];
    EXPECT_EQ(reading.tool, Tool::program_log);
    ASSERT_EQ(reading.notes.size(), 1u);
    EXPECT_EQ(reading.notes[0].line, 11u);
    EXPECT_THAT(reading.notes[0].message, HasSubstr("the GPU's memory is full: torch.OutOfMemoryError"));
    EXPECT_EQ(reading.checks[0].name, "gpu-memory");
    EXPECT_THAT(report->conclusion, HasSubstr("the GPU's memory is full"));
    // Text that is no log is none.
    EXPECT_FALSE(read_tool_files({{"notes.txt", "we met on Monday\n"}}, {}));
}

// Every row can be met: none stands behind one that takes all its lines.
TEST(LastWords, EachRowIsReached) {
    const auto table = Tsv::read(embedded_bytes("readings/last_words.tsv"), "readings/last_words.tsv");
    ASSERT_TRUE(table);
    for (std::size_t row = 0; row < table->rows(); ++row) {
        std::string line(table->at(row, 3));
        for (std::size_t at = line.find(".."); at != std::string::npos; at = line.find(".."))
            line.replace(at, 2, " x ");
        const auto words = last_words(line + "\n");
        ASSERT_TRUE(words) << line;
        EXPECT_EQ(words->name, table->at(row, 0)) << line;
        EXPECT_EQ(words->consequence, table->at(row, 1) == "consequence") << line;
        EXPECT_FALSE(words->what.empty());
    }
}

}  // namespace
}  // namespace stoker
