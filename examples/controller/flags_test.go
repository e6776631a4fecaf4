package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
)

// TestFlagsAreChecked: each wrong flag is one line, the last ones, that names the flag,
// the value and the form that is wanted; before anything starts, and without the usage.
func TestFlagsAreChecked(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("no certificate\n"), 0o600))
	const (
		missing = "a value is missing: give one, or leave the flag out"
		above   = "want a duration above 0s, such as 500ms"
		label   = "want the name of a namespace: a-z, 0-9 and -, 63 characters at most"
		bind    = "want address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080"
		debug   = "want host:port with a port from 0 to 65535, such as 127.0.0.1:6060, or unix:/path"
		metrics = "want host:port with a port from 0 to 65535, such as :9090"
		url     = "want a URL such as https://10.0.0.7:5555, without credentials"
		folder  = "want a folder that exists"
		gone    = " (no such file or directory)"
	)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-nonsense"}, []string{"flag provided but not defined: -nonsense; -h lists all flags"}},
		{[]string{"-lease"}, []string{"flag needs an argument: -lease; -h lists all flags"}},
		{[]string{"-debounce", "5"}, []string{`-debounce "5": want a duration, such as 1m30s`}},
		{[]string{"-debounce", "0"}, []string{"-debounce 0s: " + above}},
		{[]string{"-min-interval", "-2s"}, []string{"-min-interval -2s: " + above}},
		{[]string{"-drift-interval", "-1m"}, []string{"-drift-interval -1m0s: " + above}},
		{[]string{"-expiry-warning", "-1h"}, []string{"-expiry-warning -1h0m0s: " + above}},
		{[]string{"-hard-stop-after", "500ms"}, []string{"-hard-stop-after 500ms: want 1s or more, such as 30m"}},
		{[]string{"-demo-port", "65535"}, []string{"-demo-port 65535: want a port from 1 to 65534"}},
		{[]string{"-demo-port", "x"}, []string{`-demo-port "x": want a whole number`}},
		{[]string{"-pod-port", "0"}, []string{"-pod-port 0: want a port from 1 to 65535"}},
		{[]string{"-maxconn", "-1"}, []string{"-maxconn -1: want 0 or more"}},
		{[]string{"-slots", "-4"}, []string{"-slots -4: want a number from 0 to 10000"}},
		{[]string{"-max-old-workers", "-1"}, []string{"-max-old-workers -1: want 0 or more"}},
		{[]string{"-once=perhaps"}, []string{`-once "perhaps": want true or false`}},
		{[]string{"-namespace", "NO SUCH"}, []string{`-namespace "NO SUCH": ` + label}},
		{[]string{"-pod-namespace", "a.b"}, []string{`-pod-namespace "a.b": ` + label}},
		{[]string{"-pods", "app in haproxy"}, []string{`-pods "app in haproxy": want a label selector, such as app=haproxy`}},
		{[]string{"-pod-scheme", "ftp"}, []string{`-pod-scheme "ftp": want http or https`}},
		{[]string{"-publish-service", "nonsense"}, []string{`-publish-service "nonsense": want namespace/name`}},
		{[]string{"-publish-service", "a/b", "-publish-address", "192.0.2.1"}, []string{"-publish-service and -publish-address exclude each other"}},
		{[]string{"-publish-address", "192.0.2.1", "-manifests", dir}, []string{"-publish-service and -publish-address need a cluster, not -manifests"}},
		{[]string{"-publish-address", "LB:80"}, []string{`-publish-address "LB:80": want an address such as 192.0.2.1 or 2001:db8::1, or a host name in lower case`}},
		{[]string{"-lease", "nonsense"}, []string{`-lease "nonsense": want namespace/name`}},
		{[]string{"-lease", "a/B"}, []string{`-lease "a/B": want namespace/name`}},
		{[]string{"-credentials", "a/b/c"}, []string{`-credentials "a/b/c": want [namespace/]name`}},
		{[]string{"-local", ""}, []string{`-local "": ` + missing}},
		{[]string{"-manifests", ""}, []string{`-manifests "": ` + missing}},
		{[]string{"-endpoint="}, []string{`-endpoint "": ` + missing}},
		{[]string{"-http-addr", ""}, []string{`-http-addr "": ` + missing}},
		{[]string{"-local", file}, []string{`-local "` + file + `": want a folder, and this is a file`}},
		{[]string{"-manifests", dir + "/no"}, []string{`-manifests "` + dir + `/no": ` + folder + gone}},
		{[]string{"-manifests", file}, []string{`-manifests "` + file + `": ` + folder}},
		{[]string{"-templates", dir + "/no"}, []string{`-templates "` + dir + `/no": ` + folder + gone}},
		{[]string{"-test", dir + "/no"}, []string{`-test "` + dir + `/no": want a file or a folder that exists` + gone}},
		{[]string{"-kubeconfig", dir + "/no"}, []string{`-kubeconfig "` + dir + `/no": want a file that says how to reach a cluster` + gone}},
		{[]string{"-endpoint-ca", file, "-endpoint", "https://10.0.0.7"}, []string{`-endpoint-ca "` + file + `": want a PEM file with certificates`}},
		{[]string{"-debug-token-file", dir + "/no"}, []string{`-debug-token-file "` + dir + `/no": open ` + dir + `/no: no such file or directory`}},
		{[]string{"-debug-token-file", file}, []string{`-debug-token-file "` + file + `": ` + file + `: the token is not one word of at least 16 characters: write one, such as openssl rand -hex 16 prints`}},
		{[]string{"-endpoint", "10.0.0.7:5555"}, []string{`-endpoint "10.0.0.7:5555": ` + url}},
		{[]string{"-endpoint", "ftp://10.0.0.7"}, []string{`-endpoint "ftp://10.0.0.7": ` + url}},
		{[]string{"-endpoint", "https://10.0.0.7:99999"}, []string{`-endpoint "https://10.0.0.7:99999": ` + url}},
		{[]string{"-endpoint", "https://admin:hunter2@10.0.0.7"}, []string{"-endpoint: " + url}},
		{[]string{"-endpoint", "http://a:1", "-endpoint", "http://a:1"}, []string{`-endpoint "http://a:1": want each URL once`}},
		{[]string{"-endpoint-base", "etc"}, []string{`-endpoint-base "etc": want a path that begins with /`}},
		{[]string{"-http-addr", "8080"}, []string{`-http-addr "8080": ` + bind}},
		{[]string{"-http-addr", ":0"}, []string{`-http-addr ":0": ` + bind}},
		{[]string{"-https-addr", ":99999"}, []string{`-https-addr ":99999": ` + bind}},
		{[]string{"-https-addr", "1.2.3:80"}, []string{`-https-addr "1.2.3:80": ` + bind}},
		{[]string{"-debug-addr", "9090"}, []string{`-debug-addr "9090": ` + debug}},
		{[]string{"-debug-addr", "unix:x.sock"}, []string{`-debug-addr "unix:x.sock": ` + debug}},
		{[]string{"-http-addr", ":8080", "-https-addr", "0.0.0.0:8080"}, []string{`-https-addr "0.0.0.0:8080": want another address than -http-addr ":8080", which has the same`}},
		{[]string{"-https-addr", "127.0.0.1:7,[::1]:8080"}, []string{`-https-addr "127.0.0.1:7,[::1]:8080": want another address than -http-addr ":8080", which has the same`}},
		{[]string{"-debug-addr", "127.0.0.1:8443"}, []string{`-debug-addr "127.0.0.1:8443": want another address than -https-addr ":8443", which has the same`}},
		{[]string{"-allow-endpoint", "10.0.0.1"}, []string{`-allow-endpoint "10.0.0.1": want a range such as 10.0.0.0/8 or fd00::/8`}},
		{[]string{"-shared-host", "shop_1.test"}, []string{`-shared-host "shop_1.test": "shop_1.test" is not a host name, it holds '_'; letters a-z, digits, "-" and "." are allowed`}},
		{[]string{"-limit", "paths-per-ingress=x"}, []string{`-limit "paths-per-ingress=x": paths-per-ingress: "x" is not a number above 0`}},
		{[]string{"-limit", "path-per-ingress=9"}, []string{`-limit "path-per-ingress=9": there is no limit "path-per-ingress": did you mean paths-per-ingress? -h lists all`}},
		{[]string{"-limit", "x=9"}, []string{`-limit "x=9": there is no limit "x": want name=number; -h lists all`}},
		{[]string{"-debug-addr", "0.0.0.0:6060"}, []string{`-debug-addr "0.0.0.0:6060" is not loopback: give -debug-token-file; Prometheus and probes need -metrics-addr only`}},
		{[]string{"-debug-addr", ":6060"}, []string{`-debug-addr ":6060" is not loopback: give -debug-token-file; Prometheus and probes need -metrics-addr only`}},
		{[]string{"-metrics-addr", "9090"}, []string{`-metrics-addr "9090": ` + metrics}},
		{[]string{"-metrics-addr", "unix:/run/x.sock"}, []string{`-metrics-addr "unix:/run/x.sock": ` + metrics}},
		{[]string{"-metrics-addr", ":8080"}, []string{`-metrics-addr ":8080": want another address than -http-addr ":8080", which has the same`}},
		{[]string{"-https-addr", ":9090"}, []string{`-metrics-addr ":9090": want another address than -https-addr ":9090", which has the same`}},
		{[]string{"-debug-addr", "127.0.0.1:9090"}, []string{`-debug-addr "127.0.0.1:9090": want another address than -metrics-addr ":9090", which has the same`}},
		{[]string{"-log-level", "loud"}, []string{`-log-level "loud": want debug, info, warn or error`}},
		{[]string{"-log-format", ""}, []string{`-log-format "": ` + missing}},
		{[]string{"-log-format", "xml"}, []string{`-log-format "xml": want text or json`}},
		{[]string{"-debounce", "x", "-namespace", "X", "-maxconn", "-1"}, []string{`-debounce "x": want a duration, such as 1m30s`, "-maxconn -1: want 0 or more", `-namespace "X": ` + label}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var stdout, stderr output
			require.Equal(t, 1, run(t.Context(), c.args, &stdout, &stderr))
			require.Equal(t, "error: "+strings.Join(c.want, "\nerror: ")+"\n", stderr.String())
			require.Empty(t, stdout.String())
		})
	}
}

