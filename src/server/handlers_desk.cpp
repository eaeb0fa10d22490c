// Files that pages post: planned, or told what run they are.
#include "server/desk.h"
#include "server/handlers.h"
#include "server/views_endpoints.h"

namespace stoker::api {
namespace {

std::shared_ptr<Desk> desk_of(Service& service, const ExchangePtr& exchange) {
    if (!service.options().desk) exchange->fail(Error(ErrorKind::unavailable, "nothing is planned by this server"));
    return service.options().desk;
}

// {"plan": ...} without what is inside being read again.
HttpResponse wrapped(std::string_view key, std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return {.status = 200,
            .content_type = "application/json",
            .headers = {},
            .body = "{\"" + std::string(key) + "\":" + text + "}\n"};
}

void ask_desk(Service& service, const ExchangePtr& exchange, std::string_view key,
              Result<std::string> (Desk::*question)(const PostedFile&)) {
    auto body = read_body_as<FileBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    if (const Status right = has_text(*body); !right) return exchange->fail(right.error());
    const std::shared_ptr<Desk> desk = desk_of(service, exchange);
    if (!desk) return;
    service.work_long(
        exchange, [exchange, desk, key, question,
                   file = PostedFile{std::move(body->text), std::move(body->name), std::move(body->folder)}] {
            auto answer = (desk.get()->*question)(file);
            if (!answer) return exchange->fail(answer.error(), answer.error().kind() == ErrorKind::invalid ? 422 : 0);
            exchange->send(wrapped(key, std::move(*answer)));
        });
}

}  // namespace

void plan_file(Service& service, const ExchangePtr& exchange) {
    ask_desk(service, exchange, "plan", &Desk::plan);
}

void run_of_file(Service& service, const ExchangePtr& exchange) {
    ask_desk(service, exchange, "run", &Desk::run_of);
}

void list_templates(Service& service, const ExchangePtr& exchange) {
    if (const auto desk = desk_of(service, exchange)) exchange->send(codec::write(desk->templates()));
}

}  // namespace stoker::api
