// Files that az commands are given: the JSON of a Batch pool, settings of an extension with the command that it runs,
// and what a machine boots with. What is found in them is told at its place in them.
#include <algorithm>

#include "lint/read.h"
#include "lint/shell/az_options.h"
#include "lint/shell/node_text.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostAzFiles = 16;
constexpr std::size_t kMostAzFileBytes = 1u << 20;

class AzFiles {
public:
    AzFiles(File& file, const ReadOptions& options) : file_(file), options_(options) {}

    void run() {
        for (const Command& command : file_.script.commands) {
            const std::vector<Value>& words = command.words;
            if (words.size() < 4 || !words[0].is("az")) continue;
            const bool pool = words[1].is("batch") && words[2].is("pool") && words[3].is("create");
            for (std::size_t k = 2; k + 1 < words.size(); ++k) {
                if (pool && words[k].is("--json-file")) batch_pool(words[k + 1]);
                if (words[k].is("--settings") || words[k].is("--protected-settings")) settings(words[k + 1]);
            }
        }
        for (Resource& resource : file_.resources)
            if (resource.written.starts_with("az ")) boots_with(resource);
    }

private:
    // A file beside the script that a word names; null where there is none.
    File* named(const Value& word, Kinds kinds) {
        std::string_view path = word.text;
        if (!word.known()) return nullptr;
        if (path.starts_with('@')) path.remove_prefix(1);
        while (path.starts_with("./")) path.remove_prefix(2);
        if (path.empty() || path.size() > 300 || path.starts_with('/') || path.find_first_of("$~{}\n ") != path.npos ||
            ++count_ > kMostAzFiles)
            return nullptr;
        auto text = options_.neighbour(std::string(path));
        if (!text || text->size() > kMostAzFileBytes || text->find('\0') != std::string::npos) return nullptr;
        const std::size_t slash = file_.path().rfind('/');
        std::string where = slash == std::string::npos ? std::string() : file_.path().substr(0, slash + 1);
        file_.neighbours.push_back(std::make_unique<File>(where.append(path), std::move(*text)));
        file_.neighbours.back()->kinds = kinds;
        return file_.neighbours.back().get();
    }
    const Node* json(const Value& word) {
        File* read = named(word, {Kind::arm});
        if (read == nullptr) return nullptr;
        read_json(*read);
        const bool whole = read->problems.empty() && !read->tree.roots.empty() && read->tree.roots[0]->is_object();
        return whole ? read->tree.roots[0] : nullptr;
    }
    // Read as a part of the script, since it is one; its places are those of the file it stands in.
    void guest(File& in, std::string text, std::vector<Piece> pieces, Kinds kinds) {
        if (read_guest(in, std::move(text), std::move(pieces), kinds, options_) == nullptr) return;
        file_.guests.push_back(std::move(in.guests.back()));
        in.guests.pop_back();
    }

    void batch_pool(const Value& word) {
        const Node* root = json(word);
        if (root == nullptr) return;
        Resource pool;
        pool.type = ResourceType::batch_pool;
        pool.written = "az batch pool create";
        pool.file = &file_;
        pool.source = root->source;
        const Node* id = root->find("id");
        pool.header = pool.whole = id ? id->span : root->span;
        pool.address = "az:batch pool create/" + std::string(id && id->is_scalar() ? id->text : std::string_view("1"));
        struct Field {
            std::string_view key;
            Attr attr;
        };
        for (const Field& field :
             {Field{"vmSize", Attr::size}, Field{"targetLowPriorityNodes", Attr::low_priority_nodes},
              Field{"targetDedicatedNodes", Attr::count}, Field{"enableAutoScale", Attr::autoscaling}})
            if (const Node* node = root->find(field.key); node && node->is_scalar())
                pool.set(field.attr, Value::of(node));
        file_.resources.push_back(std::move(pool));
    }
    void settings(const Value& word) {
        if (!word.text.starts_with('@') && !word.text.ends_with(".json")) return;
        const Node* root = json(word);
        const Node* command = root ? root->find("commandToExecute") : nullptr;
        if (command == nullptr || !command->is_scalar() || command->text.empty()) return;
        File& in = *file_.neighbours.back();
        guest(in, std::string(command->text), pieces_of_scalar(command->text, in.source(), command->span),
              {Kind::launch});
    }
    void boots_with(Resource& resource) {
        const Value data = resource.get(Attr::custom_data);
        if (!data.known() || data.text.find('\n') != std::string_view::npos) return;
        File* read = named(data, {Kind::launch});
        if (read == nullptr) return;
        const std::string_view text = read->source().text();
        const bool config = text.starts_with("#cloud-config");
        if (!config && !text.starts_with("#!")) return;
        const auto size = static_cast<std::uint32_t>(text.size());
        guest(*read, std::string(text), {{0, size, {0, size}, Piece::Kind::verbatim}},
              {config ? Kind::cloud_init : Kind::launch});
    }

    File& file_;
    const ReadOptions& options_;
    std::size_t count_ = 0;
};

}  // namespace

void find_az_files(File& file, const ReadOptions& options) {
    if (!options.neighbour || file.host || !file.kinds.has(Kind::az)) return;
    AzFiles(file, options).run();
}

}  // namespace stoker::lint
