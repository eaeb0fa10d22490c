#include "serve/batch/batch_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/json.h"
#include "base/json_text.h"
#include "base/text.h"
#include "serve/wire/body_scan.h"
#include "serve/wire/json_cursor.h"

namespace stoker::batch {
namespace {

constexpr std::size_t kMostErrors = 100, kLongestId = 512;

std::string id_of_row(std::string_view request_id, std::string_view custom_id) {
    return "batch_req_" + std::string(request_id.empty() ? custom_id.substr(0, 64) : request_id);
}

// What is wrong with one line; empty: nothing.
std::pair<std::string, std::string> read_line(std::string_view text, std::string_view endpoint, BatchLine& out) {
    wire::JsonCursor cursor(text);
    std::string method, url;
    bool has_body = false, has_id = false;
    const auto words = [&](std::string& to) {
        wire::JsonSpan span;
        if (cursor.peek() != '"' || !cursor.string(span))
            return cursor.fail("invalid_json", "a text was expected", cursor.at());
        to = wire::json_unescaped(span.of(text)).value_or("");
        return true;
    };
    const bool sound = cursor.object([&](std::string_view name, std::size_t) {
        if (name == "custom_id") return has_id = words(out.custom_id);
        if (name == "method") return words(method);
        if (name == "url") return words(url);
        wire::JsonSpan span;
        const bool object = cursor.peek() == '{';
        if (!cursor.skip_value(span)) return false;
        if (name == "body" && object) {
            out.body = span.of(text);
            has_body = true;
        }
        return true;
    }) && cursor.at_end();
    if (!sound)
        return {"invalid_json_line",
                fmt::format("{}, at byte {} of the line", cursor.fault()->what, cursor.fault()->at)};
    if (!has_id || out.custom_id.empty() || out.custom_id.size() > kLongestId)
        return {"missing_required_parameter",
                fmt::format("custom_id: a text of 1 to {} bytes was expected", kLongestId)};
    if (method != "POST") return {"invalid_method", "method: POST was expected"};
    if (url != endpoint)
        return {"mismatched_url",
                fmt::format("url: '{}' is not the batch's endpoint {}", printable(url, 100), endpoint)};
    if (!has_body) return {"missing_required_parameter", "body: an object was expected"};
    const auto scan = wire::scan_body(out.body);
    if (!scan.scan) return {scan.fault.code, fmt::format("body: {}, at byte {} of it", scan.fault.what, scan.fault.at)};
    if (scan.scan->model.empty()) return {"missing_required_parameter", "body: it names no model"};
    if (scan.scan->stream) return {"invalid_value", "body: a batch has no streams"};
    return {};
}

}  // namespace

std::vector<BatchLine> read_batch_lines(std::string_view text, std::string_view endpoint,
                                        std::vector<BatchError>& errors) {
    std::vector<BatchLine> lines;
    std::unordered_set<std::string> ids;
    std::int64_t number = 0;
    const auto wrong = [&](std::string code, std::string message, std::int64_t line) {
        if (errors.size() < kMostErrors)
            errors.push_back({.code = std::move(code), .message = std::move(message), .line = line});
    };
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view one = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++number;
        if (one.ends_with('\r')) one.remove_suffix(1);
        if (trim(one).empty()) continue;
        if (lines.size() == kMostLines) {
            wrong("too_many_requests", fmt::format("a batch has at most {} lines", kMostLines), number);
            break;
        }
        BatchLine line;
        if (auto [code, message] = read_line(one, endpoint, line); !code.empty())
            wrong(std::move(code), std::move(message), number);
        else if (!ids.insert(line.custom_id).second)
            wrong("duplicate_custom_id", fmt::format("custom_id '{}' is there twice", printable(line.custom_id, 100)),
                  number);
        lines.push_back(std::move(line));
    }
    if (lines.empty() && errors.empty()) wrong("empty_file", "there is no line in the file", 0);
    return lines;
}

std::string batch_row(std::string_view custom_id, int status, std::string_view request_id, std::string_view body,
                      bool body_is_json) {
    std::string row = "{\"id\":";
    append_json_text(row, id_of_row(request_id, custom_id));
    row += ",\"custom_id\":";
    append_json_text(row, custom_id);
    row += fmt::format(",\"response\":{{\"status_code\":{},\"request_id\":", status);
    append_json_text(row, request_id);
    row += ",\"body\":";
    if (!body_is_json) {
        append_json_text(row, body);
    } else {
        // One line of the file: between values a line end is a blank.
        for (const char c : trim(body)) row += c == '\n' || c == '\r' ? ' ' : c;
    }
    return row + "},\"error\":null}";
}

std::string_view body_of_row(std::string_view row) {
    // Inside of a text the quotes would be escaped.
    constexpr std::string_view kBegin = ",\"body\":", kEnd = "},\"error\":null}";
    const std::size_t at = row.find(kBegin);
    if (at == std::string_view::npos || !row.ends_with(kEnd)) return {};
    const std::size_t begin = at + kBegin.size();
    return row.substr(begin, row.size() - begin - kEnd.size());
}

std::vector<BatchRow> read_batch_log(std::string_view log, std::size_t lines, std::size_t& end) {
    std::vector<BatchRow> rows;
    end = 0;
    while (true) {
        const std::size_t stop = log.find('\n', end);
        if (stop == std::string_view::npos) return rows;
        const std::string_view text = log.substr(end, stop - end);
        BatchRow row;
        const auto [behind, code] = std::from_chars(text.data(), text.data() + text.size(), row.line);
        std::string_view rest = text.substr(static_cast<std::size_t>(behind - text.data()));
        row.good = rest.starts_with(" ok ");
        const bool sound = code == std::errc() && row.line < lines && (row.good || rest.starts_with(" bad "));
        if (!sound) return rows;
        row.text = rest.substr(row.good ? 4 : 5);
        rows.push_back(row);
        end = stop + 1;
    }
}

BatchFiles batch_files(const std::vector<BatchLine>& lines, const std::vector<BatchRow>& rows,
                       std::string_view why_not) {
    std::vector<const BatchRow*> by_line(lines.size(), nullptr);
    for (const BatchRow& row : rows)
        if (by_line[row.line] == nullptr) by_line[row.line] = &row;
    BatchFiles files;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (by_line[i] != nullptr) {
            (by_line[i]->good ? files.output : files.errors).append(by_line[i]->text).append("\n");
            ++(by_line[i]->good ? files.good : files.bad);
            continue;
        }
        const std::string code = fmt::format("batch_{}", why_not.empty() ? "failed" : why_not);
        files.errors +=
            Json::object()
                .set("id", id_of_row({}, lines[i].custom_id))
                .set("custom_id", lines[i].custom_id)
                .set("response", Json())
                .set(
                    "error",
                    Json::object().set("code", code).set("message", "this request was not sent before the batch ended"))
                .dump(0) +
            "\n";
        ++files.bad;
    }
    return files;
}

}  // namespace stoker::batch
