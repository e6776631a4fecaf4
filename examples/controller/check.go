package main

import (
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hapticsdk/haptic/examples/controller/ingress"
)

// wrongFlags is a line for each flag that is wrong.
type wrongFlags []error

func (w wrongFlags) Error() string {
	return strings.ReplaceAll(errors.Join(w...).Error(), "\n", "\nerror: ")
}

// Unwrap is for [errors.Is].
func (w wrongFlags) Unwrap() []error { return w }

// noted is a flag whose errors are collected: all that are wrong are told at once.
type noted struct {
	flag.Value
	name  string
	given map[string]bool
	wrong *[]error
}

// Set implements [flag.Value].
func (n *noted) Set(s string) error {
	err := n.Value.Set(s)
	if getter, ok := n.Value.(flag.Getter); ok && err != nil {
		switch getter.Get().(type) {
		case time.Duration:
			err = errors.New("want a duration, such as 1m30s")
		case int:
			err = errors.New("want a whole number")
		case bool:
			err = errors.New("want true or false")
		}
	} else if err == nil && s == "" && n.name != "debug-addr" {
		err = errors.New("a value is missing: give one, or leave the flag out")
	}
	if err != nil {
		*n.wrong = append(*n.wrong, fmt.Errorf("-%s %q: %w", n.name, s, err))
		return nil
	}
	n.given[n.name] = true
	return nil
}

// IsBoolFlag makes "-once" the same as "-once=true".
func (n *noted) IsBoolFlag() bool {
	b, ok := n.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// parse returns the flags that are given and what is wrong with their form. The usage is
// printed for -h alone: nobody finds an error above it.
func parse(set *flag.FlagSet, args []string, stderr io.Writer) (given map[string]bool, wrong []error, err error) {
	given = map[string]bool{}
	set.SetOutput(io.Discard)
	set.VisitAll(func(f *flag.Flag) { f.Value = &noted{f.Value, f.Name, given, &wrong} })
	err = set.Parse(args)
	set.VisitAll(func(f *flag.Flag) { f.Value = f.Value.(*noted).Value })
	if errors.Is(err, flag.ErrHelp) {
		set.SetOutput(stderr)
		set.Usage()
		return nil, nil, err
	}
	if err != nil {
		wrong = append(wrong, fmt.Errorf("%w; -h lists all flags", err))
	}
	return given, wrong, nil
}

// value is a flag with the form that is wanted of it.
type value struct {
	flag  string
	value any
	ok    bool
	want  string
}

// values checks what flags say, each by itself.
func (c *config) values() []value {
	const above, folder = "a duration above 0s, such as 500ms", "a folder that exists"
	all := []value{
		{"debounce", c.debounce, c.debounce > 0, above},
		{"min-interval", c.minInterval, c.minInterval > 0, above},
		{"drift-interval", c.drift, c.drift > 0, above},
		{"expiry-warning", c.expiryWarning, c.expiryWarning > 0, above},
		{"hard-stop-after", c.hardStopAfter, c.hardStopAfter >= time.Second, "1s or more, such as 30m"},
		{"demo-port", c.demoPort, c.demoPort > 0 && c.demoPort < 65535, "a port from 1 to 65534"},
		{"pod-port", c.podPort, c.podPort > 0 && c.podPort <= 65535, "a port from 1 to 65535"},
		{"maxconn", c.maxConn, c.maxConn >= 0, "0 or more"},
		{"slots", c.spareSlots, c.spareSlots >= 0 && c.spareSlots <= maxSlots, "a number from 0 to 10000"},
		{"max-old-workers", c.maxOldWorkers, c.maxOldWorkers >= 0, "0 or more"},
		{"namespace", c.namespace, isLabel(c.namespace), "the name of a namespace: a-z, 0-9 and -, 63 characters at most"},
		{"pod-namespace", c.podNamespace, isLabel(c.podNamespace), "the name of a namespace: a-z, 0-9 and -, 63 characters at most"},
		{"pods", c.pods, isSelector(c.pods), "a label selector, such as app=haproxy"},
		{"pod-scheme", c.podScheme, c.podScheme == "http" || c.podScheme == "https", "http or https"},
		{"lease", c.lease, isObject(c.lease), "namespace/name"},
		{"credentials", c.secret, isObject(c.secret) || isObject("default/"+c.secret), "[namespace/]name"},
		{"kubeconfig", c.kubeconfig, isKubeconfig(c.kubeconfig), wantFile(c.kubeconfig, "a file that says how to reach a cluster")},
		{"manifests", c.manifests, isFolder(c.manifests) || c.local != "" && !isFile(c.manifests), wantFile(c.manifests, folder)},
		{"templates", c.templates, isFolder(c.templates), wantFile(c.templates, folder)},
		{"test", c.test, isFolder(c.test) || isFile(c.test), wantFile(c.test, "a file or a folder that exists")},
		{"local", c.local, !isFile(c.local), "a folder, and this is a file"},
		{"endpoint-ca", c.endpointCA, hasCertificates(c.endpointCA), wantFile(c.endpointCA, "a PEM file with certificates")},
		{"endpoint-base", c.endpointBase, filepath.IsAbs(c.endpointBase), "a path that begins with /"},
		{"endpoint-socket", c.endpointSocket, filepath.IsAbs(c.endpointSocket), "a path that begins with /"},
		{"http-addr", c.httpAddr, isBind(c.httpAddr), wantBind},
		{"https-addr", c.httpsAddr, isBind(c.httpsAddr), wantBind},
		{"debug-addr", c.debugAddr, isDebugAddr(c.debugAddr), "host:port with a port from 0 to 65535, such as 127.0.0.1:9090, or unix:/path"},
	}
	for i, url := range c.endpoints {
		all = append(all, value{"endpoint", url, isURL(url), "a URL such as https://10.0.0.7:5555, without credentials"})
		for _, before := range c.endpoints[:i] {
			if before == url {
				all = append(all, value{"endpoint", url, false, "each URL once"})
			}
		}
	}
	return all
}

const wantBind = "address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080"

// maxSlots is the longest step in which servers are counted.
const maxSlots = 10_000

// checkValues says of each flag that is given what is wrong with its value.
func (c *config) checkValues(given map[string]bool) (wrong []error) {
	for _, v := range c.values() {
		switch text, isText := v.value.(string); {
		case !given[v.flag] || v.ok || v.value == "": // told already
		case isText && v.flag == "endpoint" && strings.Contains(text, "@"):
			wrong = append(wrong, fmt.Errorf("-endpoint: want %s", v.want)) // it may hold a password
		case isText:
			wrong = append(wrong, fmt.Errorf("-%s %q: want %s", v.flag, v.value, v.want))
		default:
			wrong = append(wrong, fmt.Errorf("-%s %v: want %s", v.flag, v.value, v.want))
		}
	}
	return append(wrong, c.checkAddresses()...)
}

// checkAddresses finds addresses that two flags listen on.
func (c *config) checkAddresses() (wrong []error) {
	type listener struct {
		flag, addr string
	}
	all := []listener{{"-http-addr", c.httpAddr}, {"-https-addr", c.httpsAddr}}
	if !c.remote() && !strings.HasPrefix(c.debugAddr, "unix:") && !strings.HasSuffix(c.debugAddr, ":0") && c.debugAddr != "" {
		all = append(all, listener{"-debug-addr", c.debugAddr})
	}
	for i, one := range all {
		for _, other := range all[:i] {
			if isBind(one.addr) && isBind(other.addr) && overlap(other.addr, one.addr) {
				wrong = append(wrong, fmt.Errorf("%s %q: want another address than %s %q, which has the same", one.flag, one.addr, other.flag, other.addr))
			}
		}
	}
	return wrong
}

// overlap reports whether two binds have an address in common.
func overlap(x, y string) bool {
	xs, ys := ingress.Listeners{}, ingress.Listeners{}
	if xs.Add(x) != nil || ys.Add(y) != nil {
		return false
	}
	for port, addrs := range xs {
		for _, a := range addrs {
			for _, b := range ys[port] {
				if a == b || a == (netip.Addr{}) || b == (netip.Addr{}) {
					return true
				}
			}
		}
	}
	return false
}

// isBind reports whether HAProxy can listen on an address: also on sockets, ranges of
// ports, and several with commas between.
func isBind(bind string) bool {
	for part := range strings.SplitSeq(bind, ",") {
		kind, at, found := strings.Cut(part, "@")
		switch {
		case found && (kind == "ipv4" || kind == "ipv6"):
			part = at
		case found || strings.HasPrefix(part, "/"):
			continue
		}
		i := strings.LastIndex(part, ":")
		if i < 0 || !isHost(strings.Trim(part[:i], "[]")) {
			return false
		}
		first, last, isRange := strings.Cut(part[i+1:], "-")
		if !isPort(first, 1) || isRange && !isPort(last, 1) {
			return false
		}
	}
	return true
}

func isDebugAddr(addr string) bool {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return filepath.IsAbs(path)
	}
	host, port, err := net.SplitHostPort(addr)
	return err == nil && isHost(host) && isPort(port, 0)
}

