#include "app/commands/journal_export.h"

#include <gmock/gmock.h>

#include "run/state/records.h"

namespace stoker {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

JournalRecord record() {
    JournalRecord record;
    record.kind = KeyMade::kKind;
    record.seq = 7;
    record.at_us = 1'700'000'000'123'456;
    record.object = "key/k-1";
    record.actor = "user/anna in o-2/p-2 as admin via k=9\\x";
    record.body = R"({"name":"a|b\\n"})";
    record.hash = "abc";
    return record;
}

// A name with an equals sign or a bar in it must not become another field in somebody's SIEM.
TEST(JournalExport, WhatIsSpecialInCefIsEscaped) {
    const std::string line = audit_cef(record());
    EXPECT_THAT(line, StartsWith("CEF:0|Stoker|stoker|"));
    EXPECT_THAT(line, HasSubstr("|key.made|key.made|6|externalId=7 rt=1700000000123 "));
    EXPECT_THAT(line, HasSubstr("suser=user/anna in o-2/p-2 as admin via k\\=9\\\\x cs1Label=object cs1=key/k-1 "));
    EXPECT_EQ(line.find('\n'), std::string::npos);
    JournalRecord several = record();
    several.actor = "a\nb";
    EXPECT_THAT(audit_cef(several), HasSubstr("suser=a\\nb "));
}

TEST(JournalExport, ALineOfJsonHasTheBodyAsItIs) {
    const std::string line = audit_json(record());
    EXPECT_THAT(line, StartsWith(R"({"seq":7,"at":"2023-11-14T22:13:20.123456Z","actor":"user/anna in)"));
    EXPECT_THAT(line, EndsWith(",\"body\":" + record().body + "}"));
    EXPECT_THAT(line, HasSubstr(R"("hash":"616263")"));
    JournalRecord erased = record();
    erased.redacted = true;
    EXPECT_EQ(audit_json(erased).find("body"), std::string::npos);
}

// Who asks chooses the path and the id of the request: neither may become a field of its own.
TEST(JournalExport, ARequestKeepsWhatItSaysInItsFields) {
    const AuditLine line{.at = "2023-11-14T22:13:20.123456Z",
                         .who = "user/anna in o-2/p-2 as viewer",
                         .method = "POST",
                         .path = "/api/v1/runs?x=1",
                         .operation = "submitRun",
                         .status = 403,
                         .peer = "10.0.0.7",
                         .request = "a src=1.2.3.4",
                         .trace = ""};
    const std::string text = request_cef(line);
    EXPECT_THAT(text, HasSubstr("|submitRun|submitRun|6|rt=1700000000123 suser=user/anna in o-2/p-2 as viewer "));
    EXPECT_THAT(text, HasSubstr("request=/api/v1/runs?x\\=1 outcome=failure cn1Label=status cn1=403 src=10.0.0.7 "));
    EXPECT_THAT(text, EndsWith("externalId=a src\\=1.2.3.4"));
}

}  // namespace
}  // namespace stoker
