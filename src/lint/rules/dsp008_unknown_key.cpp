#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp008(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        const auto tell = [&](const Node& child, const std::string& pointer, const std::string& message) {
            if (Finding* finding = report.add(ds.part.source(), child.whole(), ds.address + pointer, message))
                finding->advice = "see the configuration page of DeepSpeed for the name";
        };
        if (!ds.neox)
            for (const Node& child : children(&ds.root)) {
                const std::string key(child.key);
                if (key.empty() || key[0] == '_' || deepspeed_key("top", key)) continue;
                if (const DeepSpeedKey* other = deepspeed_key("accelerate", key)) {
                    tell(child, "/" + key,
                         key +
                             " is a key of Accelerate's plug-in, not of DeepSpeed, which ignores it here; its place "
                             "is " +
                             std::string(other->instead));
                } else if (deepspeed_key("zero", key)) {
                    tell(child, "/" + key, key + " belongs inside zero_optimization; here DeepSpeed ignores it");
                } else if (const std::string_view near = nearest_deepspeed_key("top", key); !near.empty()) {
                    tell(child, "/" + key,
                         "DeepSpeed has no key " + key + " and ignores it; did you mean " + std::string(near) + "?");
                }
            }
        const Node* zero = ds.root.find("zero_optimization");
        if (!zero || !zero->is_object()) return;
        for (const Node& child : children(zero)) {
            const std::string key(child.key);
            if (key.empty() || key[0] == '_' || key == "comment" || deepspeed_key("zero", key)) continue;
            std::string message = "zero_optimization has no key " + key + ": DeepSpeed refuses the configuration";
            if (const std::string_view near = nearest_deepspeed_key("zero", key); !near.empty())
                message += "; did you mean " + std::string(near) + "?";
            if (const DeepSpeedKey* other = deepspeed_key("accelerate", key))
                message = key + " is a key of Accelerate's plug-in, not of DeepSpeed; its place is " +
                          std::string(other->instead);
            tell(child, "/zero_optimization/" + key, message);
        }
    });
}

}  // namespace stoker::lint
