// A Deployment as people and programs read it: in the order of its parts, and what is empty left out.
#include <algorithm>

#include "base/codec.h"
#include "deploy/deployment.h"
#include "sizing/layout_json.h"

namespace stoker {
namespace {

// set() where there is something to say.
class JsonObject {
public:
    JsonObject& set(const char* key, Json value) {
        json_.set(key, std::move(value));
        return *this;
    }
    JsonObject& text(const char* key, std::string_view value) {
        if (!value.empty()) json_.set(key, value);
        return *this;
    }
    JsonObject& number(const char* key, double value) {
        if (value == 0) return *this;
        const auto whole = static_cast<std::int64_t>(value);
        json_.set(key, static_cast<double>(whole) == value ? Json(whole) : Json(value));
        return *this;
    }
    JsonObject& part(const char* key, Json value) {
        if (const auto* members = std::get_if<Json::Object>(&value.value()); members == nullptr || !members->empty())
            json_.set(key, std::move(value));
        return *this;
    }
    Json done() { return std::move(json_); }

private:
    Json json_ = Json::object();
};

Json words_json(const std::vector<std::string>& words) {
    Json list = Json::array();
    for (const std::string& word : words) list.push(word);
    return list;
}

Json fabric_json(const Fabric& fabric) {
    return JsonObject()
        .text("kind", fabric.kind)
        .text("generation", fabric.generation)
        .number("gbps_per_gpu", fabric.gbps_per_gpu)
        .number("ethernet_gbps", fabric.ethernet_gbps)
        .number("scale_up_bytes_per_s", fabric.scale_up_bandwidth)
        .number("scale_up_domain", fabric.scale_up_domain)
        .done();
}

Json nodes_json(const NodeSet& nodes) {
    JsonObject out;
    out.text("cloud", nodes.cloud).text("machine", nodes.machine).set("count", nodes.count);
    out.text("region", nodes.region).text("zone", nodes.zone).text("pricing", to_string(nodes.pricing));
    out.number("on_demand", nodes.kept);
    out.text("os", nodes.os).number("vcpus", nodes.vcpus).number("cores", nodes.cores);
    out.number("memory_bytes", nodes.memory_bytes).text("gpu", nodes.gpu).text("gpu_vendor", nodes.gpu_vendor);
    out.number("gpus", nodes.gpus).number("gpu_memory_bytes", nodes.gpu_memory_bytes);
    out.text("placement", to_string(nodes.placement)).part("fabric", fabric_json(nodes.fabric));
    out.text("image", nodes.image);
    if (nodes.mig)
        out.part("mig", JsonObject()
                            .text("profile", nodes.mig->profile)
                            .set("per_gpu", nodes.mig->per_gpu)
                            .set("gpus", nodes.mig->gpus)
                            .number("machines", nodes.mig->machines)
                            .done());
    if (nodes.disk)
        out.part("disk", JsonObject()
                             .text("type", nodes.disk->type)
                             .text("tier", nodes.disk->tier)
                             .number("gib", nodes.disk->gib)
                             .number("bytes_per_s", nodes.disk->bytes_per_s)
                             .done());
    return out.done();
}

Json ranks_json(const RankSet& ranks) {
    return JsonObject()
        .set("count", ranks.count)
        .set("per_node", ranks.per_node)
        .number("cpu_milli", static_cast<double>(ranks.each.cpu_milli))
        .number("memory_bytes", static_cast<double>(ranks.each.memory_bytes))
        .number("gpus", ranks.each.gpus)
        .number("gpu_milli", ranks.each.gpus > 0 ? ranks.each.gpu_milli : 0)
        .text("gpu_model", ranks.each.gpu_model)
        .text("binding", to_string(ranks.binding))
        .done();
}

Json training_json(const TrainingWork& work) {
    JsonObject out;
    out.set("layout", to_json(work.layout)).number("global_batch", work.global_batch).number("sequence", work.sequence);
    out.number("steps", work.steps).text("method", to_string(work.method));
    if (work.method != Method::full) out.number("lora_rank", work.lora.rank).text("lora_targets", work.lora.targets);
    out.text("optimizer", work.optimizer).set("compiled", work.compiled).set("flash_attention", work.flash_attention);
    return out.done();
}

Json latency_json(const LatencySpec& latency) {
    JsonObject out;
    const auto add = [&](const char* key, const std::optional<Seconds>& limit) {
        if (limit) out.number(key, limit->v);
    };
    add("ttft_p50_s", latency.ttft_p50), add("ttft_p95_s", latency.ttft_p95), add("ttft_p99_s", latency.ttft_p99);
    add("tpot_p50_s", latency.tpot_p50), add("tpot_p95_s", latency.tpot_p95), add("tpot_p99_s", latency.tpot_p99);
    add("e2e_p95_s", latency.e2e_p95), add("p95_s", latency.p95);
    return out.done();
}

Json serving_json(const ServingWork& work) {
    return JsonObject()
        .set("replicas", work.replicas)
        .set("tensor", work.shape.tensor)
        .set("pipeline", work.shape.pipeline)
        .set("data", work.shape.data)
        .set("expert", work.shape.expert)
        .set("nodes_per_replica", work.nodes_per_replica)
        .text("kv_precision", to_string(work.kv_precision))
        .number("context_tokens", work.context_tokens)
        .number("max_sequences", work.max_sequences)
        .number("token_budget", work.token_budget)
        .number("kv_tokens", work.kv_tokens)
        .number("memory_fraction", work.memory_fraction)
        .number("requests_per_second", work.requests_per_second)
        .number("requests", work.requests)
        .number("concurrency", work.concurrency)
        .part("latency", latency_json(work.latency))
        .done();
}

Json front_json(const FrontWork& front) {
    return JsonObject()
        .text("image", front.image)
        .number("cpu_milli", static_cast<double>(front.cpu_milli))
        .number("memory_bytes", static_cast<double>(front.memory_bytes))
        .set("replicas", front.replicas)
        .set("least", front.least)
        .set("most", front.most)
        .text("machine", front.machine)
        .number("machines", front.machines)
        .number("most_machines", front.most_machines)
        .number("usd_per_hour", static_cast<double>(front.microusd_per_hour) / 1e6)
        .done();
}

Json environment_json(const std::map<std::string, std::string>& environment) {
    Json out = Json::object();
    for (const auto& [key, value] : environment) out.set(key, value);
    return out;
}

}  // namespace

Json to_json(const Deployment& d) {
    JsonObject out;
    out.set("schema", "stoker.deployment/1").text("name", d.name).text("target", d.target).text("title", d.title);
    out.text("kind", to_string(d.kind)).text("orchestrator", to_string(d.orchestrator)).text("framework", d.framework);
    if (d.model_known) out.text("model", d.model.name);
    out.text("precision", to_string(d.precision));
    if (d.sensitive) out.set("sensitive", true);
    out.part("nodes", nodes_json(d.nodes)).part("ranks", ranks_json(d.ranks));
    if (d.training) out.part("training", training_json(*d.training));
    if (d.serving) out.part("serving", serving_json(*d.serving));
    if (d.front) out.part("front", front_json(*d.front));
    out.part("environment", environment_json(d.environment));
    if (!d.command.empty()) out.set("command", words_json(d.command));
    out.text("folder", d.folder).text("image", d.image);
    if (!d.checkpoint.folder.empty())
        out.part("checkpoint", JsonObject()
                                   .text("folder", d.checkpoint.folder)
                                   .number("interval_s", static_cast<double>(d.checkpoint.interval_s))
                                   .number("keep", d.checkpoint.keep)
                                   .text("restore_from", d.checkpoint.restore_from)
                                   .text("upload", d.checkpoint.upload ? d.checkpoint.upload->to : "")
                                   .done());
    out.part("lease", JsonObject()
                          .number("stop_after_s", static_cast<double>(d.lease.stop_after_s))
                          .number("hard_max_s", static_cast<double>(d.lease.hard_max_s))
                          .done());
    out.number("walltime_s", static_cast<double>(d.walltime_s));
    if (d.policy.restarts > 0) out.set("restarts", d.policy.restarts);
    if (d.policy.grace_s != StartPolicy().grace_s) out.set("grace_s", d.policy.grace_s);
    PredictionSpec prediction = d.prediction;
    out.part("prediction", codec::write(prediction));
    if (!d.files.empty()) {
        Json files = Json::array();
        for (const FileToWrite& file : d.files) files.push(file.path);
        out.set("files", std::move(files));
    }
    Json because = Json::array();
    for (const Because& each : d.because)
        because.push(Json::object().set("setting", each.setting).set("reason", each.reason).set("source", each.source));
    if (!d.because.empty()) out.set("because", std::move(because));
    if (!d.notes.empty()) out.set("notes", words_json(d.notes));
    return out.done();
}

}  // namespace stoker
