// All of a Kubernetes control plane in one program: `kube etcd ...`, `kube kube-apiserver ...`. One link instead of six,
// and the processes of a cluster share their pages. Pinned by go.mod; built by build.sh; run by tests/e2e/kube.py.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"

	// Registered by their import: the apiserver's own client metrics, and its version.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	parts := map[string]func() int{
		"etcd": func() int {
			etcdmain.Main(os.Args)
			return 0
		},
		"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() int { return cli.Run(manager.NewControllerManagerCommand()) },
		"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
		"kubectl":                 func() int { return cli.Run(kubectl.NewDefaultKubectlCommand()) },
		"kwok":                    nodes,
	}
	if len(os.Args) > 1 {
		if run, known := parts[os.Args[1]]; known {
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	var names []string
	for name := range parts {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintln(os.Stderr, "usage: kube", strings.Join(names, "|"), "[options of that program]")
	os.Exit(2)
}

// The fake kubelets of all nodes. kwok reads its files of --config before its command exists.
func nodes() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	shared := pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	shared.ParseErrorsAllowlist.UnknownFlags = true
	ctx, _ = kwoklog.InitFlags(ctx, shared)
	ctx, err := kwokconfig.InitFlags(ctx, shared)
	if err == nil {
		command := kwok.NewCommand(ctx)
		// component-base has a --version for the whole program, of a type that cobra's own would not take.
		command.Version = ""
		command.PersistentFlags().AddFlagSet(shared)
		err = command.ExecuteContext(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		return 1
	}
	return 0
}
