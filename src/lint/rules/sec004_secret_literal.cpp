#include <algorithm>
#include <array>
#include <set>

#include "lint/hcl/expression.h"
#include "lint/read.h"
#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

// The name in small letters without separators; empty when it is too long to be one.
std::string_view folded_name(std::string_view name, std::array<char, 64>& buffer) {
    std::size_t size = 0;
    for (const char c : name) {
        if (c == '_' || c == '-' || c == '.') continue;
        if (size == buffer.size()) return {};
        buffer[size++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return {buffer.data(), size};
}

bool names_a_secret(std::string_view name) {
    if (name.size() < 5) return false;
    const char last = name.back() | 0x20;
    if (last != 'n' && last != 'y' && last != 'd' && last != 't') return false;  // token, key, password, secret
    std::array<char, 64> buffer{};
    const std::string_view folded = folded_name(name, buffer);
    for (const std::string_view not_one :
         {"eostoken",      "bostoken",       "padtoken",   "unktoken",     "septoken",
          "masktoken",     "clstoken",       "imagetoken", "starttoken",   "endtoken",
          "stoptoken",     "nexttoken",      "pertoken",   "specialtoken", "serviceaccounttoken",
          "mounttoken",    "audiotoken",     "videotoken", "newtoken",     "usetoken",
          "returntoken",   "firsttoken",     "lasttoken",  "everytoken",   "useauthtoken",
          "tokenpertoken", "publickey",      "sshkey",     "primarykey",   "foreignkey",
          "partitionkey",  "disablepassword"})
        if (folded.ends_with(not_one)) return false;
    for (const std::string_view end :
         {"token", "apikey", "secretkey", "password", "passwd", "accesskey", "privatekey", "accountkey", "clientsecret",
          "authkey", "storagekey", "subscriptionkey", "encryptionkey", "masterkey", "tokensecret", "appsecret",
          "jwtsecret", "sharedsecret"})
        if (folded.ends_with(end)) return folded != "token" || name.size() == 5;
    // In capitals, as environment variables are: X_SECRET.
    return name.ends_with("_SECRET") || name == "SECRET";
}

bool sec004_placeholder(std::string_view value) {
    if (value.empty()) return true;
    // HF_TOKEN, of secretKey: HF_TOKEN: under which name the secret has it. Words in capitals alone are a name, too.
    if (value.find('_') != std::string_view::npos &&
        value.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos &&
        (names_a_secret(value) || value.find_first_of("0123456789") == std::string_view::npos))
        return true;
    for (const char c : value)
        if (c == '<' || c == '>' || c == '$' || c == '{' || c == '}' || c == '%' || c == ' ' || c == '\t' ||
            c == '\n' || c == '[' || c == ']' || c == '(' || c == '*')
            return true;
    for (const std::string_view part : {"xxx", "...", "your", "replace", "placeholder", "changeit", "redacted",
                                        "insert", "todo", "example", "fixme", "secretref", "keyvault"})
        if (contains_nocase(value, part)) return true;
    for (const std::string_view whole :
         {"true",     "false",    "null",           "none",    "no",         "yes",      "auto",     "read",
          "write",    "empty",    "dummy",          "fake",    "not-needed", "not-used", "unused",   "na",
          "n/a",      "string",   "password-stdin", "default", "env",        "file",     "disabled", "enabled",
          "optional", "required", "test",           "unset",   "-"})
        if (equals_ignore_case(value, whole)) return true;
    if (value[0] == '/' || value.starts_with("./") || value.starts_with("~/") || value.starts_with("@") ||
        value.find("://") != std::string_view::npos)
        return true;
    return false;
}

bool secret_run(std::string_view text, std::size_t at, std::size_t least) {
    std::size_t n = 0;
    bool digit = false, same = true;
    while (at + n < text.size() &&
           ((text[at + n] >= '0' && text[at + n] <= '9') || (text[at + n] >= 'a' && text[at + n] <= 'z') ||
            (text[at + n] >= 'A' && text[at + n] <= 'Z') || text[at + n] == '_' || text[at + n] == '-')) {
        digit |= text[at + n] >= '0' && text[at + n] <= '9';
        same &= text[at + n] == text[at];
        ++n;
    }
    return n >= least && !same && (digit || least >= 30);
}

// Tokens that say by their first characters what they are. Where it begins, or npos.
std::size_t known_token(std::string_view text) {
    struct Prefix {
        std::string_view start;
        std::size_t least;
    };
    if (text.size() < 16) return std::string_view::npos;
    for (const Prefix& prefix :
         {Prefix{"hf_", 30}, Prefix{"ghp_", 36}, Prefix{"gho_", 36}, Prefix{"ghs_", 36}, Prefix{"github_pat_", 40},
          Prefix{"glpat-", 20}, Prefix{"nvapi-", 40}, Prefix{"xoxb-", 24}, Prefix{"sk-ant-", 40},
          Prefix{"sk-proj-", 40}, Prefix{"AKIA", 16}}) {
        const std::size_t at = text.find(prefix.start);
        if (at == std::string_view::npos) continue;
        const bool begins =
            at == 0 || !((text[at - 1] >= 'a' && text[at - 1] <= 'z') || (text[at - 1] >= 'A' && text[at - 1] <= 'Z') ||
                         (text[at - 1] >= '0' && text[at - 1] <= '9') || text[at - 1] == '_');
        const std::string_view rest = text.substr(at, 80);
        if (begins && secret_run(text, at + prefix.start.size(), prefix.least) && !contains_nocase(rest, "xxxx") &&
            !contains_nocase(rest, "example") && !contains_nocase(rest, "your"))
            return at;
    }
    // A shared access signature: a link that carries its own permission.
    if (const std::size_t sig = text.find("sig="); sig != std::string_view::npos && sig > 0 &&
                                                   (text[sig - 1] == '&' || text[sig - 1] == '?') &&
                                                   text.find("se=") != std::string_view::npos) {
        const std::string_view rest = text.substr(sig + 4);
        if (rest.size() >= 20 && rest[0] != '<' && rest[0] != '$' && rest[0] != '{' &&
            !contains_nocase(rest.substr(0, 20), "xxx"))
            return sig;
    }
    if (const std::size_t key = text.find("AccountKey=");
        key != std::string_view::npos && secret_run(text, key + 11, 40))
        return key;
    return std::string_view::npos;
}

// ${KEY:-text}: a default, whichever language it stands in.
bool is_default_text(const Value& value) {
    if (!value.source) return false;
    const std::string_view text = value.source->text();
    if (value.source->text(value.span).find("${") != std::string_view::npos) return true;
    return value.span.begin >= 2 &&
           (text.substr(value.span.begin - 2, 2) == ":-" || text.substr(value.span.begin - 2, 2) == ":=");
}

// What opens a hub of models is about GPU work wherever it stands: a list of variables says nothing else of it.
bool of_a_model_hub(std::string_view token) {
    return token.starts_with("hf_") || token.starts_with("nvapi-");
}

struct SecretFinder {
    const File& file;
    Report& report;
    int gpu = -1;
    std::size_t told = 0;
    std::set<std::pair<const Source*, std::uint32_t>> places;

    bool gpu_work() {
        if (gpu < 0) {
            gpu = work_of(file, report.knowledge()).gpu ? 1 : 0;
            for (const auto& made : file.calls)  // what a kustomization makes
                if (made->call->overlay && work_of(*made, report.knowledge()).gpu) gpu = 1;
            // Values that say so: see classify.
            if (file.kinds.has(Kind::helm) && !file.tree.roots.empty() && file_name_of(file).starts_with("values"))
                gpu = 1;
        }
        return gpu == 1;
    }
    void tell(const Value& value, std::string_view name, const std::string& address, std::string_view shown) {
        if (told > 200 || !value.source || (!of_a_model_hub(shown) && !gpu_work())) return;
        if (!places.emplace(value.source, value.span.begin).second) return;  // a password that is a token, too
        std::string message =
            name.empty() ? std::string("a secret stands in the text") : std::string(name) + " is a literal";
        message += " (" + std::string(shown.substr(0, std::min<std::size_t>(3, shown.size() / 2))) + "..., " +
                   std::to_string(shown.size()) + " characters): everyone who can read the file has it";
        Finding* finding = report.add(value, address, std::move(message));
        if (!finding) return;
        ++told;
        finding->value = std::string(name);  // never the secret itself
        finding->advice = "take it from a secret store or the environment, and replace the one that was written here";
    }
    void named(std::string_view name, const Value& value, const std::string& address) {
        if (!value.known() || value.assumed || is_default_text(value) || value.text.size() < 3 ||
            value.text.size() > 4096)
            return;
        const std::size_t token = known_token(value.text);
        if (token != std::string_view::npos) {
            tell(value, name, address, value.text.substr(token));
            return;
        }
        if (!names_a_secret(name) || sec004_placeholder(value.text) || equals_ignore_case(name, value.text)) return;
        if (value.text.find_first_not_of("0123456789") == std::string_view::npos && value.text.size() < 4) return;
        // HF_TOKEN: hf-token names a secret rather than being one.
        std::array<char, 64> a{}, b{};
        if (folded_name(name, a) == folded_name(value.text, b)) return;
        if (contains_nocase(value.text, "secret") && value.text.find('-') != std::string_view::npos &&
            value.text.find_first_of("0123456789") == std::string_view::npos)
            return;
        tell(value, name, address, value.text);
    }

    void containers(const File& part) {
        const auto container = [&](const Container& each) {
            for (const EnvVar& variable : each.environment)
                named(variable.name, variable.value, each.address + "#env/" + std::string(variable.name));
        };
        for (const Workload& workload : part.workloads)
            for (const Container& each : workload.containers) container(each);
        for (const Container& each : part.services) container(each);
    }
    // Passwords among the words of a command: docker login -p X, --docker-password=X, wandb login X.
    void options(const Command& command, const std::string& address) {
        const std::vector<Value>& words = command.words;
        if (words.size() < 2 || !words[0].known()) return;
        const auto has = [&](std::string_view word) {
            return std::any_of(words.begin(), words.end(), [&](const Value& each) { return each.is(word); });
        };
        const std::string_view program = words[0].text.substr(words[0].text.rfind('/') + 1);
        const bool login = has("login");
        const auto give = [&](std::string_view name, const Value& value, std::size_t k) {
            if (!value.known() || value.use_source || value.assumed || value.text.size() < 8 ||
                sec004_placeholder(value.text) || value.text.starts_with('-') ||
                value.text.find('@') != std::string_view::npos)
                return;
            tell(value, name, address + "#option/" + std::to_string(words[k].span.begin), value.text);
        };
        for (std::size_t k = 1; k < words.size(); ++k) {
            const std::string_view word = words[k].text;
            if (word.starts_with("--")) {
                const std::size_t equals = word.find('=');
                const std::string_view name = word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
                const bool password = name.ends_with("password") || name.ends_with("passwd") || name == "client-secret";
                if (!password || name == "admin-password" || name.starts_with("disable") || name.starts_with("no-"))
                    continue;
                if (equals != std::string_view::npos) {
                    Value value = words[k];
                    value.text = value.text.substr(equals + 1);
                    value.span.begin =
                        std::min(value.span.begin + static_cast<std::uint32_t>(equals + 1), value.span.end);
                    give(name, value, k);
                } else if (k + 1 < words.size()) {
                    give(name, words[k + 1], k);
                }
            } else if (word == "-p" && k + 1 < words.size() && (login || program == "sshpass")) {
                give("password", words[k + 1], k);
            } else if (word.starts_with("-p") && word.size() > 9 && program == "sshpass") {
                Value value = words[k];
                value.text.remove_prefix(2);
                give("password", value, k);
            } else if (program == "wandb" && login && k >= 2 && !word.starts_with("-") && word.size() == 40 &&
                       word.find_first_not_of("0123456789abcdef") == std::string_view::npos) {
                give("API key", words[k], k);
            }
        }
    }
    void script(const File& part) {
        const std::string address = script_address(part);
        for (const Assignment& assignment : part.script.assignments)
            if (!assignment.array && assignment.value.source == &part.source() && !assignment.value.use_source)
                named(assignment.name, assignment.value, address + "#env/" + std::string(assignment.name));
        // args=(-e "HF_TOKEN=hf_..."): words of a command that stands elsewhere.
        for (const Assignment& assignment : part.script.assignments)
            for (const Value& item : assignment.items) {
                const std::size_t token = item.known() && !item.use_source ? known_token(item.text) : item.text.npos;
                if (token == std::string_view::npos || item.source != &part.source()) continue;
                tell(item, item.text.substr(0, item.text.find('=') < token ? item.text.find('=') : 0),
                     address + "#item/" + std::to_string(item.span.begin), item.text.substr(token));
            }
        for (const EnvVar& variable : part.environment)
            if (!variable.value.use_source)
                named(variable.name, variable.value, address + "#env/" + std::string(variable.name));
        for (const Command& command : part.script.commands) options(command, address);
        for (const Command& command : part.script.commands)
            for (std::size_t k = 0; k < command.words.size(); ++k) {
                const Value& word = command.words[k];
                if (!word.known() || word.use_source) continue;
                if (word.text.size() >= 16 && known_token(word.text) != std::string_view::npos)
                    tell(word, {}, address + "#word/" + std::to_string(word.span.begin),
                         word.text.substr(known_token(word.text)));
            }
        for (const Resource& resource : part.resources)
            named("admin-password", resource.get(Attr::admin_password), resource.address + "#password");
    }
    void tree(const File& part, const Node& node, int depth) {
        if (depth > static_cast<int>(kMostDepth) || told > 200) return;
        // name: X, value: Y of an environment list is told with its container.
        for (const Node& child : children(&node)) {
            if (!child.is_scalar()) {
                tree(part, child, depth + 1);
                continue;
            }
            if (child.shape != Shape::string && child.shape != Shape::number) continue;
            if (child.key == ".dockerconfigjson" || child.key == ".dockercfg") {
                // Base64 of a JSON with "auths", or that JSON itself under stringData.
                const std::string decoded =
                    child.text.starts_with('{') ? std::string(child.text) : decode_base64(child.text);
                if (child.known && decoded.find("\"auth") != std::string::npos &&
                    decoded.find("${") == std::string::npos && !sec004_placeholder(child.text.substr(0, 20)))
                    tell(Value::of(&child), child.key, "key:" + std::string(child.key) + "@" + std::string(node.key),
                         child.text);
                continue;
            }
            const bool secret = !child.key.empty() && names_a_secret(child.key);
            if (!secret && child.text.size() < 16) continue;
            if (!child.known || child.merged) continue;
            const std::size_t token = known_token(child.text);
            if (!secret && token == std::string_view::npos) continue;
            if (!secret && child.text.find('\n') != std::string_view::npos) continue;  // a script: read as a guest
            if (!secret && child.key == "value" && node.find("name")) continue;
            const Value value = Value::of(&child);
            if (value.use_source) continue;  // an output of a variable: told where it is written
            named(child.key, value, "key:" + std::string(child.key) + "@" + std::string(node.key));
        }
    }
};

}  // namespace

void check_sec004(const File& file, Report& report) {
    SecretFinder finder{file, report};
    for_each_part(file, [&](const File& part) {
        finder.containers(part);
        if (!part.script.commands.empty() || !part.script.assignments.empty()) finder.script(part);
        const bool containers = part.kinds.any({Kind::compose, Kind::azureml}) && !part.services.empty();
        if (part.kinds.has(Kind::helm) && part.tree.roots.empty()) return;
        for (const Node* root : part.tree.roots) {
            if (!containers) {
                finder.tree(part, *root, 0);
                continue;
            }
            // The environment of a compose service is told with its container.
            for (const Node& child : children(root))
                if (child.key != "services" && child.key != "environment_variables") finder.tree(part, child, 1);
        }
    });
}

}  // namespace stoker::lint
