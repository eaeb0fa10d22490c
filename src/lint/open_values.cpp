// What was left open: values of resources and containers that rules ask for and that could not be followed.
#include <array>

#include "lint/outcome.h"

namespace stoker::lint {

namespace {

struct OpenName {
    Attr attr;
    std::string_view name;
};
// Attributes whose value decides; of names, tags and references it is enough that they are there.
constexpr std::array<OpenName, 30> kOpenNames = {{{Attr::size, "size"},
                                                  {Attr::count, "count"},
                                                  {Attr::min_count, "minimum"},
                                                  {Attr::max_count, "maximum"},
                                                  {Attr::autoscaling, "autoscaling"},
                                                  {Attr::taint, "taint"},
                                                  {Attr::zone, "zone"},
                                                  {Attr::single_placement_group, "single placement group"},
                                                  {Attr::orchestration, "orchestration mode"},
                                                  {Attr::accelerated_networking, "accelerated networking"},
                                                  {Attr::image_publisher, "image publisher"},
                                                  {Attr::image_offer, "image offer"},
                                                  {Attr::image_sku, "image SKU"},
                                                  {Attr::image_urn, "image"},
                                                  {Attr::security_type, "security type"},
                                                  {Attr::secure_boot, "secure boot"},
                                                  {Attr::priority, "priority"},
                                                  {Attr::gpu_driver, "GPU driver"},
                                                  {Attr::gpu_instance, "MIG profile"},
                                                  {Attr::os_sku, "OS SKU"},
                                                  {Attr::address_prefix, "address range"},
                                                  {Attr::overprovision, "overprovisioning"},
                                                  {Attr::extension_type, "extension type"},
                                                  {Attr::extension_version, "extension version"},
                                                  {Attr::port, "port"},
                                                  {Attr::source_prefix, "source"},
                                                  {Attr::idle_seconds, "idle time"},
                                                  {Attr::dedicated_nodes, "dedicated nodes"},
                                                  {Attr::process_count, "processes"},
                                                  {Attr::chart_version, "chart version"}}};

struct OpenCounter {
    OpenValues& open;

    bool add(const Value& value, std::string_view name, const std::string& address) {
        if (!value.unknown()) return false;
        ++open.attributes;
        if (open.values.size() >= kMostOpen) return true;
        const Source* source = value.use_source ? value.use_source : value.source;
        if (!source) return true;
        const Span at = source->in_outermost(value.use_source ? value.use : value.span);
        std::string written(source->outermost().text(at));
        if (const std::size_t end = written.find('\n'); end != std::string::npos) written.resize(end);
        if (written.size() > 80) written = written.substr(0, 77) + "...";
        open.values.push_back({source->path(), address, std::string(name), std::move(written),
                               source->outermost().place(at.begin, Columns::code_points)});
        return true;
    }
};

}  // namespace

void add_open_values(const File& file, OpenValues& open) {
    OpenCounter counter{open};
    for_each_part(file, [&](const File& part) {
        for (const Resource& resource : part.resources) {
            bool any = false;
            for (const auto& [attr, value] : resource.attributes)
                for (const OpenName& each : kOpenNames)
                    if (each.attr == attr) any |= counter.add(value, each.name, resource.address);
            open.resources += any;
        }
        const auto container = [&](const Container& of) {
            bool any = counter.add(of.image, "image", of.address);
            for (const Quantity& quantity : of.resources)
                if (is_accelerator_resource(quantity.resource))
                    any |= counter.add(quantity.amount, quantity.resource, of.address);
            open.resources += any;
        };
        for (const Workload& workload : part.workloads)
            for (const Container& each : workload.containers) container(each);
        for (const Container& each : part.services) container(each);
        for (const ReadProblem& problem : part.problems)
            if (problem.rule == "SYN003") {
                ++open.files;
                break;
            }
    });
}

}  // namespace stoker::lint
