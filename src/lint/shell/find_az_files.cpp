// Files that az commands are given: the JSON of a Batch pool, settings of an extension with the command that it runs,
// and what a machine boots with. What is found in them is told at its place in them.
#include <algorithm>

#include "base/text.h"
#include "lint/read.h"
#include "lint/shell/az_options.h"
#include "lint/shell/node_text.h"
#include "lint/shell/shell_trace.h"
#include "lint/shell/shell_values.h"

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
            if (words[1].is("rest")) rest(command);
            const bool pool = words[1].is("batch") && words[2].is("pool") && words[3].is("create");
            for (std::size_t k = 2; k + 1 < words.size(); ++k) {
                if (pool && words[k].is("--json-file"))
                    each_named(words[k + 1], [&](const Value& path) { batch_pool(path); });
                if (words[k].is("--settings") || words[k].is("--protected-settings")) settings(words[k + 1]);
            }
        }
        for (Resource& resource : file_.resources)
            if (resource.written.starts_with("az ")) boots_with(resource);
    }

private:
    // The word, or what a loop puts in its place: for f in pools/*.json.
    template <typename F>
    void each_named(const Value& word, F&& use) {
        if (word.known()) return use(word);
        for (const Value& may : ShellValues::of(file_).alternatives(ShellValues::raw(word, file_.source()))) {
            const std::size_t star = may.text.find('*'), slash = may.text.rfind('/');
            if (star == std::string_view::npos) {
                use(may);
                continue;
            }
            if (!options_.list || (slash != std::string_view::npos && star < slash)) continue;
            const std::string_view folder = slash == std::string_view::npos ? "." : may.text.substr(0, slash);
            const std::size_t from = slash == std::string_view::npos ? 0 : slash + 1;
            for (const std::string& name : options_.list(std::string(folder))) {
                if (!shell_pattern_matches(name, may.text.substr(from))) continue;
                Value path = may;
                path.text = file_.tree.keep(std::string(may.text.substr(0, from)) + name);
                use(path);
            }
        }
    }

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
        if (read_guest(in, std::move(text), std::move(pieces), kinds, options_) == nullptr || &in == &file_) return;
        file_.guests.push_back(std::move(in.guests.back()));
        in.guests.pop_back();
    }

    // Variables in their places, as far as they are written; what those name stays.
    std::string spelled_out(std::string_view text) const {
        std::string out(text);
        for (const Assignment& each : file_.script.assignments) {
            if (each.array || each.value.text.empty()) continue;
            for (const std::string& form : {"${" + std::string(each.name) + "}", "$" + std::string(each.name)})
                if (out.size() < 4096) out = replace_all(out, form, each.value.text);
        }
        return out;
    }
    // az rest --method put --url .../providers/Microsoft.X/kinds/name --body '{...}': a resource as ARM has it.
    void rest(const Command& command) {
        auto runs = ShellValues::of(file_).words_in_runs(command, options_);
        const std::vector<Value>& words = runs.empty() ? command.words : runs[0];
        std::string_view url;
        const Value* body = nullptr;
        bool puts = false;
        for (std::size_t k = 2; k + 1 < words.size(); ++k) {
            const std::string_view name = words[k].text;
            if (name == "--url" || name == "--uri" || name == "-u") url = words[k + 1].text;
            if (name == "--body" || name == "-b") body = &words[k + 1];
            if (name == "--method" || name == "-m")
                puts = words[k + 1].is_nocase("put") || words[k + 1].is_nocase("patch");
        }
        const std::string spelled = spelled_out(url);
        url = spelled;
        const std::size_t providers = url.rfind("/providers/");
        if (!puts || body == nullptr || providers == std::string_view::npos) return;
        const std::vector<std::string_view> steps =
            split(url.substr(providers + 11, url.find('?') - std::min(url.size(), providers + 11)), '/');
        if (steps.size() < 3 || steps[0].find('$') != std::string_view::npos) return;
        std::string type(steps[0]), name;
        for (std::size_t k = 1; k < steps.size(); ++k)
            (k % 2 == 1 ? type : name) += (k % 2 == 0 && k == 2 ? "" : "/") + std::string(steps[k]);
        for (char& c : name)
            if (std::string_view("\"\\[]{}$").find(c) != std::string_view::npos) c = '_';
        const auto whole = [&](File& in, std::string_view text, Span host) {
            const std::size_t open = text.find('{'), close = text.rfind('}');
            if (open == std::string_view::npos || close == std::string_view::npos || close <= open) return;
            const std::string head =
                "{\"$schema\": \"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#\", "
                "\"resources\": [{\"type\": \"" +
                type + "\", \"name\": \"" + name + "\", \"apiVersion\": \"2024-05-01\", ";
            const std::string_view inside = text.substr(open + 1, close - open);
            const auto first = static_cast<std::uint32_t>(head.size()),
                       length = static_cast<std::uint32_t>(inside.size());
            const Span at{host.begin + static_cast<std::uint32_t>(open) + 1,
                          host.begin + static_cast<std::uint32_t>(close) + 1};
            guest(in, head + std::string(inside) + "]}",
                  {{0, first, {at.begin, at.begin}, Piece::Kind::changed},
                   {first, length, at, Piece::Kind::verbatim},
                   {first + length, 2, {at.end, at.end}, Piece::Kind::changed}},
                  {Kind::arm});
        };
        if (body->text.starts_with('@')) {
            if (File* read = named(*body, {Kind::arm}))
                whole(*read, read->source().text(), {0, static_cast<std::uint32_t>(read->source().text().size())});
            return;
        }
        const Span raw = ShellValues::raw(*body, file_.source());
        const std::string_view written = file_.source().text(raw);
        if (written.starts_with('\'') && written.ends_with('\'')) whole(file_, written, raw);
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
