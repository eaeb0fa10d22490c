// stoker catalog: what is known, since when and from where.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "app/commands/catalog_view.h"
#include "app/commands/commands.h"
#include "base/text.h"
#include "catalog/image_list.h"
#include "catalog/model_count.h"
#include "catalog/names.h"

namespace stoker {

CommandOutput list_output(const CatalogView& view, const FactTable& listing, const std::string& note) {
    if (view.session.format != Format::text) return {dump(view.session, listing.json()), 0};
    std::string text = listing.text(view.session.style);
    if (!note.empty()) text += "\n";
    for (const std::string& line : wrap(note, static_cast<std::size_t>(view.session.style.width) - 2))
        text += note.empty() ? "" : "  " + view.session.style.dim(line) + "\n";
    return {text, 0};
}

CommandOutput card_output(const CatalogView& view, const Card& card, const std::string& below, Json corrections) {
    if (view.session.format == Format::text) return {card.text(view.session.style) + below, 0};
    Json json = card.json();
    json.set("corrections", std::move(corrections)).set("catalog", view.catalog.version);
    return {dump(view.session, json), 0};
}

namespace {

using View = CatalogView;

// Nothing fits, which is an answer: an empty list for programs, a sentence for people.
CommandOutput nothing(const View& view, const std::string& sentence) {
    return {view.session.format == Format::text ? sentence + "\n" : dump(view.session, Json::array()), 1};
}

bool wanted_cloud(const View& view, const std::string& cloud) {
    return view.cloud.empty() || view.cloud == "any" || view.cloud == cloud;
}

std::vector<std::string> clouds_renting(const Catalog& catalog, int accelerator) {
    std::set<std::string> clouds;
    for (const NodeType& node : catalog.node_types()) {
        if (node.accelerator == accelerator) clouds.insert(node.cloud);
    }
    const auto& own = catalog.accelerators()[static_cast<std::size_t>(accelerator)].clouds;
    clouds.insert(own.begin(), own.end());
    return {clouds.begin(), clouds.end()};
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
        if (sizes.empty())
            sizes = wanted_cloud(view, "") ? "In no size of the catalogue, so no plan can use it."
                                           : "In no size of " + view.cloud + ".";
        else
            sizes = "In: " + sizes;
        for (const std::string& line : wrap(sizes, 96)) below += "  " + line + "\n";
        return card_output(view, card, below);
    }
    FactTable listing{{{"name", "GPU"},
                       {"architecture", "architecture"},
                       {"year", "year", Align::right},
                       {"memory_gb", "GB", Align::right},
                       {"memory_bandwidth_gb_s", "GB/s", Align::right},
                       {"fp32_tflops", "FP32", Align::right},
                       {"bf16_tflops", "BF16", Align::right},
                       {"fp8_tflops", "FP8", Align::right},
                       {"tensor_to_fp32", "ratio", Align::right},
                       {"power_w", "W", Align::right},
                       {"clouds", "rented on"}},
                      {}};
    for (std::size_t i = 0; i < view.catalog.accelerators().size(); ++i) {
        const Accelerator& gpu = view.catalog.accelerators()[i];
        const std::vector<std::string> clouds = clouds_renting(view.catalog, static_cast<int>(i));
        if (std::none_of(clouds.begin(), clouds.end(), [&](const auto& c) { return wanted_cloud(view, c); }) &&
            !view.cloud.empty())
            continue;
        const auto peak = [&](Precision p) {
            return gpu.peak[static_cast<std::size_t>(p)].v > 0 ? Json(gpu.peak[static_cast<std::size_t>(p)].v / 1e12)
                                                               : Json();
        };
        listing.rows.push_back({gpu.name, gpu.architecture, gpu.year, gpu.memory.v / 1e9, gpu.memory_bandwidth.v / 1e9,
                                peak(Precision::fp32), peak(Precision::bf16), peak(Precision::fp8),
                                tensor_ratio(gpu) > 0 ? Json(tensor_ratio(gpu)) : Json(),
                                gpu.power.v > 0 ? Json(gpu.power.v) : Json(),
                                clouds.empty() ? Json() : Json(join(clouds, ", "))});
    }
    return list_output(view, listing,
                       "TFLOPS, dense; ratio: tensor FP16 or BF16 over FP32. TPU, Neuron, Gaudi and FPGA are no GPUs: "
                       "their cards say what ties to them. "
                       "stoker catalog gpus NAME shows sources");
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
        const NodeType& node = view.catalog.node_types()[static_cast<std::size_t>(*index)];
        if (!wanted_cloud(view, node.cloud))
            return Error(ErrorKind::invalid,
                         fmt::format("{} is a size of {}, not of {}", node.name, node.cloud, view.cloud));
        const std::string& name = node.name;
        return card_output(view, size_card(view.catalog, *index, view.region, view.today),
                           correction_notes(name, view.session.style), correction_json(name));
    }
    FactTable listing{{{"name", ""},
                       {"", "size"},
                       {"cloud", ""},
                       {"purpose", ""},
                       {"vcpus", "vCPU", Align::right},
                       {"memory_gib", "GiB", Align::right},
                       {"accelerators", ""},
                       {"accelerator", ""},
                       {"", "GPUs"},
                       {"rdma_gbps_per_gpu", "RDMA", Align::right},
                       {"usd_per_hour", ""},
                       {"", "$/h", Align::right},
                       {"retirement_date", "retires"}},
                      {}};
    for (std::size_t i = 0; i < view.catalog.node_types().size(); ++i) {
        const NodeType& node = view.catalog.node_types()[i];
        if (!wanted_cloud(view, node.cloud)) continue;
        const Price* price = usual_price(view.catalog, static_cast<int>(i), view.region, "linux", Pricing::on_demand);
        if (!view.region.empty() && price == nullptr) continue;
        const bool gpu = node.has_gpu();
        const std::string chip =
            gpu ? view.catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name : std::string();
        listing.rows.push_back({node.name, bare_size(node.name), node.cloud, node.purpose, node.vcpus,
                                node.memory.v / kGiB, gpu ? Json(node.accelerators) : Json(), gpu ? Json(chip) : Json(),
                                gpu ? Json(gpu_count_text(node.accelerators, chip)) : Json(),
                                node.rdma_gbps_per_gpu > 0 ? Json(node.rdma_gbps_per_gpu) : Json(),
                                price ? Json(price->per_hour.dollars()) : Json(),
                                price ? Json(hourly_text(price->per_hour.dollars())) : Json(),
                                node.retirement_date.empty() ? Json() : Json(node.retirement_date)});
    }
    if (listing.rows.empty())
        return nothing(view, fmt::format("No size of {} is priced in {}.", view.cloud.empty() ? "azure" : view.cloud,
                                         view.region));
    return list_output(
        view, listing,
        (view.region.empty() ? "Linux, on demand, eastus where it is sold there, else the cheapest region"
                             : "Linux, on demand, " + view.region) +
            "; RDMA: Gb/s per GPU");
}

