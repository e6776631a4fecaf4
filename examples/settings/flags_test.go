package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/kit"
)

// TestFlagsAreChecked: each wrong flag is one line that names the flag, the value and the
// form that is wanted, and nothing else is printed.
func TestFlagsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	const (
		missing = ": a value is missing: give one, or leave the flag out"
		address = ": want address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080"
		debug   = ": want host:port with a port from 0 to 65535, such as 127.0.0.1:6060, or unix:/path"
		label   = ": want the name of a namespace: a-z, 0-9 and -, 63 characters at most"
	)
	for want, args := range map[string][]string{
		"-settings is required, or CONFIGMAP_NAME in the environment": {"-test"},
		"unexpected argument more":                                    {"-settings", "x", "-local", "x", "more"},
		`-settings "/no/such": want a file that exists (no such file or directory)` + "\nerror: -dry-run needs -once": {"-settings", "/no/such", "-test", "-dry-run"},
		"-test needs a file of -settings: cases need no cluster":                                                      {"-settings", "configmap:x/y", "-test"},
		"-dry-run needs -once": {"-settings", file, "-test", "-dry-run"},
		"-once without -dry-run excludes -local: a HAProxy that this process starts would end with it":               {"-settings", file, "-once", "-local", "x"},
		"-leader-elect needs a cluster, not -manifests, and excludes -once":                                          {"-settings", file, "-once", "-leader-elect", "-pod-namespace", "x"},
		`-settings "configmap:X": want configmap:[namespace/]name`:                                                   {"-settings", "configmap:X"},
		`-credentials "a b": want [namespace/]name`:                                                                  {"-settings", "x", "-credentials", "a b"},
		"flag provided but not defined: -nonsense; -h lists all flags":                                               {"-nonsense"},
		`-test "x": want true or false`:                                                                              {"-test=x"},
		`-settings ""` + missing:                                                                                     {"-settings", ""},
		`-local ""` + missing:                                                                                        {"-local="},
		`-manifests "/no/such": want a folder that exists (no such file or directory)`:                               {"-manifests", "/no/such"},
		`-local "` + file + `": want a folder, and this is a file`:                                                   {"-local", file},
		`-kubeconfig "/no/such": want a file that says how to reach a cluster (no such file or directory)`:           {"-kubeconfig", "/no/such"},
		`-pod-namespace "NO SUCH"` + label:                                                                           {"-pod-namespace", "NO SUCH"},
		`-http-addr "8080"` + address:                                                                                {"-http-addr", "8080"},
		`-http-addr ":0"` + address:                                                                                  {"-http-addr", ":0"},
		`-debug-addr "9090"` + debug:                                                                                 {"-debug-addr", "9090"},
		`-debug-addr "unix:x"` + debug:                                                                               {"-debug-addr", "unix:x"},
		`-metrics-addr "9090": want host:port with a port from 0 to 65535, such as :9090`:                            {"-metrics-addr", "9090"},
		`-metrics-addr ":8080": want another address than -http-addr ":8080", which has the same`:                    {"-metrics-addr", ":8080", "-local", "x"},
		`-debug-addr ":6060" is not loopback: give -debug-token-file; Prometheus and probes need -metrics-addr only`: {"-debug-addr", ":6060"},
		`-log-level "loud": want debug, info, warn or error`:                                                         {"-log-level", "loud"},
		`-log-format "xml": want text or json`:                                                                       {"-log-format", "xml"},
		`-endpoint-socket "x": want a path that begins with /`:                                                       {"-endpoint-socket", "x"},
		"-pod-namespace \"X\"" + label + "\nerror: -http-addr \"x\"" + address:                                       {"-pod-namespace", "X", "-http-addr", "x"},
	} {
		var stderr strings.Builder
		if _, err := parseFlags(args, kit.NewLog(&stderr)); err == nil || err.Error() != want || stderr.Len() > 0 {
			t.Errorf("got %v, want %s; printed %s", err, want, stderr.String())
		}
	}
	var stderr strings.Builder
	if _, err := parseFlags([]string{"-h"}, kit.NewLog(&stderr)); !errors.Is(err, flag.ErrHelp) || !strings.Contains(stderr.String(), "-manifests folder") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

// TestFlagsThatAreRight: templates get what HAProxy can listen on.
func TestFlagsThatAreRight(t *testing.T) {
	for _, bind := range []string{":80", "*:80", "[::]:80", ":::80", "ipv4@:80", ":80,:81", ":8000-8010", "unix@/run/x.sock", "/run/x.sock", "fd@3"} {
		if _, err := parseFlags([]string{"-settings", "testdata/settings.yaml", "-test", "-http-addr", bind}, kit.NewLog(&strings.Builder{})); err != nil {
			t.Error(err)
		}
	}
}

// TestEnvironment: what a pod is told by its environment is enough, and a flag beats it.
func TestEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		environ, args, want string
	}{
		"all":                {"POD_NAMESPACE=edge CONFIGMAP_NAME=settings SECRET_NAME=mine", "", "configmap:edge/settings edge mine"},
		"defaults":           {"POD_NAMESPACE=edge CONFIGMAP_NAME=settings", "", "configmap:edge/settings edge haptic-credentials"},
		"other namespaces":   {"POD_NAMESPACE=edge CONFIGMAP_NAME=a/settings SECRET_NAME=b/mine", "", "configmap:a/settings edge b/mine"},
		"flags beat it":      {"POD_NAMESPACE=edge CONFIGMAP_NAME=settings SECRET_NAME=mine", "-settings testdata/settings.yaml -pod-namespace other -credentials x", "testdata/settings.yaml other x"},
		"a flag without one": {"POD_NAMESPACE=edge", "-settings configmap:settings", "configmap:edge/settings edge haptic-credentials"},
		"of another":         {"CONFIGMAP_NAME=settings", "-pod-namespace other", "configmap:other/settings other haptic-credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"POD_NAMESPACE", "CONFIGMAP_NAME", "SECRET_NAME"} {
				t.Setenv(variable, "")
			}
			for _, pair := range strings.Fields(c.environ) {
				variable, value, _ := strings.Cut(pair, "=")
				t.Setenv(variable, value)
			}
			got, err := parseFlags(strings.Fields(c.args), kit.NewLog(io.Discard))
			require.NoError(t, err)
			if got := got.settings + " " + got.namespace + " " + got.secret; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
