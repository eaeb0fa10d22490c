#include "app/commands/journal_export.h"

#include <fmt/format.h>

#include "base/api_time.h"
#include "base/json.h"
#include "base/text.h"
#include "base/version.h"
#include "io/sha256.h"
#include "run/state/records.h"

namespace stoker {
namespace {

constexpr std::size_t kMostBodyOfCef = 1000;  // collectors cut long fields, each at another length

std::string escaped(std::string_view text, char special) {
    std::string out;
    for (const char c : text) {
        if (c == '\n' || c == '\r') {
            out += special == '=' ? (c == '\n' ? "\\n" : "\\r") : " ";
            continue;
        }
        if (c == '\\' || c == special) out += '\\';
        out += c;
    }
    return out;
}

// 0 to 10: what takes something away, changes who may do what, or went wrong stands out.
int severity_of(const JournalRecord& record, std::string_view kind) {
    if (kind == "journal.lost") return 10;
    if (kind == "key.made" || kind == "key.revoked" || kind == "config.changed" || kind == "budget.reached" ||
        kind == "user.set" || kind == "password.set" || kind == "key.ends")
        return 6;
    if (kind == "organisation.made" || kind == "project.made" || kind == "quota.set" || kind == "budget.set") return 5;
    return record.cause.empty() || record.cause == "ok" ? 1 : 3;
}

}  // namespace

std::string audit_json(const JournalRecord& record) {
    Json line = Json::object();
    line.set("seq", record.seq)
        .set("at", rfc3339(record.at_us))
        .set("actor", record.actor)
        .set("kind", name_of_kind(record.kind))
        .set("object", record.object);
    if (!record.cause.empty()) line.set("cause", record.cause);
    if (!record.operation.empty()) line.set("operation", record.operation);
    if (!record.trace.empty()) line.set("trace", record.trace);
    std::string text = line.set("hash", hex(record.hash)).dump(0);
    if (record.redacted || record.body.empty()) return text;
    text.pop_back();  // the brace
    return text + ",\"body\":" + shown_body(record.kind, record.body) + "}";
}

std::string audit_cef(const JournalRecord& record) {
    const std::string_view kind = name_of_kind(record.kind);
    std::string line = fmt::format(
        "CEF:0|Stoker|stoker|{}|{}|{}|{}|externalId={} rt={} suser={} cs1Label=object cs1={} "
        "cs2Label=hash cs2={}",
        escaped(version().number, '|'), escaped(kind, '|'), escaped(kind, '|'), severity_of(record, kind), record.seq,
        record.at_us / 1000, escaped(record.actor, '='), escaped(record.object, '='), hex(record.hash));
    if (!record.cause.empty()) line += " reason=" + escaped(record.cause, '=');
    if (!record.trace.empty()) line += " cs3Label=trace cs3=" + escaped(record.trace, '=');
    if (!record.redacted)
        line += " msg=" + escaped(printable(shown_body(record.kind, record.body), kMostBodyOfCef), '=');
    return line;
}

std::string request_cef(const AuditLine& line) {
    const std::string_view what = line.operation.empty() ? std::string_view("request") : line.operation;
    const bool refused = AuditTrail::is_refusal(line.status);
    const auto at = parse_rfc3339(line.at);
    // A peer is an address; one that is none (a socket of this machine) has no place in src.
    const bool address = line.peer.find_first_not_of("0123456789abcdefABCDEF.:") == std::string::npos;
    std::string text = fmt::format(
        "CEF:0|Stoker|stoker|{}|{}|{}|{}|rt={} suser={} requestMethod={} request={} outcome={} cn1Label=status cn1={}",
        escaped(version().number, '|'), escaped(what, '|'), escaped(what, '|'), refused ? 6 : 3, at.value_or(0) / 1000,
        escaped(line.who, '='), escaped(line.method, '='), escaped(line.path, '='),
        line.status < 400 ? "success" : "failure", line.status);
    if (!line.peer.empty() && address) text += " src=" + line.peer;
    if (!line.request.empty()) text += " externalId=" + escaped(line.request, '=');
    if (!line.trace.empty()) text += " cs3Label=trace cs3=" + escaped(line.trace, '=');
    if (line.left_out > 0) text += fmt::format(" cn2Label=left_out cn2={}", line.left_out);
    return text;
}

}  // namespace stoker
