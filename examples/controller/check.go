package main

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// maxSlots bounds -slots.
const maxSlots = 10_000

// checkValues checks the value of each given flag.
func (c *config) checkValues() {
	const above, port = "a duration above 0s, such as 500ms", "a port from 1 to 65535"
	f := c.Flags
	f.Check("debounce", c.debounce > 0, above)
	f.Check("min-interval", c.minInterval > 0, above)
	f.Check("drift-interval", c.drift > 0, above)
	f.Check("stall-time", c.stallTime >= 10*time.Second, "10s or more, such as 5m")
	f.Check("expiry-warning", c.expiryWarning > 0, above)
	f.Check("hard-stop-after", c.hardStopAfter >= time.Second, "1s or more, such as 30m")
	f.Check("demo-port", c.demoPort > 0 && c.demoPort < 65535, "a port from 1 to 65534")
	f.Check("pod-port", c.podPort > 0 && c.podPort <= 65535, port)
	f.Check("maxconn", c.maxConn >= 0, "0 or more")
	f.Check("slots", c.spareSlots >= 0 && c.spareSlots <= maxSlots, "a number from 0 to 10000")
	f.Check("max-old-workers", c.maxOldWorkers >= 0, "0 or more")
	c.checkNamespaces()
	if c.podNamespace != discover.AllNamespaces {
		f.CheckNamespaces("pod-namespace")
	}
	f.Check("pods", isSelector(c.pods), "a label selector, such as app=haproxy")
	f.Check("pod-scheme", c.podScheme == "http" || c.podScheme == "https", "http or https")
	f.Check("lease", isObject(c.lease), "namespace/name")
	c.publish.check(f, c.manifests != "")
	f.Check("credentials", isObject(c.secret) || isObject("default/"+c.secret), "[namespace/]name")
	f.CheckFile("kubeconfig", isKubeconfig(c.kubeconfig), "a file that says how to reach a cluster")
	f.CheckFile("manifests", kit.IsFolder(c.manifests) || c.local != "" && !kit.IsFile(c.manifests), "a folder that exists")
	f.CheckFile("templates", kit.IsFolder(c.templates), "a folder that exists")
	f.CheckFile("test", kit.IsFolder(c.test) || kit.IsFile(c.test), "a file or a folder that exists")
	f.Check("local", !kit.IsFile(c.local), "a folder, and this is a file")
	f.CheckFile("endpoint-ca", hasCertificates(c.endpointCA), "a PEM file with certificates")
	f.CheckPaths("endpoint-base", "endpoint-socket")
	c.checkServe()
	f.CheckBinds(!c.remote(), "http-addr", "https-addr", "stats-addr")
	for i, url := range c.endpoints {
		switch {
		case url == "": // reported already
		case !isURL(url) && strings.Contains(url, "@"): // it may hold a password
			f.Wrong(fmt.Errorf("-endpoint: want %s", wantURL))
		case !isURL(url):
			f.Wrong(fmt.Errorf("-endpoint %q: want %s", url, wantURL))
		case slices.Contains(c.endpoints[:i], url):
			f.Wrong(fmt.Errorf("-endpoint %q: want each URL once", url))
		}
	}
}

const wantURL = "a URL such as https://10.0.0.7:5555, without credentials"

func isURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	if u.Scheme == "unix" {
		return u.Host == "" && filepath.IsAbs(u.Path)
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && kit.IsHost(u.Hostname()) && (u.Port() == "" || kit.IsPort(u.Port(), 1))
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

func isKubeconfig(s string) bool {
	_, err := clientcmd.LoadFromFile(s)
	return err == nil
}

func hasCertificates(file string) bool {
	text, err := os.ReadFile(file) // nothing of it is printed
	return err == nil && x509.NewCertPool().AppendCertsFromPEM(text)
}