// "azure-retail" of azure-retail-via-karpenter: what fits into a column.
std::string short_source(const std::string& source) {
    return source.substr(0, std::min(source.find("-via-"), source.find(',')));
}

Result<CommandOutput> prices(const View& view) {
    const bool many = view.name.empty();
    // Over many sizes a line has no room for the system, the date and the whole source: they stand below.
    FactTable listing{{{"size", ""},
                       {"", many ? "size" : ""},
                       {"region", many && !view.region.empty() ? "" : "region"},
                       {"os", many ? "" : "OS"},
                       {"pricing", ""},
                       {"", "pricing"},
                       {"usd_per_hour", ""},
                       {"", "$/h", Align::right},
                       {"estimate", ""},
                       {"as_of", many ? "" : "as of"},
                       {"source", many ? "" : "source"},
                       {"", many ? "source" : ""}},
                      {}};
    std::set<std::string> legend;
    int only = -1;
    if (!view.name.empty()) {
        TRY(only, view.catalog.find_node_type(view.name));
    }
    for (const Price& price : view.catalog.prices()) {
        const NodeType& node = view.catalog.node_types()[static_cast<std::size_t>(price.node_type)];
        if ((only >= 0 && price.node_type != only) || !wanted_cloud(view, node.cloud)) continue;
        if (!view.os.empty() && price.os != view.os) continue;
        if (!view.region.empty() ? price.region != view.region
                                 : (only < 0 && node.cloud == "azure" && price.region != "eastus"))
            continue;
        const std::string pricing(to_string(price.pricing));
        listing.rows.push_back({node.name, bare_size(node.name), price.region, price.os, pricing,
                                pricing + (price.estimate ? ", estimate" : ""), price.per_hour.dollars(),
                                hourly_text(price.per_hour.dollars()), price.estimate, price.provenance.as_of,
                                price.provenance.source, short_source(price.provenance.source)});
        legend.insert(fmt::format("{}: {}, {}, as of {}.", short_source(price.provenance.source),
                                  price.provenance.source, price.os, price.provenance.as_of));
    }
    if (listing.rows.empty()) {
        const std::string size =
            only < 0 ? std::string() : " of " + view.catalog.node_types()[static_cast<std::size_t>(only)].name;
        return nothing(view, fmt::format("No{} price{}{} in the catalogue: unpriced, which is not free. Verify at {}",
                                         view.os.empty() ? "" : " " + view.os, size,
                                         view.region.empty() ? "" : " in " + view.region,
                                         price_pages()[view.os == "windows" ? 2 : 0]));
    }
    std::string note = "verify: " + join(price_pages(), " ");
    if (many) note = join({legend.begin(), legend.end()}, " ") + " " + note;
    if (many && !view.region.empty()) note = "region " + view.region + ". " + note;
    if (only < 0 && view.region.empty()) note = "Azure: eastus only; --region REGION for another. " + note;
    const auto& all = view.catalog.prices();
    if (view.os.empty() && std::none_of(all.begin(), all.end(), [](const Price& p) { return p.os == "windows"; }))
        note = "Windows is priced apart, and no Windows price is in the catalogue. " + note;
    CommandOutput output = list_output(view, listing, note);
    if (only >= 0 && view.session.format == Format::text)
        output.out +=
            correction_notes(view.catalog.node_types()[static_cast<std::size_t>(only)].name, view.session.style);
    return output;
}

