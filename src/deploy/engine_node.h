// Names of nodes where there are several engines: n1@slurm-b is what slurm-b calls n1. Those of the first engine stay
// as they are, so that a second one changes no name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace stoker {

inline std::string node_of_engine(std::string_view node, std::string_view engine) {
    return std::string(node) + "@" + std::string(engine);
}
// As the engine itself calls it.
inline std::string node_on_engine(std::string_view node, std::string_view engine) {
    const std::size_t at = node.size() - std::min(node.size(), engine.size());
    const bool its = !engine.empty() && at > 0 && node.substr(at) == engine && node[at - 1] == '@';
    return std::string(its ? node.substr(0, at - 1) : node);
}

// Whose node it is; `first` of one without a name.
inline std::string engine_of_node(std::string_view node, std::string_view first) {
    const std::size_t at = node.rfind('@');
    return std::string(at == std::string_view::npos ? first : node.substr(at + 1));
}

}  // namespace stoker
