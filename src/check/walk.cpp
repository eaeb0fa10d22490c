#include "check/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "check/ignore_rules.h"
#include "io/files.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostIgnoreBytes = 1u << 20;
constexpr std::size_t kMostWalkDepth = 200;

// Never part of what a person wrote: repositories' own data, downloaded modules.
constexpr std::array<std::string_view, 6> kForeignFolders = {".git",         ".hg",        ".svn",
                                                             "node_modules", ".terraform", "__pycache__"};

constexpr std::array<std::string_view, 70> kOtherEndings = {
    ".7z",  ".a",     ".arrow", ".avi", ".bin", ".bmp",  ".bz2", ".c",           ".cc",   ".ckpt",    ".class", ".cpp",
    ".cs",  ".css",   ".csv",   ".cu",  ".cuh", ".deb",  ".dll", ".doc",         ".docx", ".dylib",   ".exe",   ".gguf",
    ".gif", ".go",    ".gz",    ".h",   ".h5",  ".hpp",  ".ico", ".jar",         ".java", ".jpeg",    ".jpg",   ".js",
    ".jsx", ".lock",  ".mov",   ".mp3", ".mp4", ".npy",  ".npz", ".o",           ".onnx", ".parquet", ".pdf",   ".pkl",
    ".png", ".proto", ".pt",    ".pth", ".pyc", ".pyi",  ".rs",  ".safetensors", ".so",   ".svg",     ".tar",   ".tgz",
    ".ts",  ".tsv",   ".tsx",   ".ttf", ".wav", ".webp", ".whl", ".woff2",       ".zip",  ".zst"};

std::string joined_path(const std::string& folder, const std::string& name) {
    if (folder.empty() || folder == ".") return name;
    return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

struct FolderWalker {
    const WalkOptions& options;
    Walk& walk;
    const std::string& root;
    std::size_t steps_up;  // of .gitignore paths: how much of the absolute path stands before the repository's root
    std::vector<std::shared_ptr<IgnoreFile>> ignores;

    bool excluded(std::string_view below) const {
        if (options.exclude.empty() || !below.starts_with(options.exclude_root)) return false;
        below.remove_prefix(options.exclude_root.size());
        return std::any_of(options.exclude.begin(), options.exclude.end(), [&](const std::string& glob) {
            // As in .gitignore: without a slash it is a name anywhere, and a folder's name means all in it.
            const std::size_t slash = below.rfind('/');
            return glob_matches(glob, below) || glob_matches(glob + "/**", below) ||
                   (glob.find('/') == std::string::npos &&
                    glob_matches(glob, slash == std::string_view::npos ? below : below.substr(slash + 1)));
        });
    }

    bool ignored(std::string_view absolute, bool is_folder) const {
        const std::string_view path = absolute.substr(std::min(absolute.size(), steps_up));
        for (auto file = ignores.rbegin(); file != ignores.rend(); ++file) {
            const auto verdict = (*file)->judge(path, is_folder);
            if (verdict != IgnoreFile::Verdict::none) return verdict == IgnoreFile::Verdict::ignored;
        }
        return false;
    }

    void read_ignores(const std::string& absolute, const fs::path& file) {
        std::error_code code;
        if (!fs::is_regular_file(file, code)) return;
        auto text = read_file(file.string(), kMostIgnoreBytes);
        if (!text) return;
        std::string folder = absolute.size() > steps_up ? absolute.substr(steps_up) : std::string();
        while (folder.ends_with('/')) folder.pop_back();
        ignores.push_back(std::make_shared<IgnoreFile>(std::move(folder), *text));
    }

    void visit(const std::string& shown, const std::string& absolute, std::size_t depth) {
        if (depth > kMostWalkDepth || walk.files.size() >= options.most_files) return;
        std::error_code code;
        const std::size_t before = ignores.size();
        read_ignores(absolute, fs::path(absolute) / ".gitignore");
        struct Entry {
            std::string name;
            bool folder;
        };
        std::vector<Entry> entries;
        fs::directory_iterator it(absolute, code);
        for (const fs::directory_iterator end; !code && it != end; it.increment(code)) {
            std::error_code ignored_code;
            const fs::file_status status = it->symlink_status(ignored_code);
            if (status.type() != fs::file_type::directory && status.type() != fs::file_type::regular) continue;
            entries.push_back({it->path().filename().string(), status.type() == fs::file_type::directory});
        }
        if (code) {
            walk.unreadable.push_back({fmt::format("cannot list {}: {}", printable(shown), code.message()), {}, {}});
            ignores.resize(before);
            return;
        }
        std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
        for (const Entry& entry : entries) {
            const std::string path = joined_path(shown, entry.name), whole = joined_path(absolute, entry.name);
            if (entry.folder &&
                std::find(kForeignFolders.begin(), kForeignFolders.end(), entry.name) != kForeignFolders.end())
                continue;
            if (ignored(whole, entry.folder) || excluded(whole)) continue;
            if (entry.folder)
                visit(path, whole, depth + 1);
            else if (!never_configuration(entry.name))
                walk.files.push_back({path, root, false});
        }
        ignores.resize(before);
    }
};

void walk_folder(const std::string& path, const WalkOptions& options, Walk& walk) {
    std::error_code code;
    const fs::path absolute = fs::canonical(path, code);
    if (code) {
        walk.unreadable.push_back({fmt::format("cannot read {}: {}", printable(path), code.message()), {}, {}});
        return;
    }
    // The .gitignore files above count when the folder is inside a repository.
    std::vector<fs::path> above;
    fs::path top = absolute;
    for (fs::path folder = absolute;; folder = folder.parent_path()) {
        if (fs::exists(folder / ".git", code)) {
            top = folder;
            break;
        }
        if (folder == folder.root_path()) {
            above.clear();
            break;
        }
        above.push_back(folder.parent_path());
    }
    const std::string top_text = top.string();
    FolderWalker walker{options, walk, path, top_text.size() + (top_text.ends_with('/') ? 0 : 1), {}};
    if (fs::exists(top / ".git", code)) walker.read_ignores(top_text, top / ".git" / "info" / "exclude");
    std::reverse(above.begin(), above.end());
    for (const fs::path& folder : above)
        if (folder.string().size() >= top_text.size()) walker.read_ignores(folder.string(), folder / ".gitignore");
    walker.visit(path, absolute.string(), 0);
}

}  // namespace

