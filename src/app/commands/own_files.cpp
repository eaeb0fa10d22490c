#include "app/commands/own_files.h"

#include <memory>
#include <mutex>

#include "base/document.h"
#include "govern/price_book.h"
#include "serve/gateway/config.h"
#include "server/node_file.h"
#include "server/server_config.h"

namespace stoker {
namespace {

enum class OwnFile { workload, server, gateway, prices, nodes };

bool list_at(const Node& root, const char* key) {
    const Node* node = root.find(key);
    return node != nullptr && node->is_sequence();
}

// By what it has that no other has; lint::classify has seen that it is one of them.
OwnFile own_file_of(const Node& root) {
    if (root.find("kind") != nullptr) return OwnFile::workload;
    if (root.find("models") != nullptr && root.find("keys") != nullptr) return OwnFile::gateway;
    if (list_at(root, "prices")) return OwnFile::prices;
    if (root.find("nodes") != nullptr && root.members.size() == 1) return OwnFile::nodes;
    return OwnFile::server;
}

template <typename T>
std::vector<Problem> problems_of(const Result<T>& read) {
    return read ? std::vector<Problem>{} : read.error().problems();
}

}  // namespace

std::function<std::vector<Problem>(const std::string&, std::string_view)> own_file_judge(Session& session) {
    // Nodes that a file names are added to a catalogue: each file has one of its own.
    const auto guard = std::make_shared<std::mutex>();
    const auto catalog = [&session, guard]() -> Result<Catalog> {
        const std::lock_guard lock(*guard);
        TRY(const Catalog* known, session.catalog());
        return *known;
    };
    const auto workload = workload_judge(session);
    return [catalog, workload](const std::string& path, std::string_view text) -> std::vector<Problem> {
        const auto document = Document::parse(text, path);
        if (!document) return document.error().problems();
        const Node& root = document->root();
        if (!root.is_mapping()) return workload(path, text);
        switch (own_file_of(root)) {
            case OwnFile::workload: return workload(path, text);
            case OwnFile::server: return problems_of(read_server_config(text, path, catalog));
            case OwnFile::gateway: return gateway::gateway_config_problems(text, path);
            case OwnFile::prices: return problems_of(PriceBook::read(std::string(text), path));
            case OwnFile::nodes: {
                auto known = catalog();
                return known ? problems_of(read_node_file(*document, *known)) : std::vector<Problem>{};
            }
        }
        return {};
    };
}

}  // namespace stoker
