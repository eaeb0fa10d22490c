// Who asked for what, and what became of it.
#include <utility>

#include "base/api_time.h"
#include "server/audit_trail.h"
#include "server/handlers.h"
#include "server/views_audit.h"

namespace stoker::api {

void list_audit(Service& service, const ExchangePtr& exchange) {
    const Parameters& p = exchange->parameters;
    const auto trail = service.options().audit;
    if (!trail)
        return exchange->fail(
            Error(ErrorKind::unavailable, "no server is running that keeps an audit trail", {}, "stoker up keeps one"));
    AuditQuestion question{.refused = p.flag("refused"),
                           .who = p.text("who"),
                           .from = "",
                           .to = "",
                           .skip = static_cast<std::size_t>(p.integer("skip", 0)),
                           .most = static_cast<std::size_t>(p.integer("limit", 100))};
    // In the one form that lines have, so that they can be compared.
    for (const auto& [name, bound] : {std::pair("from", &question.from), std::pair("to", &question.to)})
        if (const auto at = parse_rfc3339(p.text(name))) *bound = rfc3339(*at);
    service.work_long(exchange, [exchange, trail, question = std::move(question)] {
        auto lines = trail->newest(question);
        if (!lines) return exchange->fail(lines.error());
        exchange->send(codec::write(AuditPage{.items = std::move(*lines), .lost = trail->lost()}));
    });
}

}  // namespace stoker::api
