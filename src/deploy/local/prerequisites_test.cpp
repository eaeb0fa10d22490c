#include "deploy/local/prerequisites.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class PrerequisitesTest : public ::testing::Test {
protected:
    PrerequisitesTest() {
        std::string name = fs::temp_directory_path() / "stoker-need-XXXXXX";
        place.folder = ::mkdtemp(name.data());
        place.root = place.folder;
    }
    ~PrerequisitesTest() override { fs::remove_all(place.folder); }
    static Deadline in(double seconds) {
        return std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
    }
    void write(const std::string& name, const std::string& text, int mode = 0644) const {
        const std::string path = place.folder + "/" + name;
        fs::create_directories(fs::path(path).parent_path());
        std::ofstream(path) << text;
        ::chmod(path.c_str(), static_cast<mode_t>(mode));
    }
    std::vector<Problem> problems(double seconds = 30) const {
        const Status status = check_prerequisites(spec, place, in(seconds));
        return status ? std::vector<Problem>() : status.error().problems();
    }
    PrerequisitesSpec spec;
    PrerequisitesPlace place;
};

// Nothing asked, or all there: the run may start.
TEST_F(PrerequisitesTest, WhatIsThereIsNoProblem) {
    EXPECT_TRUE(problems().empty());
    write("data/train.bin", "x");
    write("proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\nGCC version:  gcc 12\n");
    write("image/config.json", "{}");
    spec = {.commands = {"sh", "python3"},
            .python_modules = {"json", "os.path"},
            .paths = {"data/train.bin", "data", "/"},
            .disk_bytes = 1,
            .driver = "535.104"};
    place.image = "image";
    EXPECT_TRUE(problems().empty()) << problems().front().message;
}

// Ten minutes into a training is the wrong time to learn the second thing that is missing: all are told at once, each
// with its remedy.
TEST_F(PrerequisitesTest, AllThatIsMissingIsToldTogether) {
    write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun\n");
    write("image/rootfs/x", "");
    spec = {.commands = {"pyhton3", "sh"},
            .python_modules = {"json", "no_such_module", "no.such"},
            .paths = {"data/train.bin", "/etc/passwd"},
            .disk_bytes = std::int64_t{1} << 60,
            .driver = "535.104"};
    place.image = "image";
    const auto found = problems();
    std::string all;
    for (const Problem& problem : found) {
        all += problem.message + "\n";
        EXPECT_FALSE(problem.remedy.empty()) << problem.message;
    }
    EXPECT_EQ(found.size(), 6u) << all;
    for (const char* part :
         {"pyhton3", "did you mean python3", "data/train.bin is needed", "GiB of free disk",
          "535.104 or newer is needed, 535.54.03", "has no config.json", "lacks the modules no_such_module, no.such"})
        EXPECT_NE(all.find(part), std::string::npos) << part << " is not in\n" << all;
}

// A module may be large or broken: it is found, not run.
TEST_F(PrerequisitesTest, ModulesAreNotImported) {
    write("site/heavy.py", "open('" + place.folder + "/ran', 'w')\nraise SystemExit(1)\n");
    spec.python_modules = {"heavy"};
    place.environment = {{"PYTHONPATH", place.folder + "/site"}};
    EXPECT_TRUE(problems().empty());
    EXPECT_FALSE(fs::exists(place.folder + "/ran"));
}

// A Python that hangs must hold neither the caller nor a process for ever.
TEST_F(PrerequisitesTest, AHangingPythonIsEnded) {
    write("python3", "#!/bin/sh\nsleep 600 & wait\n", 0755);
    spec.python_modules = {"torch"};
    spec.python = place.folder + "/python3";
    place.environment = {{"NEED_MARK", place.folder}};
    const Status status = check_prerequisites(spec, place, in(0.6));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind(), ErrorKind::timed_out);
    for (int i = 0; i < 2000 && !processes_with("NEED_MARK=" + place.folder).empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(processes_with("NEED_MARK=" + place.folder).empty());
}

// What is no Python is said to be none, rather than to lack the module.
TEST_F(PrerequisitesTest, WhatIsNoPythonIsSaid) {
    write("python3", "#!/bin/sh\necho hello\necho you\n", 0755);
    spec.python_modules = {"torch"};
    spec.python = place.folder + "/python3";
    ASSERT_EQ(problems().size(), 1u);
    EXPECT_NE(problems()[0].message.find("no Python"), std::string::npos) << problems()[0].message;
    spec.python = "python-of-nobody";
    ASSERT_EQ(problems().size(), 1u);
    EXPECT_NE(problems()[0].message.find("Python is missing"), std::string::npos) << problems()[0].message;
}

}  // namespace
}  // namespace stoker
