#include "deploy/kubernetes/kubeconfig.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "io/files.h"
#include "io/worker.h"

namespace stoker::kubernetes {
namespace {

using ::testing::HasSubstr;

const char* kTwo = R"(
apiVersion: v1
kind: Config
current-context: far
clusters:
- {name: one, cluster: {server: "https://one:6443"}}
- {name: two, cluster: {server: "https://two:6443", certificate-authority-data: Q0E=}}
users:
- {name: me, user: {token: secret}}
- name: aks
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./login, args: [get-token], env: [{name: A, value: b}], installHint: get it}
contexts:
- {name: near, context: {cluster: one, user: me}}
- {name: far, context: {cluster: two, user: aks, namespace: team}}
)";

// The wrong cluster is the costliest mistake: a context is what it names, and the current one when nothing is named.
TEST(Kubeconfig, AContextNamesClusterUserAndNamespace) {
    const auto far = read_kubeconfig(kTwo, "/home/me/.kube/config", "");
    ASSERT_TRUE(far.ok()) << far.error().text();
    EXPECT_EQ(far->server, "https://two:6443");
    EXPECT_EQ(far->ca_pem, "CA");
    EXPECT_EQ(far->space, "team");
    ASSERT_TRUE(far->exec.has_value());
    EXPECT_EQ(far->exec->command, "/home/me/.kube/./login");
    const auto near = read_kubeconfig(kTwo, "/home/me/.kube/config", "near");
    ASSERT_TRUE(near.ok());
    EXPECT_EQ(near->token, "secret");
    EXPECT_EQ(near->server, "https://one:6443");
    const auto none = read_kubeconfig(kTwo, "config", "nera");
    ASSERT_FALSE(none.ok());
    EXPECT_THAT(none.error().text(), HasSubstr("there are: near, far"));
}

// What would make a connection less safe than the file's owner thinks, or cannot be done, is said and not passed over.
TEST(Kubeconfig, WhatIsNotDoneIsRefusedWithItsPlace) {
    for (const char* cluster : {"insecure-skip-tls-verify: true", "proxy-url: http://p", "tls-server-name: x"}) {
        const std::string text =
            std::string("current-context: c\nclusters:\n- {name: c, cluster: {server: https://c, ") + cluster +
            "}}\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n";
        const auto refused = read_kubeconfig(text, "config", "");
        ASSERT_FALSE(refused.ok()) << cluster;
        EXPECT_EQ(refused.error().kind(), ErrorKind::unsupported);
        EXPECT_THAT(refused.error().text(), HasSubstr("config:3:"));
    }
    EXPECT_FALSE(read_kubeconfig("[]", "config", "").ok());
    EXPECT_FALSE(read_kubeconfig("", "config", "").ok());
}

// A login that fails is told in the plug-in's own words, since only those say what to do.
TEST(Kubeconfig, APlugInIsRunAndItsWordsAreTold) {
    const auto scratch = ScratchFolder::make("kubeconfig");
    const std::string path = scratch->path() + "/login";
    Kubeconfig config{
        .exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1", .command = path, .hint = "install it"}};
    EXPECT_THAT(log_in(config, after(5)).error().text(), HasSubstr("install it"));
    std::ofstream(path)
        << "#!/bin/sh\ncase $KUBERNETES_EXEC_INFO in *client.authentication.k8s.io/v1*) ;; *) exit 9;; esac\n"
           "echo "
           "'{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t-1\",\"expirationTimestamp\":\"2030-01-01T00:00:"
           "00Z\"}}'\n";
    ::chmod(path.c_str(), 0700);
    const auto good = log_in(config, after(5));
    ASSERT_TRUE(good.ok()) << good.error().text();
    EXPECT_EQ(good->token, "t-1");
    EXPECT_GT(good->expires_us, 0);
    std::ofstream(path) << "#!/bin/sh\necho 'run az login' >&2; exit 1\n";
    EXPECT_THAT(log_in(config, after(5)).error().text(), HasSubstr("run az login"));
    EXPECT_EQ(read_exec_credential("{}").error().kind(), ErrorKind::denied);
    EXPECT_FALSE(read_exec_credential("no json").ok());
}

}  // namespace
}  // namespace stoker::kubernetes
