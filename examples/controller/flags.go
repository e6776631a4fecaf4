package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// config is what the flags say. Its parts are where resources come from, where HAProxy
// runs, leadership and status, and the rest.
type config struct {
	*kit.Flags
	serve

	kubeconfig         string // the cluster, or a folder of manifests in its place
	namespaces         namespaces
	manifests          string
	demo, once, dryRun bool
	migrate            bool
	demoPort           int

	local          string // the HAProxy on this host, or those behind Dataplane APIs
	endpoints      []string
	pods           string
	podNamespace   string
	podPort        int
	podScheme      string
	endpointCA     string
	endpointName   string
	secret         string
	credentials    discover.Credentials // in place of secret
	endpointBase   string
	endpointSocket string

	leaderElect bool
	lease       string
	publish     publishFlags // see publish.go

	templates, test              string
	noQuarantine                 bool
	httpAddr, httpsAddr          string
	maxConn, spareSlots          int
	spareBackends                int
	sharedHosts                  []string
	maxOldWorkers                int
	limits                       ingress.Limits
	hardStopAfter                time.Duration
	allowEndpoints, trustProxies []netip.Prefix
	debounce, minInterval, drift time.Duration
	stallTime                    time.Duration
	opaqueSecrets                bool
	expiryWarning                time.Duration
}

