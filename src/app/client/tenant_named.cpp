#include "app/client/tenant_named.h"

#include <fmt/format.h>

#include "app/client/typed.h"
#include "base/text.h"
#include "server/views_tenants.h"

namespace stoker {

// "o-2", or its name.
Result<OrganisationId> organisation_named(Client& client, const std::string& word) {
    if (const auto id = OrganisationId::parse(word)) return *id;
    TRY(const auto list, get<api::OrganisationList>(client, "/api/v1/organisations"));
    for (const api::OrganisationView& each : list.items)
        if (each.name == word) return each.id;
    return Error(ErrorKind::not_found, fmt::format("there is no organisation {}", printable(word, 60)), {},
                 "stoker org list names those that you reach");
}

// "p-2", "vision", or "north/vision" where several organisations have one of that name.
Result<ProjectId> project_named(Client& client, const std::string& word) {
    if (const auto id = ProjectId::parse(word)) return *id;
    TRY(const auto list, get<api::ProjectList>(client, "/api/v1/projects"));
    std::optional<ProjectId> found;
    for (const api::ProjectView& each : list.items) {
        if (each.name != word && each.organisation_name + "/" + each.name != word) continue;
        if (found)
            return Error(ErrorKind::invalid, fmt::format("several projects are called {}", printable(word, 60)), {},
                         "write ORGANISATION/PROJECT, or p-N as stoker project list has it");
        found = each.id;
    }
    if (found) return *found;
    return Error(ErrorKind::not_found, fmt::format("there is no project {}", printable(word, 60)), {},
                 "stoker project list names those that you reach");
}

Result<std::string> scope_named(Client& client, const std::string& word) {
    const std::string first = word.substr(0, word.find('/'));
    if (OrganisationId::parse(word) || ProjectId::parse(first)) return word;
    TRY(const auto organisations, get<api::OrganisationList>(client, "/api/v1/organisations"));
    TRY(const auto projects, get<api::ProjectList>(client, "/api/v1/projects"));
    std::vector<std::string> found;
    for (const auto& each : organisations.items)
        if (each.name == word) found.push_back(each.id.text());
    for (const auto& each : projects.items) {
        const std::string whole = each.organisation_name + "/" + each.name;
        for (const std::string& name : {each.name, whole}) {
            if (word == name) found.push_back(each.id.text());
            if (word.starts_with(name + "/") && word.find('/', name.size() + 1) == std::string::npos)
                found.push_back(each.id.text() + word.substr(name.size()));
        }
    }
    // hospital/imaging is a project before it is a person in a project that is called hospital.
    if (found.size() > 1)
        std::erase_if(found, [&](const std::string& each) { return each.find('/') != std::string::npos; });
    if (found.size() == 1) return found.front();
    if (found.empty())
        return Error(ErrorKind::not_found, fmt::format("there is no organisation or project {}", printable(word, 80)),
                     {}, "stoker org list and stoker project list name those that you reach");
    std::string all;
    for (const std::string& each : found) all += (all.empty() ? "" : ", ") + each;
    return Error(ErrorKind::invalid, fmt::format("{} could be each of {}", printable(word, 80), all), {},
                 "write which of them");
}

}  // namespace stoker
