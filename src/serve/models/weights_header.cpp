#include "serve/models/weights_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stoker {

WeightsSource source_of_text(std::string name, std::string_view text) {
    WeightsSource source{.name = std::move(name), .bytes = text.size()};
    source.read = [text](std::uint64_t offset, std::size_t count) -> Result<std::string> {
        if (offset > text.size() || count > text.size() - offset)
            return Error(ErrorKind::invalid, "past the end of the file");
        return std::string(text.substr(static_cast<std::size_t>(offset), count));
    };
    return source;
}

std::string WeightsHeader::main_type() const {
    const auto most = std::max_element(types.begin(), types.end(),
                                       [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    return most == types.end() ? std::string() : most->first;
}

Result<WeightsHeader> read_weights_header(const WeightsSource& source) {
    if (source.bytes < 8)
        return Error(ErrorKind::invalid,
                     fmt::format("{} has {} bytes, and is no file of weights", source.name, source.bytes));
    TRY(const std::string start, source.read(0, 8));
    if (start.starts_with("GGUF")) return read_gguf(source);
    // safetensors: the length of a JSON object, which begins with '{'. ONNX: a protobuf whose first field is a version.
    if (source.bytes > 9) {
        TRY(const std::string first, source.read(8, 1));
        if (first == "{" && start.substr(4) == std::string(4, '\0')) return read_safetensors(source);
    }
    if (start[0] == '\x08') return read_onnx(source);
    return Error(ErrorKind::invalid, fmt::format("{} is neither GGUF nor safetensors nor ONNX", source.name), {},
                 start.starts_with("PK") || start[0] == '\x80'
                     ? "this is a pickle of PyTorch: it runs code when it is loaded; convert it to safetensors"
                     : "");
}

Result<WeightsHeader> add_shard(WeightsHeader all, const WeightsHeader& shard) {
    if (all.format != shard.format)
        return Error(ErrorKind::invalid,
                     fmt::format("one file is {}, another {}",
                                 enum_names(all.format)[static_cast<std::size_t>(all.format)].second,
                                 enum_names(shard.format)[static_cast<std::size_t>(shard.format)].second));
    for (const auto& [name, of] : shard.types) {
        WeightsHeader::OfType& to = all.types[name];
        to.tensors += of.tensors, to.elements += of.elements, to.bytes += of.bytes;
    }
    all.tensors += shard.tensors;
    all.parameters += shard.parameters;
    all.weight_bytes += shard.weight_bytes;
    all.file_bytes += shard.file_bytes;
    all.layers = std::max(all.layers, shard.layers);
    return all;
}

}  // namespace stoker
