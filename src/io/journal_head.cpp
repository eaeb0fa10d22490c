#include "io/journal_head.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "io/sha256.h"

namespace stoker {
namespace {

// Two entries, written in turn, on different pages: one that is torn leaves the other.
constexpr std::array<off_t, 2> kPlaces = {0, 4096};
constexpr std::size_t kEntryBytes = 512;
constexpr auto kSyncEvery = std::chrono::seconds(1);
constexpr std::string_view kWord = "stoker-journal-head-1";

struct Entry {
    std::uint64_t writes = 0;
    KeptHead head;
};

std::string path_of(const std::string& folder) {
    return folder + "/journal-head";
}

std::string text_of(const Entry& entry) {
    std::string text =
        fmt::format("{} {} {} {} {} {} {} ", kWord, entry.writes, entry.head.seq, hex(entry.head.hash),
                    entry.head.site.empty() ? "-" : entry.head.site, entry.head.runs, entry.head.cut ? "cut" : "-");
    text += hex(sha256(text)) + "\n";
    text.resize(kEntryBytes, ' ');
    return text;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<std::string> bytes_of(std::string_view text) {
    if (text.size() != 2 * kDigestBytes) return std::nullopt;
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        unsigned value = 0;
        const auto [end, code] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
        if (code != std::errc() || end != text.data() + i + 2) return std::nullopt;
        bytes += static_cast<char>(value);
    }
    return bytes;
}

std::optional<Entry> parse_entry(std::string_view text) {
    const std::size_t line = text.find('\n');
    if (line == std::string_view::npos) return std::nullopt;
    const std::size_t digest = text.rfind(' ', line);
    if (digest == std::string_view::npos ||
        text.substr(digest + 1, line - digest - 1) != hex(sha256(text.substr(0, digest + 1))))
        return std::nullopt;
    const std::vector<std::string_view> words = split(text.substr(0, digest), ' ');
    if (words.size() != 7 || words[0] != kWord) return std::nullopt;
    const auto writes = number_of(words[1]), seq = number_of(words[2]), runs = number_of(words[5]);
    auto hash = bytes_of(words[3]);
    if (!writes || !seq || !runs || !hash) return std::nullopt;
    return Entry{.writes = *writes,
                 .head = {.seq = *seq,
                          .hash = std::move(*hash),
                          .site = words[4] == "-" ? "" : std::string(words[4]),
                          .runs = *runs,
                          .cut = words[6] == "cut"}};
}

std::optional<Entry> newest_entry(int fd) {
    std::optional<Entry> newest;
    for (const off_t place : kPlaces) {
        std::string text(kEntryBytes, '\0');
        const ssize_t got = ::pread(fd, text.data(), text.size(), place);
        text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        auto entry = parse_entry(text);
        if (entry && (!newest || entry->writes > newest->writes)) newest = std::move(entry);
    }
    return newest;
}

}  // namespace

Result<KeptHead> read_kept_head(const std::string& folder) {
    const std::string path = path_of(folder);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        const ErrorKind kind = errno == ENOENT || errno == ENOTDIR ? ErrorKind::not_found : ErrorKind::denied;
        return Error(kind, fmt::format("cannot read {}: {}", printable(path), std::strerror(errno)));
    }
    auto entry = newest_entry(fd);
    // One that was made and not written yet says nothing.
    char any = 0;
    const bool empty = ::pread(fd, &any, 1, 0) == 0;
    ::close(fd);
    if (entry) return std::move(entry->head);
    if (empty) return Error(ErrorKind::not_found, printable(path) + " is empty");
    return Error(ErrorKind::invalid, printable(path) + ", which says how long the journal is, is damaged");
}

std::unique_ptr<HeadFile> HeadFile::open(const std::string& folder) {
    const int fd = ::open(path_of(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return nullptr;
    std::unique_ptr<HeadFile> file(new HeadFile(fd));
    if (const auto entry = newest_entry(fd)) file->writes_ = entry->writes;
    return file;
}

HeadFile::~HeadFile() {
    (void)::fdatasync(fd_);
    ::close(fd_);
}

void HeadFile::write(const KeptHead& head) {
    const Entry entry{.writes = ++writes_, .head = head};
    const std::string text = text_of(entry);
    const off_t place = kPlaces[entry.writes % kPlaces.size()];
    // A write that fails leaves the entry before, which is older and true.
    if (::pwrite(fd_, text.data(), text.size(), place) != static_cast<ssize_t>(text.size())) return;
    const auto now = std::chrono::steady_clock::now();
    if (!head.cut && now - synced_ < kSyncEvery) return;
    (void)::fdatasync(fd_);
    synced_ = now;
}

}  // namespace stoker
