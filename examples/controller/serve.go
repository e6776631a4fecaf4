package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/examples/controller/errorpages"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// serve has the flags for what HAProxy serves beside Ingresses, and how.
type serve struct {
	accessLog    string // http, json or off
	acceptProxy  []netip.Prefix
	errorPages   string // folder
	http3        bool
	statsAddr    string
	certificate  string // namespace/name of a Secret
	backend      ingress.ServiceRef
	tcp          string // namespace/name of a ConfigMap
	externalName bool
	passthrough  bool
	nameservers  []string
	upgrades     []string
}

func (s *serve) declare(fs *kit.Flags) {
	fs.StringVar(&s.accessLog, "access-log", "http", "access log of HAProxy on its standard output, here that of this process: http, json or off")
	fs.Func(
		"accept-proxy",
		"`CIDR` of load balancers whose connections begin with the PROXY protocol, which then says where they come from; may be repeated",
		cidrs(&s.acceptProxy),
	)
	fs.StringVar(
		&s.errorPages,
		"error-pages",
		"",
		"`folder` of responses in place of HAProxy's own, such as 503.http, each with its line of status and its headers; 404.http is for requests without a route; read at a start only",
	)
	fs.BoolVar(&s.http3, "http3", false, "serve HTTP/3 as well, at the UDP port of -https-addr; needs a HAProxy that is built with QUIC")
	fs.StringVar(
		&s.statsAddr,
		"stats-addr",
		"",
		"`address` for the page of statistics of HAProxy, without a password: for those who may see all names; empty: none",
	)
	fs.StringVar(
		&s.certificate,
		"default-certificate",
		"",
		"`namespace/name` of the Secret with the certificate for server names that have none, which are refused without it",
	)
	fs.Func("default-backend", "`namespace/service:port` for requests without a route, which get 404 without it", func(text string) (err error) {
		s.backend, err = ingress.ParseServiceRef(text)
		return err
	})
	fs.StringVar(
		&s.tcp,
		"tcp-services",
		"",
		"`namespace/name` of a ConfigMap with ports that lead to Services, as of ingress-nginx: \"9000\": \"namespace/service:port\"",
	)
	fs.BoolVar(
		&s.externalName,
		"allow-external-name",
		false,
		"serve Services of the type ExternalName: a tenant who may write one then reaches all that HAProxy reaches, whatever -allow-endpoint says",
	)
	fs.BoolVar(
		&s.passthrough,
		"ssl-passthrough",
		true,
		"serve the annotation ssl-passthrough; while an Ingress has it, all other TLS connections cost HAProxy more",
	)
	fs.Func(
		"upgrade",
		"`protocol` that connections may become by an Upgrade, beside websocket, such as SPDY/3.1; may be repeated. HAProxy applies no rule to what follows in such a connection",
		func(text string) error {
			s.upgrades = append(s.upgrades, text)
			return checkUpgrade(text)
		},
	)
	fs.Func(
		"dns-server",
		"`address:port` of a DNS server for those names, in place of those of /etc/resolv.conf where HAProxy runs; may be repeated",
		func(text string) error {
			at, err := netip.ParseAddrPort(text)
			s.nameservers = append(s.nameservers, text)
			if err != nil || at.Port() == 0 {
				return errors.New("want an address with a port, such as 10.96.0.10:53")
			}
			return nil
		},
	)
}

// carriesRequests matches protocols whose requests would go past the rules of HAProxy.
var carriesRequests = regexp.MustCompile(`(?i)^(h2|http|tls)`)

