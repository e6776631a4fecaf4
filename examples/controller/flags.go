package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/reconcile/certs"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// config is what the flags say.
type config struct {
	*kit.Flags
	serve

	source       kit.SourceFlags
	namespaces   kit.Namespaces
	targets      kit.TargetFlags
	leader       kit.LeaderFlags
	intervals    kit.IntervalFlags
	publish      publishFlags // see publish.go
	once, dryRun bool
	migrate      bool
	demo         bool
	demoPort     int

	templates, test              string
	noQuarantine                 bool
	httpAddr, httpsAddr          string
	maxConn, maxPassed           int // the second while hosts are passed through
	spareSlots                   int
	spareBackends                int
	sharedHosts                  []string
	limits                       ingress.Limits
	hardStopAfter                time.Duration
	allowEndpoints, trustProxies []netip.Prefix
	opaqueSecrets                bool
	expiryWarning                time.Duration
	longestTimeout, hostGrace    time.Duration
}

// parseFlags reads the flags. It refuses bad combinations before anything starts.
func parseFlags(args []string, log *kit.Log) (*config, error) {
	c := &config{Flags: kit.NewFlags("controller", log)}
	fs := c.Flags
	c.source.Declare(fs)
	c.namespaces.Declare(fs)
	c.targets.Declare(fs)
	c.leader.Declare(fs, "haptic")
	c.intervals.Declare(fs)
	c.publish.declare(fs)
	c.serve.declare(fs)
	fs.OnceVar(&c.once, &c.dryRun)
	fs.BoolVar(&c.demo, "demo", false, "serve backends on 127.0.0.11 to 127.0.0.30 and say what to try")
	fs.IntVar(&c.demoPort, "demo-port", 18080, "first of the two ports of those backends")
	fs.BoolVar(
		&c.migrate,
		"migrate",
		false,
		"say of each annotation of ingress-nginx and haproxytech in the cluster, or the folder of -manifests, what becomes of it here, and exit",
	)
	fs.StringVar(
		&c.test,
		"test",
		"",
		"run the cases of the templates in a `file or folder`, print the results and exit: 0, or 1 if one fails; no cluster is needed",
	)
	fs.StringVar(
		&c.templates,
		"templates",
		"",
		"`folder` of templates to use in place of the built-in ones; its cases, in the folder cases, are run before anything is deployed; read at a start only",
	)
	fs.BoolVar(
		&c.noQuarantine,
		"no-quarantine",
		false,
		"keep the last good configuration where a resource makes the new one invalid, in place of quarantining that resource alone",
	)
	fs.BoolVar(&c.opaqueSecrets, "opaque-secrets", true, "read Secrets of type Opaque, too, for annotations that name users or the CA of servers")
	fs.StringVar(&c.httpAddr, "http-addr", ":8080", "address for HTTP; several with commas between, as :8080,[::]:8080")
	fs.StringVar(&c.httpsAddr, "https-addr", ":8443", "address for HTTPS; several with commas between")
	fs.Func("allow-endpoint", "`CIDR` of loopback, link-local or other special addresses that endpoints may have; may be repeated", cidrs(&c.allowEndpoints))
	fs.Func("trust-proxy", "`CIDR` of proxies before this one, whose X-Forwarded and such headers are believed; may be repeated", cidrs(&c.trustProxies))
	fs.IntVar(
		&c.maxConn,
		"maxconn",
		0,
		"connections that HAProxy takes at once; 0: 10000 or as many as the limit of open files allows, behind a Dataplane API what HAProxy finds fit",
	)
	fs.IntVar(
		&c.spareSlots,
		"slots",
		0,
		"round servers of a backend up to a multiple of this; 0: 4 with Dataplane APIs, which cannot add a server to a HAProxy before 3.0 at runtime, else none",
	)
	fs.IntVar(
		&c.spareBackends,
		"spare-backends",
		256,
		"backends that wait in the HAProxy on this host for new Ingresses, which take one each and no reload; a reload frees them all; each takes 10 KB of HAProxy's memory; 0: none, and each new Service takes a reload; a Dataplane API has none",
	)
	fs.Func(
		"shared-host",
		"`host` that all namespaces may use, where the others belong to the namespace that claimed them first; *.example.com: all names below it; *: all hosts; may be repeated",
		func(s string) error {
			c.sharedHosts = append(c.sharedHosts, s)
			return claims.CheckShared(s)
		},
	)
	fs.Func(
		"limit",
		"what one namespace, and all together, can have at most, as `name=number`; may be repeated. The names with their defaults:\n"+ingress.LimitsUsage(),
		c.limits.Set,
	)
	fs.DurationVar(&c.hardStopAfter, "hard-stop-after", 30*time.Minute, "how long a reload leaves old connections alone")
	fs.DurationVar(&c.expiryWarning, "expiry-warning", 0, "how long before its end a certificate is warned of (default "+usualWarning()+")")
	fs.DurationVar(
		&c.hostGrace,
		"host-grace",
		claims.UsualGrace,
		"how long a namespace keeps a host that it claims no longer, while another namespace asks for it; 0: not at all",
	)
	fs.DurationVar(
		&c.longestTimeout,
		"longest-timeout",
		annotation.UsualTimeout,
		"the longest timeout that annotations set; a longer one is cut, and its Ingress or Service says so",
	)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if c.demo && c.DebugToken == "" {
		c.DebugToken = observe.Token(rand.Text()) // of this run; it is printed
	}
	if c.demo && !fs.Given("metrics-addr") { // -debug-addr serves metrics too: a demo opens nothing to other machines
		c.MetricsAddr = ""
	}
	c.check(c.source.Manifests != "")
	if c.spareSlots == 0 && c.targets.Remote() {
		c.spareSlots = 4
	}
	c.shareConnections(openFiles())
	c.limits.Memory = kit.Memory()
	return c, fs.Err()
}

