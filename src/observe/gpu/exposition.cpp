#include "observe/gpu/exposition.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace stoker {

namespace {

std::string escaped(std::string_view text, bool quotes) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (c == '\\')
            out += "\\\\";
        else if (c == '\n')
            out += "\\n";
        else if (c == '"' && quotes)
            out += "\\\"";
        else
            out += c;
    }
    return out;
}

std::string valid_utf8(std::string_view text) {
    std::string out(text);
    for (std::size_t at; (at = find_invalid_utf8(out)) != std::string::npos;) out.replace(at, 1, "\xef\xbf\xbd");
    return out;
}

void write_samples(std::string& out, std::string_view name, const ExpositionFamily& family, bool created) {
    for (const ExpositionSample& sample : family.samples) {
        if (std::isnan(sample.value)) continue;
        const auto line = [&](std::string_view suffix, double value) {
            out += name;
            out += suffix;
            if (!sample.labels.empty()) out += "{" + sample.labels + "}";
            out += " " + number_text_of_sample(value) + "\n";
        };
        line(family.counter && created ? "_total" : "", sample.value);
        if (created && family.counter && sample.created_s) line("_created", *sample.created_s);
    }
}

}  // namespace

std::string label_text(std::string_view name, std::string_view value) {
    return std::string(name) + "=\"" + escaped(valid_utf8(value), true) + "\"";
}

void add_label(std::string& labels, std::string_view name, std::string_view value) {
    if (!labels.empty()) labels += ",";
    labels += label_text(name, value);
}

std::string number_text_of_sample(double value) {
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    std::array<char, 40> digits;
    const bool whole = std::abs(value) < 9007199254740992.0 && value == std::floor(value);
    const auto end = whole ? std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<long long>(value))
                           : std::to_chars(digits.data(), digits.data() + digits.size(), value);
    return {digits.data(), end.ptr};
}

std::string prometheus_text(const std::vector<ExpositionFamily>& families) {
    std::string out;
    for (const ExpositionFamily& family : families) {
        if (family.samples.empty()) continue;
        out += "# HELP " + family.name + " " + escaped(family.help, false) + "\n";
        out += "# TYPE " + family.name + (family.counter ? " counter\n" : " gauge\n");
        write_samples(out, family.name, family, false);
    }
    return out;
}

std::string openmetrics_text(const std::vector<ExpositionFamily>& families) {
    std::string out;
    for (const ExpositionFamily& family : families) {
        if (family.samples.empty()) continue;
        std::string_view name = family.name;
        // A counter that is not called so (a name of another exporter) is no counter to OpenMetrics.
        const bool counter = family.counter && name.ends_with("_total");
        if (counter) name.remove_suffix(6);
        out += "# HELP " + std::string(name) + " " + escaped(family.help, true) + "\n";
        out += "# TYPE " + std::string(name) + (counter ? " counter\n" : family.counter ? " unknown\n" : " gauge\n");
        ExpositionFamily as = family;
        as.counter = counter;
        write_samples(out, name, as, true);
    }
    return out + "# EOF\n";
}

bool wants_openmetrics(std::string_view accept) {
    double open = 0, plain = 0;
    for (const std::string_view part : split(accept, ',')) {
        double q = 1;
        const auto pieces = split(part, ';');
        bool known_version = true;
        for (const std::string_view piece : pieces) {
            const std::string_view word = trim(piece);
            if (starts_with_ignore_case(word, "q=")) {
                q = 0;
                std::from_chars(word.data() + 2, word.data() + word.size(), q);
            }
            if (starts_with_ignore_case(word, "version=")) known_version = word != "version=0.0.1";
        }
        const std::string type = lower(trim(pieces[0]));
        if (type == "application/openmetrics-text" && known_version)
            open = std::max(open, q);
        else if (type == "text/plain" || type == "*/*" || type == "text/*")
            plain = std::max(plain, q);
    }
    return open > 0 && open >= plain;
}

}  // namespace stoker
