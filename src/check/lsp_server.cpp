#include "check/lsp_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/paths.h"
#include "base/text.h"
#include "base/version.h"
#include "check/bundles.h"
#include "check/lsp_message.h"
#include "check/walk.h"
#include "io/files.h"
#include "io/user_file.h"
#include "lint/check.h"
#include "lint/outcome.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostWorkspaceFiles = 20'000;
constexpr int kMethodNotFound = -32601, kInvalidRequest = -32600;

Json json_of_id(const Node* id) {
    if (!id || id->kind == NodeKind::null) return {};
    if (id->kind == NodeKind::number)
        return Json(id->number == static_cast<double>(static_cast<std::int64_t>(id->number))
                        ? Json(static_cast<std::int64_t>(id->number))
                        : Json(id->number));
    return Json(id->text);
}

std::string_view text_of_node(const Node* node, std::string_view key) {
    const Node* value = node && node->is_mapping() ? node->find(key) : nullptr;
    return value && value->kind == NodeKind::string ? std::string_view(value->text) : std::string_view();
}

const Node* find_in(const Node* node, std::string_view key) {
    return node && node->is_mapping() ? node->find(key) : nullptr;
}

int severity_number(lint::Severity severity) {
    return severity == lint::Severity::error ? 1 : severity == lint::Severity::warning ? 2 : 3;
}

// Where a comment on a line of its own can begin; empty: the language has no comments.
std::string_view comment_mark(const lint::File& file) {
    if (file.path().ends_with(".json") && !file.kinds.has(lint::Kind::arm)) return {};
    if (file.kinds.any({lint::Kind::bicep, lint::Kind::arm})) return "//";
    if (file.kinds.any({lint::Kind::deepspeed, lint::Kind::grafana, lint::Kind::markdown})) return {};
    return "#";
}

// An edit that puts the comment above the line of `offset`, or above the first line that it continues.
std::optional<lint::Edit> ignore_comment(const lint::File& file, const lint::Finding& finding) {
    const std::string_view mark = comment_mark(file);
    if (mark.empty()) return std::nullopt;
    const lint::Source& source = file.source();
    lint::Span line = source.line_at(finding.span.begin);
    while (line.begin > 0) {
        const lint::Span before = source.line_at(line.begin - 1);
        if (!trim(source.text(before)).ends_with('\\')) break;
        line = before;
    }
    const std::string_view text = source.text(line);
    const std::string_view indent = text.substr(0, std::min(text.find_first_not_of(" \t"), text.size()));
    return lint::Edit{
        {line.begin, line.begin},
        fmt::format("{}{} stoker: ignore[{}] reason=\"\"{}", indent, mark, finding.rule, source.line_end())};
}

std::string size_card(const lint::KnownSize& size) {
    const lint::Knowledge& knowledge = lint::Knowledge::embedded();
    std::string text = fmt::format("**{}**", size.name);
    if (!size.series.empty()) text += fmt::format(" ({})", size.series);
    text += fmt::format("\n\n- {} vCPUs, {} GiB memory\n", size.vcpus, size.memory_gib);
    if (size.gpu()) text += fmt::format("- {} x {}\n", size.accelerators, size.accelerator);
    text += size.rdma() ? fmt::format("- InfiniBand, {} Gb/s per VM\n", size.infiniband_gbps) : "- no InfiniBand\n";
    if (size.usd_per_hour > 0) text += fmt::format("- from ${:.2f} an hour on demand\n", size.usd_per_hour);
    if (const lint::KnownRetirement* retirement = knowledge.retirement(size.name))
        text += fmt::format("- **{}{}**{}\n", retirement->date.empty() ? "retired" : "retires or retired on ",
                            retirement->date,
                            retirement->target.empty() ? "" : fmt::format(": take {}", retirement->target));
    if (!size.as_of.empty()) text += fmt::format("\nas of {}, {}\n", size.as_of, size.source);
    return text;
}

}  // namespace

void LspServer::send(const Json& message) {
    out_ += lsp_frame(message);
}
void LspServer::answer(const Json& id, Json result) {
    send(Json::object().set("jsonrpc", "2.0").set("id", id).set("result", std::move(result)));
}
void LspServer::refuse(const Json& id, int code, std::string message) {
    send(Json::object()
             .set("jsonrpc", "2.0")
             .set("id", id)
             .set("error", Json::object().set("code", code).set("message", std::move(message))));
}

