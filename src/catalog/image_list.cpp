#include "catalog/image_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/text.h"
#include "catalog/field_reader.h"
#include "catalog/names.h"

namespace stoker {

namespace {

// Versions are numbers between dots, of any length: 22.04.202608120 is newer than 22.04.99.
bool older(std::string_view a, std::string_view b) {
    const auto left = split(a, '.'), right = split(b, '.');
    for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
        const std::string_view x = i < left.size() ? left[i] : "", y = i < right.size() ? right[i] : "";
        unsigned long long m = 0, n = 0;
        std::from_chars(x.data(), x.data() + x.size(), m);
        std::from_chars(y.data(), y.data() + y.size(), n);
        if (m != n) return m < n;
    }
    return false;
}

// "2204-gen2" and "2204" are one image for two VM generations.
std::string without_generation(std::string_view sku) {
    std::string folded = lower(sku);
    for (const std::string_view mark : {"-gen1", "-gen2", "_gen2", "gen2"}) {
        if (const auto at = folded.find(mark); at != std::string::npos) folded.erase(at, mark.size());
    }
    return folded;
}

std::string without_digits(std::string_view text) {
    std::string kept;
    for (const char c : text) {
        if ((c < '0' || c > '9') && c != '_' && c != '.') kept.push_back(c);
    }
    return kept;
}

struct Urn {
    std::string publisher, offer, sku;
};
Urn parse_urn(std::string_view urn) {
    const auto parts = split(urn, ':');
    if (parts.size() != 4) return {};
    return {std::string(parts[0]), std::string(parts[1]), std::string(parts[2])};
}

void recognise(ListedImage& listed, const Catalog& catalog) {
    for (const bool exact : {true, false}) {
        for (std::size_t i = 0; i < catalog.images().size(); ++i) {
            const Urn known = parse_urn(catalog.images()[i].urn);
            if (known.sku.empty() || !equals_ignore_case(known.publisher, listed.publisher) ||
                !equals_ignore_case(known.offer, listed.offer))
                continue;
            const std::string ours = without_generation(known.sku), theirs = without_generation(listed.sku);
            if (exact ? ours != theirs : without_digits(ours) != without_digits(theirs)) continue;
            // A URN may stand in several rows; the one for most orchestrators is the general one.
            if (listed.image >= 0 && catalog.images()[static_cast<std::size_t>(listed.image)].orchestrators.size() >=
                                         catalog.images()[i].orchestrators.size())
                continue;
            listed.image = static_cast<int>(i);
            listed.known = exact ? ContentsKnown::exactly : ContentsKnown::by_kin;
        }
        if (listed.image >= 0) return;
    }
}

ListedImage read_entry(const Node& node, Problems& problems, std::string_view today) {
    FieldReader in(node, problems);
    ListedImage image;
    image.publisher = in.required_text({"publisher"});
    image.offer = in.required_text({"offer"});
    image.sku = in.required_text({"sku"});
    image.version = in.required_text({"version"});
    image.urn =
        in.text({"urn"}).value_or(fmt::format("{}:{}:{}:{}", image.publisher, image.offer, image.sku, image.version));
    image.architecture = in.text({"architecture"}).value_or("");
    const Node* plan = in.find({"plan"});
    image.has_plan = plan != nullptr && plan->is_mapping();
    const Node* status = in.find({"imageDeprecationStatus"});
    if (status == nullptr) return image;
    if (!status->is_mapping()) {
        in.problem("\"imageDeprecationStatus\" is not an object", status);
        return image;
    }
    FieldReader deprecation(*status, problems);
    const std::string state = deprecation.text({"imageState"}).value_or("Active");
    image.deprecated_on = deprecation.text({"scheduledDeprecationTime"}).value_or("").substr(0, 10);
    image.deprecated =
        equals_ignore_case(state, "Deprecated") || (!image.deprecated_on.empty() && image.deprecated_on <= today);
    return image;
}

}  // namespace

