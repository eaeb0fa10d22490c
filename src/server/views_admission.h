// What the API says about which runs are taken. As in views.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/ids.h"

namespace stoker::api {

struct AdmissionRuleView {
    std::string name, in_words, remedy;
    std::int64_t line = 0;     // in the configuration
    std::int64_t refuses = 0;  // of a test: so many of the runs
};
struct AdmissionList {
    std::vector<AdmissionRuleView> items;
    std::string text;  // the same rules, as stoker plan --policy reads them
};
struct AdmissionTestBody {
    std::string text;  // a configuration; empty: the one in force
    std::int64_t last_s = 30 * 86'400;
};
struct RefusedRun {
    RunId run;
    std::string name, user, project;
    std::vector<std::string> reasons;
};
struct AdmissionTest {
    std::int64_t judged = 0, refused = 0;
    std::string from, oldest;  // of the window; of the oldest run that is still kept
    std::vector<AdmissionRuleView> rules;
    std::vector<RefusedRun> items;  // the newest 200
};

template <class V>
void fields(V& visit, AdmissionRuleView& v) {
    visit("in_words", v.in_words);
    visit("line", v.line);
    visit("name", v.name);
    visit("refuses", v.refuses);
    visit("remedy", v.remedy);
}
template <class V>
void fields(V& visit, AdmissionList& v) {
    visit("items", v.items);
    visit("text", v.text);
}
template <class V>
void fields(V& visit, AdmissionTestBody& v) {
    visit("last_s", v.last_s);
    visit("text", v.text);
}
template <class V>
void fields(V& visit, RefusedRun& v) {
    visit("name", v.name);
    visit("project", v.project);
    visit("reasons", v.reasons);
    visit("run", v.run);
    visit("user", v.user);
}
template <class V>
void fields(V& visit, AdmissionTest& v) {
    visit("from", v.from);
    visit("items", v.items);
    visit("judged", v.judged);
    visit("oldest", v.oldest);
    visit("refused", v.refused);
    visit("rules", v.rules);
}

}  // namespace stoker::api
