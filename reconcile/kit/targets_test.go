package kit

import (
	"bytes"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// wired are the flags of a controller, after their checks.
type wired struct {
	TargetFlags
	lease string
}

func wiring(args string) (wired, error) {
	f := NewFlags("mine", NewLog(io.Discard))
	var source SourceFlags
	var namespaces Namespaces
	var targets TargetFlags
	var leader LeaderFlags
	source.Declare(f)
	namespaces.Declare(f)
	targets.Declare(f)
	leader.Declare(f, "haptic")
	if err := f.Parse(strings.Fields(args)); err != nil {
		return wired{}, err
	}
	folder := source.Manifests != ""
	source.Check(f, targets.Local != "")
	namespaces.Check(f)
	leader.Check(f, folder)
	targets.Check(f, folder)
	targets.CheckCredentials(f, folder)
	return wired{targets, leader.Lease}, f.Err()
}

// TestFlagsTogether: flags that contradict each other are all told, unless a value is wrong.
func TestFlagsTogether(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "edge")
	for args, want := range map[string]string{
		"-local x -endpoint http://a":            "-local excludes -endpoint and -pods",
		"-pods a=b -endpoint http://a":           "-pods and -endpoint exclude each other",
		"-pods a=b -manifests .":                 "-pods needs a cluster, not -manifests",
		"-leader-elect -manifests .":             "-leader-elect needs a cluster, not -manifests",
		"-credentials a/b -manifests .":          "-credentials needs a cluster, not -manifests",
		"-pod-namespace a":                       "-pod-namespace needs -pods",
		"-endpoint-server-name a":                "-endpoint-ca and -endpoint-server-name need -endpoint or -pods",
		"-stop-timeout 1s -endpoint http://a":    "-drain-delay and -stop-timeout are for the HAProxy on this host",
		"-pod-namespace a -endpoint-server-name": "flag needs an argument: -endpoint-server-name",
		"-local x -pods a=b -endpoint http://a":  "-local excludes -endpoint and -pods\nerror: -pods and -endpoint exclude each other",
		"-local x -pods a=b -pod-port 0":         "-pod-port 0: want a port from 1 to 65535",
		"-manifests /no/such":                    "want a folder that exists",
	} {
		_, err := wiring(args)
		require.ErrorContains(t, err, want, args)
		require.Equal(t, strings.Count(want, "error: "), strings.Count(err.Error(), "error: "), err.Error())
	}
	for _, args := range []string{"", "-local x", "-local x -manifests /no/such", "-namespace a,b -pods a=b"} { // copies may be left
		_, err := wiring(args)
		require.NoError(t, err, args)
	}
}

