// What build servers read: JUnit XML, GitHub's workflow commands, GitLab's code quality report.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "formats/xml_text.h"
#include "lint/outcome.h"

namespace stoker::lint {

namespace {

std::string xml_attribute(std::string_view text) {
    return xml_escaped(text, kXmlAttribute);
}

// Of the data of a workflow command; properties have ',' and ':' escaped too.
std::string command_text_of(std::string_view text, bool property) {
    std::string out;
    for (const char c : text) {
        if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out;
}

}  // namespace

std::string junit_text(const Outcome& outcome) {
    std::string suites;
    std::size_t tests = 0, failures = 0;
    std::vector<std::string> paths = outcome.files;
    for (const Finding& finding : outcome.findings) paths.push_back(finding.path);  // stoker.toml is no checked file
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    auto next = outcome.findings.begin();
    for (const std::string& path : paths) {
        next = std::find_if(outcome.findings.begin(), outcome.findings.end(),
                            [&](const Finding& f) { return f.path == path; });
        std::string cases;
        std::size_t here = 0, failed = 0;
        for (; next != outcome.findings.end() && next->path == path; ++next, ++here) {
            // An information is told, and fails nothing.
            const bool fails = next->severity != Severity::info;
            failed += fails;
            cases +=
                fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n", xml_attribute(path),
                            xml_attribute(fmt::format("{} {} line {}", next->rule, next->address, next->place.line)));
            const std::string body =
                fmt::format("{}:{}:{}: {}", path, next->place.line, next->place.column, next->message);
            if (fails)
                cases += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                                     to_string(next->severity), xml_attribute(next->message), xml_attribute(body));
            else
                cases += fmt::format("      <system-out>{}</system-out>\n", xml_attribute(body));
            cases += "    </testcase>\n";
        }
        if (here == 0) {
            here = 1;
            cases = fmt::format("    <testcase classname=\"{}\" name=\"no findings\"/>\n", xml_attribute(path));
        }
        suites += fmt::format(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\">\n{}"
            "  </testsuite>\n",
            xml_attribute(path), here, failed, cases);
        tests += here;
        failures += failed;
    }
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites name=\"stoker check\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n{}"
        "</testsuites>\n",
        tests, failures, suites);
}

std::string github_text(const Outcome& outcome) {
    std::string out;
    for (const Finding& f : outcome.findings) {
        const std::string_view command = f.severity == Severity::error     ? "error"
                                         : f.severity == Severity::warning ? "warning"
                                                                           : "notice";
        std::string message = f.message;
        if (!f.advice.empty()) message += "\n" + f.advice;
        out += fmt::format("::{} file={},line={},col={},endLine={},title={}::{}\n", command,
                           command_text_of(f.path, true), f.place.line, f.place.column, f.end.line,
                           command_text_of(f.rule + " " + f.slug, true), command_text_of(message, false));
    }
    return out;
}

std::string gitlab_text(const Outcome& outcome) {
    Json list = Json::array();
    for (const Finding& f : outcome.findings) {
        const std::string_view severity = f.severity == Severity::error     ? "critical"
                                          : f.severity == Severity::warning ? "major"
                                                                            : "info";
        list.push(Json::object()
                      .set("description", f.message)
                      .set("check_name", f.rule)
                      .set("fingerprint", f.fingerprint)
                      .set("severity", severity)
                      .set("location",
                           Json::object().set("path", f.path).set("lines", Json::object().set("begin", f.place.line))));
    }
    return list.dump() + "\n";
}

}  // namespace stoker::lint
