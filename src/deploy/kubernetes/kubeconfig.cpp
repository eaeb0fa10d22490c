#include "deploy/kubernetes/kubeconfig.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/api_time.h"
#include "base/document.h"
#include "base/json.h"
#include "base/text.h"
#include "deploy/kubernetes/objects.h"
#include "deploy/local/rank_environment.h"
#include "io/files.h"
#include "io/run_program.h"
#include "io/store/request_sign.h"

namespace stoker::kubernetes {
namespace {

constexpr std::size_t kMostBytes = 4 << 20;
constexpr const char* kAccount = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr const char* kPluginVersions[] = {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"};

// The entry of a list of {name, KIND: {...}}.
Result<const Node*> named(const Node& root, const char* list, const char* kind, const std::string& name) {
    std::vector<std::string> names;
    for (const auto& item : items_at(root, list)) {
        names.emplace_back(text_at(*item, "name"));
        const Node* found = item->find(kind);
        if (names.back() == name && found != nullptr && found->is_mapping()) return found;
    }
    return Error(ErrorKind::invalid, fmt::format("{} has no entry {}", list, printable(name, 80)), root.pos,
                 names.empty() ? "" : "there are: " + join(names, ", "));
}

// DATA in base64 beside a key that names a file.
Result<std::string> bytes_of(const Node& at, const std::string& key, const std::string& folder) {
    if (const Node* data = at.find(key + "-data"); data != nullptr && !data->text.empty()) {
        auto decoded = decode_base64(data->text);
        if (!decoded) return Error(ErrorKind::invalid, key + "-data is not base64", data->pos);
        return std::move(*decoded);
    }
    const std::string path(text_at(at, key));
    if (path.empty()) return std::string();
    return read_file(path.front() == '/' ? path : folder + "/" + path, kMostBytes).while_doing("reading " + key);
}

Result<ExecPlugin> plugin_of(const Node& at, const std::string& folder) {
    ExecPlugin plugin{.api_version = std::string(text_at(at, "apiVersion")),
                      .command = std::string(text_at(at, "command")),
                      .hint = std::string(text_at(at, "installHint"))};
    if (plugin.command.empty()) return Error(ErrorKind::invalid, "exec names no command", at.pos);
    if (plugin.api_version != kPluginVersions[0] && plugin.api_version != kPluginVersions[1])
        return Error(ErrorKind::unsupported,
                     "exec plug-ins of " + printable(plugin.api_version, 80) + " are not spoken here", at.pos,
                     fmt::format("{} and {} are", kPluginVersions[0], kPluginVersions[1]));
    // As kubectl: a name with a slash is relative to the file.
    if (plugin.command.front() != '/' && plugin.command.find('/') != std::string::npos)
        plugin.command = folder + "/" + plugin.command;
    for (const auto& each : items_at(at, "args")) plugin.arguments.push_back(each->text);
    for (const auto& each : items_at(at, "env"))
        plugin.environment.emplace_back(text_at(*each, "name"), text_at(*each, "value"));
    return plugin;
}

Status refuse(const Node& at, std::initializer_list<const char*> keys, const char* remedy) {
    for (const char* key : keys)
        if (const Node* found = at.find(key);
            found != nullptr && found->kind != NodeKind::null && found->text != "false")
            return Error(ErrorKind::unsupported, fmt::format("{} is not done here", key), found->pos, remedy);
    return done();
}

Result<Kubeconfig> own_account() {
    const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
    const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
    if (host == nullptr || port == nullptr)
        return Error(ErrorKind::not_found, "there is no kubeconfig, and this is no pod of a cluster", {},
                     "name the file as engine.config in server.yaml, or in KUBECONFIG");
    const std::string address =
        std::string_view(host).find(':') != std::string_view::npos ? fmt::format("[{}]", host) : host;
    Kubeconfig config{.context = "the account of this pod", .server = fmt::format("https://{}:{}", address, port)};
    config.token_file = std::string(kAccount) + "/token";
    TRY(config.ca_pem, read_file(std::string(kAccount) + "/ca.crt", kMostBytes));
    if (auto space = read_file(std::string(kAccount) + "/namespace", 1000)) config.space = trim(*space);
    return config;
}

}  // namespace

Result<Kubeconfig> read_kubeconfig(std::string_view text, const std::string& path, const std::string& context) {
    TRY(const Document document, Document::parse_yaml(text, path));
    const Node& root = document.root();
    const std::string folder = std::filesystem::path(path).parent_path().string();
    Kubeconfig config{.context = context.empty() ? std::string(text_at(root, "current-context")) : context};
    if (config.context.empty())
        return Error(ErrorKind::invalid, "it names no current context", root.pos, "name one as engine.context");
    TRY(const Node* chosen, named(root, "contexts", "context", config.context));
    config.space = text_at(*chosen, "namespace");
    TRY(const Node* cluster, named(root, "clusters", "cluster", std::string(text_at(*chosen, "cluster"))));
    TRY_VOID(refuse(*cluster, {"insecure-skip-tls-verify"}, "name the authority in certificate-authority-data"));
    TRY_VOID(refuse(*cluster, {"proxy-url", "tls-server-name"}, "name a server that answers under its own name"));
    config.server = text_at(*cluster, "server");
    TRY(config.ca_pem, bytes_of(*cluster, "certificate-authority", folder));
    TRY(const Node* user, named(root, "users", "user", std::string(text_at(*chosen, "user"))));
    TRY_VOID(refuse(*user, {"username", "auth-provider"}, "a token, a client certificate or an exec plug-in does it"));
    TRY_VOID(refuse(*user, {"as", "as-groups", "as-uid"}, "give the user the rights themselves"));
    TRY(config.certificate.certificate_pem, bytes_of(*user, "client-certificate", folder));
    TRY(config.certificate.key_pem, bytes_of(*user, "client-key", folder));
    config.token = text_at(*user, "token");
    if (const std::string file(text_at(*user, "tokenFile")); !file.empty())
        config.token_file = file.front() == '/' ? file : folder + "/" + file;
    if (const Node* exec = user->find("exec"); exec != nullptr && exec->is_mapping()) {
        TRY(config.exec, plugin_of(*exec, folder));
    }
    return config;
}

Result<Kubeconfig> find_kubeconfig(const std::string& path, const std::string& context) {
    std::string file = path;
    const char* named_file = std::getenv("KUBECONFIG");
    const char* home = std::getenv("HOME");
    if (file.empty() && named_file != nullptr) file = split(named_file, ':').front();
    if (file.empty() && home != nullptr && std::filesystem::exists(std::string(home) + "/.kube/config"))
        file = std::string(home) + "/.kube/config";
    if (file.empty()) return own_account();
    TRY(const std::string text,
        read_file(file, kMostBytes)
            .while_doing("reading the kubeconfig (engine.config in server.yaml, or KUBECONFIG)"));
    return read_kubeconfig(text, std::filesystem::absolute(file).string(), context).while_doing("reading " + file);
}

Result<Login> read_exec_credential(std::string_view text) {
    TRY(const Document document, Document::parse_json(text, "the answer of the plug-in"));
    const Node* status = document.root().find("status");
    if (text_at(document.root(), "kind") != "ExecCredential" || status == nullptr)
        return Error(ErrorKind::denied, "the answer of the plug-in is no ExecCredential with a status");
    Login login{.token = std::string(text_at(*status, "token")),
                .certificate = {.certificate_pem = std::string(text_at(*status, "clientCertificateData")),
                                .key_pem = std::string(text_at(*status, "clientKeyData"))}};
    if (login.token.empty() && login.certificate.certificate_pem.empty())
        return Error(ErrorKind::denied, "the plug-in gave neither a token nor a certificate");
    login.expires_us = parse_rfc3339(text_at(*status, "expirationTimestamp")).value_or(0);
    return login;
}

Result<Login> log_in(const Kubeconfig& config, Deadline deadline) {
    Login login{.token = config.token, .certificate = config.certificate};
    if (!config.token_file.empty()) {
        TRY(const std::string text, read_file(config.token_file, 1 << 20));
        login.token = trim(text);
        return login;
    }
    if (!config.exec) return login;
    const ExecPlugin& plugin = *config.exec;
    auto environment = own_environment();
    for (const auto& [key, value] : plugin.environment) environment[key] = value;
    environment["KUBERNETES_EXEC_INFO"] = Json::object()
                                              .set("apiVersion", plugin.api_version)
                                              .set("kind", "ExecCredential")
                                              .set("spec", Json::object().set("interactive", false))
                                              .dump(0);
    ProgramCall call{.arguments = {plugin.command}, .most_bytes = 1 << 20};
    call.arguments.insert(call.arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
    for (const auto& [key, value] : environment) call.environment.push_back(key + "=" + value);
    auto ran = run_program(call, deadline);
    if (!ran && ran.error().kind() == ErrorKind::not_found)
        return Error(ErrorKind::denied, "there is no program " + printable(plugin.command) + ", which says who we are",
                     {}, printable(plugin.hint, 500));
    if (!ran) return std::move(ran).while_doing("running " + printable(plugin.command)).error();
    if (ran->exit_code != 0)
        return Error(ErrorKind::denied, fmt::format("{} ended with {}: {}", printable(plugin.command), ran->exit_code,
                                                    printable(trim(ran->complaint), 500)));
    return read_exec_credential(ran->output);
}

}  // namespace stoker::kubernetes
