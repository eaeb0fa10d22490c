#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp005(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        const Node* zero = ds.root.find("zero_optimization");
        if (!zero) return;
        if (zero->shape == Shape::boolean) {
            Finding* finding = report.add(ds.part.source(), zero->whole(), ds.address + "/zero_optimization",
                                          "zero_optimization as true or false is the old form: true means stage 1");
            if (!finding) return;
            finding->advice = "write {\"stage\": N}";
            report.fix(finding, ds.part.source(), FixClass::safe, "write the stage",
                       {{zero->span, json_true(zero) ? "{\"stage\": 1}" : "{\"stage\": 0}"}});
            return;
        }
        for (const Node& child : children(zero)) {
            const DeepSpeedKey* key = deepspeed_key("zero", child.key);
            const bool removed = key && key->status == "removed";
            if (!key || (key->status != "deprecated" && !removed)) continue;
            const std::string instead(key->instead);
            if (removed) {
                Finding* finding = report.add(ds.part.source(), child.whole(),
                                              ds.address + "/zero_optimization/" + std::string(child.key),
                                              std::string(child.key) +
                                                  " was removed from DeepSpeed: a current release refuses the whole "
                                                  "configuration");
                if (finding)
                    finding->advice =
                        instead.empty() ? "take it out" : "take it out; " + instead + " is the nearest there is now";
                continue;
            }
            Finding* finding =
                report.add(ds.part.source(), child.whole(), ds.address + "/zero_optimization/" + std::string(child.key),
                           std::string(child.key) + " is deprecated in favour of " + instead);
            if (!finding) continue;
            finding->advice = "write " + instead;
            if (zero->find(key->instead) || child.shape != Shape::boolean || instead.find(' ') != std::string::npos)
                continue;
            const bool renamed = instead.starts_with("stage3_");
            const std::string text = "\"" + instead + "\": " +
                                     (renamed             ? std::string(child.text)
                                      : json_true(&child) ? "{\"device\": \"cpu\"}"
                                                          : "{\"device\": \"none\"}");
            report.fix(finding, ds.part.source(), FixClass::safe, "write " + instead, {{property_span(child), text}});
        }
    });
}

}  // namespace stoker::lint
