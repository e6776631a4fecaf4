package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/hapticsdk/haptic/reconcile/command"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// config is what the flags say.
type config struct {
	*command.Flags

	settings, manifests, kubeconfig, local, namespace, httpAddr, socket string
	test, leaderElect                                                   bool
}

func parseFlags(args []string, log *command.Log) (*config, error) {
	c := &config{Flags: command.NewFlags("settings", log)}
	fs := c.Flags
	fs.StringVar(&c.settings, "settings", "", "`FILE` of settings, or configmap:NAMESPACE/NAME, whose key is settings.yaml; required")
	fs.StringVar(&c.manifests, "manifests", "", "watch a `folder` of manifests in place of a cluster")
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster; empty: as kubectl does")
	fs.StringVar(&c.local, "local", "", "`folder` for the state of a HAProxy on this host; empty: those behind Dataplane APIs, as dataplane in the settings says")
	fs.StringVar(&c.namespace, "namespace", "", "of this controller: where the Lease is, and the pods and Secrets of settings that name no namespace; empty: by $POD_NAMESPACE or the service account, or default with -local and -test")
	fs.BoolVar(&c.leaderElect, "leader-elect", false, "deploy only as the leader, by the Lease haptic-settings")
	fs.BoolVar(&c.test, "test", false, "run the cases in the settings, and end")
	fs.StringVar(&c.httpAddr, "http-addr", ":8080", "address for HTTP: httpAddress in templates")
	fs.StringVar(&c.socket, "endpoint-socket", "/var/run/haproxy/admin.sock", "runtime socket without -local: runtimeSocket in templates")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	fs.CheckFile("manifests", command.IsFolder(c.manifests) || c.local != "" && !command.IsFile(c.manifests), "a folder that exists")
	fs.Check("local", !command.IsFile(c.local), "a folder, and this is a file")
	fs.CheckFile("kubeconfig", command.IsFile(c.kubeconfig), "a file that exists")
	fs.CheckNamespaces("namespace")
	fs.CheckBinds(c.local != "", "http-addr")
	fs.CheckPaths("endpoint-socket")
	if err := fs.Err(); err != nil {
		return nil, err
	}
	switch {
	case c.settings == "" || fs.NArg() > 0:
		return nil, errors.New("-settings is required, and nothing else than flags; -h lists them")
	case c.leaderElect && c.manifests != "":
		return nil, errors.New("-leader-elect needs a cluster, not -manifests")
	case c.namespace != "":
		return c, nil
	}
	var err error
	if c.namespace, err = discover.OwnNamespace(os.Getenv); err == nil {
		return c, nil
	}
	if c.local == "" && !c.test { // the pods of that namespace get the password
		return nil, fmt.Errorf("-namespace is required without -local: %w", err)
	}
	c.namespace = "default"
	return c, nil
}
