// stoker catalog: what is known, since when and from where.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cards.h"
#include "app/commands/commands.h"
#include "base/text.h"
#include "catalog/model_count.h"
#include "catalog/names.h"

namespace stoker {

namespace {

struct View {
    Session& session;
    const Catalog& catalog;
    std::string name, today, cloud, region;
    std::vector<std::string> need;
};

CommandOutput list_output(const View& view, const Listing& listing, const std::string& note = {}) {
    if (view.session.format != Format::text) return {dump(view.session, listing.json()), 0};
    std::string text = listing.text(view.session.style);
    if (!note.empty()) text += "\n  " + view.session.style.dim(note) + "\n";
    return {text, 0};
}

CommandOutput card_output(const View& view, const Card& card, const std::string& below = {},
                          Json corrections = Json::array()) {
    if (view.session.format == Format::text) return {card.text(view.session.style) + below, 0};
    Json json = card.json();
    json.set("corrections", std::move(corrections)).set("catalog", view.catalog.version);
    return {dump(view.session, json), 0};
}

bool wanted_cloud(const View& view, const std::string& cloud) {
    return view.cloud.empty() || view.cloud == "any" || equals_ignore_case(view.cloud, cloud);
}

Result<CommandOutput> gpus(const View& view) {
    if (!view.name.empty()) {
        TRY(const int index, view.catalog.find_accelerator(view.name));
        const Card card = gpu_card(view.catalog, index);
        std::string sizes;
        for (const NodeType& node : view.catalog.node_types()) {
            if (node.accelerator == index && wanted_cloud(view, node.cloud))
                sizes += (sizes.empty() ? "" : ", ") + bare_size(node.name);
        }
        std::string below;
        for (const std::string& line : wrap(sizes.empty() ? "In no size of the catalogue." : "In: " + sizes, 96))
            below += "  " + line + "\n";
        return card_output(view, card, below);
    }
    Listing listing{{{"name", "GPU"},
                     {"architecture", "architecture"},
                     {"year", "year", Align::right},
                     {"memory_gb", "GB", Align::right},
                     {"memory_bandwidth_gb_s", "GB/s", Align::right},
                     {"fp32_tflops", "FP32", Align::right},
                     {"bf16_tflops", "BF16", Align::right},
                     {"fp8_tflops", "FP8", Align::right},
                     {"tensor_to_fp32", "tensor:FP32", Align::right},
                     {"power_w", "W", Align::right}},
                    {}};
    for (const Accelerator& gpu : view.catalog.accelerators()) {
        const auto peak = [&](Precision p) {
            return gpu.peak[static_cast<std::size_t>(p)].v > 0 ? Json(gpu.peak[static_cast<std::size_t>(p)].v / 1e12)
                                                               : Json();
        };
        listing.rows.push_back({gpu.name, gpu.architecture, gpu.year, gpu.memory.v / 1e9, gpu.memory_bandwidth.v / 1e9,
                                peak(Precision::fp32), peak(Precision::bf16), peak(Precision::fp8),
                                tensor_ratio(gpu) > 0 ? Json(tensor_ratio(gpu)) : Json(), gpu.power.v});
    }
    return list_output(view, listing, "TFLOPS, dense; stoker catalog gpus NAME shows sources");
}

const Retirement* find_retirement(const Catalog& catalog, const std::string& size) {
    const auto& list = catalog.retirements();
    const auto found = std::find_if(list.begin(), list.end(), [&](const Retirement& r) {
        return !r.size.empty() && fold_vm_size(r.size) == fold_vm_size(size);
    });
    return found == list.end() ? nullptr : &*found;
}

Result<CommandOutput> sizes(const View& view) {
    if (!view.name.empty()) {
        auto index = view.catalog.find_node_type(view.name);
        if (!index) {
            const Retirement* retirement = find_retirement(view.catalog, view.name);
            if (retirement == nullptr) return std::move(index).error();
            return card_output(view, retirement_card(*retirement, view.today));
        }
        const std::string& name = view.catalog.node_types()[static_cast<std::size_t>(*index)].name;
        return card_output(view, size_card(view.catalog, *index, view.region, view.today),
                           correction_notes(name, view.session.style), correction_json(name));
    }
    Listing listing{{{"name", "size"},
                     {"cloud", "cloud"},
                     {"purpose", "purpose"},
                     {"vcpus", "vCPU", Align::right},
                     {"memory_gib", "GiB", Align::right},
                     {"accelerators", "GPUs", Align::right},
                     {"accelerator", "GPU"},
                     {"rdma_gbps_per_gpu", "RDMA Gb/s per GPU", Align::right},
                     {"usd_per_hour", "$/h", Align::right},
                     {"retirement_date", "retires"}},
                    {}};
    for (std::size_t i = 0; i < view.catalog.node_types().size(); ++i) {
        const NodeType& node = view.catalog.node_types()[i];
        if (!wanted_cloud(view, node.cloud)) continue;
        const Price* price = usual_price(view.catalog, static_cast<int>(i), view.region, "linux", Pricing::on_demand);
        if (!view.region.empty() && price == nullptr) continue;
        const bool gpu = node.has_gpu();
        listing.rows.push_back(
            {node.name, node.cloud, node.purpose, node.vcpus, node.memory.v / kGiB,
             gpu ? Json(node.accelerators) : Json(),
             gpu ? Json(view.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name) : Json(),
             node.rdma_gbps_per_gpu > 0 ? Json(node.rdma_gbps_per_gpu) : Json(),
             price ? Json(price->per_hour.dollars()) : Json(),
             node.retirement_date.empty() ? Json() : Json(node.retirement_date)});
    }
    return list_output(view, listing, "Linux, on demand, eastus where it is sold there, else the cheapest region");
}

Result<CommandOutput> prices(const View& view) {
    Listing listing{{{"size", "size"},
                     {"region", "region"},
                     {"os", "OS"},
                     {"pricing", "pricing"},
                     {"usd_per_hour", "$/h", Align::right},
                     {"estimate", "estimate"},
                     {"as_of", "as of"},
                     {"source", "source"}},
                    {}};
    int only = -1;
    if (!view.name.empty()) {
        TRY(only, view.catalog.find_node_type(view.name));
    }
    for (const Price& price : view.catalog.prices()) {
        const NodeType& node = view.catalog.node_types()[static_cast<std::size_t>(price.node_type)];
        if ((only >= 0 && price.node_type != only) || !wanted_cloud(view, node.cloud)) continue;
        if (!view.region.empty() ? price.region != view.region
                                 : (only < 0 && node.cloud == "azure" && price.region != "eastus"))
            continue;
        listing.rows.push_back({node.name, price.region, price.os, to_string(price.pricing), price.per_hour.dollars(),
                                price.estimate, price.provenance.as_of, price.provenance.source});
    }
    if (listing.rows.empty()) {
        return CommandOutput{
            fmt::format("No price{}{} in the catalogue. Verify at {}\n", view.name.empty() ? "" : " of " + view.name,
                        view.region.empty() ? "" : " in " + view.region, price_pages()[0]),
            1};
    }
    CommandOutput output = list_output(view, listing, "verify: " + join(price_pages(), "  "));
    if (only >= 0 && view.session.format == Format::text)
        output.out +=
            correction_notes(view.catalog.node_types()[static_cast<std::size_t>(only)].name, view.session.style);
    return output;
}

Result<CommandOutput> retirements(const View& view) {
    if (!view.name.empty()) {
        const Retirement* found = find_retirement(view.catalog, view.name);
        if (found != nullptr) return card_output(view, retirement_card(*found, view.today));
        TRY(const int index, view.catalog.find_node_type(view.name));
        return CommandOutput{
            fmt::format("{}: no retirement announced as of {}\n",
                        view.catalog.node_types()[static_cast<std::size_t>(index)].name, view.catalog.as_of),
            0};
    }
    Listing listing{
        {{"name", "what"}, {"kind", "kind"}, {"date", "date"}, {"state", "on this day"}, {"target", "moves to"}}, {}};
    std::vector<const Retirement*> sorted;
    for (const Retirement& retirement : view.catalog.retirements()) sorted.push_back(&retirement);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Retirement* a, const Retirement* b) { return a->date < b->date; });
    for (const Retirement* r : sorted) {
        listing.rows.push_back({r->size.empty() ? r->what : r->size, r->kind, r->date,
                                r->date.empty() ? Json() : Json(r->date <= view.today ? "retired" : "announced"),
                                r->target});
    }
    return list_output(view, listing,
                       fmt::format("seen from {}; RetirementDateUtc of az vm list-skus beats this table", view.today));
}

