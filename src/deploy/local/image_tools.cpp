#include "deploy/local/image_tools.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/document.h"
#include "base/text.h"
#include "io/files.h"
#include "io/process.h"
#include "io/sha256.h"

extern char** environ;

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostManifest = 8 << 20, kMostComplaint = 64 << 10;
constexpr auto kToolPoll = std::chrono::milliseconds(100);
// A connection that brings no byte for so long is given up; skopeo itself would wait for ever.
constexpr auto kStallLimit = std::chrono::seconds(120);
// A registry that nodes reach and we may not is not waited for any longer.
constexpr auto kNodesRegistryLimit = std::chrono::seconds(5);

std::string tool_path(const std::string& tool) {
    for (const char* folder : {"/usr/bin/", "/usr/local/bin/", "/usr/sbin/", "/usr/local/sbin/", "/opt/homebrew/bin/"})
        if (::access((folder + tool).c_str(), X_OK) == 0) return folder + tool;
    return {};
}

std::string text_of_file(const std::string& path, std::size_t most) {
    std::string text(most, '\0');
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
}

struct ToolRun {
    std::string output, complaint;
    bool ok = false, late = false, stopped = false;
};

// Runs in `folder`, with its output and complaint in files there. `go_on` is asked again and again.
Result<ToolRun> run_tool(const std::string& tool, std::vector<std::string> arguments, const std::string& folder,
                         Deadline deadline, const std::function<bool()>& go_on = {}) {
    const std::string path = tool_path(tool);
    if (path.empty()) return Error(ErrorKind::unavailable, why_no_fetching());
    const std::string out = folder + "/" + tool + ".out", err = folder + "/" + tool + ".err";
    const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
    const UniqueFd output(::open(out.c_str(), flags, 0600)), complaint(::open(err.c_str(), flags, 0600));
    const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!output || !complaint || !nothing)
        return Error(ErrorKind::unavailable, "cannot write in " + printable(folder) + ": " + std::strerror(errno));
    arguments.insert(arguments.begin(), tool);
    std::vector<char*> words, environment;
    for (std::string& each : arguments) words.push_back(each.data());
    words.push_back(nullptr);
    // What the person set for registries (proxies, REGISTRY_AUTH_FILE, HOME) counts; large temporary files go to the
    // folder, which is removed whatever happens.
    std::string temporary = "TMPDIR=" + folder;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
        if (!std::string_view(*entry).starts_with("TMPDIR=") && !std::string_view(*entry).starts_with("STOKER_"))
            environment.push_back(*entry);
    environment.push_back(temporary.data());
    environment.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return Error(ErrorKind::exhausted, std::string("cannot fork: ") + std::strerror(errno));
    if (child == 0) {
        // No other call than those that are safe after fork() in a program with threads.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a server that is killed leaves nothing that goes on fetching
        if (::getppid() != parent || ::chdir(folder.c_str()) != 0) ::_exit(126);
        ::dup2(nothing.get(), 0);
        ::dup2(output.get(), 1);
        ::dup2(complaint.get(), 2);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::execve(path.c_str(), words.data(), environment.data());
        ::_exit(127);
    }
    ToolRun run;
    std::optional<int> status;
    while (!(status = reap(child, std::min(deadline, Clock::now() + kToolPoll)))) {
        run.late = Clock::now() >= deadline;
        run.stopped = go_on && !go_on();
        if (!run.late && !run.stopped) continue;
        ::kill(child, SIGKILL);
        reap(child, Clock::now() + std::chrono::seconds(5));
        return run;
    }
    run.ok = *status == 0;
    run.output = text_of_file(out, kMostManifest);
    run.complaint = text_of_file(err, kMostComplaint);
    return run;
}

// A registry on this machine speaks plain HTTP, as with docker; for others /etc/containers/registries.conf decides.
bool is_loopback(const std::string& registry) {
    return registry.starts_with("127.") || registry.starts_with("[::1]") || registry == "localhost" ||
           registry.starts_with("localhost:");
}

std::string skopeo_name(const ImageName& name, const std::string& digest) {
    if (name.transport != "docker") return name.transport + ":" + name.place;
    // Both a tag and a digest are refused by skopeo.
    return "docker://" + name.place +
           (!digest.empty()     ? "@" + digest
            : !name.tag.empty() ? ":" + name.tag
                                : std::string());
}

std::string processor() {
    utsname names{};
    ::uname(&names);
    const std::string machine = names.machine;
    return machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : machine;
}

std::int64_t size_of(const Node* node) {
    return node != nullptr && node->kind == NodeKind::number && node->number > 0 && node->number < 1e15
               ? static_cast<std::int64_t>(node->number)
               : 0;
}

