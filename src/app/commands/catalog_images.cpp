// stoker catalog images: which image brings the drivers and libraries that a job needs, and which orchestrator can
// start it; from the catalogue, or from a saved answer of az vm image list.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/commands/catalog_view.h"
#include "base/text.h"
#include "catalog/image_list.h"
#include "catalog/names.h"
#include "io/files.h"

namespace stoker {

namespace {

constexpr std::size_t kMaxAnswer = 256u << 20;  // az vm image list --all without a filter is some 100 MB

Json strings(const std::vector<std::string>& items) {
    Json array = Json::array();
    for (const std::string& item : items) array.push(item);
    return array;
}

Json terms_json(const std::string& terms) {
    return terms.empty() ? Json() : Json(terms == "yes");
}

std::string terms_text(const std::string& terms) {
    return terms == "yes" ? "accept" : terms == "no" ? "none" : "?";
}

bool starts(const Image& image, const std::string& orchestrator) {
    return orchestrator.empty() ||
           std::find(image.orchestrators.begin(), image.orchestrators.end(), orchestrator) != image.orchestrators.end();
}

std::string accept_note(const std::vector<std::string>& urns) {
    if (urns.empty()) return {};
    return fmt::format("terms to accept once per subscription: az vm image terms accept --urn {}. ", urns.front());
}

Result<std::string> known_orchestrator(const Catalog& catalog, const std::string& word) {
    std::set<std::string> known;
    for (const Image& image : catalog.images()) known.insert(image.orchestrators.begin(), image.orchestrators.end());
    for (const std::string& each : known) {
        if (fold_name(each) == fold_name(word)) return each;
    }
    const std::vector<std::string> names(known.begin(), known.end());
    return Error(
        ErrorKind::invalid,
        fmt::format("no image is for an orchestrator named {}{}", printable(word, 40), did_you_mean(word, names)), {},
        "one of " + join(names, ", "));
}

CommandOutput from_catalogue(const CatalogView& view) {
    std::vector<const Image*> ranked;
    for (const Image& image : view.catalog.images()) {
        if (!starts(image, view.orchestrator)) continue;
        const std::size_t lacks = missing_contents(view.need, image.contains).size();
        if (!view.need.empty() && lacks == view.need.size()) continue;  // has nothing of it
        ranked.push_back(&image);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [&](const Image* a, const Image* b) {
        return missing_contents(view.need, a->contains).size() < missing_contents(view.need, b->contains).size();
    });
    // What fits into a line: with a need the URN to use, else what is inside. JSON has both.
    const bool asked = !view.need.empty();
    FactTable listing{{{"name", "image"},
                       {"os", asked ? "" : "system"},
                       {"generation", ""},
                       {"architecture", ""},
                       {"lacks", asked ? "lacks" : ""},
                       {"orchestrators", "started by"},
                       {"extend", ""},
                       {"terms_to_accept", ""},
                       {"", "terms"},
                       {"contains", asked ? "" : "contains"},
                       {"urn", asked ? "URN" : ""}},
                      {}};
    bool complete = !asked && !ranked.empty();
    std::vector<std::string> to_accept;
    for (const Image* image : ranked) {
        const auto missing = missing_contents(view.need, image->contains);
        complete = complete || missing.empty();
        if (image->terms == "yes" && missing.empty()) to_accept.push_back(image->urn);
        listing.rows.push_back({image->name, image->os, image->generation, image->architecture, strings(missing),
                                strings(image->orchestrators), strings(image->extend), terms_json(image->terms),
                                terms_text(image->terms), strings(image->contains),
                                image->urn.empty() ? Json() : Json(image->urn)});
    }
    if (ranked.empty() && view.session.format == Format::text) {
        return {fmt::format("No image of the catalogue has anything of {}{}.\n", join(view.need, ", "),
                            view.orchestrator.empty() ? "" : " and is for " + view.orchestrator),
                1};
    }
    CommandOutput output = list_output(
        view, listing,
        accept_note(to_accept) +
            "Check a URN in your region: az vm image list --all --publisher PUBLISHER -o json > images.json, "
            "then --from images.json");
    output.exit = complete ? 0 : 1;
    return output;
}

std::string known_text(const ListedImage& listed, const Catalog& catalog) {
    if (listed.known == ContentsKnown::no) return "not known";
    const std::string& name = catalog.images()[static_cast<std::size_t>(listed.image)].name;
    return (listed.known == ContentsKnown::exactly ? "" : "like ") + name;
}

std::string terms_of(const ListedImage& listed, const Catalog& catalog) {
    if (listed.has_plan) return "yes";
    return listed.image < 0 ? "" : catalog.images()[static_cast<std::size_t>(listed.image)].terms;
}

Result<CommandOutput> from_answer(const CatalogView& view) {
    TRY(const std::string text, read_file(view.from, kMaxAnswer));
    ReadLimits limits;
    limits.max_bytes = kMaxAnswer;
    limits.max_nodes = 20'000'000;
    TRY(const Document document, Document::parse(text, view.from == "-" ? "stdin" : view.from, limits));
    TRY(const std::vector<ListedImage> all, read_image_list(document, view.catalog, view.today));
    const auto contents = [&](const ListedImage& listed) -> const std::vector<std::string>& {
        static const std::vector<std::string> none;
        return listed.image < 0 ? none : view.catalog.images()[static_cast<std::size_t>(listed.image)].contains;
    };
    std::vector<const ListedImage*> ranked;
    std::size_t unknown = 0;
    for (const ListedImage& listed : all) {
        if (listed.known == ContentsKnown::no) {
            ++unknown;
            if (!view.need.empty() || !view.orchestrator.empty()) continue;
        } else {
            if (!starts(view.catalog.images()[static_cast<std::size_t>(listed.image)], view.orchestrator)) continue;
            if (!view.need.empty() && missing_contents(view.need, contents(listed)).size() == view.need.size())
                continue;
        }
        ranked.push_back(&listed);
    }
    const auto rank = [&](const ListedImage* listed) {
        return std::tuple(listed->deprecated, missing_contents(view.need, contents(*listed)).size(), listed->known);
    };
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const ListedImage* a, const ListedImage* b) { return rank(a) < rank(b); });
    FactTable listing{{{"urn", "URN of the newest version"},
                       {"architecture", ""},
                       {"lacks", view.need.empty() ? "" : "lacks"},
                       {"contents_from", "inside"},
                       {"versions", ""},
                       {"state", ""},
                       {"", "state"},
                       {"terms_to_accept", ""},
                       {"", "terms"},
                       {"contains", ""}},
                      {}};
    bool complete = false;
    std::vector<std::string> to_accept;
    for (const ListedImage* listed : ranked) {
        const auto missing = missing_contents(view.need, contents(*listed));
        const bool usable = missing.empty() && !listed->deprecated && (view.need.empty() || listed->image >= 0);
        complete = complete || usable;
        const std::string terms = terms_of(*listed, view.catalog);
        if (usable && terms == "yes") to_accept.push_back(listed->urn);
        const std::string state = listed->deprecated              ? "deprecated"
                                  : listed->deprecated_on.empty() ? "active"
                                                                  : "until " + listed->deprecated_on;
        listing.rows.push_back({listed->urn, listed->architecture, strings(missing), known_text(*listed, view.catalog),
                                listed->versions, state, state + (listed->architecture == "Arm64" ? ", Arm64" : ""),
                                terms_json(terms), terms_text(terms),
                                listed->known == ContentsKnown::no ? Json() : strings(contents(*listed))});
    }
    std::string note = accept_note(to_accept);
    if (unknown > 0)
        note += fmt::format(
            "{} of {} images are of no kind that the catalogue knows{}: an answer of az does not say "
            "what is inside. ",
            unknown, all.size(), view.need.empty() ? "" : ", so they are left out");
    if (ranked.empty() && view.session.format == Format::text)
        return CommandOutput{fmt::format("None of the {} images in {} is known to have {}{}.\n  {}\n", all.size(),
                                         view.from, view.need.empty() ? "what was asked for" : join(view.need, ", "),
                                         view.orchestrator.empty() ? "" : " and to be for " + view.orchestrator,
                                         "stoker catalog images lists those whose contents are known"),
                             1};
    CommandOutput output = list_output(view, listing, note);
    output.exit = complete ? 0 : 1;
    return output;
}

}  // namespace

Result<CommandOutput> catalog_images(const CatalogView& asked) {
    CatalogView view = asked;
    if (!view.orchestrator.empty()) {
        TRY(view.orchestrator, known_orchestrator(view.catalog, view.orchestrator));
    }
    if (!view.name.empty()) {
        if (!view.need.empty() || !view.from.empty() || !view.orchestrator.empty())
            return Error(ErrorKind::invalid, "with the NAME of an image there is nothing to choose from", {},
                         "leave the NAME out, or --need, --from and --orchestrator");
        TRY(const int index, view.catalog.find_image(view.name));
        return card_output(view, image_card(view.catalog.images()[static_cast<std::size_t>(index)]));
    }
    return view.from.empty() ? Result<CommandOutput>(from_catalogue(view)) : from_answer(view);
}

}  // namespace stoker
