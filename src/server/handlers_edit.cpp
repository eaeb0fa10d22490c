// A run that waits, told otherwise.
#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "run/spec/secrets.h"
#include "run/state/rules.h"
#include "server/handlers.h"
#include "server/views_edit.h"

namespace stoker::api {
namespace {

template <class T, class U>
void take(const std::optional<T>& given, U& into) {
    if (given) into = *given;
}

Result<RunSpec> edited(RunSpec spec, const EditBody& body) {
    take(body.name, spec.name);
    take(body.folder, spec.folder);
    take(body.command, spec.command);
    take(body.priority, spec.priority);
    take(body.run_class, spec.run_class);
    take(body.ranks, spec.ranks);
    take(body.nodes, spec.nodes);
    take(body.max_restarts, spec.max_restarts);
    take(body.cpu_milli, spec.per_rank.cpu_milli);
    take(body.memory_bytes, spec.per_rank.memory_bytes);
    take(body.gpus, spec.per_rank.gpus);
    take(body.gpu_model, spec.per_rank.gpu_model);
    take(body.timeout_s, spec.timeout_s);
    take(body.grace_s, spec.grace_s);
    take(body.queue_timeout_s, spec.queue_timeout_s);
    take(body.lease_s, spec.lease.stop_after_s);
    for (const auto& [key, value] : body.environment) spec.environment[key] = value;
    for (const auto& [key, value] : body.labels) spec.labels[key] = value;
    if (body.begin_at) {
        spec.begin_at_us.reset();
        if (!body.begin_at->empty()) {
            const auto at = parse_rfc3339(*body.begin_at);
            if (!at)
                return Error(ErrorKind::invalid,
                             fmt::format("begin_at is {}, expected a time like 2026-12-01T08:00:00Z",
                                         printable(*body.begin_at, 60)));
            spec.begin_at_us = *at;
        }
    }
    if (body.every && body.every->empty()) spec.repeat.reset();
    if (body.every && !body.every->empty()) {
        if (!spec.repeat) spec.repeat.emplace();
        spec.repeat->every = *body.every;
    }
    if (body.times) {
        if (!spec.repeat) return Error(ErrorKind::invalid, "times: this run does not repeat", {}, "say `every` too");
        spec.repeat->times = *body.times;
    }
    if (body.notify) {
        spec.notify = *body.notify;
        if (spec.notify->empty()) spec.notify.reset();
    }
    return spec;
}

struct Edit {
    RunSpec spec;
    std::uint64_t version = 0;
};

}  // namespace

void edit_run(Service& service, const ExchangePtr& exchange) {
    const auto id = run_in_path(*exchange);
    if (!id) return exchange->fail(id.error());
    const auto version = if_match(exchange->request);
    if (!version) return exchange->fail(version.error());
    const auto body = read_body_as<EditBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    service.ask<std::shared_ptr<Edit>>(
        exchange,
        [run = *id, body = *body](const EngineView& view) -> Result<std::shared_ptr<Edit>> {
            const Run* found = view.state.find(run);
            if (found == nullptr) return no_such_run(view.state, run);
            auto edit = std::make_shared<Edit>();
            edit->version = found->version;
            TRY(edit->spec, edited(found->spec, body));
            return edit;
        },
        [&service, exchange, run = *id, version = *version](const std::shared_ptr<Edit>& edit) {
            // All problems with their keys, before a value is stored.
            if (const Status checked = check_run_spec(edit->spec); !checked) return exchange->fail(checked.error());
            if (const auto& may = service.options().may_notify)
                if (const Status known = may(edit->spec); !known) return exchange->fail(known.error());
            if (const Status stored = store_secrets(service.engine().folder(), edit->spec); !stored)
                return exchange->fail(stored.error());
            service.post(exchange,
                         {.what = EditRun{run, std::move(edit->spec)}, .if_version = version.value_or(edit->version)},
                         answer_of(service, exchange, run, version));
        });
}

}  // namespace stoker::api
