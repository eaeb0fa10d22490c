#include "catalog/names.h"
#include "catalog/catalog.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace stoker {
namespace {

char lower_letter(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool separator(char c) {
    return c == '-' || c == '_' || c == '.' || c == ' ' || c == '/' || c == '\t';
}

// Edit distance in which a character that is missing from `word` costs 1 and any other edit 2.
int distance(std::string_view word, std::string_view name) {
    std::vector<int> row(name.size() + 1);
    for (std::size_t j = 0; j <= name.size(); ++j) row[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= word.size(); ++i) {
        int diagonal = row[0];
        row[0] = static_cast<int>(2 * i);
        for (std::size_t j = 1; j <= name.size(); ++j) {
            const int above = row[j];
            row[j] = std::min({diagonal + (word[i - 1] == name[j - 1] ? 0 : 2), above + 2, row[j - 1] + 1});
            diagonal = above;
        }
    }
    return row[name.size()];
}

}  // namespace

std::string fold_name(std::string_view name) {
    std::string folded;
    folded.reserve(name.size());
    for (char c : name) {
        if (!separator(c)) folded.push_back(lower_letter(c));
    }
    return folded;
}

std::string fold_model(std::string_view name) {
    const auto digit = [&](std::size_t i) { return i < name.size() && name[i] >= '0' && name[i] <= '9'; };
    std::string folded;
    folded.reserve(name.size());
    for (std::size_t i = 0; i < name.size(); ++i) {
        const bool point = name[i] == '.' && i > 0 && digit(i - 1) && digit(i + 1);
        if (point || !separator(name[i])) folded.push_back(lower_letter(name[i]));
    }
    return folded;
}

std::string fold_vm_size(std::string_view name) {
    std::string folded = fold_name(name);
    constexpr std::string_view prefix = "standard";
    if (folded.size() > prefix.size() && folded.starts_with(prefix)) folded.erase(0, prefix.size());
    return folded;
}

std::string fold_accelerator(std::string_view name) {
    std::string folded = fold_name(name);
    for (std::string_view prefix : {"nvidia", "amd", "intel", "tesla", "instinct"}) {
        if (folded.size() > prefix.size() && folded.starts_with(prefix)) folded.erase(0, prefix.size());
    }
    return folded;
}

std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& known) {
    const std::string folded = fold_vm_size(word).substr(0, 100);  // longer is not a name that anybody meant
    const std::string* best = nullptr;
    int best_distance = std::numeric_limits<int>::max();
    for (const std::string& name : known) {
        const int d = distance(folded, fold_vm_size(name));
        if (d < best_distance) {
            best_distance = d;
            best = &name;
        }
    }
    // Further away than this the guess is noise: more than about half of the word would have to be wrong.
    const int limit = 2 + static_cast<int>(folded.size()) * 3 / 5;
    if (best == nullptr || best_distance > limit) return std::nullopt;
    return *best;
}

int name_distance(std::string_view word, std::string_view name) {
    return distance(fold_name(word).substr(0, 100), fold_name(name));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
    const auto name = nearest_name(word, known);
    return name ? " (did you mean " + *name + "?)" : std::string();
}

std::string short_size(std::string_view name) {
    constexpr std::string_view prefix = "Standard_";
    return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
}

}  // namespace stoker
