package kit

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// TargetFlags say which instances to configure: the HAProxy on this host, or those behind
// Dataplane APIs, by their URLs or by the labels of their pods.
type TargetFlags struct {
	Local              string // folder of the HAProxy on this host; "": a temporary one
	MaxOldWorkers      int
	StopTimeout, Drain time.Duration // Drain is for [Process]

	Endpoints      []string // URLs of Dataplane APIs
	Pods           string   // label selector
	PodNamespace   string   // Check sets a default
	PodPort        int
	PodScheme      string
	CA, ServerName string
	Base, Socket   string // folder of haproxy.cfg, and runtime socket

	Secret      string               // namespace/name, set by CheckCredentials; or else
	Credentials discover.Credentials // those of the environment
}

// Declare declares the flags.
func (t *TargetFlags) Declare(f *Flags) {
	f.StringVar(&t.Local, "local", "", "`folder` for the state of the HAProxy on this host; empty: a temporary one")
	f.IntVar(&t.MaxOldWorkers, "max-old-workers", dataplane.DefaultMaxOldWorkers, "how many old HAProxy processes may remain after reloads: with as many, the "+
		"next reload of the HAProxy on this host waits for one to end, for up to -hard-stop-after; a quarter more, at least one, are for reloads that "+
		"backends of others need")
	f.DurationVar(&t.Drain, "drain-delay", 0, "how long the HAProxy on this host serves on after SIGTERM, while /readyz answers 503, so that the pod leaves "+
		"its Service first; shorter than terminationGracePeriodSeconds")
	f.DurationVar(&t.StopTimeout, "stop-timeout", 1200*time.Millisecond, "how long requests under way may take at the end")
	f.Func("endpoint", "`URL` of a Dataplane API to deploy to; may be repeated", func(s string) error {
		t.Endpoints = append(t.Endpoints, s)
		return nil
	})
	f.StringVar(&t.Pods, "pods", "", "label `selector` of HAProxy pods whose Dataplane API to deploy to")
	f.StringVar(&t.PodNamespace, "pod-namespace", "", "the only `namespace` whose pods count, *: all; an account that may create pods there gets the password "+
		"and all keys; empty: that of this process, by $POD_NAMESPACE or its service account")
	f.IntVar(&t.PodPort, "pod-port", 5555, "port of the Dataplane API in those pods")
	f.StringVar(&t.PodScheme, "pod-scheme", "https", "https or http, of the Dataplane API in those pods; with http, all who are on the way can read the "+
		"password and all keys")
	f.StringVar(&t.CA, "endpoint-ca", "", "PEM `file` of the CAs that sign for Dataplane APIs with https; empty: those of the system")
	f.StringVar(&t.ServerName, "endpoint-server-name", "", "name that must stand in the certificates of those Dataplane APIs; empty: the host in the URL, or "+
		"the address of the pod, which few certificates have")
	f.StringVar(&t.Secret, "credentials", "", "Secret `[namespace/]name` with dataplane_username and so on, without a namespace in that of this process; "+
		"empty: $HAPTIC_DATAPLANE_USERNAME and so on where they are set, or else the Secret $SECRET_NAME, or else haptic-credentials; with "+
		"-manifests the environment only")
	f.StringVar(&t.Base, "endpoint-base", path.Dir(dataplane.Layout{}.ConfigPath()), "folder of haproxy.cfg where the Dataplane APIs run")
	f.StringVar(&t.Socket, "endpoint-socket", DefaultSocket, "runtime socket that HAProxy opens there")
}

// DefaultSocket is the usual runtime socket of a HAProxy behind a Dataplane API.
const DefaultSocket = "/var/run/haproxy/admin.sock"

// Remote reports whether the instances are behind Dataplane APIs.
func (t *TargetFlags) Remote() bool { return len(t.Endpoints) > 0 || t.Pods != "" }