// The layers of a manifest, and the digest of the manifest for this processor when it is a list of them.
std::int64_t bytes_of_layers(const std::string& manifest, std::string& own) {
    const auto document = Document::parse_json(manifest, "manifest");
    if (!document || !document->root().is_mapping()) return 0;
    std::int64_t bytes = 0;
    if (const Node* layers = document->root().find("layers"); layers != nullptr)
        for (const auto& layer : layers->items)
            if (layer->is_mapping()) bytes += size_of(layer->find("size"));
    if (const Node* list = document->root().find("manifests"); list != nullptr)
        for (const auto& entry : list->items) {
            const Node* platform = entry->is_mapping() ? entry->find("platform") : nullptr;
            const Node* digest = entry->is_mapping() ? entry->find("digest") : nullptr;
            const Node* architecture =
                platform != nullptr && platform->is_mapping() ? platform->find("architecture") : nullptr;
            if (digest != nullptr && architecture != nullptr && architecture->text == processor() && own.empty())
                own = digest->text;
        }
    return bytes;
}

Result<std::string> raw_manifest(const ImageName& name, const std::string& digest, Deadline deadline) {
    TRY(const ScratchFolder scratch, ScratchFolder::make("image"));
    std::vector<std::string> arguments = {"inspect", "--raw"};
    if (is_loopback(name.registry())) arguments.emplace_back("--tls-verify=false");
    arguments.push_back(skopeo_name(name, digest));
    TRY(ToolRun run, run_tool("skopeo", std::move(arguments), scratch.path(), deadline));
    if (run.late)
        return Error(ErrorKind::timed_out,
                     (name.registry().empty() ? printable(name.place) : "the registry " + name.registry()) +
                         " did not answer in time about the image " + printable(name.text()),
                     {}, "look whether this machine reaches it; a proxy is set by https_proxy");
    if (!run.ok) return error_of_tool(name, run.complaint);
    return std::move(run.output);
}

std::int64_t bytes_below(const std::string& folder) {
    std::int64_t bytes = 0;
    std::error_code code;
    for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
        std::error_code gone;
        if (it->is_regular_file(gone)) bytes += static_cast<std::int64_t>(it->file_size(gone));
    }
    return bytes;
}

}  // namespace

std::string why_no_fetching() {
    std::string missing;
    for (const char* tool : {"skopeo", "umoci"})
        if (tool_path(tool).empty()) missing += (missing.empty() ? "" : " ") + std::string(tool);
    return missing.empty() ? "" : "images are fetched with skopeo and umoci: apt-get install " + missing;
}

// skopeo and umoci write lines like: time="..." level=fatal msg="Error parsing image name \"...\": reading manifest
// ..."
Error error_of_tool(const ImageName& name, const std::string& said) {
    std::string words;
    for (const std::string_view line : split_lines(said)) {
        const std::size_t at = line.find("msg=\"");
        if (at == std::string_view::npos) {
            if (!trim(line).empty()) words = trim(line);
            continue;
        }
        words = line.substr(at + 5);
        if (words.ends_with('"')) words.pop_back();
        words = replace_all(words, "\\\"", "\"");
    }
    for (const std::string_view opening : {"Error parsing image name \"", "initializing source "})
        if (words.starts_with(opening))
            if (const std::size_t colon = words.find(": ", opening.size()); colon != std::string::npos)
                words = words.substr(colon + 2);
    const auto has = [&](std::initializer_list<const char*> parts) {
        const std::string all = lower(words);
        return std::any_of(parts.begin(), parts.end(),
                           [&](const char* part) { return all.find(part) != std::string::npos; });
    };
    const std::string what = "image " + printable(name.text()) + ": ", detail = ": " + printable(words, 400);
    const std::string registry = name.registry();
    if (has({"manifest unknown", "name unknown", "not found", "was deleted", "no such file", "not exist",
             "unexpected eof reading", "no image found"}) &&
        !has({"lookup ", "executable"}))
        return Error(ErrorKind::not_found, what + "there is no such image" + detail, {},
                     "look for its name and tag; a name without a registry is one of docker.io");
    if (has({"unauthorized", "denied", "authentication required", "forbidden"}))
        return Error(ErrorKind::denied,
                     what + (registry.empty() ? "it may not be read" : "denied, or there is no such image") + detail,
                     {},
                     registry.empty() ? "let the user of the server read it"
                                      : "log in as the user of the server: skopeo login " + registry);
    if (has({"x509", "certificate", "gave http response to https"}))
        return Error(ErrorKind::denied, what + "the connection to " + registry + " is not trusted" + detail, {},
                     "put its certificate into /etc/containers/certs.d/" + registry +
                         ", or name it as insecure in /etc/containers/registries.conf");
    if (has({"no space left"}))
        return Error(ErrorKind::exhausted, what + "the disk is full" + detail, {},
                     "free space where the server writes");
    if (has({"lookup ", "connection refused", "timeout", "unreachable", "reset by peer", "eof", "toomanyrequests",
             "too many requests", "500", "502", "503", "504", "no route"}))
        return Error(ErrorKind::unavailable, what + "the registry cannot be reached" + detail, {},
                     "look whether this machine reaches " + (registry.empty() ? "it" : registry) +
                         "; a proxy is set by https_proxy");
    if (registry.empty())
        return Error(ErrorKind::invalid, what + "it is no image that can be read" + detail, {},
                     "an archive is what skopeo copy or podman save --format oci-archive write");
    return Error(ErrorKind::unavailable, what + "it cannot be fetched" + detail);
}