// parseFlags reads the flags. It refuses bad combinations before anything starts.
func parseFlags(args []string, log *kit.Log) (*config, error) {
	c := &config{Flags: kit.NewFlags("controller", log)}
	fs, usual := c.Flags, reconcile.Options{}.WithDefaults()
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster; empty: the cluster that this runs in or, outside of one, $KUBECONFIG and ~/.kube/config")
	fs.Var(&c.namespaces, "namespace", "watch this `namespace` only; may be repeated, or name several with commas between; empty: all")
	fs.StringVar(&c.manifests, "manifests", "", "watch a `folder` of manifests in place of a cluster")
	fs.BoolVar(&c.demo, "demo", false, "serve backends on 127.0.0.11 to 127.0.0.30 and say what to try")
	fs.IntVar(&c.demoPort, "demo-port", 18080, "first of the two ports of those backends")
	fs.BoolVar(&c.once, "once", false, "render, validate and deploy once to Dataplane APIs, and exit; with -local only beside -dry-run")
	fs.BoolVar(&c.dryRun, "dry-run", false, "with -once: print the plan only; exit 0: no difference, 2: a difference, 1: an error")
	fs.BoolVar(&c.migrate, "migrate", false, "say of each annotation of ingress-nginx and haproxytech in the cluster, or the folder of -manifests, what becomes of it here, and exit")
	fs.StringVar(&c.local, "local", "", "`folder` for the state of the HAProxy on this host; empty: a temporary one")
	fs.Func("endpoint", "`URL` of a Dataplane API to deploy to; may be repeated", func(s string) error {
		c.endpoints = append(c.endpoints, s)
		return nil
	})
	fs.StringVar(&c.pods, "pods", "", "label `selector` of HAProxy pods whose Dataplane API to deploy to")
	fs.StringVar(&c.podNamespace, "pod-namespace", "", "the only `namespace` whose pods count, *: all; an account that may create pods there gets the password and all keys; empty: that of this process, by $POD_NAMESPACE or its service account")
	fs.IntVar(&c.podPort, "pod-port", 5555, "port of the Dataplane API in those pods")
	fs.StringVar(&c.podScheme, "pod-scheme", "https", "https or http, of the Dataplane API in those pods; with http, all who are on the way can read the password and all keys")
	fs.StringVar(&c.endpointCA, "endpoint-ca", "", "PEM `file` of the CAs that sign for Dataplane APIs with https; empty: those of the system")
	fs.StringVar(&c.endpointName, "endpoint-server-name", "", "name that must stand in the certificates of those Dataplane APIs; empty: the host in the URL, or the address of the pod, which few certificates have")
	fs.StringVar(&c.secret, "credentials", "", "Secret `[namespace/]name` with dataplane_username and so on, without a namespace in that of this process; empty: $HAPTIC_DATAPLANE_USERNAME and so on where they are set, or else the Secret $SECRET_NAME, or else haptic-credentials; with -manifests the environment only")
	fs.StringVar(&c.endpointBase, "endpoint-base", path.Dir(dataplane.Layout{}.ConfigPath()), "folder of haproxy.cfg where the Dataplane APIs run")
	fs.StringVar(&c.endpointSocket, "endpoint-socket", "/var/run/haproxy/admin.sock", "runtime socket that HAProxy opens there")
	fs.BoolVar(&c.leaderElect, "leader-elect", false, "deploy only while holding a Lease")
	fs.StringVar(&c.lease, "lease", "", "`namespace/name` of that Lease, and the name of this fleet of instances where requests pass several (default haptic in the namespace of this process, or default/haptic where that is not known)")
	c.publish.declare(fs)
	fs.StringVar(&c.test, "test", "", "run the cases of the templates in a `file or folder`, print the results and exit: 0, or 1 if one fails; no cluster is needed")
	fs.StringVar(&c.templates, "templates", "", "`folder` of templates to use in place of the built-in ones; its cases, in the folder cases, are run before anything is deployed; read at a start only")
	fs.BoolVar(&c.noQuarantine, "no-quarantine", false, "keep the last good configuration where a resource makes the new one invalid, in place of leaving that resource out")
	fs.BoolVar(&c.opaqueSecrets, "opaque-secrets", true, "read Secrets of type Opaque, too, for annotations that name users or the CA of servers")
	fs.StringVar(&c.httpAddr, "http-addr", ":8080", "address for HTTP; several with commas between, as :8080,[::]:8080")
	fs.StringVar(&c.httpsAddr, "https-addr", ":8443", "address for HTTPS; several with commas between")
	fs.Func("allow-endpoint", "`CIDR` of loopback, link-local or other special addresses that endpoints may have; may be repeated", cidrs(&c.allowEndpoints))
	fs.Func("trust-proxy", "`CIDR` of proxies before this one, whose X-Forwarded and such headers are believed; may be repeated", cidrs(&c.trustProxies))
	fs.IntVar(&c.maxConn, "maxconn", 0, "connections that HAProxy takes at once; 0: 10000 or as many as the limit of open files allows, behind a Dataplane API what HAProxy finds fit")
	fs.IntVar(&c.spareSlots, "slots", 0, "round servers of a backend up to a multiple of this; 0: 4 with Dataplane APIs, which cannot add a server to a HAProxy before 3.0 at runtime, else none")
	fs.IntVar(&c.spareBackends, "spare-backends", 256, "backends that wait in the HAProxy on this host for new Ingresses, which take one each and no reload; a reload frees them all; each takes 10 KB of HAProxy's memory; 0: none, and each new Service takes a reload; a Dataplane API has none")
	fs.Func("shared-host", "`host` that all namespaces may use, where the others belong to the namespace that claimed them first; *.example.com: all names below it; *: all hosts; may be repeated", func(s string) error {
		c.sharedHosts = append(c.sharedHosts, s)
		return ingress.CheckSharedHost(s)
	})
	fs.Func("limit", "what one namespace can have at most, as `name=number`; may be repeated. The names with their defaults:\n"+ingress.LimitsUsage(), c.limits.Set)
	fs.DurationVar(&c.hardStopAfter, "hard-stop-after", 30*time.Minute, "how long a reload leaves old connections alone")
	fs.IntVar(&c.maxOldWorkers, "max-old-workers", dataplane.DefaultMaxOldWorkers, "how many old HAProxy processes may remain after reloads: with as many, the next reload of the HAProxy on this host waits for one to end, for up to -hard-stop-after")
	fs.DurationVar(&c.expiryWarning, "expiry-warning", 0, "how long before its end a certificate is warned of (default "+usualWarning()+")")
	fs.DurationVar(&c.debounce, "debounce", usual.Debounce, "longest hold between two renders, after a failure and under a storm of changes; otherwise it is about 20 ms")
	fs.DurationVar(&c.minInterval, "min-interval", usual.MinInterval, "time between two reloads of one HAProxy")
	fs.DurationVar(&c.drift, "drift-interval", usual.DriftInterval, "idle time after which a HAProxy is checked")
	fs.DurationVar(&c.stallTime, "stall-time", usual.StallTime, "/healthz fails when an operation hangs this long; keep it far above all time-outs")
	c.serve.add(c)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if c.demo && c.DebugToken == "" {
		c.DebugToken = observe.Token(rand.Text()) // of this run; it is printed
	}
	if c.demo && !fs.Given("metrics-addr") { // -debug-addr serves metrics too: a demo opens nothing to other machines
		c.MetricsAddr = ""
	}
	if c.remote() && c.manifests == "" && !inEnvironment(os.Getenv) {
		fs.Env("credentials", "SECRET_NAME", "")
	}
	c.checkValues()
	if err := fs.Err(); err != nil {
		return nil, err
	}
	return c, c.check(fs.Args())
}