void LspServer::load_config() {
    config_ = CheckConfig{};
    const auto complain = [&](const std::string& text) {
        send(Json::object()
                 .set("jsonrpc", "2.0")
                 .set("method", "window/showMessage")
                 .set("params", Json::object().set("type", 1).set("message", text)));
    };
    if (const auto file = find_check_config(root_)) {
        auto text = read_file(*file, 1u << 20);
        auto config = text ? parse_check_config(*text, *file) : Result<CheckConfig>(text.error());
        if (config) {
            config_ = std::move(*config);
            config_.folder = fs::path(*file).parent_path().string();
        } else {
            complain(config.error().text());
        }
    }
    options_ = config_.options;
    options_.severity = config_.severity;
    options_.as_of = config_.as_of.value_or(today_);
    const std::string profile = config_.profile.value_or("");
    if (auto off = rules_off(config_.select, config_.ignore, profile)) options_.off = std::move(*off);
    for (const std::string& rule : config_.switched_off) options_.off.insert(rule);
    suppress_.reason_needed = profile == "prod";
    suppress_.whole_bundle = false;  // whether a suppression of a join is unused is known to `stoker check` alone
}

void LspServer::initialize(const Node* params) {
    const Node* folders = find_in(params, "workspaceFolders");
    std::string uri(text_of_node(params, "rootUri"));
    if (folders && folders->is_sequence() && !folders->items.empty())
        uri = text_of_node(folders->items.front().get(), "uri");
    root_ = uri.empty() ? std::string(text_of_node(params, "rootPath")) : path_of_uri(uri);
    while (root_.size() > 1 && root_.ends_with('/')) root_.pop_back();
    load_config();
}

LspServer::OpenDocument* LspServer::document_of(const Node& params) {
    const auto found = documents_.find(std::string(text_of_node(find_in(&params, "textDocument"), "uri")));
    return found == documents_.end() ? nullptr : &found->second;
}
const LspServer::OpenDocument* LspServer::document_of(const Node& params) const {
    const auto found = documents_.find(std::string(text_of_node(find_in(&params, "textDocument"), "uri")));
    return found == documents_.end() ? nullptr : &found->second;
}

void LspServer::open(const Node& params, double now_s) {
    const Node* item = find_in(&params, "textDocument");
    OpenDocument document;
    document.uri = text_of_node(item, "uri");
    document.text = text_of_node(item, "text");
    document.version = json_of_id(find_in(item, "version"));
    const std::string path = path_of_uri(document.uri);
    const std::string prefix = root_ + "/";
    document.path = path.empty() ? document.uri : path.starts_with(prefix) ? path.substr(prefix.size()) : path;
    OpenDocument& kept = documents_[document.uri] = std::move(document);
    check(kept);
    quiet_from_ = now_s;
}

void LspServer::change(const Node& params, double now_s) {
    OpenDocument* document = document_of(params);
    const Node* changes = find_in(&params, "contentChanges");
    if (!document || !changes || !changes->is_sequence()) return;
    for (const auto& one : changes->items) {
        const std::string_view text = text_of_node(one.get(), "text");
        const Node* range = find_in(one.get(), "range");
        const auto start = lsp_position(find_in(range, "start")), end = lsp_position(find_in(range, "end"));
        if (!start || !end) {
            document->text = text;
            continue;
        }
        const std::size_t from = lsp_offset(document->text, *start);
        const std::size_t to = std::max(from, lsp_offset(document->text, *end));
        document->text.replace(from, to - from, text);
    }
    document->version = json_of_id(find_in(find_in(&params, "textDocument"), "version"));
    check(*document);
    quiet_from_ = now_s;
}

void LspServer::close(const Node& params) {
    OpenDocument* document = document_of(params);
    if (!document) return;
    document->shown.clear();
    document->file = nullptr;
    show(*document);
    documents_.erase(std::string(document->uri));
}

