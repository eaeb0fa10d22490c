// Where a cluster is and who we are there: a kubeconfig file, or the account of the pod that this program runs in.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "deploy/questions.h"
#include "io/http/tls.h"

namespace stoker::kubernetes {

// A program that says who we are (client.authentication.k8s.io): kubelogin, aws eks get-token.
struct ExecPlugin {
    std::string api_version, command, hint;
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> environment;
};

struct Kubeconfig {
    std::string context, server, ca_pem, space;  // space: namespace
    Certificate certificate;
    std::string token, token_file;  // the file is read again and again, since tokens of pods are replaced
    std::optional<ExecPlugin> exec;
};

// path empty: KUBECONFIG, then ~/.kube/config, then the pod's own account. context empty: the current one.
// not_found: no file; invalid: with the place; unsupported: what is not done here, and what would be.
Result<Kubeconfig> find_kubeconfig(const std::string& path, const std::string& context);
Result<Kubeconfig> read_kubeconfig(std::string_view text, const std::string& path, const std::string& context);

// What is shown to the server.
struct Login {
    std::string token;
    Certificate certificate;
    std::int64_t expires_us = 0;  // 0: it does not say
};
// Runs the plug-in, or reads the token anew. denied: it gives none, with its words.
Result<Login> log_in(const Kubeconfig& config, Deadline deadline);
// The answer of a plug-in.
Result<Login> read_exec_credential(std::string_view text);

}  // namespace stoker::kubernetes
