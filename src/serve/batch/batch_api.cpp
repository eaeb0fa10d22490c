// The routes of files and batches, in the shapes of the OpenAI API.
#include <fmt/format.h>

#include <algorithm>

#include "base/enum_words.h"
#include "base/json.h"
#include "base/text.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "serve/batch/batches.h"
#include "serve/wire/json_cursor.h"
#include "serve/wire/meters.h"
#include "serve/wire/multipart.h"

namespace stoker::batch {
namespace {

struct BatchAsk {
    std::string input_file_id, endpoint, window, metadata;
};

constexpr std::string_view kFiles = "/v1/files", kBatches = "/v1/batches";
constexpr std::int64_t kWindowSeconds = 24 * 3600;
constexpr std::size_t kMostMetadata = 16 * 1024, kMostListed = 100, kMostFilesListed = 10'000;

HttpResponse json_answer(const Json& body, int status = 200) {
    return {.status = status, .content_type = "application/json", .body = body.dump(0)};
}

HttpResponse refused(int status, const char* code, std::string message, const char* param = nullptr) {
    const char* type = status == 404 ? "not_found_error" : status >= 500 ? "server_error" : "invalid_request_error";
    Json error = Json::object();
    error.set("message", std::move(message)).set("type", type);
    error.set("param", param == nullptr ? Json() : Json(param)).set("code", code);
    return json_answer(Json::object().set("error", std::move(error)), status);
}

HttpResponse refused(const Error& error) {
    switch (error.kind()) {
        case ErrorKind::not_found: return refused(404, "not_found", error.message());
        case ErrorKind::exhausted: return refused(413, "no_space", error.message());
        default: return refused(500, "internal_error", error.message());
    }
}

Json json_of(const StoredFile& file) {
    return Json::object()
        .set("id", file.id)
        .set("object", "file")
        .set("bytes", file.bytes)
        .set("created_at", file.created_at)
        .set("filename", file.filename)
        .set("purpose", file.purpose)
        .set("status", "processed");
}

Json text_of(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

// What there is nothing to say of is left out: the published schema has no null there.
std::string json_of(const BatchRecord& record) {
    Json told = Json::object()
                    .set("id", record.id)
                    .set("object", "batch")
                    .set("endpoint", record.endpoint)
                    .set("input_file_id", record.input_file_id)
                    .set("completion_window", "24h")
                    .set("status", std::string(enum_word(record.status)))
                    .set("created_at", record.created_at);
    if (!record.errors.empty()) {
        Json list = Json::array();
        for (const BatchError& each : record.errors)
            list.push(Json::object()
                          .set("code", each.code)
                          .set("message", each.message)
                          .set("param", Json())
                          .set("line", each.line == 0 ? Json() : Json(each.line)));
        told.set("errors", Json::object().set("object", "list").set("data", std::move(list)));
    }
    const auto file = [&](const char* key, const std::string& id) {
        if (!id.empty()) told.set(key, id);
    };
    file("output_file_id", record.output_file_id);
    file("error_file_id", record.error_file_id);
    for (const auto& [key, at] :
         {std::pair("in_progress_at", record.in_progress_at), std::pair("expires_at", record.expires_at),
          std::pair("finalizing_at", record.finalizing_at), std::pair("completed_at", record.completed_at),
          std::pair("failed_at", record.failed_at), std::pair("expired_at", record.expired_at),
          std::pair("cancelling_at", record.cancelling_at), std::pair("cancelled_at", record.cancelled_at)})
        if (at != 0) told.set(key, at);
    std::string out =
        told.set("request_counts", Json::object()
                                       .set("total", record.total)
                                       .set("completed", record.completed)
                                       .set("failed", record.failed))
            .set("usage", Json::object()
                              .set("input_tokens", record.tokens_in)
                              .set("input_tokens_details", Json::object().set("cached_tokens", record.tokens_cached))
                              .set("output_tokens", record.tokens_out)
                              .set("output_tokens_details", Json::object().set("reasoning_tokens", 0))
                              .set("total_tokens", record.tokens_in + record.tokens_out))
            .dump(0);
    out.pop_back();
    return out + ",\"metadata\":" + (record.metadata.empty() ? "null" : record.metadata) + "}";
}

// Keys and texts, as the API has them.
bool is_metadata(std::string_view text) {
    wire::JsonCursor cursor(text);
    return cursor.object([&](std::string_view, std::size_t) {
        wire::JsonSpan span;
        return cursor.peek() == '"' && cursor.string(span);
    }) && cursor.at_end();
}

std::size_t limit_of(const HttpRequest& request, std::size_t usual, std::size_t most) {
    const auto said = request.parameter("limit");
    const auto number = said ? wire::json_integer(*said) : std::nullopt;
    return number && *number > 0 ? std::min<std::size_t>(static_cast<std::size_t>(*number), most) : usual;
}

}  // namespace

bool BatchService::takes(std::string_view path) {
    const auto under = [&](std::string_view root) {
        return path == root || (path.starts_with(root) && path[root.size()] == '/');
    };
    return under(kFiles) || under(kBatches);
}

HttpResponse BatchService::answer(const HttpRequest& request, const BatchCaller& caller) {
    return request.path.starts_with(kFiles) ? files_route(request, caller) : batches_route(request, caller);
}

HttpResponse BatchService::files_route(const HttpRequest& request, const BatchCaller& caller) {
    std::string_view rest = std::string_view(request.path).substr(kFiles.size());
    if (rest.empty()) {
        if (request.method == "POST") return upload(request, caller);
        if (request.method != "GET") return refused(405, "method_not_allowed", "this path takes GET and POST");
        const auto purpose = request.parameter("purpose"), behind = request.parameter("after");
        const std::size_t limit = limit_of(request, kMostFilesListed, kMostFilesListed);
        Json list = Json::array();
        std::string first, last;
        std::size_t count = 0;
        bool more = false, seen = !behind;
        for (const StoredFile& file : files_->list(caller.project)) {
            if (!seen) {
                seen = file.id == *behind;
                continue;
            }
            if (purpose && file.purpose != *purpose) continue;
            if ((more = count++ == limit)) break;
            if (first.empty()) first = file.id;
            last = file.id;
            list.push(json_of(file));
        }
        return json_answer(Json::object()
                               .set("object", "list")
                               .set("data", std::move(list))
                               .set("first_id", text_of(first))
                               .set("last_id", text_of(last))
                               .set("has_more", more));
    }
    rest.remove_prefix(1);
    const bool content = rest.ends_with("/content");
    if (content) rest.remove_suffix(8);
    const auto file = files_->find(std::string(rest), caller.project);
    if (!file) return refused(file.error());
    if (request.method == "DELETE" && !content) {
        if (const auto removed = files_->remove(*file); !removed) return refused(removed.error());
        return json_answer(Json::object().set("id", file->id).set("object", "file").set("deleted", true));
    }
    if (request.method != "GET") return refused(405, "method_not_allowed", "this path takes GET");
    if (!content) return json_answer(json_of(*file));
    auto text = files_->content(*file);
    if (!text) return refused(text.error());
    return {.status = 200, .content_type = "application/octet-stream", .body = std::move(*text)};
}

HttpResponse BatchService::upload(const HttpRequest& request, const BatchCaller& caller) {
    const auto type = request.headers.find("content-type");
    const auto parts = type ? wire::read_form(*type, request.body) : std::nullopt;
    if (!parts)
        return refused(400, "invalid_form",
                       "a body of multipart/form-data with the parts purpose and file was expected");
    const wire::FormPart* file = nullptr;
    std::string purpose;
    for (const wire::FormPart& part : *parts) {
        if (part.name == "file") file = &part;
        if (part.name == "purpose") purpose = part.content;
    }
    if (file == nullptr) return refused(400, "missing_required_parameter", "there is no part named file", "file");
    if (purpose != "batch")
        return refused(400, "invalid_purpose", "purpose: batch was expected, which is what this gateway uses files for",
                       "purpose");
    auto kept = files_->add(printable(file->filename.empty() ? "file" : file->filename, 255), purpose, caller.project,
                            file->content);
    if (!kept) return refused(kept.error());
    return json_answer(json_of(*kept));
}

HttpResponse BatchService::batches_route(const HttpRequest& request, const BatchCaller& caller) {
    std::string_view rest = std::string_view(request.path).substr(kBatches.size());
    if (rest.empty() && request.method == "POST") return create(request, caller);
    const auto answer_of = [](const BatchRecord& record) {
        return HttpResponse{.status = 200, .content_type = "application/json", .body = json_of(record)};
    };
    if (rest.empty()) {
        if (request.method != "GET") return refused(405, "method_not_allowed", "this path takes GET and POST");
        const auto behind = request.parameter("after");
        const std::size_t limit = limit_of(request, 20, kMostListed);
        std::string list, first, last;
        std::size_t count = 0;
        bool more = false, seen = !behind;
        const std::lock_guard guard(mutex_);
        for (auto batch = batches_.rbegin(); batch != batches_.rend(); ++batch) {
            const BatchRecord& record = view_of(**batch);
            if (record.project != caller.project) continue;
            if (!seen) {
                seen = record.id == *behind;
                continue;
            }
            if ((more = count++ == limit)) break;
            list += (list.empty() ? "" : ",") + json_of(record);
            if (first.empty()) first = record.id;
            last = record.id;
        }
        return {
            .status = 200,
            .content_type = "application/json",
            .body = fmt::format("{{\"object\":\"list\",\"data\":[{}],\"first_id\":{},\"last_id\":{},\"has_more\":{}}}",
                                list, text_of(first).dump(0), text_of(last).dump(0), more)};
    }
    rest.remove_prefix(1);
    const bool cancels = rest.ends_with("/cancel");
    if (cancels) rest.remove_suffix(7);
    const std::lock_guard guard(mutex_);
    const auto found = std::find_if(batches_.begin(), batches_.end(), [&](const auto& each) {
        return view_of(*each).id == rest && view_of(*each).project == caller.project;
    });
    if (found == batches_.end())
        return refused(404, "not_found", fmt::format("there is no batch '{}'", printable(rest, 100)));
    BatchRecord& record = view_of(**found);
    if (!cancels)
        return request.method == "GET" ? answer_of(record) : refused(405, "method_not_allowed", "this path takes GET");
    if (request.method != "POST") return refused(405, "method_not_allowed", "this path takes POST");
    if (record.status == BatchStatus::validating || record.status == BatchStatus::in_progress) {
        record.status = BatchStatus::cancelling;
        record.ends_as = BatchStatus::cancelled;
        record.cancelling_at = wall_clock_us() / 1'000'000;
        save(record);
        changed_.notify_all();
    } else if (record.status != BatchStatus::cancelling && record.status != BatchStatus::cancelled) {
        return refused(409, "batch_ended", fmt::format("the batch is {}", enum_word(record.status)));
    }
    return answer_of(record);
}

HttpResponse BatchService::create(const HttpRequest& request, const BatchCaller& caller) {
    BatchAsk ask;
    wire::JsonCursor cursor(request.body);
    const bool sound = cursor.object([&](std::string_view name, std::size_t at) {
        std::string* to = name == "input_file_id"       ? &ask.input_file_id
                          : name == "endpoint"          ? &ask.endpoint
                          : name == "completion_window" ? &ask.window
                                                        : nullptr;
        wire::JsonSpan span;
        const char next = cursor.peek();
        if (!cursor.skip_value(span)) return false;
        if (to != nullptr) {
            if (next != '"') return cursor.fail("invalid_type", "a text was expected", at);
            *to = wire::json_unescaped(span.of(request.body)).value_or("");
        }
        if (name == "metadata" && next == '{') ask.metadata = span.of(request.body);
        return true;
    }) && cursor.at_end();
    if (!sound)
        return refused(400, cursor.fault()->code,
                       fmt::format("{}, at byte {} of the body", cursor.fault()->what, cursor.fault()->at));
    if (ask.window != "24h")
        return refused(400, "invalid_value", "completion_window: 24h was expected", "completion_window");
    const wire::Endpoint* endpoint = wire::find_endpoint(ask.endpoint);
    if (endpoint == nullptr || endpoint->meter == wire::Meter::speech || endpoint->meter == wire::Meter::request)
        return refused(400, "invalid_value",
                       fmt::format("endpoint: '{}' is none that a batch takes; /v1/chat/completions, /v1/completions, "
                                   "/v1/responses, /v1/embeddings, ...",
                                   printable(ask.endpoint, 100)),
                       "endpoint");
    if (ask.metadata.size() > kMostMetadata || (!ask.metadata.empty() && !is_metadata(ask.metadata)))
        return refused(400, "invalid_value", "metadata: texts by name were expected", "metadata");
    const auto file = files_->find(ask.input_file_id, caller.project);
    if (!file) return refused(400, "invalid_value", "input_file_id: " + file.error().message(), "input_file_id");
    const std::int64_t now = wall_clock_us() / 1'000'000;
    const BatchRecord record{.id = "batch_" + random_hex(12),
                             .key = caller.key,
                             .project = caller.project,
                             .endpoint = ask.endpoint,
                             .input_file_id = ask.input_file_id,
                             .metadata = ask.metadata,
                             .created_at = now,
                             .expires_at = now + kWindowSeconds};
    const std::lock_guard guard(mutex_);
    save(record);
    add(record);
    changed_.notify_all();
    return {.status = 200, .content_type = "application/json", .body = json_of(record)};
}

}  // namespace stoker::batch
