#include "prepare/tar_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace stoker {
namespace {

constexpr std::int64_t kMostOctal = (std::int64_t{1} << 33) - 1;  // 11 digits

void put(std::string& block, std::size_t at, std::string_view text) {
    block.replace(at, text.size(), text);
}

// Fields by their offsets in the standard; `type` '0' is a file, 'x' the pax records of the next one.
std::string ustar(std::string_view name, std::string_view prefix, std::int64_t bytes, char type) {
    std::string block(kTarBlock, '\0');
    put(block, 0, name);
    put(block, 100, fmt::format("{:07o}", 0644));
    put(block, 108, "0000000");
    put(block, 116, "0000000");
    put(block, 124, fmt::format("{:011o}", bytes));
    put(block, 136, "00000000000");
    put(block, 148, "        ");
    block[156] = type;
    put(block, 257, std::string_view("ustar\00000", 8));
    put(block, 345, prefix);
    const unsigned sum = std::accumulate(block.begin(), block.end(), 0U,
                                         [](unsigned all, char c) { return all + static_cast<unsigned char>(c); });
    put(block, 148, fmt::format("{:06o}", sum));
    block[154] = '\0';
    return block;
}

// "LENGTH key=value\n", whose length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
    const std::size_t rest = key.size() + value.size() + 3;
    std::size_t length = rest + 1;
    while (length != rest + std::to_string(length).size()) length = rest + std::to_string(length).size();
    return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace

std::string tar_header(std::string_view name, std::int64_t bytes) {
    std::string_view file = name, prefix;
    if (file.size() > 100) {  // cut at a slash, if that fits
        const std::size_t slash = name.find('/', name.size() - 101);
        if (slash <= 155 && slash + 1 < name.size()) {
            prefix = name.substr(0, slash);
            file = name.substr(slash + 1);
        }
    }
    std::string records;
    if (file.size() > 100) {
        records += pax_record("path", name);
        file = file.substr(file.size() - 100);
    }
    if (bytes > kMostOctal) records += pax_record("size", std::to_string(bytes));
    std::string text;
    if (!records.empty()) {
        text = ustar("PaxHeader", "", static_cast<std::int64_t>(records.size()), 'x') + records;
        text += tar_padding(static_cast<std::int64_t>(records.size()));
    }
    return text + ustar(file, prefix, std::min(bytes, kMostOctal), '0');
}

std::string tar_padding(std::int64_t bytes) {
    return std::string(static_cast<std::size_t>((kTarBlock - bytes % kTarBlock) % kTarBlock), '\0');
}

std::string tar_end() {
    return std::string(2 * kTarBlock, '\0');
}

}  // namespace stoker
