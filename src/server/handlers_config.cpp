// The configuration of the server: its versions, what is in force, and the way back.
#include <charconv>

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/text.h"
#include "server/handlers.h"
#include "server/views_config.h"

namespace stoker::api {
namespace {

ConfigItem item_of_version(const ConfigVersion& version) {
    return {.version = version.version,
            .set_at = rfc3339(version.at_us),
            .actor = version.actor,
            .note = version.note,
            .digest = version.digest,
            .overrides = version.overrides,
            .bytes = static_cast<std::int64_t>(version.text.size())};
}

HttpResponse with_config_version(const Json& body, std::uint64_t version) {
    HttpResponse response = json_response(body);
    response.headers.add("ETag", fmt::format("\"{}\"", version));
    return response;
}

// Answered once it is on disk, and in force as far as it can be.
void set_config_version(Service& service, const ExchangePtr& exchange, SetConfig set) {
    const std::shared_ptr<ConfigControl> control = service.options().config;
    if (const Status sound = control->check(set.text); !sound) return exchange->fail(sound.error());
    const bool conditional = set.if_version.has_value();
    service.post(
        exchange, {.what = std::move(set)}, [&service, exchange, control, conditional](const Result<Ack>& ack) {
            if (!ack)
                return exchange->fail(ack.error(), conditional && ack.error().kind() == ErrorKind::conflict ? 412 : 0);
            service.work_long(exchange, [exchange, control, ack = *ack] {
                auto outcome = control->apply();
                if (!outcome)
                    return exchange->fail(Error(ErrorKind::unavailable,
                                                fmt::format("version {} is written down, and not in force yet: {}",
                                                            ack.version, outcome.error().message()),
                                                {}, "restart the server"));
                exchange->send(
                    with_config_version(codec::write(ConfigSet{.version = ack.version,
                                                               .repeated = ack.repeated,
                                                               .applied = std::move(outcome->applied),
                                                               .needs_restart = std::move(outcome->needs_restart),
                                                               .overridden = std::move(outcome->overridden)}),
                                        ack.version));
            });
        });
}

bool can_be_set(Service& service, const ExchangePtr& exchange) {
    if (service.options().config) return true;
    exchange->fail(Error(ErrorKind::unavailable, "no server is running whose configuration could change", {},
                         "stoker up starts one, with --config FILE"));
    return false;
}

}  // namespace

void get_config(Service& service, const ExchangePtr& exchange) {
    service.ask<ConfigView>(
        exchange,
        [](const EngineView& view) -> Result<ConfigView> {
            ConfigView shown;
            const ConfigVersions& versions = view.state.config;
            if (!versions.empty()) {
                shown.item = item_of_version(versions.back());
                shown.text = versions.back().text;
            }
            return shown;
        },
        [&service, exchange](ConfigView shown) {
            if (service.options().config) shown.settings = service.options().config->settings();
            exchange->send(with_config_version(codec::write(shown), shown.item.version));
        });
}

void list_config_versions(Service& service, const ExchangePtr& exchange) {
    service.ask<ConfigVersionList>(
        exchange,
        [](const EngineView& view) -> Result<ConfigVersionList> {
            ConfigVersionList list;
            const ConfigVersions& versions = view.state.config;
            for (auto at = versions.rbegin(); at != versions.rend(); ++at) list.items.push_back(item_of_version(*at));
            return list;
        },
        [exchange](const ConfigVersionList& list) { exchange->send(codec::write(list)); });
}

void get_config_version(Service& service, const ExchangePtr& exchange) {
    const std::string& text = exchange->parameters.path.find("version")->second;
    std::uint64_t version = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), version);
    if (code != std::errc() || end != text.data() + text.size() || version == 0)
        return exchange->fail(Error(ErrorKind::not_found, "there is no version " + printable(text, 40), {},
                                    "versions are numbered from 1"));
    service.ask<ConfigText>(
        exchange,
        [version](const EngineView& view) -> Result<ConfigText> {
            const ConfigVersion* found = find_version(view.state.config, version);
            if (found == nullptr) return no_such_version(view.state.config, version);
            return ConfigText{.item = item_of_version(*found), .text = found->text};
        },
        [exchange](const ConfigText& shown) { exchange->send(codec::write(shown)); });
}

void put_config(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<ConfigBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    if (!body->text)
        return exchange->fail(Error(ErrorKind::invalid, "text is missing", {}, "send the whole server.yaml as text"));
    const auto version = if_match(exchange->request);
    if (!version) return exchange->fail(version.error());
    if (!can_be_set(service, exchange)) return;
    service.work_long(exchange, [&service, exchange, body = std::move(*body), version = *version]() mutable {
        set_config_version(service, exchange,
                           {.text = std::move(*body.text), .note = std::move(body.note), .if_version = version});
    });
}

void roll_config_back(Service& service, const ExchangePtr& exchange) {
    auto body = read_body_as<RollbackBody>(*exchange);
    if (!body) return exchange->fail(body.error());
    const auto version = if_match(exchange->request);
    if (!version) return exchange->fail(version.error());
    if (!can_be_set(service, exchange)) return;
    service.ask<std::string>(
        exchange,
        [wanted = body->version](const EngineView& view) -> Result<std::string> {
            const ConfigVersion* found = find_version(view.state.config, wanted);
            if (found == nullptr) return no_such_version(view.state.config, wanted);
            return found->text;
        },
        [&service, exchange, body = std::move(*body), version = *version](std::string text) {
            std::string note = body.note.empty() ? fmt::format("back to version {}", body.version) : body.note;
            service.work_long(
                exchange, [&service, exchange, text = std::move(text), note = std::move(note), version]() mutable {
                    set_config_version(service, exchange,
                                       {.text = std::move(text), .note = std::move(note), .if_version = version});
                });
        });
}

}  // namespace stoker::api