// TestAddressesOfPods: all addresses of a pod count, but not those of one that has ended: a
// pod of a tenant may have its address by now. An unknown name is told.
func TestAddressesOfPods(t *testing.T) {
	var log bytes.Buffer
	targets := &Targets{flags: TargetFlags{PodPort: 5555}, opts: TargetOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	pod := &corev1.Pod{Status: corev1.PodStatus{PodIP: "10.1.1.1", PodIPs: []corev1.PodIP{{IP: "10.1.1.1"}, {IP: "fd00::1"}}}}
	evicted := pod.DeepCopy()
	evicted.Status.Phase = corev1.PodFailed
	instances := []dataplane.Endpoint{{URL: "https://192.0.2.1"}, {URL: "http://[::1]:81"}, {URL: "http://no-such.invalid:82"}}
	require.Equal(t, []netip.AddrPort{
		netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParseAddrPort("[::1]:81"), netip.MustParseAddrPort("10.1.1.1:5555"), netip.MustParseAddrPort("[fd00::1]:5555"),
	}, targets.listeners(t.Context(), instances, []*corev1.Pod{pod, evicted}))
	require.Contains(t, log.String(), "instance=no-such.invalid")
}

// TestTemporaryFolder: without -local the state of HAProxy is gone after Close.
func TestTemporaryFolder(t *testing.T) {
	targets, err := (&TargetFlags{}).Open(TargetOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	dir := filepath.Dir(filepath.Dir(targets.Layout.ConfigPath()))
	require.DirExists(t, dir)
	require.NoError(t, targets.Wait(t.Context(), true), "there is none to wait for")
	targets.Close()
	require.NoDirExists(t, dir)
	targets, err = (&TargetFlags{Local: filepath.Join(t.TempDir(), "new")}).Open(TargetOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	targets.Close()
}

// TestBrokenManifests: the check tells of them, and of the wait for them.
func TestBrokenManifests(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("kind: ["), 0o600))
	source, err := (&SourceFlags{Manifests: dir}).Open(SourceOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, source.Check(), "a.yaml:1")
	source.waiting.Store(true)
	require.ErrorContains(t, source.Check(), "the controller deploys nothing until they are correct")
	require.NoError(t, (&Source{}).Check(), "a cluster has none")

	// A restart waits for watches for an instant. It deploys then, also beside a file whose last
	// good version is known.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), nil, 0o600))
	source, err = (&SourceFlags{Manifests: dir}).Open(SourceOptions{})
	require.NoError(t, err)
	source.waiting.Store(true)
	require.NoError(t, source.Check())
}

// TestWhereCredentialsAre: the flag beats the environment, credentials there beat the
// name of a Secret there, and that beats the default. A HAProxy of this host needs none.
func TestWhereCredentialsAre(t *testing.T) {
	const remote, folder = "-endpoint http://a", "-endpoint http://a -manifests ."
	for _, c := range []struct{ flags, user, password, name, own, secret, wrong string }{
		{remote, "", "", "", "edge", "edge/haptic-credentials", ""},
		{"-pods a=b", "", "", "", "edge", "edge/haptic-credentials", ""},
		{remote, "", "", "mine", "edge", "edge/mine", ""},
		{remote, "", "", "other/mine", "", "other/mine", ""},
		{remote + " -credentials flag", "u", "c4nary", "mine", "edge", "edge/flag", ""},
		{remote, "u", "c4nary", "mine", "edge", "", ""},
		{folder, "u", "c4nary", "mine", "edge", "", ""},
		{"", "", "", "mine", "", "", ""},
		{remote, "u", "", "mine", "edge", "", "variable HAPTIC_DATAPLANE_PASSWORD is missing"},
		{folder, "", "", "", "edge", "", "HAPTIC_DATAPLANE_USERNAME and HAPTIC_DATAPLANE_PASSWORD must be set"},
		{remote, "", "", "a b", "edge", "", `$SECRET_NAME "a b": want [namespace/]name`},
		{remote, "", "", "", "", "", "-credentials is required, or HAPTIC_DATAPLANE_USERNAME and HAPTIC_DATAPLANE_PASSWORD: Secret haptic-credentials needs a namespace"},
	} {
		if _, err := discover.OwnNamespace(func(string) string { return "" }); err == nil && c.own == "" {
			continue // the tests run in a pod themselves
		}
		t.Setenv("POD_NAMESPACE", c.own)
		t.Setenv("SECRET_NAME", c.name)
		t.Setenv("HAPTIC_DATAPLANE_USERNAME", c.user)
		t.Setenv("HAPTIC_DATAPLANE_PASSWORD", c.password)
		cfg, err := wiring(c.flags)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || cfg.Secret != c.secret || (cfg.Credentials.DataplanePassword != "") != (c.secret == "" && c.password != "") {
			t.Errorf("%+v: %q, %v", c, cfg.Secret, err)
		}
	}
}

// TestLeaseIsInTheOwnNamespace: there the Role of the controller allows it, and no tenant
// may write it.
func TestLeaseIsInTheOwnNamespace(t *testing.T) {
	for _, c := range []struct{ own, flags, lease string }{
		{"", "", "default/haptic"}, {"edge", "", "edge/haptic"}, {"edge", "-lease ops/mine", "ops/mine"},
	} {
		if _, err := discover.OwnNamespace(func(string) string { return "" }); err == nil && c.own == "" {
			continue // the tests run in a pod themselves
		}
		t.Setenv("POD_NAMESPACE", c.own)
		cfg, err := wiring(c.flags)
		if err != nil || cfg.lease != c.lease {
			t.Errorf("%+v: %q, %v", c, cfg.lease, err)
		}
	}
}

// TestPodsNeedANamespace: -namespace says whose Ingresses count. Pods and credentials
// are those of the controller's own namespace unless a flag says otherwise.
func TestPodsNeedANamespace(t *testing.T) {
	for _, c := range []struct{ own, flags, pods, secret, scheme, wrong string }{
		{"", "-pods a=b", "", "", "", "-pods needs -pod-namespace: POD_NAMESPACE is not set, and there is no service account"},
		{"", "-pods a=b -namespace shop", "", "", "", "-pods needs -pod-namespace"},
		{"", "-pods a=b -pod-namespace lb -credentials x", "", "", "", `-credentials "x": want namespace/name: POD_NAMESPACE is not set`},
		{"edge", "-pods a=b -namespace shop -credentials x", "edge", "edge/x", "https", ""},
		{"edge", "-pods a=b -pod-namespace lb -credentials x -pod-scheme http", "lb", "edge/x", "http", ""},
		{"edge", "-pods a=b -credentials other/x", "edge", "other/x", "https", ""},
		{"edge", "-pods a=b -pod-namespace *", "*", "edge/haptic-credentials", "https", ""},
	} {
		if _, err := discover.OwnNamespace(func(string) string { return "" }); err == nil && c.own == "" {
			continue // the tests run in a pod themselves
		}
		t.Setenv("POD_NAMESPACE", c.own)
		cfg, err := wiring(c.flags)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", c.flags, err)
			}
			continue
		}
		if err != nil || cfg.PodNamespace != c.pods || cfg.Secret != c.secret || cfg.PodScheme != c.scheme {
			t.Errorf("%s: %q %q %q, %v", c.flags, cfg.PodNamespace, cfg.Secret, cfg.PodScheme, err)
		}
	}
}
