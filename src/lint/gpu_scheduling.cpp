#include "lint/gpu_scheduling.h"

#include <fmt/format.h>

#include "lint/check.h"
#include "lint/rules/common_pools.h"

namespace stoker::lint {

namespace {

void scheduling_place(SchedulingPart& part, const Source& source, Span span) {
    const Span at = source.in_outermost(span);
    part.path = source.path();
    part.place = source.outermost().place(at.begin, Columns::code_points);
}

// A plugin in the bundle, or one that the platform runs itself.
SchedulingPart scheduling_plugin(const Bundle& bundle, const std::vector<const Resource*>& pools) {
    SchedulingPart part;
    part.there = Certainty::no;
    part.what = "none";
    const auto found = [&](std::string what, const Source& source, Span span) {
        if (part.there == Certainty::yes) return;
        part.there = Certainty::yes;
        part.what = std::move(what);
        scheduling_place(part, source, span);
    };
    for (const Resource* pool : pools)
        if (pool->get(Attr::managed_gpu).present() || pool->written.find("google") != std::string_view::npos)
            found("run by the platform", *pool->source, pool->header);
    for (const File* file : bundle.files)
        for_each_part(*file, [&](const File& each) {
            for (const Workload& workload : each.workloads)
                if (is_device_plugin(workload) ||
                    (workload.kind == "ClusterPolicy" && workload.api_version.starts_with("nvidia.com/")))
                    found(fmt::format("{} {}", workload.kind, workload.name), *workload.object->source,
                          workload.object->find("kind") ? workload.object->find("kind")->span : workload.object->span);
            for (const Resource& resource : each.resources) {
                const std::string_view chart = resource.get(Attr::chart_name).text;
                if (resource.type == ResourceType::chart &&
                    (contains_nocase(chart, "device-plugin") || contains_nocase(chart, "gpu-operator")))
                    found("chart " + std::string(chart), *resource.source, resource.header);
            }
            for (const Command& command : each.script.commands)
                if (has_word(command.words, "device-plugin") || has_word(command.words, "gpu-operator"))
                    found("installed by a script", each.source(), command.span);
        });
    return part;
}

}  // namespace

std::string_view to_string(Certainty certainty) {
    return certainty == Certainty::yes ? "yes" : certainty == Certainty::no ? "no" : "unknown";
}

std::optional<SchedulingVerdict> scheduling_verdict(const Bundle& bundle, const Knowledge& knowledge) {
    const std::vector<const Resource*> pools = gpu_pools(bundle, knowledge);
    if (pools.empty()) return std::nullopt;
    // The first pod that is shut out speaks for all; where none is, the first that asks for a GPU.
    const Workload* pod = nullptr;
    const Resource* pool = nullptr;
    const Value* shut_out_by = nullptr;
    for (const File* file : bundle.files)
        each_pod(*file, [&](const Workload& workload) {
            if (!asks_accelerator(workload) || is_node_agent(workload) || shut_out_by) return;
            const auto candidates = candidate_pools(workload, pools);
            if (candidates.empty()) return;
            const Value* all = repelling_taint(workload, *candidates.front(), true);
            for (const Resource* candidate : candidates)
                if (!repelling_taint(workload, *candidate, true)) all = nullptr;
            if (pod && !all) return;
            pod = &workload, pool = candidates.front(), shut_out_by = all;
        });
    if (!pod) return std::nullopt;

    SchedulingVerdict verdict;
    verdict.folder = bundle.folder;
    SchedulingPart& taint = verdict.taint;
    taint.there = Certainty::no;
    taint.what = "none";
    scheduling_place(taint, *pool->source, pool->header);
    for (const Value* each : pool->all(Attr::taint)) {
        const auto parts = taint_of(each->text);
        if (each->known() && parts && parts->effect == "PreferNoSchedule") continue;
        if (taint.there == Certainty::yes) break;
        taint.there = each->known() ? Certainty::yes : Certainty::unknown;
        taint.what = each->known() ? std::string(each->text) : "cannot be followed";
        if (each->source) scheduling_place(taint, *each->source, each->span);
    }
    verdict.plugin = scheduling_plugin(bundle, pools);

    SchedulingPart& toleration = verdict.toleration;
    const Node* written = pod->pod->find("tolerations");
    const Node* name = pod->object->at({"metadata", "name"});
    const Node* at = written && written->first ? written : name ? name : pod->object;
    scheduling_place(toleration, *at->source, at->span);
    if (taint.there == Certainty::unknown || (written && !written->known && !written->first)) {
        toleration.there = Certainty::unknown;
        toleration.what = "cannot be told";
    } else if (shut_out_by) {
        toleration.there = Certainty::no;
        toleration.what = fmt::format("{} {} does not tolerate {}", pod->kind, pod->name, shut_out_by->text);
    } else {
        const bool any = written && written->first;
        // A taint named like the resource is tolerated by the API server itself.
        toleration.there = any || taint.there == Certainty::yes ? Certainty::yes : Certainty::no;
        toleration.what = any ? fmt::format("{} {}", pod->kind, pod->name)
                          : taint.there == Certainty::yes
                              ? "added by the API server, as the resource has the taint's name"
                              : "none";
    }

    std::string follows;
    const bool open = taint.there == Certainty::unknown || toleration.there == Certainty::unknown;
    const bool repelled = taint.there == Certainty::yes && toleration.there == Certainty::no;
    if (verdict.plugin.there == Certainty::no && repelled) {
        verdict.runs = Certainty::no;
        follows = "the pods stay Pending: they do not tolerate the taint, and no node offers a GPU without a plugin";
    } else if (verdict.plugin.there == Certainty::no) {
        verdict.runs = Certainty::no;
        follows = "the pods stay Pending: no node offers a GPU without a device plugin";
    } else if (repelled) {
        verdict.runs = Certainty::no;
        follows = "the pods stay Pending: they do not tolerate the taint of the pool";
    } else if (open) {
        follows = "not known: the taint or the tolerations rest on what these files do not say";
    } else if (taint.there == Certainty::no) {
        verdict.runs = Certainty::yes;
        follows = "the pods run, and so may any other pod on the GPU nodes: the pool has no taint";
    } else {
        verdict.runs = Certainty::yes;
        follows = "the pods run, and only pods for GPUs do there";
    }
    const auto told = [](std::string_view label, const SchedulingPart& part) {
        if (part.what == "none") return fmt::format("{} no", label);
        if (part.path.empty() || part.there == Certainty::no)
            return fmt::format("{} {} ({})", label, to_string(part.there), part.what);
        return fmt::format("{} {} ({}, {}:{})", label, to_string(part.there), part.what, part.path, part.place.line);
    };
    verdict.text =
        fmt::format("{}, {}, {}: {}", told("pool taint", verdict.taint), told("device plugin", verdict.plugin),
                    told("pod toleration", verdict.toleration), follows);
    return verdict;
}

}  // namespace stoker::lint
