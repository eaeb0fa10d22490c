#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "serve/endpoints/replica_host.h"

namespace stoker {

const std::vector<ServingTemplate>& serving_templates() {
    static const std::vector<ServingTemplate> all = [] {
        const auto table = Tsv::read(embedded_bytes("serve/engines.tsv"), "serve/engines.tsv");
        CHECK(table.ok());
        std::vector<ServingTemplate> out;
        const auto column = [&](std::string_view name) {
            const auto at = table->column(name);
            CHECK(at.ok());
            return *at;
        };
        for (std::size_t i = 0; i < table->rows(); ++i) {
            const auto cell = [&](std::string_view name) {
                const std::string_view text = table->at(i, column(name));
                return text == "-" ? std::string() : std::string(text);
            };
            const auto cold_start_s = table->number(i, column("cold_start_s"));
            CHECK(cold_start_s.ok());
            out.push_back({.engine = cell("engine"),
                           .target = cell("target"),
                           .port_variable = cell("port_variable"),
                           .host_variable = cell("host_variable"),
                           .health = cell("health"),
                           .ready_word = cell("ready_word"),
                           .models = cell("models"),
                           .metrics = cell("metrics"),
                           .cold_start_s = *cold_start_s});
        }
        return out;
    }();
    return all;
}

Result<const ServingTemplate*> find_serving_template(std::string_view engine) {
    std::string list;
    for (const ServingTemplate& each : serving_templates()) {
        if (each.engine == engine) return &each;
        list += (list.empty() ? "" : ", ") + each.engine;
    }
    return Error(ErrorKind::invalid, fmt::format("no server is known by the name '{}'", printable(engine, 60)), {},
                 "one of " + list + "; command is any other, started by run.command");
}

}  // namespace stoker