// isOpen reports whether the debug server would be open to other machines. It judges
// names of hosts itself, when it starts.
func (c *config) isOpen() bool {
	host, _, err := net.SplitHostPort(c.debugAddr)
	ip, notIP := netip.ParseAddr(host)
	return !c.once && !c.demo && c.test == "" && c.debugToken == "" &&
		err == nil && (host == "" || host == "*" || notIP == nil && !ip.IsLoopback())
}

func isPort(s string, least int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= least && n <= 65535
}

// isHost takes the names that resolvers take, which may have a last dot, upper case and
// "_", as Docker gives them.
func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	name := strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(s, ".")), "_", "-")
	return s == "" || s == "*" || err == nil || len(validation.IsDNS1123Subdomain(name)) == 0 && strings.Trim(name, "0123456789.") != ""
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	if u.Scheme == "unix" {
		return u.Host == "" && filepath.IsAbs(u.Path)
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && isHost(u.Hostname()) && (u.Port() == "" || isPort(u.Port(), 1))
}

func isLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

func isObject(s string) bool {
	namespace, name, ok := strings.Cut(s, "/")
	return ok && isLabel(namespace) && len(validation.IsDNS1123Subdomain(name)) == 0
}

func isSelector(s string) bool {
	_, err := labels.Parse(s)
	return err == nil
}

func isFolder(s string) bool {
	info, err := os.Stat(s)
	return err == nil && info.IsDir()
}

func isFile(s string) bool {
	info, err := os.Stat(s)
	return err == nil && !info.IsDir()
}

// wantFile says what is wanted of a file, and why it is not there.
func wantFile(name, want string) string {
	var why *fs.PathError
	if _, err := os.Stat(name); errors.As(err, &why) {
		want += " (" + why.Err.Error() + ")"
	}
	return want
}

func isKubeconfig(s string) bool {
	_, err := clientcmd.LoadFromFile(s)
	return err == nil
}

func hasCertificates(file string) bool {
	text, err := os.ReadFile(file) // nothing of it is printed
	return err == nil && x509.NewCertPool().AppendCertsFromPEM(text)
}

// ofFlag names the flag that an error comes from; nil stays nil.
func ofFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("-%s: %w", name, err)
}
