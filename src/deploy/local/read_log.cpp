#include "deploy/local/read_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "io/process.h"

namespace stoker {
namespace {

constexpr std::size_t kMark = 24;                  // bytes before the cursor that find it again
constexpr std::int64_t kMostSought = 64 << 20;     // of FILE.1, for such a place
constexpr std::int64_t kMostSearched = 256 << 20;  // of both files
constexpr std::size_t kMostLogLine = 4096;

struct File {
    UniqueFd fd;
    std::uint64_t inode = 0;  // 0: there is none
    std::int64_t size = 0;
};

File open_log(const std::string& path) {
    File file{
        .fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)), .inode = 0, .size = 0};
    struct stat status {};
    if (!file.fd || ::fstat(file.fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    file.inode = status.st_ino;
    file.size = status.st_size;
    return file;
}

std::string read_at(const File& file, std::int64_t offset, std::size_t most) {
    std::string out;
    if (file.inode == 0 || offset < 0) return out;
    out.resize(most);
    std::size_t have = 0;
    while (have < most) {
        const ssize_t got =
            ::pread(file.fd.get(), out.data() + have, most - have, offset + static_cast<std::int64_t>(have));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += static_cast<std::size_t>(got);
    }
    out.resize(have);
    return out;
}

struct Place {
    bool old = false;             // in FILE.1
    std::uint64_t old_inode = 0;  // of FILE.1 when it was taken; 0: there was none
    std::int64_t offset = 0;
    std::string mark;
};

std::string encode(const Place& place) {
    std::string text = fmt::format("{}{:x}.{}.", place.old ? 'o' : 'c', place.old_inode, place.offset);
    for (const char c : place.mark) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
}

bool decode(std::string_view text, Place& place) {
    if (text.size() > 200 || text.empty() || (text[0] != 'o' && text[0] != 'c')) return false;
    place.old = text[0] == 'o';
    const auto parts = split(text.substr(1), '.');
    if (parts.size() != 3 || parts[2].size() % 2 != 0 || parts[2].size() > 2 * kMark) return false;
    const auto whole = [](std::string_view part, auto& value, int base) {
        const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value, base);
        return !part.empty() && code == std::errc() && end == part.data() + part.size();
    };
    if (!whole(parts[0], place.old_inode, 16) || !whole(parts[1], place.offset, 10) || place.offset < 0) return false;
    for (std::size_t i = 0; i < parts[2].size(); i += 2) {
        unsigned value = 0;
        if (!whole(parts[2].substr(i, 2), value, 16)) return false;
        place.mark += static_cast<char>(value);
    }
    return true;
}

std::string mark_before(const File& file, std::int64_t offset) {
    const std::int64_t from = std::max<std::int64_t>(0, offset - static_cast<std::int64_t>(kMark));
    return read_at(file, from, static_cast<std::size_t>(offset - from));
}

// Where the text after `mark` goes on in FILE.1, which begins a little after the file did that `offset` counted in: the
// last place at or before `offset`. -1: not there.
std::int64_t find_mark(const File& file, std::int64_t offset, const std::string& mark) {
    if (mark.empty()) return 0;  // nothing had been read
    constexpr std::int64_t kBlock = 1 << 20;
    std::int64_t end = std::min(offset, file.size);
    const std::int64_t lowest = std::max<std::int64_t>(0, end - kMostSought);
    while (end > lowest) {
        const std::int64_t from = std::max(lowest, end - kBlock);
        const std::string block = read_at(file, from, static_cast<std::size_t>(end - from));
        const std::size_t found = block.rfind(mark);
        if (found != std::string::npos) return from + static_cast<std::int64_t>(found + mark.size());
        if (from == lowest) break;
        end = from + static_cast<std::int64_t>(mark.size());
    }
    return -1;
}

}  // namespace

