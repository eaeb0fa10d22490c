// The scripts and files inside a cloud-config.
#include <algorithm>

#include "lint/read.h"
#include "lint/shell/node_text.h"

namespace stoker::lint {

namespace {

void cloud_init_guest(File& file, const Node& text, Kinds kinds, const ReadOptions& options) {
    if (!text.is_scalar() || !text.known || text.text.empty() || text.source != &file.source()) return;
    read_guest(file, std::string(text.text), pieces_of_scalar(text.text, file.source(), text.span), kinds, options);
}

// - [sh, -c, "..."] is a script; any other list is one command, its words joined.
void cloud_init_command(File& file, const Node& entry, const ReadOptions& options) {
    if (entry.is_scalar()) {
        cloud_init_guest(file, entry, {Kind::launch}, options);
        return;
    }
    if (!entry.is_array() || !entry.first) return;
    const Node* third = entry.first->next ? entry.first->next->next : nullptr;
    if (third && entry.first->next->text.starts_with("-") &&
        entry.first->next->text.find('c') != std::string_view::npos && entry.first->text.ends_with("sh")) {
        cloud_init_guest(file, *third, {Kind::launch}, options);
        return;
    }
    std::string joined;
    std::vector<Piece> pieces;
    for (const Node& word : children(&entry)) {
        if (!word.is_scalar() || word.text.empty() || word.source != &file.source()) continue;
        if (!joined.empty()) {
            pieces.push_back({static_cast<std::uint32_t>(joined.size()),
                              1,
                              {word.span.begin, word.span.begin},
                              Piece::Kind::changed});
            joined += ' ';
        }
        // A word with blanks is one word for the shell, too.
        const bool quote = word.text.find_first_of(" \t\n|;&<>()$`\"'\\") != std::string_view::npos;
        if (quote && word.text.find('\'') != std::string_view::npos) return;
        const auto at = static_cast<std::uint32_t>(joined.size());
        if (quote) {
            joined += '\'';
            pieces.push_back({at, 1, {word.span.begin, word.span.begin}, Piece::Kind::changed});
        }
        for (Piece piece : pieces_of_scalar(word.text, file.source(), word.span)) {
            piece.guest += static_cast<std::uint32_t>(joined.size());
            pieces.push_back(piece);
        }
        joined += word.text;
        if (quote) {
            pieces.push_back(
                {static_cast<std::uint32_t>(joined.size()), 1, {word.span.end, word.span.end}, Piece::Kind::changed});
            joined += '\'';
        }
    }
    read_guest(file, std::move(joined), std::move(pieces), {Kind::launch}, options);
}

}  // namespace

void find_cloud_init(File& file, const ReadOptions& options) {
    if (!file.kinds.has(Kind::cloud_init) || file.tree.roots.empty()) return;
    const Node* root = file.tree.roots.front();
    for (const std::string_view key : {"bootcmd", "runcmd"})
        for (const Node& entry : children(root->find(key))) cloud_init_command(file, entry, options);
    for (const Node& entry : children(root->find("write_files"))) {
        const Node* content = entry.find("content");
        const Node* path = entry.find("path");
        const Node* encoding = entry.find("encoding");
        if (!content || (encoding && !encoding->text.empty() && encoding->text != "text/plain")) continue;
        const std::string_view name = path && path->is_scalar() ? path->text : std::string_view();
        const Kinds kinds = classify_guest(name.substr(name.rfind('/') + 1), content->text);
        if (!kinds.empty()) cloud_init_guest(file, *content, kinds, options);
    }
}

}  // namespace stoker::lint