Result<CommandOutput> models(const View& view) {
    if (!view.name.empty()) {
        TRY(const int index, view.catalog.find_model(view.name));
        return card_output(view, model_card(view.catalog.models()[static_cast<std::size_t>(index)]));
    }
    Listing listing{{{"name", "model"},
                     {"kind", "kind"},
                     {"parameters", "parameters", Align::right},
                     {"active_parameters", "active", Align::right},
                     {"layers", "layers", Align::right},
                     {"hidden", "hidden", Align::right},
                     {"max_sequence", "sequence", Align::right}},
                    {}};
    const bool text = view.session.format == Format::text;
    for (const ModelSpec& model : view.catalog.models()) {
        const auto count = [&](double value) {
            return text ? Json(format_count(std::round(value / 1e5) * 1e5)) : Json(value);
        };
        listing.rows.push_back({model.name, to_string(model.kind), count(parameters_of(model)),
                                model.moe() ? count(active_parameters_of(model)) : Json(),
                                model.layers > 0 ? Json(model.layers) : Json(),
                                model.hidden > 0 ? Json(model.hidden) : Json(),
                                model.max_sequence > 0 ? Json(model.max_sequence) : Json()});
    }
    return list_output(view, listing);
}

// Words people use for what an image must bring, in the catalogue's words.
std::string content_word(std::string_view word) {
    const std::string folded = fold_name(word);
    if (folded == "ib" || folded == "infiniband" || folded == "rdma" || folded == "doca") return "ofed";
    if (folded == "driver" || folded == "gpudriver" || folded == "gpu") return "nvidia-driver";
    if (folded == "openmpi" || folded == "hpcx") return "mpi";
    if (folded == "dcgm") return "monitoring";
    if (folded == "docker") return "container-runtime";
    return lower(trim(word));
}

