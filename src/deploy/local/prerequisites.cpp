#include "deploy/local/prerequisites.h"

#include <poll.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "deploy/image_name.h"
#include "deploy/local/rank_environment.h"
#include "io/files.h"
#include "io/process.h"

extern char** environ;

namespace stoker {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostPythonOutput = 1 << 20;
constexpr double kProblemReserveS = 0.2;  // of the time, for what comes after Python

// For each argument a line: "1" when the module can be found. Nothing of the module runs, except that finding a.b
// imports a, as Python's own import would.
constexpr const char* kFindModules =
    "import importlib.util, os, sys\n"
    "out = os.fdopen(os.dup(1), 'w')\n"
    "os.dup2(2, 1)\n"
    "for name in sys.argv[1:]:\n"
    "    try:\n"
    "        found = importlib.util.find_spec(name) is not None\n"
    "    except BaseException:\n"
    "        found = False\n"
    "    out.write('1\\n' if found else '0\\n')\n"
    "    out.flush()\n";

std::string own_path() {
    const char* path = std::getenv("PATH");
    return path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
}

std::string below(const std::string& folder, const std::string& path) {
    return path.starts_with('/') ? path : (fs::path(folder) / path).lexically_normal().string();
}

struct PythonAnswer {
    std::string lines;
    std::string problem;  // it could not be asked
    bool late = false;
};

PythonAnswer ask_python(const std::string& python, const PrerequisitesSpec& spec, const PrerequisitesPlace& place,
                        const std::string& search_path, Deadline deadline) {
    PythonAnswer answer;
    auto pipe = make_pipe();
    if (!pipe) return {.problem = pipe.error().message()};
    DetachedProgram program{.path = python,
                            .arguments = {python, "-c", kFindModules},
                            .standard_output = pipe->write.get(),
                            .error_file = "/dev/null"};
    program.arguments.insert(program.arguments.end(), spec.python_modules.begin(), spec.python_modules.end());
    std::map<std::string, std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        if (const std::size_t equals = text.find('='); equals != std::string_view::npos)
            environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    for (const auto& [key, value] : place.environment) environment[key] = value;
    environment["PATH"] = search_path;
    for (const auto& [key, value] : environment) program.environment.push_back(key + "=" + value);
    const auto child = start_detached(program);
    if (!child) return {.problem = child.error().message()};
    pipe->write.reset();
    char block[4096];
    for (;;) {
        pollfd wait{.fd = pipe->read.get(), .events = POLLIN, .revents = 0};
        const int left = milliseconds_until(deadline);
        if (left == 0) {
            answer.late = true;
            break;
        }
        if (::poll(&wait, 1, left) <= 0) continue;
        const ssize_t got = ::read(pipe->read.get(), block, sizeof block);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0 || answer.lines.size() > kMostPythonOutput) break;
        answer.lines.append(block, static_cast<std::size_t>(got));
    }
    // It leads a session of its own, so that what it started goes with it.
    ::kill(-*child, SIGKILL);
    (void)reap(*child, std::chrono::steady_clock::now() + std::chrono::seconds(5));
    return answer;
}

class Checker {
public:
    Checker(const PrerequisitesSpec& spec, const PrerequisitesPlace& place, Deadline deadline)
        : spec_(spec), place_(place), deadline_(deadline) {
        const auto path = place.environment.find("PATH");
        search_path_ = path == place.environment.end() ? own_path() : path->second;
    }

    Status check() {
        const bool sound_folder = check_folder();
        for (const std::string& command : spec_.commands) check_command(command);
        for (const std::string& path : spec_.paths) check_path(path);
        if (sound_folder || !place_.disk_folder.empty()) check_disk();
        check_driver();
        check_image();
        check_modules();
        if (problems_.empty()) return done();
        const ErrorKind kind = late_ && problems_.size() == 1 ? ErrorKind::timed_out : ErrorKind::infeasible;
        return Error(kind, std::move(problems_));
    }

private:
    void missing(std::string message, std::string remedy) {
        problems_.push_back({.message = std::move(message), .remedy = std::move(remedy)});
    }

    bool check_folder() {
        std::error_code code;
        if (place_.folder.empty() || fs::is_directory(place_.folder, code)) return true;
        missing(fmt::format("the working directory {} {}", printable(place_.folder),
                            fs::exists(place_.folder, code) ? "is no folder" : "does not exist"),
                "make it, or name another as `folder`");
        return false;
    }

    void check_command(const std::string& command) {
        FoundProgram found = find_program(command, search_path_, place_.folder);
        if (!found.problem.empty())
            missing("the command " + printable(command) + " is needed: " + found.problem,
                    "install it, or put its folder into PATH under `environment`");
    }

    void check_path(const std::string& name) {
        const std::string path = below(place_.folder, name);
        if (::access(path.c_str(), R_OK) == 0) return;
        if (errno != ENOENT && errno != ENOTDIR)
            return missing(printable(path) + " is needed and cannot be read: " + std::strerror(errno),
                           "give yourself the right to read it, or name another path");
        // The first part that is not there says more than the whole.
        fs::path there = path;
        std::error_code code;
        while (there.has_relative_path() && !fs::exists(there, code)) there = there.parent_path();
        missing(printable(path) + " is needed and does not exist",
                fmt::format("put it there, or correct the path; what exists of it is {}", printable(there.string())));
    }