// usualWarning describes the default of -expiry-warning.
func usualWarning() string {
	return fmt.Sprintf("%s, or 1/%d of its life where that is shorter", ingress.UsualWarning, ingress.ShareOfLife)
}

func (c *config) check(rest []string) error {
	for _, problem := range []struct {
		is  bool
		say string
	}{
		{len(rest) > 0, "unexpected argument " + strings.Join(rest, " ")},
		{c.dryRun && !c.once, "-dry-run needs -once"},
		{c.once && !c.dryRun && !c.remote(), "-once without -dry-run needs -endpoint or -pods: a HAProxy that this process starts would end with it"},
		{c.local != "" && c.remote(), "-local excludes -endpoint and -pods"},
		{c.pods != "" && len(c.endpoints) > 0, "-pods and -endpoint exclude each other"},
		{c.manifests != "" && c.pods != "", "-pods needs a cluster, not -manifests"},
		{c.manifests != "" && c.leaderElect, "-leader-elect needs a cluster, not -manifests"},
		{c.manifests != "" && c.secret != "", "-credentials needs a cluster, not -manifests"},
		{c.podNamespace != "" && c.pods == "", "-pod-namespace needs -pods"},
		{(c.endpointCA != "" || c.endpointName != "") && !c.remote(), "-endpoint-ca and -endpoint-server-name need -endpoint or -pods"},
		{(c.drain > 0 || c.Given("stop-timeout")) && c.remote(), "-drain-delay and -stop-timeout are for the HAProxy on this host: those behind Dataplane APIs serve on when this process ends"},
		{c.demo && c.manifests == "", "-demo needs -manifests"},
		{c.spareBackends < 0, fmt.Sprintf("-spare-backends %d: want 0 or more", c.spareBackends)},
	} {
		if problem.is {
			return fmt.Errorf("%s", problem.say)
		}
	}
	if c.pods != "" && c.podNamespace == "" {
		var err error
		if c.podNamespace, err = discover.OwnNamespace(os.Getenv); err != nil {
			return fmt.Errorf("-pods needs -pod-namespace: %w", err)
		}
	}
	if c.lease == "" {
		namespace, err := discover.OwnNamespace(os.Getenv)
		if err != nil { // not in a pod
			namespace = "default"
		}
		c.lease = namespace + "/haptic"
	}
	if err := c.openBy(os.Getenv); err != nil {
		return err
	}
	if c.spareSlots == 0 && c.remote() {
		c.spareSlots = 4
	}
	if c.maxConn == 0 && !c.remote() {
		c.maxConn = defaultMaxConn()
	}
	return nil
}

// openBy finds the credentials of Dataplane APIs: those of the environment, or the name
// of a Secret.
func (c *config) openBy(getenv func(string) string) (err error) {
	given := c.secret != ""
	if !given && (!c.remote() || c.test != "") {
		return nil
	}
	if !given && (inEnvironment(getenv) || c.manifests != "") {
		c.credentials, err = discover.CredentialsFromEnv(getenv)
		return err
	}
	c.secret = cmp.Or(c.secret, discover.DefaultSecret)
	if !strings.Contains(c.secret, "/") {
		namespace, err := discover.OwnNamespace(getenv)
		if err != nil && given {
			return fmt.Errorf("-credentials %q: want namespace/name: %w", c.secret, err)
		} else if err != nil {
			return fmt.Errorf("-credentials is required, or HAPTIC_DATAPLANE_USERNAME and HAPTIC_DATAPLANE_PASSWORD: Secret %s needs a namespace: %w", c.secret, err)
		}
		c.secret = namespace + "/" + c.secret
	}
	return nil
}

// inEnvironment reports whether the environment has credentials.
func inEnvironment(getenv func(string) string) bool {
	return getenv("HAPTIC_DATAPLANE_USERNAME") != "" || getenv("HAPTIC_DATAPLANE_PASSWORD") != ""
}

// defaultMaxConn keeps a HAProxy on this host within the limit of open files. Beyond
// that it refuses to start. A connection takes two files.
func defaultMaxConn() int {
	const wanted, reserve = 10000, 256
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Max > 2*wanted+reserve {
		return wanted
	}
	return max(int(limit.Max)-reserve, reserve) / 2
}

func (c *config) remote() bool { return len(c.endpoints) > 0 || c.pods != "" }