// TestFlagsThatAreRight are taken.
func TestFlagsThatAreRight(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "edge")
	for _, args := range []string{
		"", "-debug-addr=", "-http-addr 127.0.0.1:80 -https-addr 127.0.0.2:80", "-http-addr *:80 -https-addr [::1]:443", "-http-addr :::80",
		"-http-addr ipv4@:80,unix@/run/x.sock -https-addr /run/y.sock", "-http-addr :8000-8010", "-debug-addr localhost:9191", "-debug-addr unix:/run/x.sock",
		"-endpoint http://a:5555/ -endpoint unix:///run/x.sock -debug-addr 127.0.0.1:8080", "-once=false", "-maxconn 0 -slots 0", "-lease a/b.c", "-credentials a/b.c -endpoint https://b",
		"-endpoint http://haproxy_1:5555 -endpoint https://HAProxy-2/v3 -endpoint https://edge/haproxy/2/v3/ -endpoint https://haproxy.edge.svc.cluster.local.:5555 -debug-addr Node-1:9191",
		"-metrics-addr=", "-metrics-addr 0.0.0.0:0 -debug-addr 127.0.0.1:0", "-metrics-addr 10.0.0.1:9090 -debug-addr 127.0.0.1:9090", "-log-level warn -log-format json",
		"-pods app=haproxy,tier!=x -pod-namespace edge", "-pods a=b -pod-namespace *", "-once -pods a=b", "-manifests demo -demo", "-drift-interval 100000h",
		"-publish-service edge/haptic", "-publish-address 192.0.2.1 -publish-address 2001:db8::1 -publish-address lb.example.com -once -dry-run",
	} {
		_, err := parseFlags(strings.Fields(args), kit.NewLog(&output{}))
		require.NoError(t, err, args)
	}
}

