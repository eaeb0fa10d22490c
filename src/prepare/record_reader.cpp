#include "prepare/record_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/json_scan.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr std::size_t kReadBlock = std::size_t{1} << 20;

// The fields of a row, quotes as RFC 4180 has them; an error text for a quote in the wrong place.
std::string split_row(std::string_view row, std::vector<std::string>& fields) {
    fields.clear();
    std::size_t at = 0;
    for (;;) {
        std::string field;
        if (at < row.size() && row[at] == '"') {
            for (++at;; ++at) {
                if (at >= row.size()) return "a quote is not closed";
                if (row[at] != '"') {
                    field.push_back(row[at]);
                } else if (at + 1 < row.size() && row[at + 1] == '"') {
                    field.push_back('"');
                    ++at;
                } else {
                    break;
                }
            }
            ++at;
            if (at < row.size() && row[at] != ',') return "text after a closing quote";
        } else {
            const std::size_t end = std::min(row.find(',', at), row.size());
            field = row.substr(at, end - at);
            if (field.find('"') != std::string::npos) return "a quote inside a field that does not begin with one";
            at = end;
        }
        fields.push_back(std::move(field));
        if (at >= row.size()) return {};
        ++at;  // the comma
    }
}

// What a member is worth as a key: a string without its quotes, anything else as it is written.
std::string key_text(std::string_view value) {
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    return std::string(value);
}
bool is_empty_value(std::string_view value) {
    return value == "null" || value == "\"\"" || value == "[]" || value == "{}";
}

}  // namespace

struct RecordReader::State {
    RecordRules rules;
    std::string path;
    gzFile file = nullptr;
    std::string buffer;  // from `at` on: not handed out yet
    std::size_t at = 0;
    std::uint64_t buffer_offset = 0, line = 0;
    bool ended = false, began = false;
    std::string header;
    std::vector<std::string> columns, fields;
    std::vector<std::size_t> required;  // columns
    std::optional<std::size_t> key;

    ~State() {
        if (file != nullptr) gzclose_r(file);
    }

    Result<bool> more() {
        if (ended) return false;
        buffer.erase(0, at);
        buffer_offset += at;
        at = 0;
        const std::size_t have = buffer.size();
        buffer.resize(have + kReadBlock);
        const int got = gzread(file, buffer.data() + have, static_cast<unsigned>(kReadBlock));
        buffer.resize(have + static_cast<std::size_t>(std::max(got, 0)));
        int code = Z_OK;
        const char* why = gzerror(file, &code);
        if (got < 0 || (got == 0 && code == Z_BUF_ERROR))
            return Error(ErrorKind::invalid,
                         fmt::format("cannot be read on: {}", code == Z_ERRNO ? std::strerror(errno) : why),
                         SourcePos{path, static_cast<std::uint32_t>(std::min<std::uint64_t>(line + 1, UINT32_MAX)), 0},
                         "fetch the file again; gzip -t FILE tells whether it is whole");
        if (got == 0) ended = true;
        return got > 0;
    }

    // One line without its end, and how many bytes it takes; a line over the bound is passed over and cut.
    struct Line {
        std::string_view text;
        std::uint64_t offset = 0;
        bool cut = false;
    };
    Result<std::optional<Line>> next_line(bool quoted) {
        std::size_t from = at;
        bool odd = false, cut = false;
        std::uint64_t dropped_from = 0;
        for (;;) {
            const std::size_t end = buffer.find('\n', from);
            if (end != std::string::npos) {
                if (quoted) {
                    odd ^= std::count(buffer.begin() + static_cast<std::ptrdiff_t>(from),
                                      buffer.begin() + static_cast<std::ptrdiff_t>(end), '"') %
                               2 ==
                           1;
                    if (odd && end - at < rules.max_bytes) {
                        from = end + 1;
                        ++line;
                        continue;
                    }
                }
                Line found{.text = std::string_view(buffer).substr(at, end - at),
                           .offset = cut ? dropped_from : buffer_offset + at,
                           .cut = cut || end - at > rules.max_bytes};
                at = end + 1;
                ++line;
                return std::optional(found);
            }
            if (quoted)
                odd ^= std::count(buffer.begin() + static_cast<std::ptrdiff_t>(from), buffer.end(), '"') % 2 == 1;
            if (buffer.size() - at > rules.max_bytes) {  // the rest of it is of no use
                if (!cut) dropped_from = buffer_offset + at;
                cut = true;
                at = buffer.size();
            }
            const std::size_t passed = buffer.size() - at;
            TRY(const bool any, more());
            from = at + passed;
            if (any) continue;
            if (passed == 0 && !cut) return std::optional<Line>();
            Line last{.text = std::string_view(buffer).substr(at),
                      .offset = cut ? dropped_from : buffer_offset + at,
                      .cut = cut};
            at = buffer.size();
            ++line;
            return std::optional(last);
        }
    }

