package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/kit"
)

// TestSomeNamespaces: several are watched, and not all. What changes in each is served.
func TestSomeNamespaces(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "-namespace", "aaa,demo", "-namespace", "wild")
	for _, namespace := range []string{"aaa", "wild", "other"} {
		d.claim(namespace, "127.0.0.28", "  rules: [{host: "+namespace+".test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]")
	}
	for _, namespace := range []string{"aaa", "wild"} {
		d.until(func() bool { return d.answers(namespace+".test", "/") == "127.0.0.28:18080" })
		d.edit(namespace+".yaml", func(s string) string { return strings.Replace(s, "127.0.0.28", "127.0.0.29", 1) })
		d.until(func() bool { return d.answers(namespace+".test", "/") == "127.0.0.29:18080" })
	}
	require.Equal(t, "127.0.0.13:18080", d.answers("shop.demo.test", "/health"))
	status, _ := d.get("http://"+d.http+"/", "other.test")
	require.Equal(t, http.StatusNotFound, status)
}

func TestNamespacesAreChecked(t *testing.T) {
	for flags, want := range map[string]string{
		"-namespace a,B": `-namespace "B,a": want names of namespaces`,
		"-namespace a -namespace b -default-certificate c/tls": `-default-certificate "c/tls": want an object of a namespace that -namespace names`,
		"-namespace a -default-backend b/web:80":               "want an object of a namespace that -namespace names",
	} {
		_, err := parseFlags(strings.Fields(flags), kit.NewLog(io.Discard))
		require.ErrorContains(t, err, want, flags)
	}
	c, err := parseFlags(strings.Fields("-namespace b,a -namespace b -default-backend a/web:80"), kit.NewLog(io.Discard))
	require.NoError(t, err)
	require.Equal(t, kit.Namespaces{"a", "b"}, c.namespaces)
}
