#include "app/client/typed.h"

#include <fmt/format.h>

#include "base/text.h"
#include "server/views.h"

namespace stoker {

Result<RunId> run_named(std::string_view text) {
    auto id = RunId::parse(text);
    if (!id) id = RunId::parse("r-" + std::string(text));
    if (!id)
        return Error(ErrorKind::invalid, fmt::format("'{}' is no run", printable(text, 40)), {},
                     "runs are named r-1, r-2, ...; stoker ps lists them");
    return *id;
}

Result<RunId> find_run(Client& client, const std::string& word) {
    auto id = run_named(word);
    if (id) return id;
    // What is no number is a name; of several runs that have it, the newest is meant.
    const auto page = get<api::RunPage>(client, "/api/v1/runs?limit=1&order=newest&name=" + url_encoded(word));
    if (!page) return page.error().kind() == ErrorKind::invalid ? id.error() : page.error();
    if (page->items.empty())
        return Error(ErrorKind::invalid, fmt::format("'{}' is no run, and no run has that name", printable(word, 40)),
                     {}, "runs are named r-1, r-2, ... or by their own name; stoker ps --all lists them");
    return page->items.front().id;
}

}  // namespace stoker
