#include "deploy/local/measure_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/document.h"
#include "base/json.h"
#include "io/files.h"
#include "io/process.h"

namespace stoker {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;  // of one answer; a longer line is passed over
constexpr std::string_view kBegin = "measures-", kEnd = ".jsonl";

std::string path_of(const std::string& folder, std::int64_t number) {
    return fmt::format("{}/{}{}{}", folder, kBegin, number, kEnd);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

// The numbers of the files there are: the lowest and the highest.
std::optional<std::pair<std::int64_t, std::int64_t>> numbers_in(const std::string& folder) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    std::optional<std::pair<std::int64_t, std::int64_t>> range;
    while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
        std::string_view name = entry->d_name;
        if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
        name.remove_prefix(kBegin.size());
        const auto number = whole_number(name.substr(0, name.size() - std::min(name.size(), kEnd.size())));
        if (!number) continue;
        if (!range) range = {*number, *number};
        range = {std::min(range->first, *number), std::max(range->second, *number)};
    }
    return range;
}

// Series keep no more, and the files hold twice as many lines.
double six_digits(double value) {
    if (value == 0 || std::fabs(value) < 1e-300) return 0;
    const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
    return std::isfinite(scale) ? std::round(value * scale) / scale : value;
}

}  // namespace

std::string text_of_line(const MeasureLine& line) {
    Json values = Json::object();
    for (const auto& [name, value] : line.values)
        if (std::isfinite(value)) values.set(name, six_digits(value));
    Json json = Json::object().set("rank", line.rank).set("at", line.at_s);
    if (!line.node.empty()) json.set("node", line.node);
    if (line.step) json.set("step", *line.step);
    return json.set("values", std::move(values)).dump(0) + "\n";
}

std::optional<MeasureLine> read_measure_line(std::string_view text) {
    const auto document = Document::parse_json(text, "measures");
    if (!document || !document->root().is_mapping()) return std::nullopt;
    const Node& root = document->root();
    const auto number = [&](const char* key) -> std::optional<double> {
        const Node* found = root.find(key);
        if (found == nullptr || found->kind != NodeKind::number) return std::nullopt;
        return found->number;
    };
    const auto rank = number("rank"), at = number("at");
    const Node* values = root.find("values");
    if (!rank || !at || *rank < 0 || *rank > 1e6 || values == nullptr || !values->is_mapping()) return std::nullopt;
    MeasureLine line{.rank = static_cast<int>(*rank), .node = {}, .at_s = *at, .step = number("step"), .values = {}};
    if (const Node* node = root.find("node"); node != nullptr && node->kind == NodeKind::string) line.node = node->text;
    for (const auto& member : values->members)
        if (member.value->kind == NodeKind::number) line.values.emplace_back(member.key, member.value->number);
    return line;
}

void MeasureFile::add(std::string_view lines) {
    if (lines.empty()) return;
    const auto length = static_cast<std::int64_t>(lines.size());
    if (!number_) {
        const auto there = numbers_in(folder_);
        number_ = there ? there->second + 1 : 0;
    } else if (size_ > 0 && size_ + length > most_bytes_) {
        ++*number_;
        size_ = 0;
        ::unlink(path_of(folder_, *number_ - 2).c_str());
    }
    const std::string path = path_of(folder_, *number_);
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (file && write_all(file.get(), lines, path)) size_ += length;
}

bool has_measure_files(const std::string& folder) {
    return numbers_in(folder).has_value();
}

Result<Measures> read_measure_files(const std::string& folder, const MeasureQuery& query) {
    std::int64_t number = 0, offset = 0;
    if (!query.cursor.empty()) {
        const std::size_t colon = query.cursor.find(':');
        const auto its_number = whole_number(std::string_view(query.cursor).substr(0, colon));
        const auto its_offset =
            colon == std::string::npos ? std::nullopt : whole_number(std::string_view(query.cursor).substr(colon + 1));
        if (!its_number || !its_offset) return Error(ErrorKind::invalid, "no cursor of measures: " + query.cursor);
        number = *its_number;
        offset = *its_offset;
    }
    Measures answer{.lines = {}, .next = fmt::format("{}:{}", number, offset)};
    const auto there = numbers_in(folder);
    if (!there) return answer;
    if (number < there->first || number > there->second) {
        answer.gap = !query.cursor.empty();
        number = there->first;
        offset = 0;
    }
    const UniqueFd file(::open(path_of(folder, number).c_str(), O_RDONLY | O_CLOEXEC));
    std::string piece(kPieceBytes, '\0');
    const ssize_t got = file ? ::pread(file.get(), piece.data(), piece.size(), offset) : 0;
    piece.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    std::size_t used = 0;
    for (std::size_t end; answer.lines.size() < query.most && (end = piece.find('\n', used)) != std::string::npos;
         used = end + 1) {
        auto line = read_measure_line(std::string_view(piece).substr(used, end - used));
        if (line && line->at_s >= query.from_s) answer.lines.push_back(std::move(*line));
    }
    if (used == 0 && piece.size() == kPieceBytes) used = piece.size();
    offset += static_cast<std::int64_t>(used);
    const bool to_its_end = used == piece.size() && piece.size() < kPieceBytes;
    answer.more = !to_its_end && used > 0;
    // Nothing is added to a file that another one follows; half a line there was cut by an end.
    if (number < there->second && piece.size() < kPieceBytes && piece.find('\n', used) == std::string::npos) {
        ++number;
        offset = 0;
        answer.more = true;
    }
    answer.next = fmt::format("{}:{}", number, offset);
    return answer;
}

}  // namespace stoker
