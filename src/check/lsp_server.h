// The check inside an editor: a file's own rules at every keystroke, rules over several files once it is quiet.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/json.h"
#include "check/check_config.h"
#include "check/input.h"
#include "lint/rule.h"

namespace stoker {

// One thread; time is passed in. What is to be sent collects in take().
class LspServer {
public:
    explicit LspServer(std::string today, ReadChoice read = {}) : today_(std::move(today)), read_(std::move(read)) {}

    void handle(const std::string& message, double now_s);
    // Rules over several files, when nothing has changed for kQuiet; seconds until that, or nothing to wait for.
    std::optional<double> tick(double now_s);
    std::string take() { return std::exchange(out_, {}); }
    std::optional<int> exit() const { return exit_; }

    static constexpr double kQuiet_s = 0.2;

private:
    struct OpenDocument {
        std::string uri, path, text;  // `path` below the root
        Json version;
        std::shared_ptr<const lint::File> file;
        std::vector<lint::Finding> own;     // of rules over one file
        std::vector<lint::Finding> joined;  // of rules over several, as of the last quiet moment
        std::vector<lint::Finding> shown;   // both, without what is suppressed
    };

    void send(const Json& message);
    void answer(const Json& id, Json result);
    void refuse(const Json& id, int code, std::string message);
    void initialize(const Node* params);
    void load_config();
    void change(const Node& params, double now_s);
    void open(const Node& params, double now_s);
    void close(const Node& params);
    void changed_on_disk(const Node& params, double now_s);
    void check(OpenDocument& document);
    void show(OpenDocument& document);
    void check_bundles();
    void read_workspace();
    Json code_actions(const Node& params) const;
    Json hover(const Node& params) const;
    Json diagnostic(const OpenDocument& document, const lint::Finding& finding) const;
    std::string page_link(const std::string& rule) const;
    OpenDocument* document_of(const Node& params);
    const OpenDocument* document_of(const Node& params) const;

    std::string today_;
    ReadChoice read_;
    std::string root_;  // absolute, without a slash at the end
    CheckConfig config_;
    lint::CheckOptions options_;
    lint::SuppressOptions suppress_;
    std::map<std::string, OpenDocument> documents_;  // by uri
    std::map<std::string, CheckInput> workspace_;    // by path, as on the disk
    bool workspace_read_ = false, shut_down_ = false;
    std::optional<double> quiet_from_;  // when the last change came, while bundles are not checked since
    mutable std::map<std::string, std::string> page_links_;  // by rule; empty: cannot be written
    std::string out_;
    std::optional<int> exit_;
};

}  // namespace stoker