    void check_disk() {
        if (spec_.disk_bytes <= 0) return;
        fs::path folder = place_.disk_folder.empty() ? place_.folder : place_.disk_folder;
        std::error_code code;
        while (folder.has_relative_path() && !fs::exists(folder, code)) folder = folder.parent_path();
        struct statvfs disk {};
        if (::statvfs(folder.c_str(), &disk) != 0)
            return missing(
                "cannot tell how much space is free at " + printable(folder.string()) + ": " + std::strerror(errno),
                "name a folder on a disk that can be looked at");
        const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
        const auto wanted = static_cast<double>(spec_.disk_bytes);
        if (free < wanted)
            missing(fmt::format("{:.1f} GiB of free disk are needed at {}, {:.1f} GiB are there", wanted / (1 << 30),
                                printable(folder.string()), free / (1 << 30)),
                    fmt::format("free {:.1f} GiB, or use a folder on another disk", (wanted - free) / (1 << 30)));
    }

    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023"; the open modules say
    // "NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  ...".
    void check_driver() {
        if (spec_.driver.empty()) return;
        const auto text = read_file(below(place_.root, "proc/driver/nvidia/version"), 1 << 16);
        if (!text)
            return missing(fmt::format("the NVIDIA driver {} or newer is needed, and none is loaded here",
                                       printable(spec_.driver)),
                           "install the driver, or run this on a machine with a GPU");
        const auto lines = split_lines(*text);
        const auto words = split_words(lines.empty() ? std::string_view() : lines.front());
        const auto version = std::find_if(words.begin(), words.end(), [](std::string_view word) {
            return word.find('.') != std::string_view::npos &&
                   word.find_first_not_of("0123456789.") == std::string_view::npos;
        });
        if (version == words.end())
            return missing("cannot tell the version of the NVIDIA driver from /proc/driver/nvidia/version",
                           "drop `driver` from the prerequisites if you know that it is new enough");
        if (version_of(*version) < version_of(spec_.driver))
            missing(fmt::format("the NVIDIA driver {} or newer is needed, {} is loaded", printable(spec_.driver),
                                printable(*version)),
                    "update the driver");
    }
    static std::vector<std::uint64_t> version_of(std::string_view text) {
        std::vector<std::uint64_t> numbers;
        for (const std::string_view part : split(text, '.')) {
            std::uint64_t number = 0;
            for (const char c : part.substr(0, 9))
                if (c >= '0' && c <= '9') number = number * 10 + static_cast<std::uint64_t>(c - '0');
            numbers.push_back(number);
        }
        while (!numbers.empty() && numbers.back() == 0) numbers.pop_back();
        return numbers;
    }

    void check_image() {
        if (place_.image.empty() || is_pinned_image(place_.image)) return;
        const std::string bundle = below(place_.folder, place_.image);
        std::error_code code;
        if (!fs::is_directory(bundle, code))
            return missing("the image " + printable(bundle) + " is no folder",
                           "name an unpacked OCI bundle: a folder with config.json and rootfs");
        if (!fs::is_regular_file(bundle + "/config.json", code))
            missing("the image " + printable(bundle) + " has no config.json",
                    "make a bundle of it: `runc spec` in the folder writes one");
    }

    void check_modules() {
        if (spec_.python_modules.empty()) return;
        const FoundProgram python = find_program(spec_.python, search_path_, place_.folder);
        if (!python.problem.empty())
            return missing(fmt::format("Python modules are needed ({}), and Python is missing: {}",
                                       printable(join(spec_.python_modules, ", ")), python.problem),
                           "install it, or name another as `python`");
        const Deadline until = deadline_ - std::chrono::milliseconds(static_cast<int>(kProblemReserveS * 1000));
        const PythonAnswer answer = ask_python(python.path, spec_, place_, search_path_, until);
        if (!answer.problem.empty())
            return missing("Python cannot be asked for its modules: " + answer.problem, "try again in a minute");
        const auto lines = split_lines(answer.lines);
        if (answer.late) {
            late_ = true;
            const std::size_t at = std::min(lines.size(), spec_.python_modules.size() - 1);
            missing(fmt::format("{} did not tell in time whether it has the module {}", printable(python.path),
                                printable(spec_.python_modules[at])),
                    "try again; a slow network disk under Python is the usual reason");
        } else if (lines.size() != spec_.python_modules.size()) {
            return missing(printable(python.path) + " cannot be asked for its modules: it is no Python 3.4 or newer",
                           "name another as `python`");
        }
        std::vector<std::string> absent;
        for (std::size_t i = 0; i < std::min(lines.size(), spec_.python_modules.size()); ++i)
            if (lines[i] != "1") absent.push_back(spec_.python_modules[i]);
        if (absent.empty()) return;
        missing(fmt::format("{} lacks the module{} {}", printable(python.path), absent.size() == 1 ? "" : "s",
                            printable(join(absent, ", "), 400)),
                fmt::format("install {} for this Python (a package may have another name than its module), or name "
                            "another Python as `python`",
                            absent.size() == 1 ? "it" : "them"));
    }

    const PrerequisitesSpec& spec_;
    const PrerequisitesPlace& place_;
    const Deadline deadline_;
    std::string search_path_;
    std::vector<Problem> problems_;
    bool late_ = false;
};

}  // namespace

Status check_prerequisites(const PrerequisitesSpec& spec, const PrerequisitesPlace& place, Deadline deadline) {
    return Checker(spec, place, deadline).check();
}

}  // namespace stoker