// isProtocol matches the name of a protocol, and its version.
var isProtocol = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)?$`)

// checkUpgrade checks the name of a protocol that connections may become.
func checkUpgrade(name string) error {
	switch {
	case !isProtocol.MatchString(name):
		return errors.New("want the name of a protocol, such as SPDY/3.1")
	case carriesRequests.MatchString(name):
		return errors.New("requests in it would go past all rules: HAProxy takes HTTP/2 and TLS itself")
	}
	return nil
}

// checkServe checks the values of these flags.
func (c *config) checkServe() {
	f := c.Flags
	f.Check("access-log", c.accessLog == "http" || c.accessLog == "json" || c.accessLog == "off", "http, json or off")
	f.CheckFile("error-pages", kit.IsFolder(c.errorPages), "a folder that exists")
	f.Check("default-certificate", kit.IsObject(c.certificate), "namespace/name")
	f.Check("tcp-services", kit.IsObject(c.tcp), "namespace/name")
	f.Check("https-addr", !c.http3 || !strings.ContainsAny(c.httpsAddr, ",/@"), "one address:port, as -http3 is given")
}

// checkHTTP3 returns an error if this HAProxy cannot serve HTTP/3. limited says that it
// uses an OpenSSL without QUIC, which the configuration must state. It asks the HAProxy
// that checks each configuration, even for instances behind Dataplane APIs.
func checkHTTP3() (limited bool, err error) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		binary = "/usr/sbin/haproxy"
	}
	features, err := exec.Command(binary, "-vv").Output()
	if err != nil {
		return false, fmt.Errorf("-http3: %s -vv, which says whether HAProxy has QUIC: %w", binary, err)
	}
	if !hasFeature(string(features), "QUIC") {
		return false, fmt.Errorf("-http3: %s is built without QUIC: leave the flag out, or use a HAProxy whose -vv says +QUIC", binary)
	}
	return hasFeature(string(features), "QUIC_OPENSSL_COMPAT"), nil
}

// hasFeature reads the output of haproxy -vv.
func hasFeature(features, name string) bool {
	for line := range strings.Lines(features) {
		if list, ok := strings.CutPrefix(line, "Feature list :"); ok {
			return strings.Contains(strings.TrimSpace(list)+" ", "+"+name+" ")
		}
	}
	return false
}

// newSettings makes the settings of the templates.
func (c *controller) newSettings() (err error) {
	cfg := c.cfg
	c.settings = ingress.Settings{
		HTTP: cfg.httpAddr, HTTPS: cfg.httpsAddr, Socket: c.targets.Socket, TLSSocket: path.Join(path.Dir(c.targets.Socket), "tls.sock"),
		MaxConn: cfg.maxConn, MaxPassed: cfg.maxPassed, Share: cfg.limits.InForce()["connections-per-namespace"], SharedHosts: len(cfg.sharedHosts) > 0,
		HardStopAfter: fmt.Sprintf("%ds", int(cfg.hardStopAfter.Seconds())),
		TrustProxy:    texts(cfg.trustProxies), AcceptProxy: texts(cfg.acceptProxy), AccessLog: strings.TrimSuffix(cfg.accessLog, "off"),
		Stats: cfg.statsAddr, ExternalName: cfg.externalName, Nameservers: cfg.nameservers, Upgrades: cfg.upgrades,
	}
	if c.targets.Local != nil {
		c.settings.SpareBackends, c.settings.CountsWorkers = cfg.spareBackends, true
	}
	t := cfg.targets // another controller before or behind these instances differs in one of them
	if c.settings.Fleet, err = c.source.Fleet(cfg.leader.Lease, cfg.namespaces.String(), cfg.httpAddr, t.Pods, t.PodNamespace); err != nil {
		return err
	}
	if cfg.http3 {
		if c.settings.LimitedQUIC, err = checkHTTP3(); err != nil {
			return err
		}
		c.settings.HTTP3 = "quic4"
		if strings.HasPrefix(cfg.httpsAddr, "[") {
			c.settings.HTTP3 = "quic6"
		}
	}
	if cfg.errorPages != "" {
		c.pages, err = errorpages.Read(os.DirFS(cfg.errorPages))
	}
	for _, page := range c.pages {
		c.settings.ErrorPages = append(c.settings.ErrorPages, strings.TrimSuffix(page.Name, ".http"))
	}
	return kit.OfFlag("error-pages", err)
}

func texts(ranges []netip.Prefix) (all []string) {
	for _, p := range ranges {
		all = append(all, p.String())
	}
	return all
}

// operator holds what the flags and the ConfigMap of TCP services became. It stays the
// same until they change.
type operator struct {
	*ingress.Operator
	cm    *corev1.ConfigMap
	rules *endpoints.Addresses
}

// serving returns what the operator serves, and the address rules with the TCP ports.
func (c *controller) serving(all *k8swatch.GroupSnapshot) (*ingress.Operator, *endpoints.Addresses) {
	now, cfg := operator{rules: c.endpointRules()}, &c.cfg.serve
	if c.configMaps != nil {
		namespace, name, _ := strings.Cut(cfg.tcp, "/")
		now.cm = k8swatch.Read[*corev1.ConfigMap](all.Of(c.configMaps)).GetSingle(namespace, name)
	}
	if last := c.operator; last.Operator == nil || last.cm != now.cm || last.rules != now.rules {
		now.Operator = &ingress.Operator{Certificate: cfg.certificate, Backend: cfg.backend, ExternalName: cfg.externalName}
		if c.configMaps != nil {
			now.TCP = ingress.ReadTCP(now.cm, cfg.tcp, c.cfg.httpAddr, now.rules)
		}
		c.operator = now
	}
	if t := c.operator.TCP; t != nil {
		return c.operator.Operator, t.Addresses
	}
	return c.operator.Operator, now.rules
}