Result<CommandOutput> images(const View& view) {
    const auto& list = view.catalog.images();
    if (!view.name.empty()) {
        std::vector<std::string> names;
        for (const Image& image : list) {
            if (fold_name(image.name) == fold_name(view.name)) return card_output(view, image_card(image));
            names.push_back(image.name);
        }
        return Error(ErrorKind::invalid,
                     fmt::format("no image named {}{}", printable(view.name, 60), did_you_mean(view.name, names)), {},
                     "stoker catalog images lists them");
    }
    const auto missing = [&](const Image& image) {
        std::vector<std::string> absent;
        for (const std::string& word : view.need) {
            if (std::find(image.contains.begin(), image.contains.end(), word) == image.contains.end())
                absent.push_back(word);
        }
        return absent;
    };
    std::vector<const Image*> ranked;
    for (const Image& image : list) ranked.push_back(&image);
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const Image* a, const Image* b) { return missing(*a).size() < missing(*b).size(); });
    Listing listing{{{"name", "image"}, {"os", "system"}, {"lacks", "lacks"}, {"urn", "URN"}, {"contains", "contains"}},
                    {}};
    for (const Image* image : ranked) {
        if (!view.need.empty() && missing(*image).size() == view.need.size()) continue;  // has nothing of it
        listing.rows.push_back({image->name, image->os, view.need.empty() ? Json() : Json(join(missing(*image), ", ")),
                                image->urn, join(image->contains, ", ")});
    }
    CommandOutput output = list_output(view, listing,
                                       "a Marketplace image with a plan needs: az vm image terms accept --urn URN; "
                                       "check a URN by: az vm image list --all --publisher PUBLISHER");
    const bool complete = view.need.empty() || (!ranked.empty() && missing(*ranked.front()).empty());
    output.exit = complete ? 0 : 1;
    return output;
}

