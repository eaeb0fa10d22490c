// Whether one size can be had in one region, by what az vm list-skus answered: the question of check --skus --size
// --region.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/session.h"
#include "catalog/azure_answers.h"

namespace stoker {

// What the files of --skus hold, in the order that find_offer needs.
Result<std::vector<SkuOffer>> sku_offers(Session& session, const Args& args);

struct SizeAnswer {
    bool offered = false;
    std::string text;  // one line
};
SizeAnswer answer_size(const std::vector<SkuOffer>& ordered, std::string_view size, std::string_view region);

}  // namespace stoker
