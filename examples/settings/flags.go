package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// config is what the flags and the environment say.
type config struct {
	*kit.Flags

	source                                               kit.SourceFlags
	settings, local, namespace, secret, httpAddr, socket string
	test, once, dryRun, leaderElect                      bool
}

// configMap begins a value of -settings that names a ConfigMap.
const configMap = "configmap:"

func parseFlags(args []string, log *kit.Log) (*config, error) {
	c := &config{Flags: kit.NewFlags("settings", log)}
	fs := c.Flags
	fs.StringVar(
		&c.settings,
		"settings",
		"",
		"`FILE` of settings, or configmap:[NAMESPACE/]NAME, whose key is settings.yaml; empty: the ConfigMap $CONFIGMAP_NAME",
	)
	c.source.Declare(fs)
	fs.OnceVar(&c.once, &c.dryRun)
	fs.StringVar(
		&c.local,
		"local",
		"",
		"`folder` for the state of a HAProxy on this host; empty: those behind Dataplane APIs, as dataplane in the settings says",
	)
	fs.StringVar(
		&c.namespace,
		"pod-namespace",
		"",
		"`namespace` whose HAProxy pods count where dataplane.podSelector says none, that of this controller: there is the Lease, and what is named without a namespace; empty: by $POD_NAMESPACE or the service account, or default with -local and -test",
	)
	fs.StringVar(
		&c.secret,
		"credentials",
		discover.DefaultSecret,
		"Secret `[namespace/]name` with dataplane_username and so on, where the settings have no credentialsSecretRef; empty: $SECRET_NAME",
	)
	fs.BoolVar(&c.leaderElect, "leader-elect", false, "deploy only as the leader, by the Lease haptic-settings")
	fs.BoolVar(&c.test, "test", false, "run the cases in the settings, and end")
	fs.StringVar(&c.httpAddr, "http-addr", ":8080", "address for HTTP: httpAddress in templates")
	fs.StringVar(&c.socket, "endpoint-socket", kit.DefaultSocket, "runtime socket without -local: runtimeSocket in templates")
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
	c.source.Check(fs, c.local != "")
	fs.Check("local", !kit.IsFile(c.local), "a folder, and this is a file")
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
	c.Refuse(c.NArg() > 0, "unexpected argument %s", strings.Join(c.Args(), " "))
	c.Refuse(c.settings == "", "-settings is required, or CONFIGMAP_NAME in the environment")
	c.Refuse(c.test && fromCluster, "-test needs a file of -settings: cases need no cluster")
	c.Refuse(c.leaderElect && (c.source.Manifests != "" || c.once), "-leader-elect needs a cluster, not -manifests, and excludes -once")
	c.Refuse(c.dryRun && !c.once, "-dry-run needs -once")
	c.Refuse(c.once && !c.dryRun && c.local != "", "-once without -dry-run excludes -local: a HAProxy that this process starts would end with it")
	if c.namespace == "" {
		var err error
		c.namespace, err = discover.OwnNamespace(os.Getenv)
		c.Refuse(
			err != nil && c.local == "" && !c.test,
			"-pod-namespace is required without -local: %w",
			err,
		) // the pods of that namespace will get the password
		c.namespace = cmp.Or(c.namespace, "default")
	}
	if !fromCluster && (c.test || c.once || c.local == "") { // otherwise the program waits for it
		c.CheckFile("settings", kit.IsFile(c.settings), "a file that exists")
	}
	if fromCluster && !strings.Contains(object, "/") {
		c.settings = configMap + c.namespace + "/" + object
	}
}
