#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

bool is_weight_file(std::string_view word) {
    const std::string_view name = word.substr(0, word.find('?'));
    for (const std::string_view end : {".safetensors", ".gguf", ".ggml"})
        if (name.ends_with(end)) return true;
    return name.ends_with("pytorch_model.bin") ||
           (name.find("pytorch_model-") != std::string_view::npos && name.ends_with(".bin"));
}

}  // namespace

void check_img003(const File& file, Report& report) {
    if (!file.kinds.has(Kind::dockerfile)) return;
    const auto tell = [&](const Value& word) {
        Finding* finding =
            report.add(word, "docker:weights",
                       "model weights become a layer of the image: every node pulls them again with every "
                       "change above them");
        if (finding) finding->advice = "keep the weights in a volume or in blob storage, and mount or stream them";
    };
    for_each_part(file, [&](const File& part) {
        for (const Command& command : part.script.commands) {
            const std::string_view name = command.name();
            if (&part == &file) {
                if (!equals_ignore_case(name, "COPY") && !equals_ignore_case(name, "ADD")) continue;
                // Between stages of a build, nothing leaves them.
                for (std::size_t k = 1; k < command.words.size(); ++k)
                    if (command.words[k].known() && is_weight_file(command.words[k].text)) {
                        tell(command.words[k]);
                        break;
                    }
                continue;
            }
            const bool hub = name == "huggingface-cli" || name == "hf";
            if (hub && command.words.size() > 2 && command.words[1].is("download")) tell(command.words[2]);
            if (name != "wget" && name != "curl" && name != "aria2c" && name != "azcopy") continue;
            for (const Value& word : command.words)
                if (is_weight_file(word.text) && word.text.find("://") != std::string_view::npos) {
                    tell(word);
                    break;
                }
        }
    });
}

}  // namespace stoker::lint