// check checks the value of each given flag, and flags together. folder says that the
// resources come from a folder.
func (c *config) check(folder bool) {
	f := c.Flags
	c.source.Check(f, c.targets.Local != "")
	c.intervals.Check(f)
	c.publish.check(f, folder)
	c.checkServe()
	f.CheckAbove("expiry-warning", c.expiryWarning)
	f.Check("hard-stop-after", c.hardStopAfter >= time.Second, "1s or more, such as 30m")
	f.Check("longest-timeout", c.longestTimeout >= time.Second && c.longestTimeout <= annotation.MaxDuration, "1s to 480h")
	f.Check("host-grace", c.hostGrace >= 0, "0 or more, such as 5m")
	f.Check("demo-port", c.demoPort > 0 && c.demoPort < 65535, "a port from 1 to 65534")
	f.Check("maxconn", c.maxConn >= 0, "0 or more")
	f.Check("slots", c.spareSlots >= 0 && c.spareSlots <= maxSlots, "a number from 0 to 10000")
	f.CheckFile("templates", kit.IsFolder(c.templates), "a folder that exists")
	f.CheckFile("test", kit.IsFolder(c.test) || kit.IsFile(c.test), "a file or a folder that exists")
	f.CheckBinds(!c.targets.Remote(), "http-addr", "https-addr", "stats-addr")
	c.namespaces.Check(f)
	for flag, object := range map[string]string{"default-certificate": c.certificate, "default-backend": c.backend.Namespace} {
		namespace, _, _ := strings.Cut(object, "/")
		f.Check(flag, object == "" || c.namespaces.Has(namespace), "an object of a namespace that -namespace names")
	}
	f.Refuse(c.NArg() > 0, "unexpected argument %s", strings.Join(c.Args(), " "))
	f.Refuse(c.dryRun && !c.once, "-dry-run needs -once")
	f.Refuse(
		c.once && !c.dryRun && !c.targets.Remote(),
		"-once without -dry-run needs -endpoint or -pods: a HAProxy that this process starts would end with it",
	)
	f.Refuse(c.demo && !folder, "-demo needs -manifests")
	f.Refuse(c.spareBackends < 0, "-spare-backends %d: want 0 or more", c.spareBackends)
	c.leader.Check(f, folder)
	c.targets.Check(f, folder)
	if c.test == "" {
		c.targets.CheckCredentials(f, folder)
	}
}

// public returns the settings in force, for people to see. It has all flags, repeated
// ones as lists, and the meaning of those that were not given. The URLs of Dataplane
// APIs are missing, because they may hold a user and a password. The page of endpoints
// shows them by name.
func (c *config) public() any {
	all := map[string]any{}
	for name, value := range c.Values() {
		all[name] = value
	}
	if c.maxConn == 0 {
		all["maxconn"] = "what HAProxy finds fit"
	}
	if c.expiryWarning == 0 {
		all["expiry-warning"] = usualWarning()
	}
	maps.Copy(all, map[string]any{
		"endpoint": len(c.targets.Endpoints), "shared-host": c.sharedHosts, "limit": c.limits.InForce(), "publish-address": c.publish.addresses,
		"allow-endpoint": c.allowEndpoints, "trust-proxy": c.trustProxies, "accept-proxy": c.acceptProxy, "default-backend": c.backend, "dns-server": c.nameservers, "upgrade": c.upgrades,
	})
	return all
}

// maxSlots bounds -slots.
const maxSlots = 10_000

// usualWarning describes the default of -expiry-warning.
func usualWarning() string {
	return fmt.Sprintf("%s, or 1/%d of its life where that is shorter", certs.UsualWarning, certs.ShareOfLife)
}

// cidrs is a flag that may be repeated. Each occurrence adds a range of addresses.
func cidrs(list *[]netip.Prefix) func(string) error {
	return func(s string) error {
		p, err := netip.ParsePrefix(s)
		if err != nil || p.Addr().Is4In6() {
			return errors.New("want a range such as 10.0.0.0/8 or fd00::/8")
		}
		*list = append(*list, p.Masked())
		return nil
	}
}
