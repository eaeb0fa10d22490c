#include "lint/file.h"

#include <array>

namespace stoker::lint {

namespace {

constexpr std::array<std::string_view, kKinds> kKindNames = {
    "k8s",     "helm",      "terraform",    "bicep",      "arm",     "az",         "slurm",
    "launch",  "deepspeed", "compose",      "cloud-init", "azureml", "dockerfile", "prometheus",
    "grafana", "markdown",  "requirements", "workflow",   "stoker"};

}  // namespace

std::string_view to_string(Kind kind) {
    return kKindNames[static_cast<std::size_t>(kind)];
}

std::optional<Kind> kind_from(std::string_view text) {
    for (std::size_t i = 0; i < kKindNames.size(); ++i)
        if (kKindNames[i] == text) return static_cast<Kind>(i);
    return std::nullopt;
}

File::File(std::string path, std::string text) : source_(std::move(path), std::move(text)) {}
File::File(const File& outside, std::string text, std::vector<Piece> pieces)
    : host(&outside), source_(outside.source_, std::move(text), std::move(pieces)) {}
File::File(const File& outside, const Source& written, std::string text, std::vector<Piece> pieces)
    : host(&outside), source_(written, std::move(text), std::move(pieces)) {}

}  // namespace stoker::lint
