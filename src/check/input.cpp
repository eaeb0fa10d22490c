#include "check/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/paths.h"
#include "base/text.h"
#include "base/utf16.h"
#include "io/files.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 64u << 10;  // what a file's kind is told from
constexpr std::size_t kBinaryBytes = 8u << 10;
constexpr std::size_t kMostNeighbourBytes = 4u << 20;
constexpr std::size_t kMostListed = 2000;  // of a folder that a module call names

bool is_utf16(std::string_view text) {
    return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
}

// The first kind of a text, for --kind and its like.
std::optional<lint::Kind> first_kind(lint::Kinds kinds) {
    for (int i = 0; i < lint::kKinds; ++i)
        if (kinds.has(static_cast<lint::Kind>(i))) return static_cast<lint::Kind>(i);
    return std::nullopt;
}

struct OpenFile {
    std::FILE* file;
    ~OpenFile() {
        if (file) std::fclose(file);
    }
    std::size_t read(std::string& text, std::size_t most) const {
        const std::size_t before = text.size();
        text.resize(before + most);
        const std::size_t got = std::fread(text.data() + before, 1, most, file);
        text.resize(before + got);
        return got;
    }
};

// Beyond the limit nothing is parsed, but a configuration that large must not pass for a clean one.
std::shared_ptr<const lint::File> too_large(const std::string& path, const std::string& head, lint::Kinds kinds) {
    auto file = std::make_shared<lint::File>(path, head);
    file->kinds = kinds;
    file->problems.push_back({"SYN005",
                              {0, 0},
                              "the file is larger than 16 MiB: it was not read, and nothing in it was checked",
                              &file->source()});
    return file;
}

}  // namespace

namespace {

// Where a file may look: its folder and the root of what is checked, asked of the disk at the first name, once.
struct Surroundings {
    std::string path, root;
    bool asked = false, known = false;
    fs::path folder{}, top{};

    bool ask() {
        if (asked) return known;
        asked = true;
        std::error_code code;
        const fs::path parent = fs::path(path).parent_path();
        folder = fs::weakly_canonical(parent.empty() ? fs::path(".") : parent, code);
        if (code) return false;
        top = fs::weakly_canonical(root.empty() ? "." : root, code);
        return known = !code;
    }
};

// What `wanted` names beside the file; nothing outside of its folder and of the root.
std::optional<fs::path> beside(Surroundings& around, const std::string& wanted) {
    if (wanted.empty() || fs::path(wanted).is_absolute() || !around.ask()) return std::nullopt;
    std::error_code code;
    const fs::path target = fs::canonical(around.folder / wanted, code);
    if (code) return std::nullopt;
    const std::string real = target.string();
    if (!lies_in(real, around.folder.string()) && !lies_in(real, around.top.string())) return std::nullopt;
    return target;
}

}  // namespace

std::function<std::vector<std::string>(const std::string&)> folder_lister(const std::string& path,
                                                                          const std::string& root) {
    if (path == "-") return {};
    return [around = std::make_shared<Surroundings>(Surroundings{path, root})](const std::string& wanted) {
        std::vector<std::string> names;
        std::error_code code;
        const auto folder = beside(*around, wanted);
        if (!folder || !fs::is_directory(*folder, code)) return names;
        std::size_t seen = 0;
        for (fs::directory_iterator it(*folder, code), end; !code && it != end; it.increment(code)) {
            if (++seen > kMostListed) return std::vector<std::string>();
            if (it->is_regular_file(code)) names.push_back(it->path().filename().string());
        }
        std::sort(names.begin(), names.end());
        return names;
    };
}

std::function<std::optional<std::string>(const std::string&)> neighbour_reader(const std::string& path,
                                                                               const std::string& root) {
    if (path == "-") return {};
    return [around = std::make_shared<Surroundings>(Surroundings{path, root})](
               const std::string& wanted) -> std::optional<std::string> {
        std::error_code code;
        const auto found = beside(*around, wanted);
        if (!found || !fs::is_regular_file(*found, code)) return std::nullopt;
        const fs::path& target = *found;
        if (fs::file_size(target, code) > kMostNeighbourBytes || code) return std::nullopt;
        auto text = stoker::read_file(target.string(), kMostNeighbourBytes);
        if (!text) return std::nullopt;
        return std::move(*text);
    };
}

std::shared_ptr<const lint::File> parse_input(const std::string& path, const std::string& root, std::string text,
                                              const ReadChoice& choice, const std::string& place) {
    const std::optional<lint::Kind> kind = choice.kind;
    lint::ReadOptions options;
    options.kind = kind;
    options.size = choice.size;
    options.workload_problems = choice.workload_problems;
    options.neighbour = neighbour_reader(place.empty() ? path : place, root);
    options.list = folder_lister(place.empty() ? path : place, root);
    // What it would be in UTF-8 decides what it is; that it is none is told as SYN001.
    if (!kind && is_utf16(text))
        if (const auto converted = utf8_from_utf16(text)) options.kind = first_kind(lint::classify(path, *converted));
    return lint::read_file(path, std::move(text), options);
}

std::size_t bytes_of_calls(const CheckInput& input) {
    std::size_t bytes = 0;
    if (input.file)
        lint::for_each_call(*input.file, [&](const lint::File& made) { bytes += made.source().text().size() + 1; });
    return bytes;
}

void forget_calls(CheckInput& input) {
    if (!input.file || input.file->calls.empty()) return;
    input.calls = true;
    std::const_pointer_cast<lint::File>(input.file)->calls.clear();
}

CheckInput read_input(const WalkedFile& walked, const ReadChoice& choice) {
    const std::optional<lint::Kind> kind = choice.kind;
    CheckInput input{walked.path, walked.root, nullptr, {}, {}};
    std::string text;
    std::error_code code;
    if (walked.path == "-" || !fs::is_regular_file(walked.path, code)) {
        auto read = stoker::read_file(walked.path, lint::kMostBytes + 1);
        if (!read) {
            input.unreadable = read.error().problems().front();
            return input;
        }
        text = std::move(*read);
    } else {
        const OpenFile in{std::fopen(walked.path.c_str(), "rbe")};
        if (!in.file) {
            const std::string why = std::strerror(errno);
            if (walked.named)
                input.unreadable = Problem{fmt::format("cannot read {}: {}", printable(walked.path), why), {}, {}};
            else
                input.skipped = why;
            return input;
        }
        in.read(text, kHeadBytes);
        const bool whole = text.size() < kHeadBytes;
        if (!kind && text.substr(0, kBinaryBytes).find('\0') != std::string::npos && !is_utf16(text) &&
            !(walked.named && !lint::classify(walked.path, text).empty())) {
            input.skipped = "not a text";
            return input;
        }
        if (!whole) {
            const auto size = fs::file_size(walked.path, code);
            const lint::Kinds kinds = kind ? lint::Kinds{*kind} : lint::classify(walked.path, text);
            if (kinds.empty() && !is_utf16(text)) {
                input.skipped = "of no kind that is read";
                return input;
            }
            if (!code && size > lint::kMostBytes) {
                input.file = too_large(input.path, text, kinds);
                return input;
            }
            while (text.size() <= lint::kMostBytes && in.read(text, std::min<std::size_t>(1u << 20, size)) > 0) {
            }
        }
    }
    text.shrink_to_fit();  // kept as long as the run: of thousands of files the room to read them in would be most of
                           // it
    input.file = parse_input(input.path, input.root, std::move(text), choice);
    if (!input.file) input.skipped = "of no kind that is read";
    return input;
}

}  // namespace stoker