Result<CommandOutput> retirements(const View& view) {
    if (!view.name.empty()) {
        const Retirement* found = find_retirement(view.catalog, view.name);
        if (found != nullptr) return card_output(view, retirement_card(*found, view.today));
        const auto index = view.catalog.find_node_type(view.name);
        if (!index)
            return Error(ErrorKind::not_found, index.error().message(), {}, "stoker catalog retirements lists them");
        const std::string& name = view.catalog.node_types()[static_cast<std::size_t>(*index)].name;
        Card card{name, {}};
        card.add("size", "", name);
        card.add("date", "retirement", Json(), fmt::format("none announced as of {}", view.catalog.as_of));
        return card_output(view, card);
    }
    FactTable listing{
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
        TRY(const ModelMatch match, view.catalog.match_model(view.name));
        return card_output(view, model_card(view.catalog.models()[static_cast<std::size_t>(match.index)]));
    }
    FactTable listing{{{"name", "model"},
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

Result<CommandOutput> disks(const View& view) {
    if (!view.name.empty()) {
        TRY(const int index, view.catalog.find_disk(view.name));
        return card_output(view, disk_card(view.catalog.disks()[static_cast<std::size_t>(index)]));
    }
    FactTable listing{{{"name", "disk"},
                       {"kind", "kind"},
                       {"gib", "GiB", Align::right},
                       {"iops", "IOPS", Align::right},
                       {"mb_s", "MB/s", Align::right},
                       {"usd_per_month", "$/month", Align::right},
                       {"usd_per_gib_month", "$/GiB", Align::right},
                       {"price_region", "price of"}},
                      {}};
    for (const DiskTier& disk : view.catalog.disks()) {
        const bool priced = disk.usd_per_month > 0;
        listing.rows.push_back(
            {disk.name, disk.kind, disk.gib, disk.iops, disk.mb_s, priced ? Json(disk.usd_per_month) : Json(),
             priced ? Json(disk.usd_per_month / disk.gib) : Json(), priced ? Json(disk.price_region) : Json()});
    }
    return list_output(view, listing,
                       "locally redundant; - where no price was seen: unpriced, not free. "
                       "Verify: https://azure.microsoft.com/pricing/details/managed-disks/");
}

// A region belongs to the cloud that was named, else to that of the size that was named, else to Azure.
Result<std::string> region_of(const View& view, const std::string& word) {
    if (view.cloud == "any") {
        for (const char* cloud : {"azure", "aws", "gcp"}) {
            if (auto found = view.catalog.find_region(cloud, word)) return found;
        }
    }
    std::string cloud = view.cloud.empty() || view.cloud == "any" ? "azure" : view.cloud;
    if (view.cloud.empty() && !view.name.empty()) {
        if (const auto index = view.catalog.find_node_type(view.name))
            cloud = view.catalog.node_types()[static_cast<std::size_t>(*index)].cloud;
    }
    auto found = view.catalog.find_region(cloud, word);
    if (found) return found;
    return Error(ErrorKind::not_found, found.error().message(), {},
                 fmt::format("stoker catalog regions --cloud {} lists them", cloud));
}

Result<CommandOutput> regions(const View& view) {
    if (!view.name.empty()) {
        View of_region{.session = view.session, .catalog = view.catalog, .today = view.today, .cloud = view.cloud};
        TRY(of_region.region, region_of(of_region, view.name));
        if (of_region.cloud.empty()) of_region.cloud = "azure";
        return sizes(of_region);
    }
    FactTable listing{{{"region", "region"},
                       {"cloud", "cloud"},
                       {"sizes", "sizes priced", Align::right},
                       {"gpu_sizes", "with GPU", Align::right}},
                      {}};
    std::map<std::pair<std::string, std::string>, std::pair<int, int>> counts;  // by cloud and region: all, with GPU
    for (const NodeType& node : view.catalog.node_types()) {
        const std::string& cloud = node.cloud;
        if (counts.contains({cloud, ""}) || (view.cloud.empty() ? cloud != "azure" : !wanted_cloud(view, cloud)))
            continue;
        counts[{cloud, ""}] = {0, 0};  // seen; dropped below
        for (const std::string& region : view.catalog.regions_of(cloud)) counts[{cloud, region}] = {0, 0};
    }
    for (const Price& price : view.catalog.prices()) {
        const NodeType& node = view.catalog.node_types()[static_cast<std::size_t>(price.node_type)];
        const auto at = counts.find({node.cloud, price.region});
        if (at == counts.end() || price.pricing != Pricing::on_demand || price.os != "linux") continue;
        ++at->second.first;
        at->second.second += node.has_gpu() ? 1 : 0;
    }
    for (const auto& [place, count] : counts) {
        if (!place.second.empty()) listing.rows.push_back({place.second, place.first, count.first, count.second});
    }
    if (listing.rows.empty()) return nothing(view, fmt::format("No region of {} is known.", view.cloud));
    return list_output(view, listing, "stoker catalog regions NAME lists what is sold there");
}

// Which option says something to which part; --as-of, which dates all of them, to each.
struct OptionScope {
    std::string_view option;
    std::vector<std::string_view> parts;
};
Status check_scope(const Args& args) {
    static const std::vector<OptionScope> scopes = {{"cloud", {"gpus", "sizes", "prices", "regions"}},
                                                    {"region", {"sizes", "prices"}},
                                                    {"os", {"prices"}},
                                                    {"need", {"images"}},
                                                    {"orchestrator", {"images"}},
                                                    {"from", {"images"}}};
    for (const OptionScope& scope : scopes) {
        if (!args.has(scope.option)) continue;
        if (std::find(scope.parts.begin(), scope.parts.end(), args.positional[0]) != scope.parts.end()) continue;
        return Error(ErrorKind::invalid,
                     fmt::format("--{} means nothing to stoker catalog {}", scope.option, args.positional[0]), {},
                     fmt::format("it belongs to {}", fmt::join(scope.parts, ", ")));
    }
    return done();
}

Result<std::string> known_cloud(const Catalog& catalog, const std::string& word) {
    std::set<std::string> known = {"any"};
    for (const NodeType& node : catalog.node_types()) known.insert(node.cloud);
    for (const Accelerator& chip : catalog.accelerators()) known.insert(chip.clouds.begin(), chip.clouds.end());
    if (known.contains(lower(word))) return lower(word);
    const std::vector<std::string> names(known.begin(), known.end());
    return Error(ErrorKind::invalid, fmt::format("no cloud named {}{}", printable(word, 40), did_you_mean(word, names)),
                 {}, "one of " + join(names, ", "));
}

Result<CommandOutput> run_catalog(Session& session, const Args& args) {
    TRY_VOID(check_scope(args));
    TRY(const PlanOptions options, plan_options(session, args));
    TRY(Catalog * catalog, session.catalog());
    View view{.session = session,
              .catalog = *catalog,
              .name = args.positional.size() > 1 ? args.positional[1] : "",
              .today = options.today,
              .os = args.get_or("os", ""),
              .from = args.get_or("from", ""),
              .orchestrator = args.get_or("orchestrator", "")};
    if (const auto cloud = args.get("cloud")) {
        TRY(view.cloud, known_cloud(*catalog, *cloud));
    }
    const std::string& what = args.positional[0];
    if (const auto region = args.get("region")) {
        TRY(view.region, region_of(view, *region));
        if (view.cloud.empty() && view.name.empty()) view.cloud = "azure";
    }
    if (const auto need = args.get("need")) {
        for (const std::string_view word : split(*need, ',')) {
            if (trim(word).empty()) continue;
            TRY(const std::string content, image_content(trim(word), *catalog));
            if (std::find(view.need.begin(), view.need.end(), content) == view.need.end()) view.need.push_back(content);
        }
        if (view.need.empty())
            return Error(ErrorKind::invalid, "--need names nothing", {}, "such as --need ib,nccl,mpi");
    }
    if (what == "gpus") return gpus(view);
    if (what == "sizes") return sizes(view);
    if (what == "prices") return prices(view);
    if (what == "retirements") return retirements(view);
    if (what == "models") return models(view);
    if (what == "images") return catalog_images(view);
    if (what == "disks") return disks(view);
    if (what == "templates") return show_templates(session, view.name);
    return regions(view);
}

}  // namespace

CliCommand catalog_command() {
    return {
        .name = "catalog",
        .summary = "what hardware, sizes, prices, images and models are known, with sources",
        .usage = "stoker catalog gpus|sizes|prices|retirements|models|images|disks|regions|templates [NAME] [options]",
        .description =
            "Lists one part of the catalogue, or with NAME shows every fact of one entry with its source and date.\n"
            "Names are forgiving: NC4as_T4_v3, nd96isr-h100-v5, H100. Where a figure is often quoted wrongly, the card "
            "says so.",
        .examples = {"stoker catalog gpus H100-SXM", "stoker catalog sizes NC4as_T4_v3",
                     "stoker catalog retirements --as-of 2023-10-01", "stoker catalog images --need ib,nccl,mpi",
                     "stoker catalog images --need ib --from images.json"},
        .options =
            {{.name = "as-of", .value = "DATE", .help = "as seen on this day, YYYY-MM-DD: retired or not"},
             {.name = "cloud", .value = "CLOUD", .help = "only of this cloud; any: all"},
             {.name = "region", .value = "REGION", .help = "prices of this region"},
             {.name = "os", .value = "OS", .help = "prices for linux or windows", .choices = {"linux", "windows"}},
             {.name = "need", .value = "LIST", .help = "images: what must be inside, such as ib,nccl,mpi; best first"},
             {.name = "orchestrator",
              .value = "NAME",
              .help = "images that it can start: aks, vmss, cyclecloud-slurm, batch, azure-ml, local"},
             {.name = "from",
              .value = "FILE",
              .help = "images: a saved answer of az vm image list --all -o json",
              .completes = "file"}},
        .min_positional = 1,
        .max_positional = 2,
        .subcommands = {"gpus", "sizes", "prices", "retirements", "models", "images", "disks", "regions", "templates"},
        .run = run_catalog,
        .warns_stale = true};
}

}  // namespace stoker
