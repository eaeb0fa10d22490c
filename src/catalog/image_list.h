// What `az vm image list --all -o json` answers: thousands of versions, folded to one entry for each image, with what
// the catalogue knows to be inside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "catalog/catalog.h"

namespace stoker {

// How the contents of a listed image are known.
enum class ContentsKnown : std::uint8_t {
    exactly,  // the catalogue has this SKU, generation aside
    by_kin,   // the catalogue has another release of it: 2204 for 2004
    no
};

// The newest version of one publisher:offer:sku that is not deprecated, or the newest when all are.
struct ListedImage {
    std::string publisher, offer, sku, version, urn;
    std::string architecture;   // x64, Arm64; empty when the answer does not say
    std::string deprecated_on;  // YYYY-MM-DD when its withdrawal is scheduled
    bool deprecated = false;    // on the day that was asked about
    int versions = 0;           // in the answer
    int image = -1;             // index into Catalog::images() whose contents are taken
    ContentsKnown known = ContentsKnown::no;
    bool has_plan = false;  // the answer shows a plan, whose terms have to be accepted
};

// In the order of the answer's first mention. `today` (YYYY-MM-DD) decides whether a scheduled deprecation has come.
Result<std::vector<ListedImage>> read_image_list(const Document& document, const Catalog& catalog,
                                                 std::string_view today);

// Words people use for what an image must bring ("ib", "driver", "docker"), in the catalogue's words; an unknown word
// is an error that names those there are.
Result<std::string> image_content(std::string_view word, const Catalog& catalog);

// Which of the needed things are not inside.
std::vector<std::string> missing_contents(const std::vector<std::string>& need,
                                          const std::vector<std::string>& contains);

}  // namespace stoker