// A file that another program wrote; open ones are the editor's own.
void LspServer::changed_on_disk(const Node& params, double now_s) {
    const Node* changes = find_in(&params, "changes");
    if (!changes || !changes->is_sequence()) return;
    const std::string prefix = root_ + "/";
    for (const auto& one : changes->items) {
        const std::string path = path_of_uri(text_of_node(one.get(), "uri"));
        if (!path.starts_with(prefix)) continue;
        const std::string below = path.substr(prefix.size());
        if (below == "stoker.toml") {
            load_config();
            for (auto& [uri, document] : documents_) check(document);
        }
        workspace_.erase(below);
        std::error_code code;
        if (!workspace_read_ || !fs::is_regular_file(path, code) || never_configuration(below)) continue;
        CheckInput input = read_input({path, root_, false}, read_);
        forget_calls(input);
        if (input.file) workspace_[below] = std::move(input);
    }
    quiet_from_ = now_s;
}

void LspServer::check(OpenDocument& document) {
    // The text on the disk is older; neighbours are read from there.
    document.file = parse_input(document.path, root_, document.text, read_, path_of_uri(document.uri));
    document.own.clear();
    if (document.file) {
        document.own = lint::check_file(*document.file, options_, lint::Knowledge::embedded());
        document.own = lint::without_repeats(std::move(document.own), {document.file.get()});
    }
    // Where joined findings stand has moved with the text: they come again when it is quiet.
    document.joined.clear();
    document.shown.clear();
    if (document.file)
        document.shown = lint::apply_suppressions({document.file.get()}, document.own, options_, suppress_).findings;
    show(document);
}

// What an editor opens behind a code: the rule's page, written into the user's cache when it is first needed.
std::string LspServer::page_link(const std::string& rule) const {
    const auto [link, fresh] = page_links_.emplace(rule, "");
    if (!fresh) return link->second;
    const auto path = user_file("XDG_CACHE_HOME", ".cache", "rules/" + rule + ".md", "the pages of rules");
    if (!path) return {};
    std::error_code code;
    fs::create_directories(fs::path(*path).parent_path(), code);
    std::ofstream page(*path, std::ios::binary | std::ios::trunc);
    page << lint::rule_markdown(lint::whole_rule_page(rule));
    page.close();
    if (page) link->second = uri_of_path(*path);
    return link->second;
}

Json LspServer::diagnostic(const OpenDocument& document, const lint::Finding& finding) const {
    const lint::Source& source = document.file->source();
    std::string message = finding.message;
    if (!finding.advice.empty()) message += "\n" + finding.advice;
    Json json = Json::object()
                    .set("range", lsp_range(source, finding.span))
                    .set("severity", severity_number(finding.severity))
                    .set("code", finding.rule)
                    .set("source", "stoker")
                    .set("message", message);
    if (const std::string link = page_link(finding.rule); !link.empty())
        json.set("codeDescription", Json::object().set("href", link));
    if (lint::tells_retirement(finding.rule)) json.set("tags", Json::array().push(2));  // Deprecated
    Json related = Json::array();
    for (const lint::Related& other : finding.related) {
        if (other.path != document.path) continue;  // of others the place in UTF-16 is not at hand
        related.push(
            Json::object()
                .set("location", Json::object().set("uri", document.uri).set("range", lsp_range(source, other.span)))
                .set("message", other.message));
    }
    json.set("relatedInformation", std::move(related));
    return json;
}

void LspServer::show(OpenDocument& document) {
    Json list = Json::array();
    if (document.file) {
        const lint::StablePath stable = [&](const std::string& path) {
            return fs::path(root_ + "/" + path).lexically_relative(config_.folder).generic_string();
        };
        std::erase_if(document.shown, [&](const lint::Finding& finding) {
            return std::any_of(config_.suppressions.begin(), config_.suppressions.end(),
                               [&](const lint::ConfigSuppression& s) {
                                   return s.rule == finding.rule && tidy_path(s.path) == stable(finding.path) &&
                                          (s.address.empty() || s.address == finding.address) &&
                                          (s.until.empty() || s.until >= options_.as_of);
                               });
        });
        for (const lint::Finding& finding : document.shown) list.push(diagnostic(document, finding));
    }
    Json params = Json::object().set("uri", document.uri);
    if (!document.version.is_null()) params.set("version", document.version);
    params.set("diagnostics", std::move(list));
    send(Json::object()
             .set("jsonrpc", "2.0")
             .set("method", "textDocument/publishDiagnostics")
             .set("params", std::move(params)));
}