    void judge(DataRecord& record) {
        if (const std::size_t bad = find_invalid_utf8(record.bytes); bad != std::string_view::npos) {
            record.fault = fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(record.bytes[bad]));
            record.column = bad + 1;
            return;
        }
        if (rules.format == RecordFormat::jsonl) {
            const JsonScan scan = scan_json(record.bytes);
            if (!scan.fault.empty()) {
                record.fault = scan.fault;
                record.column = scan.column;
                return;
            }
            const auto member = [&](const std::string& name) -> std::optional<std::string_view> {
                for (const auto& [each, value] : scan.members)
                    if (each == name) return value;
                return std::nullopt;
            };
            if (!rules.key.empty())
                if (const auto value = member(rules.key)) record.key = key_text(*value);
            for (const std::string& name : rules.required) {
                const auto value = member(name);
                if (!value || is_empty_value(*value)) {
                    record.fault = fmt::format("{} '{}'", value ? "nothing in" : "no member", name);
                    return;
                }
            }
        } else if (rules.format == RecordFormat::csv) {
            record.fault = split_row(record.bytes, fields);
            if (record.fault.empty() && fields.size() != columns.size())
                record.fault = fmt::format("{} fields where the heading has {}", fields.size(), columns.size());
            if (!record.fault.empty()) return;
            if (key) record.key = fields[*key];
            for (const std::size_t column : required)
                if (trim(fields[column]).empty()) record.fault = fmt::format("nothing in '{}'", columns[column]);
        }
    }
};

RecordReader::RecordReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader::~RecordReader() = default;

bool RecordReader::packed() const {
    return gzdirect(state_->file) == 0;
}
const std::string& RecordReader::header() const {
    return state_->header;
}
std::uint64_t RecordReader::position() const {
    return static_cast<std::uint64_t>(std::max<z_off_t>(0, gzoffset(state_->file)));
}

Result<RecordReader> RecordReader::open(const std::string& path, const RecordRules& rules) {
    auto state = std::make_unique<State>();
    state->rules = rules;
    state->path = path;
    state->file = gzopen(path.c_str(), "rbe");
    if (state->file == nullptr)
        return Error(ErrorKind::not_found, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
    gzbuffer(state->file, 1U << 18);
    TRY_VOID(state->more());
    if (std::string_view(state->buffer).starts_with("\xef\xbb\xbf")) state->at = 3;
    if (rules.format == RecordFormat::csv) {
        TRY(const auto heading, state->next_line(true));
        const SourcePos first{path, 1, 0};
        if (!heading || trim(heading->text).empty())
            return Error(ErrorKind::invalid, "a CSV file begins with a line of column names", first, "add one");
        std::string_view text = heading->text;
        if (text.ends_with('\r')) text.remove_suffix(1);
        state->header = text;
        if (const std::string fault = split_row(text, state->columns); !fault.empty())
            return Error(ErrorKind::invalid, "the column names cannot be read: " + fault, first);
        const auto column = [&](const std::string& name) -> Result<std::size_t> {
            const auto found = std::find(state->columns.begin(), state->columns.end(), name);
            if (found == state->columns.end())
                return Error(ErrorKind::invalid, fmt::format("there is no column '{}'", name), first,
                             "there are " + join(state->columns, ", "));
            return static_cast<std::size_t>(found - state->columns.begin());
        };
        for (const std::string& name : rules.required) {
            TRY(const std::size_t at, column(name));
            state->required.push_back(at);
        }
        if (!rules.key.empty()) {
            TRY(const std::size_t at, column(rules.key));
            state->key = at;
        }
    }
    return RecordReader(std::move(state));
}

Result<std::optional<DataRecord>> RecordReader::next() {
    const std::uint64_t line = state_->line + 1;
    TRY(const auto found, state_->next_line(state_->rules.format == RecordFormat::csv));
    if (!found) return std::optional<DataRecord>();
    DataRecord record{.bytes = found->text, .offset = found->offset, .line = line, .fault = {}, .key = {}};
    if (record.bytes.ends_with('\r')) record.bytes.remove_suffix(1);
    if (found->cut)
        record.fault = fmt::format("longer than {} bytes", state_->rules.max_bytes);
    else if (trim(record.bytes).empty())
        record.blank = true;
    else
        state_->judge(record);
    return std::optional(std::move(record));
}

}  // namespace stoker