// Check checks the values and refuses bad combinations. folder says that the resources come
// from a folder.
func (t *TargetFlags) Check(f *Flags, folder bool) {
	if t.Remote() && !folder && !inEnvironment() {
		f.Env("credentials", "SECRET_NAME", "")
	}
	f.Check("local", !IsFile(t.Local), "a folder, and this is a file")
	f.Check("max-old-workers", t.MaxOldWorkers >= 0, "0 or more")
	f.Check("drain-delay", t.Drain >= 0, "0s or more, such as 10s")
	f.Check("stop-timeout", t.StopTimeout > 0, "a duration above 0s, such as 30s")
	_, err := labels.Parse(t.Pods)
	f.Check("pods", err == nil, "a label selector, such as app=haproxy")
	if t.PodNamespace != discover.AllNamespaces {
		f.CheckNamespaces("pod-namespace")
	}
	f.Check("pod-port", t.PodPort > 0 && t.PodPort <= 65535, "a port from 1 to 65535")
	f.Check("pod-scheme", t.PodScheme == "http" || t.PodScheme == "https", "http or https")
	f.CheckObjects("", "credentials")
	f.CheckFile("endpoint-ca", hasCertificates(t.CA), "a PEM file with certificates")
	f.CheckPaths("endpoint-base", "endpoint-socket")
	t.checkURLs(f)

	f.Refuse(t.Local != "" && t.Remote(), "-local excludes -endpoint and -pods")
	f.Refuse(t.Pods != "" && len(t.Endpoints) > 0, "-pods and -endpoint exclude each other")
	f.Refuse(t.Pods != "" && folder, "-pods needs a cluster, not -manifests")
	f.Refuse(t.Secret != "" && folder, "-credentials needs a cluster, not -manifests")
	f.Refuse(t.PodNamespace != "" && t.Pods == "", "-pod-namespace needs -pods")
	f.Refuse((t.CA != "" || t.ServerName != "") && !t.Remote(), "-endpoint-ca and -endpoint-server-name need -endpoint or -pods")
	f.Refuse((t.Drain > 0 || f.Given("stop-timeout")) && t.Remote(),
		"-drain-delay and -stop-timeout are for the HAProxy on this host: those behind Dataplane APIs serve on when this process ends")
	if t.Pods != "" && t.PodNamespace == "" {
		t.PodNamespace, err = discover.OwnNamespace(os.Getenv)
		f.Refuse(err != nil, "-pods needs -pod-namespace: %w", err)
	}
}

func (t *TargetFlags) checkURLs(f *Flags) {
	const want = "a URL such as https://10.0.0.7:5555, without credentials"
	for i, url := range t.Endpoints {
		switch {
		case url == "": // reported already
		case !isURL(url) && strings.Contains(url, "@"): // it may hold a password
			f.Wrong(fmt.Errorf("-endpoint: want %s", want))
		case !isURL(url):
			f.Wrong(fmt.Errorf("-endpoint %q: want %s", url, want))
		case slices.Contains(t.Endpoints[:i], url):
			f.Wrong(fmt.Errorf("-endpoint %q: want each URL once", url))
		}
	}
}

// CheckCredentials finds the credentials of Dataplane APIs: those of the environment, or the
// name of a Secret. Call it after Check, unless the program speaks to no instance.
func (t *TargetFlags) CheckCredentials(f *Flags, folder bool) {
	given := t.Secret != ""
	if !given && !t.Remote() || len(f.wrong)+len(f.refused) > 0 { // an error about credentials could follow from that one
		return
	}
	if !given && (inEnvironment() || folder) {
		var err error
		t.Credentials, err = discover.CredentialsFromEnv(os.Getenv)
		f.Refuse(err != nil, "%w", err)
		return
	}
	t.Secret = cmp.Or(t.Secret, discover.DefaultSecret)
	if strings.Contains(t.Secret, "/") {
		return
	}
	namespace, err := discover.OwnNamespace(os.Getenv)
	f.Refuse(err != nil && given, "-credentials %q: want namespace/name: %w", t.Secret, err)
	f.Refuse(err != nil && !given, "-credentials is required, or HAPTIC_DATAPLANE_USERNAME and HAPTIC_DATAPLANE_PASSWORD: "+
		"Secret %s needs a namespace: %w", t.Secret, err)
	t.Secret = namespace + "/" + t.Secret
}

// inEnvironment reports whether the environment has credentials.
func inEnvironment() bool {
	return os.Getenv("HAPTIC_DATAPLANE_USERNAME") != "" || os.Getenv("HAPTIC_DATAPLANE_PASSWORD") != ""
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	if u.Scheme == "unix" {
		return u.Host == "" && filepath.IsAbs(u.Path)
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && IsHost(u.Hostname()) && (u.Port() == "" || IsPort(u.Port(), 1))
}

func hasCertificates(file string) bool {
	text, err := os.ReadFile(file) // nothing of it is printed
	return err == nil && x509.NewCertPool().AppendCertsFromPEM(text)
}
