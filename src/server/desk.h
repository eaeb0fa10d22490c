// What a page asks of rooms that stand above the server: a file that somebody wrote there is planned, made the spec of
// a run, or made an endpoint; as the commands do it that a person would type.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace stoker {

// A workload file that came with a request. It can name no other file: whoever posts it may not read those of the
// server.
struct PostedFile {
    std::string text;
    std::string name;    // what messages call it: "train.yaml"
    std::string folder;  // absolute, on the machine of the server: where its work runs; empty: the server's own
};

struct PostedEndpoint {
    PostedFile file;
    std::optional<int> least, most;  // replicas
    std::string project, user;       // p-2, and who deploys it; empty: the installation itself
};

struct TemplateView {
    std::string name, title, group, text;
};
struct TemplateList {
    std::vector<TemplateView> items;
};

template <class V>
void fields(V& visit, TemplateView& v) {
    visit("group", v.group);
    visit("name", v.name);
    visit("text", v.text);
    visit("title", v.title);
}
template <class V>
void fields(V& visit, TemplateList& v) {
    visit("items", v.items);
}

class Desk {
public:
    virtual ~Desk() = default;
    // As `stoker plan -o json` prints it; of several stages as many plans.
    virtual Result<std::string> plan(const PostedFile& file) = 0;
    // The spec that `stoker submit` would post of it, as JSON.
    virtual Result<std::string> run_of(const PostedFile& file) = 0;
    // Makes the endpoint, or another revision of it, in the folder of the server. Its name.
    virtual Result<std::string> deploy(const PostedEndpoint& endpoint) = 0;
    virtual TemplateList templates() = 0;
};

}  // namespace stoker
