#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

namespace {

void dsp010_object(const DeepSpeedFile& ds, const Node& object, const std::string& pointer, Report& report, int depth) {
    if (depth > 8) return;
    std::size_t count = 0;
    for (const Node& child : children(&object)) {
        if (++count > 2000) return;
        std::size_t before = 0;
        for (const Node& other : children(&object)) {
            if (&other == &child || ++before > 2000) break;
            if (other.key != child.key || !object.is_object()) continue;
            Finding* finding =
                report.add(ds.part.source(), child.whole(), ds.address + pointer + "/" + std::string(child.key),
                           "the key " + std::string(child.key) + " is there twice: DeepSpeed refuses the file");
            if (finding) {
                report.relate(finding, ds.part.source(), other.whole(), "first here");
                finding->advice = "keep one of the two";
            }
            break;
        }
        if (child.is_object()) dsp010_object(ds, child, pointer + "/" + std::string(child.key), report, depth + 1);
    }
}

}  // namespace

void check_dsp010(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) { dsp010_object(ds, ds.root, "", report, 0); });
}

}  // namespace stoker::lint