Result<Manifest> ask_for_manifest(ImageName& name, Deadline deadline) {
    auto raw = raw_manifest(name, name.digest, deadline);
    if (!raw && name.transport == "oci-archive") {
        ImageName other = name;
        other.transport = "docker-archive";
        if (auto second = raw_manifest(other, "", deadline)) {
            raw = std::move(second);
            name = std::move(other);
        }
    }
    if (!raw) return raw.error();
    Manifest manifest{.digest = "sha256:" + hex(sha256(*raw))};
    if (!name.digest.empty() && name.digest != manifest.digest)
        return Error(ErrorKind::conflict,
                     "image " + printable(name.text()) + ": what is there now is another one, " + manifest.digest, {},
                     "submit the run again to take the new one");
    std::string own;
    manifest.bytes = bytes_of_layers(*raw, own);
    if (manifest.bytes == 0 && !own.empty() && name.transport == "docker")
        if (const auto inner = raw_manifest(name, own, deadline)) manifest.bytes = bytes_of_layers(*inner, own);
    return manifest;
}

Result<std::string> pin_image(const std::string& image, const std::string& folder, Deadline deadline) {
    if (is_pinned_image(image)) return image;
    TRY(ImageName name, parse_image_name(image, folder));
    if (name.transport.empty()) return image;
    if (const std::string why = why_no_fetching(); !why.empty())
        return Error(ErrorKind::unavailable, why, {}, "install it where the server runs");
    TRY(const Manifest manifest, ask_for_manifest(name, deadline));
    name.digest = manifest.digest;
    return name.text();
}

Result<std::string> pin_image_of_nodes(const std::string& image, Deadline deadline) {
    if (is_pinned_image(image)) return image;
    const auto stays = [&](std::string_view why) {
        return Error(ErrorKind::unsupported, "it stays as it is written: " + std::string(why));
    };
    auto name = parse_image_name(image, "/");
    if (!name || name->registry().empty()) return stays("it is named in no registry");
    const auto manifest = ask_for_manifest(*name, std::min<Deadline>(deadline, Clock::now() + kNodesRegistryLimit));
    if (!manifest && manifest.error().kind() == ErrorKind::not_found) return manifest.error();
    if (!manifest) return stays(manifest.error().message());
    name->digest = manifest->digest;
    return name->text();
}

Status fetch_bundle(const ImageName& name, const std::string& folder, const FetchProgress& progress,
                    Deadline deadline) {
    if (name.transport != "docker") {
        ImageName again = name;  // it lies where anybody may have changed it
        TRY_VOID(ask_for_manifest(again, deadline));
    }
    std::int64_t seen = 0;
    auto moved = Clock::now();
    bool stalled = false;
    const auto go_on = [&] {
        if (const std::int64_t bytes = bytes_below(folder + "/layout"); bytes != seen) {
            seen = bytes;
            moved = Clock::now();
            progress.fetched(bytes);
        }
        stalled = Clock::now() - moved > kStallLimit;
        return !stalled && !progress.stop();
    };
    // Relative names: a colon in a path would mean something.
    std::vector<std::string> copy = {"copy", "--quiet"};
    if (is_loopback(name.registry())) copy.emplace_back("--src-tls-verify=false");
    copy.insert(copy.end(), {skopeo_name(name, name.digest), "oci:layout:image"});
    TRY(ToolRun fetched, run_tool("skopeo", std::move(copy), folder, deadline, go_on));
    const std::string what = "image " + printable(name.text()) + ": ";
    if (stalled) return Error(ErrorKind::timed_out, what + "no byte has come for two minutes");
    if (fetched.stopped) return Error(ErrorKind::unavailable, what + "the server ends");
    if (fetched.late) return Error(ErrorKind::timed_out, what + "it was not fetched in time");
    if (!fetched.ok) return error_of_tool(name, fetched.complaint);

    std::vector<std::string> unpack = {"unpack"};
    if (::geteuid() != 0) unpack.emplace_back("--rootless");
    unpack.insert(unpack.end(), {"--image", "layout:image", "bundle"});
    TRY(ToolRun unpacked, run_tool("umoci", std::move(unpack), folder, deadline, [&] { return !progress.stop(); }));
    if (unpacked.stopped) return Error(ErrorKind::unavailable, what + "the server ends");
    if (unpacked.late) return Error(ErrorKind::timed_out, what + "it was not unpacked in time");
    if (!unpacked.ok) return error_of_tool(name, unpacked.complaint);
    return done();
}

}  // namespace stoker