Result<std::vector<ListedImage>> read_image_list(const Document& document, const Catalog& catalog,
                                                 std::string_view today) {
    constexpr std::string_view what = "an answer of az vm image list";
    TRY(const Node* list, list_of(document.root(), "value", what));
    Problems problems;
    std::vector<ListedImage> images;
    std::map<std::string, std::size_t> place;
    for (const auto& item : list->items) {
        if (!item->is_mapping()) {
            problems.push_back(
                Problem{fmt::format("{} where an image was expected", to_string(item->kind)), {}, item->pos});
            continue;
        }
        const std::size_t before = problems.size();
        ListedImage entry = read_entry(*item, problems, today);
        if (problems.size() != before) continue;
        const std::string key = lower(fmt::format("{}:{}:{}", entry.publisher, entry.offer, entry.sku));
        const auto [at, fresh] = place.try_emplace(key, images.size());
        if (fresh) {
            entry.versions = 1;
            images.push_back(std::move(entry));
            continue;
        }
        ListedImage& kept = images[at->second];
        const int versions = kept.versions + 1;
        const bool better = kept.deprecated != entry.deprecated ? kept.deprecated : older(kept.version, entry.version);
        if (better) kept = std::move(entry);
        kept.versions = versions;
    }
    if (!problems.empty()) {
        problems.front().remedy = "expected what az vm image list --all --publisher PUBLISHER -o json prints";
        return error_of(std::move(problems)).while_doing(fmt::format("reading {}", what));
    }
    if (images.empty()) {
        return Error(ErrorKind::invalid, "no image in this answer", document.root().pos,
                     "az vm image list without --all knows a few only; ask with --all --publisher PUBLISHER");
    }
    for (ListedImage& image : images) recognise(image, catalog);
    return images;
}

Result<std::string> image_content(std::string_view word, const Catalog& catalog) {
    static const std::pair<std::string_view, std::string_view> kWords[] = {{"ib", "ofed"},
                                                                           {"infiniband", "ofed"},
                                                                           {"rdma", "ofed"},
                                                                           {"doca", "ofed"},
                                                                           {"docaofed", "ofed"},
                                                                           {"mlnxofed", "ofed"},
                                                                           {"driver", "nvidia-driver"},
                                                                           {"gpudriver", "nvidia-driver"},
                                                                           {"gpu", "nvidia-driver"},
                                                                           {"nvidia", "nvidia-driver"},
                                                                           {"cudatoolkit", "cuda"},
                                                                           {"openmpi", "mpi"},
                                                                           {"hpcx", "mpi"},
                                                                           {"dcgm", "monitoring"},
                                                                           {"docker", "container-runtime"},
                                                                           {"containerd", "container-runtime"},
                                                                           {"container", "container-runtime"},
                                                                           {"torch", "pytorch"},
                                                                           {"sklearn", "scikit-learn"},
                                                                           {"spark", "pyspark"},
                                                                           {"amd", "amd-driver"},
                                                                           {"notebook", "jupyter"},
                                                                           {"code", "vscode"},
                                                                           {"az", "azure-cli"}};
    const std::string folded = fold_name(word);
    std::set<std::string> known;
    for (const Image& image : catalog.images()) known.insert(image.contains.begin(), image.contains.end());
    for (const std::string& each : known) {
        if (fold_name(each) == folded) return each;
    }
    for (const auto& [said, meant] : kWords) {
        if (said == folded && known.contains(std::string(meant))) return std::string(meant);
    }
    const std::vector<std::string> names(known.begin(), known.end());
    return Error(
        ErrorKind::invalid,
        fmt::format("nothing is known of images with '{}' inside{}", printable(word, 40), did_you_mean(word, names)),
        {}, "one or more of " + join(names, ", "));
}

std::vector<std::string> missing_contents(const std::vector<std::string>& need,
                                          const std::vector<std::string>& contains) {
    std::vector<std::string> missing;
    for (const std::string& word : need) {
        if (std::find(contains.begin(), contains.end(), word) == contains.end()) missing.push_back(word);
    }
    return missing;
}

}  // namespace stoker