void LspServer::read_workspace() {
    workspace_read_ = true;
    if (root_.empty() || root_ == "/") return;
    WalkOptions options;
    options.exclude = config_.exclude;
    options.exclude_root = (config_.folder.empty() ? root_ : config_.folder) + "/";
    options.most_files = kMostWorkspaceFiles;
    for (const WalkedFile& walked : walk_paths({root_}, options).files) {
        CheckInput input = read_input(walked, read_);
        forget_calls(input);  // what is open is judged by its calls, the rest of the workspace by its defaults
        const std::string below = walked.path.size() > root_.size() && lies_in(walked.path, root_)
                                      ? walked.path.substr(root_.size() + 1)
                                      : "";
        if (input.file && !below.empty()) workspace_[below] = std::move(input);
    }
}

void LspServer::check_bundles() {
    if (!workspace_read_) read_workspace();
    // What is open replaces what is on the disk.
    std::map<std::string, CheckInput> merged = workspace_;
    for (const auto& [uri, document] : documents_)
        merged[document.path] = CheckInput{document.path, root_, document.file, {}, {}};
    std::vector<CheckInput> inputs;
    std::vector<WalkedFile> walked;
    for (auto& [path, input] : merged) {
        input.path = path;
        walked.push_back({path, root_, false});
        inputs.push_back(std::move(input));
    }
    for (const InputBundle& group : group_bundles(inputs, walked)) {
        std::vector<OpenDocument*> open;
        lint::Bundle bundle;
        for (const std::size_t i : group.inputs) {
            bundle.files.push_back(inputs[i].file.get());
            for (auto& [uri, document] : documents_)
                if (document.file == inputs[i].file) open.push_back(&document);
        }
        if (open.empty()) continue;
        const std::vector<lint::Finding> found = lint::check_joins(bundle, options_, lint::Knowledge::embedded());
        for (OpenDocument* document : open) {
            std::vector<lint::Finding> joined;
            for (const lint::Finding& finding : found) {
                // Files of the workspace were read under their whole path.
                if (finding.path == document->path) joined.push_back(finding);
            }
            if (joined.empty() && document->joined.empty()) continue;
            document->joined = std::move(joined);
            std::vector<lint::Finding> all = document->own;
            all.insert(all.end(), document->joined.begin(), document->joined.end());
            document->shown =
                lint::apply_suppressions({document->file.get()}, std::move(all), options_, suppress_).findings;
            show(*document);
        }
    }
}

std::optional<double> LspServer::tick(double now_s) {
    if (!quiet_from_) return std::nullopt;
    const double left = *quiet_from_ + kQuiet_s - now_s;
    if (left > 0) return left;
    quiet_from_.reset();
    check_bundles();
    return std::nullopt;
}

Json LspServer::code_actions(const Node& params) const {
    Json actions = Json::array();
    const OpenDocument* document = document_of(params);
    const Node* range = find_in(&params, "range");
    const auto start = lsp_position(find_in(range, "start")), end = lsp_position(find_in(range, "end"));
    if (!document || !document->file || !start || !end) return actions;
    const std::size_t from = lsp_offset(document->text, *start), to = lsp_offset(document->text, *end);
    const lint::Source& source = document->file->source();
    const auto add = [&](const lint::Finding& finding, const std::string& title, const std::vector<lint::Edit>& edits,
                         bool preferred) {
        Json changes = Json::array();
        for (const lint::Edit& edit : edits)
            changes.push(Json::object().set("range", lsp_range(source, edit.span)).set("newText", edit.replacement));
        Json action = Json::object()
                          .set("title", title)
                          .set("kind", "quickfix")
                          .set("diagnostics", Json::array().push(diagnostic(*document, finding)))
                          .set("edit", Json::object().set("changes", Json::object().set(document->uri, changes)));
        if (preferred) action.set("isPreferred", true);
        actions.push(std::move(action));
    };
    for (const lint::Finding& finding : document->shown) {
        // A whole line counts: the caret is rarely on the very word.
        const lint::Span line = source.line_at(finding.span.begin);
        const std::size_t first = std::min<std::size_t>(line.begin, finding.span.begin);
        const std::size_t last = std::max<std::size_t>(line.end, finding.span.end);
        if (to < first || from > last) continue;
        if (finding.fix) {
            const bool safe = finding.fix->safety == lint::FixClass::safe;
            add(finding, fmt::format("{}: {}{}", finding.rule, finding.fix->title, safe ? "" : " (needs a decision)"),
                finding.fix->edits, safe);
        }
        if (finding.rule == "SYN001" || finding.rule == "SYN004" || finding.rule == "SYN005") continue;
        if (const auto edit = ignore_comment(*document->file, finding))
            add(finding, fmt::format("{}: ignore here, with a reason", finding.rule), {*edit}, false);
    }
    return actions;
}