Result<CommandOutput> regions(const View& view) {
    const std::string cloud = view.cloud.empty() ? "azure" : lower(view.cloud);
    if (!view.name.empty()) {
        View of_region{view.session, view.catalog, "", view.today, cloud, "", {}};
        TRY(of_region.region, view.catalog.find_region(cloud, view.name));
        return sizes(of_region);
    }
    Listing listing{
        {{"region", "region"}, {"sizes", "sizes priced", Align::right}, {"gpu_sizes", "with GPU", Align::right}}, {}};
    for (const std::string& region : view.catalog.regions_of(cloud)) {
        int priced = 0, gpu = 0;
        for (const Price& price : view.catalog.prices()) {
            const NodeType& node = view.catalog.node_types()[static_cast<std::size_t>(price.node_type)];
            if (node.cloud != cloud || price.region != region || price.pricing != Pricing::on_demand) continue;
            ++priced;
            gpu += node.has_gpu() ? 1 : 0;
        }
        listing.rows.push_back({region, priced, gpu});
    }
    return list_output(view, listing, "stoker catalog regions NAME lists what is sold there");
}

Result<CommandOutput> run(Session& session, const Args& args) {
    TRY(const PlanOptions options, plan_options(session, args));
    TRY(Catalog * catalog, session.catalog());
    View view{session,
              *catalog,
              args.positional.size() > 1 ? args.positional[1] : "",
              options.today,
              args.get_or("cloud", ""),
              "",
              {}};
    if (const auto region = args.get("region")) {
        TRY(view.region, catalog->find_region(view.cloud.empty() ? "azure" : lower(view.cloud), *region));
        if (view.cloud.empty()) view.cloud = "azure";
    }
    if (const auto need = args.get("need")) {
        for (const std::string_view word : split(*need, ',')) {
            if (!trim(word).empty()) view.need.push_back(content_word(word));
        }
    }
    const std::string& what = args.positional[0];
    if (what == "gpus") return gpus(view);
    if (what == "sizes") return sizes(view);
    if (what == "prices") return prices(view);
    if (what == "retirements") return retirements(view);
    if (what == "models") return models(view);
    if (what == "images") return images(view);
    return regions(view);
}

}  // namespace

Command catalog_command() {
    return {
        .name = "catalog",
        .summary = "what hardware, sizes, prices, images and models are known, with sources",
        .usage = "stoker catalog gpus|sizes|prices|retirements|models|images|regions [NAME] [options]",
        .description =
            "Lists one part of the catalogue, or with NAME shows every fact of one entry with its source and date.\n"
            "Names are forgiving: NC4as_T4_v3, nd96isr-h100-v5, H100. Where a figure is often quoted wrongly, the card "
            "says so.",
        .examples = {"stoker catalog gpus H100-SXM", "stoker catalog sizes NC4as_T4_v3",
                     "stoker catalog retirements --as-of 2023-10-01", "stoker catalog images --need ib,nccl,mpi"},
        .options = {{.name = "as-of", .value = "DATE", .help = "as seen on this day, YYYY-MM-DD: retired or not"},
                    {.name = "cloud", .value = "CLOUD", .help = "only of this cloud; any: all"},
                    {.name = "region", .value = "REGION", .help = "prices of this region"},
                    {.name = "need",
                     .value = "LIST",
                     .help = "images: what must be inside, such as ib,nccl,mpi; best first"}},
        .min_positional = 1,
        .max_positional = 2,
        .subcommands = {"gpus", "sizes", "prices", "retirements", "models", "images", "regions"},
        .run = run};
}

}  // namespace stoker
