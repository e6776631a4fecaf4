package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// onceSettings print what a ConfigMap with the label site says.
const onceSettings = `
watchedResources:
  sites: {apiVersion: v1, resources: configmaps, labelSelector: site}
haproxyConfig:
  template: |
    global
        maxconn 1000
    frontend web
        mode http
        bind {{ httpAddress }}
haproxySections:
  sites.cfg:
    each: {resource: sites, as: site}
    template: |
      backend {{ site.Name }}
          mode {{ site.Data["mode"] }}
dataplane: {podSelector: {matchLabels: {app: haproxy}}, scheme: http, port: PORT}
`

const siteText = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: shop, labels: {site: ''}}\ndata: {mode: %s}\n"

// TestOnce: the exit code of a preflight is 2 for a difference, 0 for none, and 1 for
// whatever is wrong, which it names; -once alone deploys. The settings are a ConfigMap,
// and the environment says which.
func TestOnce(t *testing.T) {
	needHAProxy(t)
	api := dataplanetest.New(t, &dataplanetest.Options{Password: "c4nary"})
	at, err := url.Parse(api.URL())
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	settings := func(text string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: edge}\ndata:\n  settings.yaml: |" +
			strings.ReplaceAll(strings.ReplaceAll(text, "PORT", at.Port()), "\n", "\n    ")
	}
	write("settings.yaml", settings(onceSettings))
	write("pod.yaml", fmt.Sprintf(podText, "edge", 1))
	write("good.yaml", fmt.Sprintf(siteText, "good", "http"))
	t.Setenv("CONFIGMAP_NAME", "settings")
	t.Setenv("SECRET_NAME", "haproxy-credentials")
	t.Setenv("POD_NAMESPACE", "edge")
	var out strings.Builder
	once := func(code int, says string, args ...string) {
		t.Helper()
		out.Reset()
		got := run(t.Context(), append([]string{"-once", "-manifests", dir}, args...), &out, &out)
		require.Equal(t, code, got, out.String())
		require.Contains(t, out.String(), says)
		require.NotContains(t, out.String(), "c4nary")
	}
	once(1, "error: credentials: Secret edge/haproxy-credentials: it does not exist", "-dry-run")
	write("secret.yaml", fmt.Sprintf(secretText, "c4nary"))
	once(2, "+ backend good", "-dry-run")
	require.Equal(t, 1, strings.Count(out.String(), "missing timeouts for frontend 'web'"), "what haproxy warns of is told once: %s", out.String())
	require.NotContains(t, api.Raw(), "good", "a dry run changes nothing")
	once(0, "edge/haproxy-0:")
	require.Contains(t, api.Raw(), "backend good")
	once(0, "edge/haproxy-0:\nNo change", "-dry-run")

	write("bad.yaml", fmt.Sprintf(siteText, "bad", "smtp"))
	once(1, "error: in quarantine: ConfigMap shop/bad ("+dir+"/bad.yaml:1): ConfigMap edge/settings settings.yaml:15: ", "-dry-run")
	write("bad.yaml", "kind: [")
	once(1, "bad.yaml:1", "-dry-run")
	require.NoError(t, os.Remove(filepath.Join(dir, "bad.yaml")))
	write("settings.yaml", settings(strings.Replace(onceSettings, "site.Data", "site.Date", 1)))
	once(1, "error: ConfigMap edge/settings settings.yaml:15:", "-dry-run")
	write("settings.yaml", settings(strings.Replace(onceSettings, "haproxy}", "none}", 1)))
	once(1, "error: no HAProxy is found: no pod of namespace edge with the labels app=none", "-dry-run")
	require.Contains(t, api.Raw(), "backend good")
}

// TestOnceOnThisHost compares with what is stored, and stores nothing.
func TestOnceOnThisHost(t *testing.T) {
	needHAProxy(t)
	dir := filepath.Join(t.TempDir(), "none")
	var out strings.Builder
	code := run(t.Context(), []string{"-settings", "testdata/settings.yaml", "-manifests", "../controller/demo", "-local", dir, "-once", "-dry-run"}, &out, io.Discard)
	require.Equal(t, 2, code)
	require.Contains(t, out.String(), "HAProxy starts.")
	require.NoDirExists(t, dir)
}
