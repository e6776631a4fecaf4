package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// config is what the flags say.
type config struct {
	settings, manifests, kubeconfig, local, namespace, httpAddr, socket, debugAddr string
	debugToken                                                                     observe.Token
	test, leaderElect                                                              bool
}

func parseFlags(args []string, stderr io.Writer) (*config, error) {
	c := &config{}
	fs := flag.NewFlagSet("settings", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the usage is for -h alone: nobody finds an error above it
	fs.StringVar(&c.settings, "settings", "", "`FILE` of settings, or configmap:NAMESPACE/NAME, whose key is settings.yaml; required")
	fs.StringVar(&c.manifests, "manifests", "", "watch a `folder` of manifests in place of a cluster")
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster; empty: as kubectl does")
	fs.StringVar(&c.local, "local", "", "`folder` for the state of a HAProxy on this host; empty: those behind Dataplane APIs, as dataplane in the settings says")
	fs.StringVar(&c.namespace, "namespace", "", "of this controller: where the Lease is, and the pods and Secrets of settings that name no namespace; empty: by $POD_NAMESPACE or the service account, or default with -local and -test")
	fs.BoolVar(&c.leaderElect, "leader-elect", false, "deploy only as the leader, by the Lease haptic-settings")
	fs.BoolVar(&c.test, "test", false, "run the cases in the settings, and end")
	fs.StringVar(&c.httpAddr, "http-addr", ":8080", "address for HTTP: httpAddress in templates")
	fs.StringVar(&c.socket, "endpoint-socket", "/var/run/haproxy/admin.sock", "runtime socket without -local: runtimeSocket in templates")
	fs.StringVar(&c.debugAddr, "debug-addr", observe.DefaultAddr, "`host:port` for metrics, probes and, with a token, debug pages; or unix:/path of a socket that needs none; empty: none")
	fs.Func("debug-token-file", "`file` with the token that the debug pages ask for, as bearer or in a browser as the password; required where -debug-addr is not loopback", func(s string) (err error) {
		c.debugToken, err = observe.ReadToken(s)
		return err
	})
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stderr)
		fs.Usage()
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w; -h lists all flags", err)
	}
	var wrong []error
	fs.Visit(func(f *flag.Flag) {
		if check, ok := c.checks()[f.Name]; f.Value.String() == "" && f.Name != "debug-addr" && f.Name != "debug-token-file" {
			wrong = append(wrong, fmt.Errorf("-%s %q: a value is missing: give one, or leave the flag out", f.Name, ""))
		} else if ok && !check.ok {
			wrong = append(wrong, fmt.Errorf("-%s %q: want %s", f.Name, f.Value, check.want))
		}
	})
	if len(wrong) > 0 {
		return nil, wrongFlags(wrong)
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

// wrongFlags is a line for each flag that is wrong.
type wrongFlags []error

func (w wrongFlags) Error() string {
	return strings.ReplaceAll(errors.Join(w...).Error(), "\n", "\nerror: ")
}

// check is what is wanted of a flag, and whether that is so.
type check struct {
	ok   bool
	want string
}

// checks says what is wanted of flags that are given, each by itself.
func (c *config) checks() map[string]check {
	isFile, isFolder := exists(c.manifests)
	stateIsFile, _ := exists(c.local)
	hasKubeconfig, _ := exists(c.kubeconfig)
	return map[string]check{
		"manifests":       {isFolder || c.local != "" && !isFile, "a folder that exists"},
		"local":           {!stateIsFile, "a folder, and this is a file"},
		"kubeconfig":      {hasKubeconfig, "a file that exists"},
		"namespace":       {len(validation.IsDNS1123Label(c.namespace)) == 0, "the name of a namespace: a-z, 0-9 and -, 63 characters at most"},
		"http-addr":       {isBind(c.httpAddr), "address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080"},
		"endpoint-socket": {filepath.IsAbs(c.socket), "a path that begins with /"},
		"debug-addr": {c.debugAddr == "" || strings.HasPrefix(c.debugAddr, "unix:/") || isAddress(c.debugAddr),
			"host:port with a port from 0 to 65535, such as 127.0.0.1:9090, or unix:/path"},
	}
}

func exists(path string) (isFile, isFolder bool) {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir(), err == nil && info.IsDir()
}

// isBind reports whether HAProxy can listen on an address: also on sockets, ranges of
// ports, and several with commas between.
func isBind(bind string) bool {
	for part := range strings.SplitSeq(bind, ",") {
		kind, _, found := strings.Cut(part, "@")
		if strings.HasPrefix(part, "/") || found && kind != "ipv4" && kind != "ipv6" {
			continue
		}
		i := strings.LastIndex(part, ":")
		first, last, isRange := strings.Cut(part[i+1:], "-")
		if i < 0 || !isPort(first, 1) || isRange && !isPort(last, 1) {
			return false
		}
	}
	return true
}

func isAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && isPort(port, 0)
}

func isPort(s string, least int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= least && n <= 65535
}
