#include "lint/knowledge.h"

namespace stoker::lint {

const Knowledge& Knowledge::embedded() {
    static const Knowledge knowledge;
    return knowledge;
}
const KnownSize* Knowledge::size(std::string_view) const {
    return nullptr;
}
const KnownRetirement* Knowledge::retirement(std::string_view) const {
    return nullptr;
}
bool Knowledge::looks_like_size(std::string_view text) {
    return text.starts_with("Standard_");
}
std::string_view Knowledge::nearest_size(std::string_view) const {
    return {};
}
std::string_view Knowledge::sizes_as_of() const {
    return {};
}
std::string_view Knowledge::fact(std::string_view) const {
    return {};
}

}  // namespace stoker::lint
