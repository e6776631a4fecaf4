package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// TestClusterThatDoesNotAnswer: a preflight ends with an error, and does not
// wait for ever.
func TestClusterThatDoesNotAnswer(t *testing.T) {
	address := freeAddress(t) // nobody is there
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "http://%s"}}],
users: [{name: u, user: {}}]}
`, address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	var stderr bytes.Buffer
	code := run(ctx, []string{"-once", "-dry-run", "-kubeconfig", file}, io.Discard, &stderr)
	if code != 1 || ctx.Err() != nil || !strings.Contains(stderr.String(), "connection refused") {
		t.Errorf("code %d, %v: %s", code, ctx.Err(), stderr.String())
	}
}

// TestKubeconfigList: the variable may name several files, which are merged.
func TestKubeconfigList(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist:/neither")
	cfg, err := parseFlags(nil, kit.NewLog(io.Discard))
	if err != nil || cfg.kubeconfig != "" {
		t.Errorf("%+v, %v", cfg, err)
	}
}

// TestEndpointsByHTTPS: only with the CA and the name that they have.
func TestEndpointsByHTTPS(t *testing.T) {
	t.Setenv("HAPTIC_DATAPLANE_USERNAME", "admin")
	t.Setenv("HAPTIC_DATAPLANE_PASSWORD", "secret")
	t.Setenv("HAPTIC_VALIDATION_USERNAME", "admin")
	t.Setenv("HAPTIC_VALIDATION_PASSWORD", "secret")
	api := httptest.NewTLSServer(dataplanetest.New(t, nil)) // its certificate is for example.com
	t.Cleanup(api.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags string
		code  int
		want  string
	}{
		{"-endpoint-ca " + ca + " -endpoint-server-name example.com", 2, ""},
		{"-endpoint-ca " + ca + " -endpoint-server-name other.test", 1, "not other.test"},
		{"-endpoint-server-name example.com", 1, "certificate signed by unknown authority"},
		{"-endpoint-ca " + ca + "x", 1, "no such file"},
	} {
		var stderr bytes.Buffer
		args := append(strings.Fields(c.flags), "-once", "-dry-run", "-manifests", "demo", "-allow-endpoint", "127.0.0.0/8", "-endpoint", api.URL)
		if code := run(t.Context(), args, io.Discard, &stderr); code != c.code || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: code %d: %s", c.flags, code, stderr.String())
		}
	}
	for _, flags := range []string{"-endpoint-ca x", "-pods app=haproxy -pod-namespace edge -pod-scheme ftp", "-pod-namespace edge"} {
		if _, err := parseFlags(strings.Fields(flags), kit.NewLog(io.Discard)); err == nil {
			t.Errorf("%s: accepted", flags)
		}
	}
}

// TestWhereCredentialsAre: the flag beats the environment, credentials there beat the
// name of a Secret there, and that beats the default. A HAProxy of this host needs none.
func TestWhereCredentialsAre(t *testing.T) {
	const remote, folder = "-endpoint http://a", "-endpoint http://a -manifests demo"
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
		cfg, err := parseFlags(strings.Fields(c.flags), kit.NewLog(io.Discard))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || cfg.secret != c.secret || (cfg.credentials.DataplanePassword != "") != (c.secret == "" && c.password != "") {
			t.Errorf("%+v: %q, %v", c, cfg.secret, err)
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
		cfg, err := parseFlags(strings.Fields(c.flags), kit.NewLog(io.Discard))
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
		cfg, err := parseFlags(strings.Fields(c.flags), kit.NewLog(io.Discard))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", c.flags, err)
			}
			continue
		}
		if err != nil || cfg.podNamespace != c.pods || cfg.secret != c.secret || cfg.podScheme != c.scheme {
			t.Errorf("%s: %+v, %v", c.flags, cfg, err)
		}
	}
}
