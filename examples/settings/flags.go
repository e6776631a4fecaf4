package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// config is what the flags and the environment say.
type config struct {
	*kit.Flags

	settings, manifests, kubeconfig, local, namespace, secret, httpAddr, socket string
	test, once, dryRun, leaderElect                                             bool
}

// configMap begins a value of -settings that names a ConfigMap.
const configMap = "configmap:"

func parseFlags(args []string, log *kit.Log) (*config, error) {
	c := &config{Flags: kit.NewFlags("settings", log)}
	fs := c.Flags
	fs.StringVar(&c.settings, "settings", "", "`FILE` of settings, or configmap:[NAMESPACE/]NAME, whose key is settings.yaml; empty: the ConfigMap $CONFIGMAP_NAME")
	fs.StringVar(&c.manifests, "manifests", "", "watch a `folder` of manifests in place of a cluster")
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster; empty: as kubectl does")
	fs.StringVar(&c.local, "local", "", "`folder` for the state of a HAProxy on this host; empty: those behind Dataplane APIs, as dataplane in the settings says")
	fs.StringVar(&c.namespace, "pod-namespace", "", "`namespace` whose HAProxy pods count where dataplane.podSelector says none, that of this controller: there is the Lease, and what is named without a namespace; empty: by $POD_NAMESPACE or the service account, or default with -local and -test")
	fs.StringVar(&c.secret, "credentials", discover.DefaultSecret, "Secret `[namespace/]name` with dataplane_username and so on, where the settings have no credentialsSecretRef; empty: $SECRET_NAME")
	fs.BoolVar(&c.leaderElect, "leader-elect", false, "deploy only as the leader, by the Lease haptic-settings")
	fs.BoolVar(&c.test, "test", false, "run the cases in the settings, and end")
	fs.BoolVar(&c.once, "once", false, "render, validate and deploy once to Dataplane APIs, and exit; with -local only beside -dry-run")
	fs.BoolVar(&c.dryRun, "dry-run", false, "with -once: print the plan only; exit 0: no difference, 2: a difference, 1: an error")
	fs.StringVar(&c.httpAddr, "http-addr", ":8080", "address for HTTP: httpAddress in templates")
	fs.StringVar(&c.socket, "endpoint-socket", "/var/run/haproxy/admin.sock", "runtime socket without -local: runtimeSocket in templates")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	fs.Env("settings", "CONFIGMAP_NAME", configMap)
	fs.Env("credentials", "SECRET_NAME", "")
	fs.Env("pod-namespace", "POD_NAMESPACE", "")
	if strings.HasPrefix(c.settings, configMap) {
		fs.CheckObjects(configMap, "settings")
	}
	fs.CheckObjects("", "credentials")
	fs.CheckFile("manifests", kit.IsFolder(c.manifests) || c.local != "" && !kit.IsFile(c.manifests), "a folder that exists")
	fs.Check("local", !kit.IsFile(c.local), "a folder, and this is a file")
	fs.CheckFile("kubeconfig", kit.IsFile(c.kubeconfig), "a file that exists")
	fs.CheckNamespaces("pod-namespace")
	fs.CheckBinds(c.local != "", "http-addr")
	fs.CheckPaths("endpoint-socket")
	if err := fs.Err(); err != nil {
		return nil, err
	}
	c.check()
	return c, fs.Err()
}

// check refuses bad combinations of flags, and finds the namespace of this process.
func (c *config) check() {
	object, fromCluster := strings.CutPrefix(c.settings, configMap)
	if !fromCluster && (c.test || c.once || c.local == "") { // otherwise the program waits for it
		c.CheckFile("settings", kit.IsFile(c.settings), "a file that exists")
	}
	for _, problem := range []struct {
		is  bool
		say string
	}{
		{c.NArg() > 0, "unexpected argument " + strings.Join(c.Args(), " ")},
		{c.settings == "", "-settings is required, or CONFIGMAP_NAME in the environment"},
		{c.test && fromCluster, "-test needs a file of -settings: cases need no cluster"},
		{c.leaderElect && (c.manifests != "" || c.once), "-leader-elect needs a cluster, not -manifests, and excludes -once"},
		{c.dryRun && !c.once, "-dry-run needs -once"},
		{c.once && !c.dryRun && c.local != "", "-once without -dry-run excludes -local: a HAProxy that this process starts would end with it"},
	} {
		if problem.is {
			c.Wrong(errors.New(problem.say))
		}
	}
	if c.namespace == "" {
		var err error
		if c.namespace, err = discover.OwnNamespace(os.Getenv); err != nil && c.local == "" && !c.test { // the pods of that namespace will get the password
			c.Wrong(fmt.Errorf("-pod-namespace is required without -local: %w", err))
		} else if err != nil {
			c.namespace = "default"
		}
	}
	if fromCluster && !strings.Contains(object, "/") {
		c.settings = configMap + c.namespace + "/" + object
	}
}
