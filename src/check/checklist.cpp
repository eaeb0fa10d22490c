#include "check/checklist.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/text.h"
#include "lint/check.h"

namespace stoker {

namespace {

using Verdict = ChecklistPoint::Verdict;

// What the files hold, each with the first place where it was seen.
struct SeenFacts {
    std::optional<std::string> training, inference, gpu_size, rdma_size, platform, taint, toleration, plugin, driver,
        monitoring, clean_up;
};

void see(std::optional<std::string>& slot, std::string_view what, const lint::Source* source, lint::Span span) {
    if (slot) return;
    const lint::Place place = source ? source->place(span.begin) : lint::Place{};
    slot = source ? fmt::format("{} at {}:{}", what, source->path(), place.line) : std::string(what);
}

void see_workloads(const lint::File& part, SeenFacts& seen) {
    for (const lint::Workload& workload : part.workloads) {
        for (const lint::Node& toleration : lint::children(workload.pod ? workload.pod->find("tolerations") : nullptr))
            see(seen.toleration, "a toleration", toleration.source, toleration.span);
        for (const lint::Container& container : workload.containers) {
            if (!container.image.known()) continue;
            const std::string_view image = container.image.text;
            if (image.find("device-plugin") != std::string_view::npos ||
                image.find("gpu-operator") != std::string_view::npos)
                see(seen.plugin, "a device plugin", container.image.source, container.image.span);
            if (image.find("dcgm") != std::string_view::npos)
                see(seen.monitoring, "a DCGM exporter", container.image.source, container.image.span);
        }
    }
}

void see_resources(const lint::File& part, SeenFacts& seen) {
    const lint::Knowledge& knowledge = lint::Knowledge::embedded();
    for (const lint::Resource& resource : part.resources) {
        using lint::Attr;
        using lint::ResourceType;
        const lint::Value& size = resource.get(Attr::size);
        const lint::KnownSize* known = size.known() ? knowledge.size(size.text) : nullptr;
        if (known && known->gpu()) see(seen.gpu_size, fmt::format("size {}", known->name), size.source, size.span);
        if (known && known->gpu() && known->rdma())
            see(seen.rdma_size, fmt::format("size {} with InfiniBand", known->name), size.source, size.span);
        const auto platform = [&](std::string_view name) {
            see(seen.platform, name, resource.source, resource.header);
        };
        switch (resource.type) {
            case ResourceType::cluster:
            case ResourceType::node_pool: platform("managed Kubernetes"); break;
            case ResourceType::aml_compute:
            case ResourceType::aml_endpoint: platform("Azure Machine Learning"); break;
            case ResourceType::scale_set: platform("a scale set"); break;
            case ResourceType::batch_pool: platform("Azure Batch"); break;
            case ResourceType::shutdown_schedule:
                see(seen.clean_up, "a shutdown schedule", resource.source, resource.header);
                break;
            case ResourceType::budget: see(seen.clean_up, "a budget", resource.source, resource.header); break;
            case ResourceType::extension:
                if (lint::contains_nocase(resource.get(Attr::extension_type).text, "gpudriver"))
                    see(seen.driver, "the driver extension", resource.source, resource.header);
                break;
            case ResourceType::chart: {
                const std::string name = lower(resource.get(Attr::chart_name).text);
                if (name.find("device-plugin") != std::string::npos || name.find("gpu-operator") != std::string::npos)
                    see(seen.plugin, "chart " + name, resource.source, resource.header);
                if (name.find("dcgm") != std::string::npos || name.find("gpu-operator") != std::string::npos)
                    see(seen.monitoring, "chart " + name, resource.source, resource.header);
                break;
            }
            default: break;
        }
        if (!resource.all(Attr::taint).empty()) see(seen.taint, "a taint", resource.source, resource.header);
        if (resource.get(Attr::gpu_driver).present() || resource.get(Attr::image_offer).is_nocase("ubuntu-hpc"))
            see(seen.driver, "a driver setting or an image with drivers", resource.source, resource.header);
        if (known && known->gpu() && resource.get(Attr::min_count).as_int() == 0)
            see(seen.clean_up, "a pool that goes to zero", resource.source, resource.header);
    }
}

// A workload file of our own says most of it in words.
void see_workload_file(const lint::File& part, SeenFacts& seen) {
    const lint::Knowledge& knowledge = lint::Knowledge::embedded();
    for (const lint::Node* root : part.tree.roots) {
        const lint::Node* kind = root->find("kind");
        if (kind && kind->is_scalar())
            see(kind->text == "training" ? seen.training : seen.inference, fmt::format("kind: {}", kind->text),
                kind->source, kind->span);
        if (const lint::Node* platform = root->find("orchestrator"); platform && platform->is_scalar())
            see(seen.platform, fmt::format("orchestrator: {}", platform->text), platform->source, platform->span);
        const lint::Node* where = root->find("where");
        for (const lint::Node& size : lint::children(where ? where->find("sizes") : nullptr)) {
            const lint::KnownSize* known = size.is_scalar() ? knowledge.size(size.text) : nullptr;
            if (known && known->gpu()) see(seen.gpu_size, fmt::format("size {}", known->name), size.source, size.span);
            if (known && known->gpu() && known->rdma())
                see(seen.rdma_size, fmt::format("size {} with InfiniBand", known->name), size.source, size.span);
        }
    }
}

SeenFacts facts_of(const Project& project) {
    SeenFacts seen;
    const lint::Knowledge& knowledge = lint::Knowledge::embedded();
    for (const CheckInput& input : project.inputs()) {
        if (!input.file) continue;
        const lint::Work work = lint::work_of(*input.file, knowledge);
        if (work.training) see(seen.training, work.training->what, work.training->source, work.training->span);
        if (work.inference) see(seen.inference, work.inference->what, work.inference->source, work.inference->span);
        lint::for_each_part(*input.file, [&](const lint::File& part) {
            see_workloads(part, seen);
            see_resources(part, seen);
            if (part.kinds.has(lint::Kind::stoker)) see_workload_file(part, seen);
            if (part.kinds.has(lint::Kind::slurm) && !part.script.directives.empty())
                see(seen.platform, "Slurm", &part.source(), part.script.directives[0].span);
        });
    }
    return seen;
}

struct PointSpec {
    std::string_view title;
    std::string_view rules;  // ids or their beginnings, between blanks
    std::optional<std::string> SeenFacts::*fact;
    std::string_view unknown;  // what would tell
};

}  // namespace

std::vector<ChecklistPoint> checklist_of(const Project& project, bool skus_given) {
    const std::array<PointSpec, 11> specs = {{
        {"Training is told from inference", "", &SeenFacts::training,
         "neither a training launcher nor a model server in these files; stoker plan asks"},
        {"Why GPUs, and whether CPUs are enough", "SKU007 COST011", nullptr,
         "stoker plan compares with CPUs and gives the reason"},
        {"The right family of sizes", "SKU003 SKU005 SKU006 SKU008 COST009", &SeenFacts::gpu_size,
         "no GPU size in these files"},
        {"No retired size", "SKU001 SKU002 SKU004 SKU021 SKU028", &SeenFacts::gpu_size, "no GPU size in these files"},
        {"Quota and availability in the region", "SKU019 SKU020", nullptr,
         "give --skus and --usage: what az vm list-skus and az vm list-usage answered"},
        {"A platform that fits", "NET002 SKU027", &SeenFacts::platform,
         "no cluster, scale set, workspace or batch script in these files"},
        {"Pool taint, toleration and device plugin", "K8S001 K8S002 K8S011 K8S012 K8S013 K8S035 NPL001 NPL002", nullptr,
         ""},
        {"Network: InfiniBand, one placement, NCCL", "NET", &SeenFacts::rdma_size,
         "no size with InfiniBand in these files; stoker doctor measures the network"},
        {"Driver installed and validated", "SKU009 SKU011 SKU012 SKU013 SKU014 SKU015 SKU026", &SeenFacts::driver,
         "no driver route in these files; stoker doctor runs nvidia-smi on the node"},
        {"GPU metrics are collected", "NPL015 OBS", &SeenFacts::monitoring, "no DCGM exporter in these files"},
        {"Clean-up and cost alerts", "COST", &SeenFacts::clean_up,
         "neither a shutdown schedule nor a budget in these files"},
    }};
    const SeenFacts seen = facts_of(project);
    std::vector<ChecklistPoint> points;
    for (const PointSpec& spec : specs) {
        ChecklistPoint point;
        point.title = spec.title;
        std::set<std::string> hit;
        for (const lint::Finding& finding : project.outcome().findings) {
            if (finding.severity == lint::Severity::info) continue;
            for (const std::string_view rule : split_words(spec.rules))
                if (finding.rule.starts_with(rule)) hit.insert(finding.rule);
        }
        point.rules.assign(hit.begin(), hit.end());
        const std::optional<std::string>* fact = spec.fact ? &(seen.*spec.fact) : nullptr;
        point.reason = spec.unknown;
        if (fact && *fact) point.verdict = Verdict::pass, point.reason = **fact;
        if (spec.fact == &SeenFacts::training && !seen.training && seen.inference)
            point.verdict = Verdict::pass, point.reason = *seen.inference;
        if (spec.rules.starts_with("SKU019") && skus_given)
            point.verdict = Verdict::pass, point.reason = "held against what az answered";
        if (spec.rules.starts_with("K8S001")) {
            // One verdict with its three parts.
            std::vector<std::string> parts;
            for (const auto& [name, part] :
                 {std::pair("pool taint", &seen.taint), std::pair("toleration", &seen.toleration),
                  std::pair("device plugin", &seen.plugin)})
                parts.push_back(fmt::format("{}: {}", name, *part ? **part : "none in these files"));
            point.reason = join(parts, "; ");
            if (seen.taint && seen.toleration && seen.plugin) point.verdict = Verdict::pass;
            // Where pools and pods are in one project, the three were joined.
            const auto& joined = project.outcome().scheduling;
            if (!joined.empty()) {
                parts.clear();
                point.verdict = Verdict::pass;
                for (const lint::SchedulingVerdict& each : joined) {
                    parts.push_back(each.text);
                    if (each.runs == lint::Certainty::no) point.verdict = Verdict::fail;
                    if (each.runs == lint::Certainty::unknown && point.verdict == Verdict::pass)
                        point.verdict = Verdict::unknown;
                }
                point.reason = join(parts, "; ");
            }
        }
        if (!hit.empty()) point.verdict = Verdict::fail;
        points.push_back(std::move(point));
    }
    return points;
}

std::string checklist_text(const std::vector<ChecklistPoint>& points, const Style& style) {
    std::string text;
    std::size_t passed = 0, failed = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const ChecklistPoint& point = points[i];
        passed += point.verdict == Verdict::pass;
        failed += point.verdict == Verdict::fail;
        const std::string mark = point.verdict == Verdict::pass   ? style.good("pass   ")
                                 : point.verdict == Verdict::fail ? style.bad("FAIL   ")
                                                                  : style.warn("unknown");
        text += fmt::format("{:>4}  {}  {}\n", i + 1, mark, point.title);
        std::string reason = point.reason;
        if (!point.rules.empty())
            reason = fmt::format("{}{}{}", join(point.rules, ", "), reason.empty() ? "" : "; ", reason);
        for (const std::string& line : wrap(reason, static_cast<std::size_t>(style.width) - 15))
            text += std::string(15, ' ') + line + "\n";
    }
    return text + fmt::format("\n{} pass, {} fail, {} unknown\n", passed, failed, points.size() - passed - failed);
}

Json checklist_json(const std::vector<ChecklistPoint>& points) {
    Json list = Json::array();
    for (const ChecklistPoint& point : points) {
        Json rules = Json::array();
        for (const std::string& rule : point.rules) rules.push(rule);
        list.push(Json::object()
                      .set("point", point.title)
                      .set("verdict", point.verdict == Verdict::pass   ? "pass"
                                      : point.verdict == Verdict::fail ? "fail"
                                                                       : "unknown")
                      .set("reason", point.reason)
                      .set("rules", std::move(rules)));
    }
    return list;
}

}  // namespace stoker
