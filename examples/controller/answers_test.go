package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswersAreAsTold: what is said of each mistake in an Ingress is what a client gets
// from HAProxy. A path that waits for its Service answers 503, and is a warning; one that
// a rule leaves out is refused, and answers as if it was not written.
func TestAnswersAreAsTold(t *testing.T) {
	t.Parallel()
	const good = `{path: /, pathType: Prefix, backend: {service: {name: shop-web, port: {name: http}}}}`
	rows := []struct {
		host, paths string
		path        string // that is asked for
		status      int
		says        string // of the Ingress; "" where the Service is to blame
	}{
		{"missing", `{path: /, pathType: Prefix, backend: {service: {name: nope, port: {number: 80}}}}`, "/", 503,
			"warning: Ingress demo/missing %s: spec.rules[0].http.paths[0].backend.service.name: answers 503: Service demo/nope does not exist; it is served as soon as that is there"},
		{"port", `{path: /, pathType: Prefix, backend: {service: {name: shop-web, port: {number: 9999}}}}`, "/", 503,
			"warning: Ingress demo/port %s: spec.rules[0].http.paths[0].backend.service.port.number: answers 503: Service demo/shop-web has no port 9999; it has "},
		{"unnamed", `{path: /, pathType: Prefix, backend: {service: {name: shop-web, port: {}}}}`, "/", 503,
			"warning: Ingress demo/unnamed %s: spec.rules[0].http.paths[0].backend.service.port: answers 503: no port is named; Service demo/shop-web has "},
		{"external", `{path: /, pathType: Prefix, backend: {service: {name: external, port: {number: 80}}}}`, "/", 503,
			"refused: Service demo/external %s: spec.type: answers 503: ExternalName is not served, as the name may lead anywhere later, also to this host or to the metadata service of a cloud; use a Service without selector"},
		{"idle", `{path: /, pathType: Prefix, backend: {service: {name: idle, port: {number: 80}}}}`, "/", 503,
			"warning: Service demo/idle %s: no EndpointSlice has the label kubernetes.io/service-name=idle, requests get 503"},
		{"bucket", `{path: /, pathType: Prefix, backend: {resource: {kind: Bucket, name: x}}}`, "/", 404,
			"refused: Ingress demo/bucket %s: spec.rules[0].http.paths[0].backend.resource: only a Service can be a backend"},
		{"nothing", `{path: /, pathType: Prefix, backend: {}}`, "/", 404,
			"refused: Ingress demo/nothing %s: spec.rules[0].http.paths[0].backend: there is no Service: name one, and its port"},
		{"slash", `{path: cart, pathType: Prefix, backend: {service: {name: shop-web, port: {name: http}}}}`, "/cart", 404,
			`refused: Ingress demo/slash %s: spec.rules[0].http.paths[0].path: \"cart\" does not begin with a slash`},
		{"type", `{path: /, pathType: exact, backend: {service: {name: shop-web, port: {name: http}}}}`, "/", 404,
			`refused: Ingress demo/type %s: spec.rules[0].http.paths[0].pathType: \"exact\" is not known`},
		{"beside", good + `, {path: /cart, pathType: regexp, backend: {service: {name: shop-web, port: {name: http}}}}`, "/cart", 200,
			`refused: Ingress demo/beside %s: spec.rules[0].http.paths[1].pathType: \"regexp\" is not known`},
		{"kept", good + `, {path: /cart, pathType: Prefix, backend: {service: {name: away, port: {number: 80}}}}`, "/cart", 503,
			"warning: Ingress demo/kept %s: spec.rules[0].http.paths[1].backend.service.name: answers 503: Service demo/away does not exist"},
	}
	d := startDemo(t)
	for _, row := range rows {
		text := fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, namespace: demo}\nspec: {ingressClassName: haptic, rules: [{host: %[1]s.test, http: {paths: [%s]}}]}\n", row.host, row.paths)
		switch row.host {
		case "external":
			text += "---\napiVersion: v1\nkind: Service\nmetadata: {name: external, namespace: demo}\nspec: {type: ExternalName, externalName: example.com, ports: [{port: 80}]}\n"
		case "idle":
			text += "---\napiVersion: v1\nkind: Service\nmetadata: {name: idle, namespace: demo}\nspec: {selector: {app: idle}, ports: [{port: 80}]}\n"
		}
		file := filepath.Join(d.manifests, row.host+".yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		at := "(" + file + ":1)"
		if strings.Contains(row.says, "Service demo/"+row.host+" ") {
			at = "(" + file + ":6)"
		}
		says := fmt.Sprintf(row.says, at)
		d.until(func() bool { return strings.Contains(d.stderr.String(), says) })
		var status int
		d.until(func() bool {
			status, _ = d.get("http://"+d.http+row.path, row.host+".test")
			return status == row.status
		})
		require.Equal(t, strings.Contains(says, "503"), status == 503, says)
	}
	for _, row := range rows {
		status, _ := d.get("http://"+d.http+row.path, row.host+".test")
		require.Equal(t, row.status, status, row.host)
	}
	for line := range strings.Lines(d.stderr.String()) {
		require.False(t, strings.Contains(line, "refused: Ingress") && strings.Contains(line, "answers 503"), "what is there is not left out: %s", line)
	}
	// As told: it is served as soon as that is there.
	d.edit("shop.yaml", func(s string) string {
		return s + "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: nope, namespace: demo}\nspec: {ports: [{name: http, port: 80}]}\n" +
			"---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: nope-1, namespace: demo, labels: {kubernetes.io/service-name: nope}}\naddressType: IPv4\n" +
			"ports: [{name: http, port: " + d.first() + "}]\nendpoints: [{addresses: [127.0.0.11]}]\n"
	})
	d.until(func() bool { status, _ := d.get("http://"+d.http+"/", "missing.test"); return status == 200 })
	d.until(func() bool { return strings.Contains(d.stderr.String(), "in order again: Ingress demo/missing") })
	require.Equal(t, 1, strings.Count(d.stderr.String(), "Service demo/nope does not exist"), "once")
}
