// Endpoints as files of the server's folder: listed, deployed and steered; a gateway keeps them so.
#include <fmt/format.h>

#include "base/api_time.h"
#include "io/clock.h"
#include "serve/endpoints/endpoint.h"
#include "serve/endpoints/reality.h"
#include "server/desk.h"
#include "server/handlers.h"
#include "server/views_endpoints.h"

namespace stoker::api {
namespace {

constexpr int kMostReplicas = 1000;
constexpr double kLongestIdleS = 7 * 86400.0;

EndpointFolder folder_of(Service& service) {
    return EndpointFolder(service.engine().folder() + "/endpoints");
}

// Those of the installation itself are of its first project.
ProjectId project_of(const Endpoint& endpoint) {
    return ProjectId::parse(endpoint.project).value_or(kDefaultProject);
}

bool is_reached(Service& service, const Actor& actor, const Endpoint& endpoint) {
    bool reached = false;
    const Status asked = service.engine().read(
        [&](const EngineView& view) { reached = reaches(actor, view.state.tenants.tenant_of(project_of(endpoint))); });
    return asked && reached;
}

EndpointItem item_of(const Endpoint& endpoint, const std::optional<EndpointStatus>& status) {
    EndpointItem item{.name = endpoint.name,
                      .state = status             ? status->state
                               : endpoint.stopped ? "stopped"
                                                  : "unkept",
                      .project = endpoint.project,
                      .user = endpoint.user,
                      .revision = endpoint.current,
                      .least = endpoint.least,
                      .most = endpoint.most,
                      .stopped = endpoint.stopped};
    if (const EndpointRevision* now = endpoint.find(endpoint.current)) {
        item.engine = now->engine;
        item.first_token_s = seconds_after_deploy(*now, now->first_token_at);
    }
    if (status) {
        item.ready = status->ready;
        item.wanted = status->level;
        item.queued = status->queued;
        item.requests = status->requests;
        item.failed = status->failed;
    }
    return item;
}

EndpointView view_of(const EndpointFolder& folder, const Endpoint& endpoint) {
    EndpointView view{.split = endpoint.split, .idle_s = endpoint.idle_s};
    view.status = folder.fresh_status(endpoint.name, wall_clock_us());
    view.endpoint = item_of(endpoint, view.status);
    for (const EndpointRevision& each : endpoint.revisions)
        view.revisions.push_back({each.number, each.created_at, each.engine, each.model, each.source, each.promise,
                                  seconds_after_deploy(each, each.first_ready_at),
                                  seconds_after_deploy(each, each.first_token_at)});
    if (!view.status) return view;
    for (const HeldFigure& each : held_against_plan(view.status->evidence))
        view.figures.push_back({each.name, each.unit, each.promised.mid, each.promised.low, each.promised.high,
                                each.measured, each.worse, each.better});
    for (const ServingCause& each : serving_causes(view.status->evidence, endpoint.name))
        view.causes.push_back({each.name, each.what, each.fix, each.evidence, each.cost_s});
    return view;
}

// The endpoint of the path; none: it has answered. What others have is as good as nothing.
std::optional<Endpoint> endpoint_in_path(Service& service, const ExchangePtr& exchange) {
    const std::string& name = exchange->parameters.path.at("endpoint");
    const auto not_there = [&] {
        exchange->fail(Error(ErrorKind::not_found, "there is no endpoint " + printable(name, 80), {},
                             "GET /api/v1/endpoints lists those that you reach"));
        return std::nullopt;
    };
    if (!is_endpoint_name(name)) return not_there();
    auto found = folder_of(service).read(name);
    if (!found && found.error().kind() != ErrorKind::not_found) {
        exchange->fail(found.error());
        return std::nullopt;
    }
    if (!found || !is_reached(service, exchange->actor, *found)) return not_there();
    return std::move(*found);
}

void change(Service& service, const ExchangePtr& exchange, const std::function<Status(Endpoint&)>& edit) {
    const auto endpoint = endpoint_in_path(service, exchange);
    if (!endpoint) return;
    const EndpointFolder folder = folder_of(service);
    const auto changed = folder.change(endpoint->name, false, edit);
    if (!changed) return exchange->fail(changed.error());
    exchange->send(codec::write(view_of(folder, *changed)));
}

Status count_is_right(std::string_view what, const std::optional<int>& count, int low) {
    if (!count || (*count >= low && *count <= kMostReplicas)) return done();
    return Error(ErrorKind::invalid, fmt::format("{} is {}, expected {} to {}", what, *count, low, kMostReplicas));
}

}  // namespace

void list_endpoints(Service& service, const ExchangePtr& exchange) {
    const EndpointFolder folder = folder_of(service);
    const auto all = folder.list();
    if (!all) return exchange->fail(all.error());
    EndpointList list;
    for (const Endpoint& each : *all)
        if (is_reached(service, exchange->actor, each))
            list.items.push_back(item_of(each, folder.fresh_status(each.name, wall_clock_us())));
    exchange->send(codec::write(list));
}

void get_endpoint(Service& service, const ExchangePtr& exchange) {
    if (const auto endpoint = endpoint_in_path(service, exchange))
        exchange->send(codec::write(view_of(folder_of(service), *endpoint)));
}

void deploy_endpoint(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<DeployBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    for (const Status& right :
         {has_text(*body), count_is_right("least", body->least, 0), count_is_right("most", body->most, 1)})
        if (!right) return exchange->fail(right.error());
    const std::shared_ptr<Desk> desk = service.options().desk;
    if (!desk) return exchange->fail(Error(ErrorKind::unavailable, "nothing is deployed by this server"));
    PostedEndpoint posted{.file = {std::move(body->text), std::move(body->name), std::move(body->folder)},
                          .least = body->least,
                          .most = body->most};
    const Actor& actor = exchange->actor;
    if (actor.kind == PrincipalKind::user || actor.kind == PrincipalKind::service) {
        posted.project = actor.tenant.project.text();
        posted.user = actor.name;
    }
    service.work_long(exchange, [&service, exchange, desk, posted = std::move(posted)] {
        const auto name = desk->deploy(posted);
        if (!name) return exchange->fail(name.error(), name.error().kind() == ErrorKind::invalid ? 422 : 0);
        const EndpointFolder folder = folder_of(service);
        const auto made = folder.read(*name);
        if (!made) return exchange->fail(made.error());
        exchange->send(codec::write(view_of(folder, *made)), 201);
    });
}

void scale_endpoint(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<ScaleBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    for (const Status& right : {count_is_right("least", body->least, 0), count_is_right("most", body->most, 1)})
        if (!right) return exchange->fail(right.error());
    if (body->idle_s && !(*body->idle_s >= 1 && *body->idle_s <= kLongestIdleS))
        return exchange->fail(Error(ErrorKind::invalid, fmt::format("idle_s is {}, expected 1 to {:.0f} (7 days)",
                                                                    *body->idle_s, kLongestIdleS)));
    change(service, exchange,
           [&](Endpoint& there) { return set_bounds(there, body->least, body->most, body->idle_s); });
}

void stop_endpoint(Service& service, const ExchangePtr& exchange) {
    change(service, exchange, [](Endpoint& there) {
        there.stopped = true;
        return done();
    });
}

void start_endpoint(Service& service, const ExchangePtr& exchange) {
    change(service, exchange, [](Endpoint& there) {
        there.stopped = false;
        return done();
    });
}

void roll_back_endpoint(Service& service, const ExchangePtr& exchange) {
    const auto body = read_body_as<EndpointRollbackBody>(*exchange, false);
    if (!body) return exchange->fail(body.error());
    change(service, exchange, [&](Endpoint& there) { return go_back(there, body->revision); });
}

}  // namespace stoker::api
