#include "readings/cuda_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "readings/tool_reader.h"

namespace stoker {
namespace {

constexpr std::string_view kCudaTable = "observe/cuda_drivers.tsv";

struct LeastDriverRow {
    CudaVersion cuda;
    CudaDriver driver;
};
const std::vector<LeastDriverRow>& least_drivers() {
    static const std::vector<LeastDriverRow> list = [] {
        std::vector<LeastDriverRow> found;
        const auto table = Tsv::read(embedded_bytes(kCudaTable), std::string(kCudaTable));
        CHECK(table.ok() && table->header().size() == 4);  // our own data
        for (std::size_t row = 0; row < table->rows(); ++row) {
            const auto cuda = cuda_version(table->at(row, 0));
            CHECK(cuda.has_value());
            found.push_back({*cuda, {table->at(row, 1), table->at(row, 2), table->at(row, 3)}});
        }
        return found;
    }();
    return list;
}

// The digits that `text` begins with.
std::string_view digits_of(std::string_view text) {
    return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
}
int small_number(std::string_view digits) {
    int value = -1;
    if (digits.size() <= 6) std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

// "124" as in cu124, "1201" as in cuda1201: the minor is the last digit, or the last two of four.
std::optional<CudaVersion> packed_cuda(std::string_view digits) {
    if (digits.size() != 3 && digits.size() != 4) return std::nullopt;
    const CudaVersion found{small_number(digits.substr(0, 2)), small_number(digits.substr(2))};
    return found.major >= 9 && found.major < 30 ? std::optional(found) : std::nullopt;
}

std::optional<CudaVersion> cuda_of_tag(std::string_view tag) {
    for (const std::string_view word : {"cuda", "cu"}) {
        for (std::size_t at = tag.find(word); at != std::string_view::npos; at = tag.find(word, at + 1)) {
            if (at > 0 && std::string_view("-_.+").find(tag[at - 1]) == std::string_view::npos) continue;
            std::string_view rest = tag.substr(at + word.size());
            if (word == "cuda" && (rest.starts_with('-') || rest.starts_with('_'))) rest.remove_prefix(1);
            const std::string_view digits = digits_of(rest);
            if (auto packed = packed_cuda(digits)) return packed;
            if (word == "cuda" && digits.size() == 2)
                if (auto plain = cuda_version(rest)) return plain;
        }
    }
    return std::nullopt;
}

// The repository, and the tag without a digest.
std::pair<std::string, std::string> parts_of_image(std::string_view image) {
    image = image.substr(0, image.find('@'));
    const std::size_t slash = image.rfind('/');
    const std::size_t colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
    if (colon == std::string_view::npos) return {lower(image), std::string()};
    return {lower(image.substr(0, colon)), lower(image.substr(colon + 1))};
}

bool is_cuda_base(std::string_view repository) {
    return repository == "nvidia/cuda" || repository.ends_with("/nvidia/cuda");
}

}  // namespace

std::string CudaVersion::text() const {
    return minor < 0 ? std::to_string(major) : fmt::format("{}.{}", major, minor);
}

std::optional<CudaVersion> cuda_version(std::string_view text) {
    const std::string_view major = digits_of(text);
    if (major.empty() || major.size() > 2) return std::nullopt;
    CudaVersion found{small_number(major), -1};
    if (text.size() > major.size() && text[major.size()] == '.')
        if (const auto minor = digits_of(text.substr(major.size() + 1)); !minor.empty() && minor.size() <= 2)
            found.minor = small_number(minor);
    return found;
}

std::optional<CudaVersion> cuda_of_image(std::string_view image) {
    const auto [repository, tag] = parts_of_image(image);
    if (is_cuda_base(repository)) {
        const auto found = cuda_version(tag);
        return found && found->minor >= 0 ? found : std::nullopt;
    }
    return cuda_of_tag(tag);
}

bool brings_cuda_compat(std::string_view image) {
    const auto [repository, tag] = parts_of_image(image);
    return is_cuda_base(repository) || repository.starts_with("nvcr.io/nvidia/");
}

std::optional<CudaDriver> least_driver(const CudaVersion& cuda) {
    for (const LeastDriverRow& row : least_drivers())
        if (row.cuda.major == cuda.major && (row.cuda.minor < 0 || row.cuda.minor == cuda.minor)) return row.driver;
    return std::nullopt;
}

bool older_driver(std::string_view driver, std::string_view least) {
    const auto a = split(driver, '.'), b = split(least, '.');
    for (std::size_t i = 0; i < b.size(); ++i) {
        const int own = i < a.size() ? small_number(digits_of(a[i])) : 0, line = small_number(digits_of(b[i]));
        if (own != line) return own < line;
    }
    return false;
}

void compare_drivers(std::vector<ToolReading>& readings) {
    // The oldest driver decides.
    const ToolReading* oldest = nullptr;
    for (const ToolReading& reading : readings)
        if (const ToolFact* driver = reading.fact("driver");
            driver != nullptr && !digits_of(driver->value).empty() &&
            (oldest == nullptr || older_driver(driver->value, oldest->fact("driver")->value)))
            oldest = &reading;
    if (oldest == nullptr) return;
    const std::string driver = oldest->fact("driver")->value, file = oldest->file;
    const ToolFact* runs = oldest->fact("cuda");
    const auto most = runs != nullptr ? cuda_version(runs->value) : std::nullopt;
    for (ToolReading& reading : readings) {
        for (const CudaNeed& need : reading.needs) {
            const auto cuda = cuda_version(need.cuda);
            const auto least = cuda ? least_driver(*cuda) : std::nullopt;
            if (!least) continue;
            HealthCheck check{.layer = HealthLayer::device, .name = "cuda-driver", .verdict = HealthVerdict::pass};
            check.source = fmt::format("{} ({})", least->source, least->as_of);
            if (older_driver(driver, least->driver)) {
                check.verdict = need.brings_compat ? HealthVerdict::warn : HealthVerdict::fail;
                check.detail = fmt::format("{} is built for CUDA {}, which needs driver {} or newer; {} has {}",
                                           need.what, need.cuda, least->driver, file, printable(driver, 40));
                if (need.brings_compat)
                    check.detail += ": it runs by its cuda-compat libraries at most, on data-centre GPUs";
                check.fix = fmt::format(
                    "a driver of {} or newer on the nodes (GPU operator: driver.version; AKS: a newer node image; VM: "
                    "the "
                    "driver extension), or an image for CUDA {} or older",
                    least->driver, most ? most->text() : std::string("that the driver runs"));
            } else {
                check.detail = fmt::format("driver {} ({}) is new enough for CUDA {} of {}", printable(driver, 40),
                                           file, need.cuda, need.what);
                if (most && cuda->major == most->major && cuda->minor > most->minor)
                    check.detail += fmt::format(
                        "; it was made for CUDA {}: kernels that are compiled at start (PTX) and newer features do not "
                        "run",
                        most->text());
            }
            reading.notes.push_back(
                {need.line, need.column, HealthLayer::device, check.verdict, check.detail, check.fix});
            reading.checks.push_back(std::move(check));
        }
        std::stable_sort(reading.notes.begin(), reading.notes.end(),
                         [](const ToolNote& a, const ToolNote& b) { return a.line < b.line; });
    }
}

}  // namespace stoker
