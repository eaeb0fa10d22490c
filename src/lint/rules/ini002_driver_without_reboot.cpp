#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_ini002(const File& file, Report& report) {
    if (!file.kinds.has(Kind::cloud_init) || file.tree.roots.empty()) return;
    const Node* root = file.tree.roots.front();
    if (root->find("power_state")) return;
    Value driver;
    for (const Node& package : children(root->find("packages"))) {
        const Value value = Value::of(package.is_array() ? package.first : &package);
        if (driver.absent() && value.known() && brings_driver(value.text)) driver = value;
    }
    bool loaded = false;
    for_each_part(file, [&](const File& part) {
        for (const Command& command : part.script.commands) {
            bool installs = false;
            for (const Value& word : command.words) {
                if (!word.known()) continue;
                installs |= word.text == "install";
                // Loaded at once, or after the restart that the script itself asks for.
                loaded |= word.text == "reboot" || word.text == "modprobe" || word.text == "kexec" ||
                          (word.text == "-r" && command.name() == "shutdown");
                const bool runfile = word.text.ends_with(".run");
                if (driver.absent() && (installs || runfile) && brings_driver(word.text)) driver = word;
            }
        }
    });
    if (driver.absent() || loaded) return;
    Finding* finding = report.add(driver, "cloud-init:" + std::string(file_name_of(file)) + "#driver",
                                  "the driver is installed and nothing loads it: the old kernel or nouveau stays "
                                  "until somebody restarts the machine");
    if (finding) finding->advice = "add power_state: {mode: reboot, condition: true}, or modprobe nvidia behind it";
}

}  // namespace stoker::lint