Json LspServer::hover(const Node& params) const {
    const OpenDocument* document = document_of(params);
    const auto position = lsp_position(find_in(&params, "position"));
    if (!document || !position) return {};
    const std::string_view text = document->text;
    const auto in_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    std::size_t begin = lsp_offset(text, *position), end = begin;
    while (begin > 0 && in_word(text[begin - 1])) --begin;
    while (end < text.size() && in_word(text[end])) ++end;
    const std::string_view word = text.substr(begin, end - begin);
    if (word.size() < 3 || word.size() > 80) return {};
    const lint::Knowledge& knowledge = lint::Knowledge::embedded();
    std::string card;
    if (const lint::KnownSize* size = knowledge.size(word)) {
        card = size_card(*size);
    } else if (const lint::KnownRetirement* retirement =
                   lint::Knowledge::looks_like_size(word) ? knowledge.retirement(word) : nullptr) {
        card =
            fmt::format("**{}** is retired{}{}{}\n", word, retirement->date.empty() ? "" : " since ", retirement->date,
                        retirement->target.empty() ? "" : fmt::format(": take {}", retirement->target));
    }
    if (card.empty()) return {};
    const lint::Source source("", std::string(text));
    return Json::object()
        .set("contents", Json::object().set("kind", "markdown").set("value", card))
        .set("range", lsp_range(source, {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)}));
}

void LspServer::handle(const std::string& message, double now_s) {
    auto parsed = Document::parse_json(message, "message");
    if (!parsed || !parsed->root().is_mapping()) {
        refuse({}, -32700, parsed ? "expected an object" : parsed.error().message());
        return;
    }
    const Node& root = parsed->root();
    const std::string_view method = text_of_node(&root, "method");
    const Json id = json_of_id(root.find("id"));
    static const Node nothing;
    const Node* found = root.find("params");
    const Node& params = found ? *found : nothing;
    if (method == "initialize") {
        initialize(&params);
        Json sync = Json::object().set("openClose", true).set("change", 2);
        Json capabilities =
            Json::object()
                .set("positionEncoding", "utf-16")
                .set("textDocumentSync", std::move(sync))
                .set("hoverProvider", true)
                .set("codeActionProvider", Json::object().set("codeActionKinds", Json::array().push("quickfix")));
        answer(id, Json::object()
                       .set("capabilities", std::move(capabilities))
                       .set("serverInfo", Json::object().set("name", "stoker").set("version", version().number)));
    } else if (method == "shutdown") {
        shut_down_ = true;
        answer(id, {});
    } else if (method == "exit") {
        exit_ = shut_down_ ? 0 : 1;
    } else if (shut_down_) {
        if (!id.is_null()) refuse(id, kInvalidRequest, "the server is shut down");
    } else if (method == "textDocument/didOpen") {
        open(params, now_s);
    } else if (method == "textDocument/didChange") {
        change(params, now_s);
    } else if (method == "textDocument/didClose") {
        close(params);
    } else if (method == "workspace/didChangeWatchedFiles") {
        changed_on_disk(params, now_s);
    } else if (method == "textDocument/codeAction") {
        answer(id, code_actions(params));
    } else if (method == "textDocument/hover") {
        answer(id, hover(params));
    } else if (!id.is_null() && !method.empty()) {
        refuse(id, kMethodNotFound, fmt::format("{} is not known", printable(method, 80)));
    }
}

}  // namespace stoker