// TestConfigShowsWhatIsInForce: the variable config has what zero means, as the packages
// say it, and what a flag says.
func TestConfigShowsWhatIsInForce(t *testing.T) {
	shown := func(args string) map[string]any {
		c, err := parseFlags(strings.Fields(args), kit.NewLog(&output{}))
		require.NoError(t, err, args)
		text, err := json.Marshal(c.public())
		require.NoError(t, err)
		var all map[string]any
		require.NoError(t, json.Unmarshal(text, &all))
		return all
	}
	usual, all := reconcile.Options{}.WithDefaults(), shown("-endpoint https://b -credentials a/b")
	for name, want := range map[string]any{
		"debounce": usual.Debounce.String(), "min-interval": usual.MinInterval.String(), "drift-interval": usual.DriftInterval.String(),
		"max-old-workers": strconv.Itoa(dataplane.DefaultMaxOldWorkers), "endpoint-base": "/etc/haproxy", "slots": "4", "maxconn": "what HAProxy finds fit",
		"expiry-warning": "168h0m0s, or 1/6 of its life where that is shorter", "log-level": "info", "log-format": "text",
	} {
		require.Equal(t, want, all[name], name)
	}
	require.Equal(t, 1000.0, all["limit"].(map[string]any)["servers-per-backend"])
	all = shown("-debounce 10s -expiry-warning 48h -limit servers-per-backend=5 -log-format json")
	require.Equal(t, "10s", all["debounce"])
	require.Equal(t, "48h0m0s", all["expiry-warning"])
	require.Equal(t, "json", all["log-format"])
	require.Equal(t, 5.0, all["limit"].(map[string]any)["servers-per-backend"])
	require.Regexp(t, `^[1-9]\d*$`, all["maxconn"])

	var help output
	_, err := parseFlags([]string{"-h"}, kit.NewLog(&help))
	require.ErrorIs(t, err, flag.ErrHelp)
	require.Contains(t, help.String(), "(default "+usual.Debounce.String()+")")
}
