// What the parts of `stoker catalog` share: the question that was asked, and how an answer is printed.
#pragma once

#include <string>
#include <vector>

#include "app/args.h"
#include "app/cards.h"

namespace stoker {

struct CatalogView {
    Session& session;
    const Catalog& catalog;
    std::string name, today, cloud, region, os;
    // images only
    std::vector<std::string> need;  // in the catalogue's words
    std::string from, orchestrator;
};

// The note stands below the table, for people only.
CommandOutput list_output(const CatalogView& view, const FactTable& listing, const std::string& note = {});
CommandOutput card_output(const CatalogView& view, const Card& card, const std::string& below = {},
                          Json corrections = Json::array());

// In catalog_images.cpp.
Result<CommandOutput> catalog_images(const CatalogView& view);

}  // namespace stoker