bool never_configuration(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return false;
    const std::string ending = lower(name.substr(dot));
    return std::binary_search(kOtherEndings.begin(), kOtherEndings.end(), ending);
}

std::string tidy_path(const std::string& path) {
    std::string tidy = fs::path(path).lexically_normal().generic_string();
    while (tidy.size() > 1 && tidy.ends_with('/')) tidy.pop_back();
    return tidy.empty() ? "." : tidy;
}

Walk walk_paths(const std::vector<std::string>& paths, const WalkOptions& options) {
    Walk walk;
    for (const std::string& given : paths) {
        if (given == "-") {
            walk.files.push_back({"-", "", true});
            continue;
        }
        const std::string path = tidy_path(given);
        std::error_code code;
        const fs::file_status status = fs::status(path, code);
        if (fs::is_directory(status)) {
            walk_folder(path, options, walk);
        } else if (fs::exists(status)) {
            const std::string folder = fs::path(path).parent_path().generic_string();
            walk.files.push_back({path, folder.empty() ? "." : folder, true});
        } else {
            // read_file() knows what to say: the nearest name, no permission.
            auto text = read_file(path, 1);
            if (!text)
                walk.unreadable.insert(walk.unreadable.end(), text.error().problems().begin(),
                                       text.error().problems().end());
        }
    }
    std::stable_sort(walk.files.begin(), walk.files.end(), [](const WalkedFile& a, const WalkedFile& b) {
        return a.path != b.path ? a.path < b.path : a.named > b.named;
    });
    walk.files.erase(std::unique(walk.files.begin(), walk.files.end(),
                                 [](const WalkedFile& a, const WalkedFile& b) { return a.path == b.path; }),
                     walk.files.end());
    return walk;
}

}  // namespace stoker