Result<LogPiece> read_log(const std::string& path, std::string_view cursor, std::size_t most) {
    Place place;
    if (!cursor.empty() && !decode(cursor, place))
        return Error(ErrorKind::invalid, "offset is no place in a log", {"query", 0, 0},
                     "take the header Stoker-Log-Next of an answer, or leave it out to begin at the start");
    LogPiece piece;
    // A rotation between opening the two would show as a FILE.1 that is not the one we opened: look again.
    File old = open_log(path + ".1"), current = open_log(path);
    for (int tries = 0; tries < 3; ++tries) {
        File again = open_log(path + ".1");
        if (again.inode == old.inode) break;
        old = std::move(again);
        current = open_log(path);
    }
    if (cursor.empty()) place = {.old = old.inode != 0, .old_inode = old.inode, .offset = 0, .mark = ""};
    if (place.old_inode != old.inode) {
        // Rotated since. What was being read in FILE is in FILE.1 now, or in what was left of it in FILE; what was in
        // FILE.1 is gone.
        const std::int64_t moved = place.old ? -1 : find_mark(old, place.offset, place.mark);
        const std::int64_t left = place.old || moved >= 0 ? -1 : find_mark(current, place.offset, place.mark);
        piece.gap = moved < 0 && left < 0 && old.inode != 0;
        place = {.old = old.inode != 0 && left < 0,
                 .old_inode = old.inode,
                 .offset = std::max<std::int64_t>({0, moved, left}),
                 .mark = ""};
    }
    if (place.old) {
        piece.text = read_at(old, place.offset, most);
        place.offset += static_cast<std::int64_t>(piece.text.size());
        if (piece.text.size() < most) place = {.old = false, .old_inode = old.inode, .offset = 0, .mark = ""};
    }
    if (!place.old && piece.text.size() < most) {
        if (current.size < place.offset) {  // emptied without a copy: a full disk
            piece.gap = true;
            place.offset = 0;
        }
        const std::string more = read_at(current, place.offset, most - piece.text.size());
        place.offset += static_cast<std::int64_t>(more.size());
        piece.at_end = piece.text.size() + more.size() < most;
        piece.text += more;
    }
    place.mark = mark_before(place.old ? old : current, place.offset);
    piece.next = encode(place);
    return piece;
}

Result<LogPiece> tail_log(const std::string& path, std::size_t lines, std::size_t most) {
    const File old = open_log(path + ".1"), current = open_log(path);
    const std::int64_t all = old.size + current.size;
    const std::int64_t want = std::min<std::int64_t>(all, static_cast<std::int64_t>(most));
    const std::int64_t of_current = std::min(want, current.size), of_old = want - of_current;
    LogPiece piece;
    if (of_old > 0) piece.text = read_at(old, old.size - of_old, static_cast<std::size_t>(of_old));
    const std::string newest = read_at(current, current.size - of_current, static_cast<std::size_t>(of_current));
    piece.text += newest;
    std::size_t at = piece.text.size();
    if (at > 0 && piece.text[at - 1] == '\n') --at;
    bool whole = false;
    for (std::size_t count = 0; count < lines && at != std::string::npos;) {
        at = at == 0 ? std::string::npos : piece.text.rfind('\n', at - 1);
        if (++count == lines && at != std::string::npos) whole = true;
    }
    if (whole) piece.text.erase(0, at + 1);
    if (lines == 0) piece.text.clear();
    const std::int64_t end = current.size - of_current + static_cast<std::int64_t>(newest.size());
    piece.next = encode({.old = false, .old_inode = old.inode, .offset = end, .mark = mark_before(current, end)});
    piece.at_end = true;
    return piece;
}

LogMatches search_log(const std::string& path, std::string_view wanted, std::size_t most) {
    LogMatches matches;
    std::string line;
    bool open_line = false;
    std::int64_t looked = 0;
    const auto end_line = [&] {
        ++matches.lines;
        open_line = false;
        if (line.find(wanted) != std::string::npos) {
            if (matches.items.size() == most)
                matches.cut = true;
            else
                matches.items.push_back({matches.lines, printable(line, kMostLogLine)});
        }
        line.clear();
    };
    for (const std::string& name : {path + ".1", path}) {
        const File file = open_log(name);
        for (std::int64_t offset = 0; offset < file.size && !matches.cut;) {
            const std::string block = read_at(file, offset, 1 << 18);
            if (block.empty()) break;
            offset += static_cast<std::int64_t>(block.size());
            if ((looked += static_cast<std::int64_t>(block.size())) > kMostSearched) matches.cut = true;
            std::size_t at = 0;
            while (at < block.size()) {
                const std::size_t end = block.find('\n', at);
                const std::string_view part =
                    std::string_view(block).substr(at, end == std::string::npos ? end : end - at);
                // A line without end is looked at in pieces.
                if (line.size() + part.size() > (1 << 20)) line.clear();
                line += part;
                open_line = true;
                if (end == std::string::npos) break;
                end_line();
                at = end + 1;
            }
        }
    }
    if (open_line) end_line();
    return matches;
}

}  // namespace stoker
