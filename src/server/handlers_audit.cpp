// Who asked for what, and what became of it.
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
    AuditQuestion question{
        .refused = p.flag("refused"), .who = p.text("who"), .most = static_cast<std::size_t>(p.integer("limit", 100))};
    service.work_long(exchange, [exchange, trail, question = std::move(question)] {
        auto lines = trail->newest(question);
        if (!lines) return exchange->fail(lines.error());
        exchange->send(codec::write(AuditPage{.items = std::move(*lines), .lost = trail->lost()}));
    });
}

}  // namespace stoker::api
