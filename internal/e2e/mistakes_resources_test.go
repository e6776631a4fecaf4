package e2e

import (
	"fmt"
	"strings"
	"testing"
)

func runResources(t *testing.T, b *board, g *group) { startFolder(t, b, g, 1).runAll(g) }

const (
	pathField = "spec.rules[0].http.paths[0]"
	hostLine  = "host: SITE.test"
	classLine = "  ingressClassName: haptic\n"
	both      = "- addresses: [198.51.100.20]\n- addresses: [198.51.100.21]\n"
)

// resourceMistakes are objects that the API server would take, most of them, and
// that do not mean what somebody meant. The fields that are wrong serve nothing,
// and what of the object is right goes on.
var resourceMistakes = []mistake{
	{name: "a class of nobody", own: 404, edit: []string{classLine, "  ingressClassName: nginx\n"},
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "spec.ingressClassName", "nginx"}},
	{name: "a class misspelt", own: 404, edit: []string{classLine, "  ingressClassName: hapitc\n"},
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "spec.ingressClassName", "hapitc"}},
	{name: "no class", own: 404, edit: []string{classLine, ""},
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "spec.ingressClassName"}},
	{name: "a class misspelt in an annotation", own: 404, edit: []string{classLine, "", "annotations: {}", `annotations: {kubernetes.io/ingress.class: hapitc}`},
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "kubernetes.io/ingress.class", "hapitc"}},
	{name: "pathType exact", own: 404, edit: []string{"pathType: Prefix", "pathType: exact"},
		says: []string{"Ingress shop/SITE", pathField + ".pathType", "exact", "Exact"}},
	{name: "no pathType", edit: []string{"        pathType: Prefix\n", ""},
		says: []string{"Ingress shop/SITE", pathField + ".pathType", "Prefix"}},
	{name: "a path without a slash", own: 404, edit: []string{"path: /", "path: cart"},
		says: []string{"Ingress shop/SITE", pathField + ".path", "cart", `"/cart"`}},
	{name: "a path with a blank", own: 404, edit: []string{"path: /", "path: /my cart"},
		says: []string{"Ingress shop/SITE", pathField + ".path", "/my cart"}},
	{name: "a path like a regular expression", own: 404, edit: []string{"path: /", `path: "/cart(/|$)(.*)"`},
		says: []string{"Ingress shop/SITE", pathField + ".path", "/cart(/|$)(.*)"}},
	{name: "a host with a port", own: 404, edit: []string{hostLine, "host: SITE.test:8080"},
		says: []string{"Ingress shop/SITE", "spec.rules[0].host", "SITE.test:8080", "port"}},
	{name: "a host with upper case", own: 404, edit: []string{hostLine, "host: My-SITE.test"},
		says: []string{"Ingress shop/SITE", "spec.rules[0].host", "My-SITE.test", "case"}},
	{name: "a host with an underscore", own: 404, edit: []string{hostLine, "host: my_SITE.test"},
		says: []string{"Ingress shop/SITE", "spec.rules[0].host", "my_SITE.test", "_"}},
	{name: "a host with a wildcard in the middle", own: 404, edit: []string{hostLine, "host: www.*.SITE.test"},
		says: []string{"Ingress shop/SITE", "spec.rules[0].host", "www.*.SITE.test", "*"}},
	{name: "a host that is an address", own: 404, edit: []string{hostLine, "host: 192.0.2.1"},
		says: []string{"Ingress shop/SITE", "spec.rules[0].host", "IP address"}},
	{name: "a host with a scheme", own: 404, edit: []string{hostLine, "host: https://SITE.test"},
		says: []string{"Ingress shop/SITE", "spec.rules[0].host", "https://SITE.test"}},
	{name: "no such Service", own: 503, edit: []string{"service: {name: SITE,", "service: {name: SITE-x,"},
		says: []string{"Ingress shop/SITE", pathField + ".backend", "Service shop/SITE-x", "does not exist"}},
	{name: "no such port", own: 503, edit: []string{"port: {name: http}", "port: {number: 81}"},
		says: []string{"Ingress shop/SITE", pathField + ".backend", "Service shop/SITE", "81", "80"}},
	{name: "no such name of a port", own: 503, edit: []string{"port: {name: http}", "port: {name: htpt}"},
		says: []string{"Ingress shop/SITE", pathField + ".backend", "Service shop/SITE", "htpt", "http"}},
	{name: "no port", own: 503, edit: []string{", port: {name: http}", ""},
		says: []string{"Ingress shop/SITE", pathField + ".backend", "port"}},
	{name: "a backend that is no Service", own: 404, edit: []string{"service: {name: SITE, port: {name: http}}", "resource: {kind: Bucket, name: SITE}"},
		says: []string{"Ingress shop/SITE", pathField + ".backend", "Service"}},
	{name: "host and path of another Ingress", plant: func(sc *scene) { sc.add("0-"+sc.site+".yaml", claim("shop", "none")) },
		says: []string{"Ingress shop/0-SITE", "0-SITE.yaml:1", pathField, "SITE.test", "Ingress shop/SITE"}},
	{name: "a host of another namespace", plant: func(sc *scene) { sc.add("0-"+sc.site+".yaml", claim("evil", "none")) },
		says: []string{"Ingress evil/0-SITE", "0-SITE.yaml:1", "spec.rules[0].host", "SITE.test", "namespace shop"}},
	{name: "a default backend that is missing", edit: []string{classLine, classLine + "  defaultBackend: {service: {name: none, port: {number: 80}}}\n"},
		says: []string{"Ingress shop/SITE", "spec.defaultBackend", "Service shop/none", "does not exist"}},
	{name: "a Service that is a name of another", own: 503, edit: []string{"  selector: {app: SITE}\n", "  type: ExternalName\n  externalName: example.com\n", "service-name: SITE}", "service-name: gone}"},
		says: []string{"Service shop/SITE", "SITE.yaml", "ExternalName"}},
	{name: "a label typo", own: 503, edit: []string{"service-name: SITE}", "service-name: SITEE}"},
		says: []string{"Service shop/SITE", "SITE.yaml", "endpoint"}},
	{name: "endpoints in another namespace", own: 503, edit: []string{"{name: SITE-1, namespace: shop,", "{name: SITE-1, namespace: shpo,"},
		says: []string{"Service shop/SITE", "SITE.yaml", "endpoint"}},
	{name: "no endpoints", own: 503, edit: []string{"endpoints:\n" + both, "endpoints: []\n"},
		says: []string{"Service shop/SITE", "SITE.yaml", "app=SITE"}},
	{name: "none ready", own: 503, edit: []string{"[198.51.100.20]", "[198.51.100.20]\n  conditions: {ready: false}", "[198.51.100.21]", "[198.51.100.21]\n  conditions: {ready: false}"},
		says: []string{"Service shop/SITE", "SITE.yaml", "ready"}},
	{name: "names in place of addresses", own: 503, edit: []string{"addressType: IPv4", "addressType: FQDN", "198.51.100.20", "one.example.com", "198.51.100.21", "two.example.com"},
		says: []string{"EndpointSlice shop/SITE-1", "SITE.yaml", "FQDN"}},
	{name: "an address that is none", edit: []string{"198.51.100.20", "127.0.0.312"},
		says: []string{"EndpointSlice shop/SITE-1", "SITE.yaml:22", "endpoints[0].addresses[0]", "127.0.0.312", "Service shop/SITE"}},
	{name: "an address of ours", edit: []string{"198.51.100.21", "127.0.0.1"},
		says: []string{"EndpointSlice shop/SITE-1", "SITE.yaml:22", "endpoints[1].addresses[0]", "127.0.0.1", "-allow-endpoint"}},
	{name: "a port of the slice with another name", own: 503, edit: []string{"ports: [{name: http, port: 8000}]", "ports: [{name: web, port: 8000}]"},
		says: []string{"Service shop/SITE", "SITE.yaml", "http", "web"}},
	{name: "a port beyond all ports", own: 503, edit: []string{"port: 8000}", "port: 80000}"},
		says: []string{"EndpointSlice shop/SITE-1", "SITE.yaml:22", "80000"}},
	{name: "90 Ingresses of a Service that is not there", noSite: true, plant: func(sc *scene) {
		all := &strings.Builder{}
		for i := range 90 {
			name := fmt.Sprintf("many%03d", i)
			all.WriteString("---\n" + strings.NewReplacer("0-SITE", name, "SITE", name).Replace(claim("shop", "gone")))
		}
		sc.add("many.yaml", all.String())
	}, says: []string{"Service shop/gone", "does not exist", "resources, such as Ingress shop/many"}},
}

// claim is an Ingress that claims the host of the site, by a name that comes first.
func claim(namespace, service string) string {
	return `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: 0-SITE, namespace: ` + namespace + `}
spec:
  ingressClassName: haptic
  rules:
  - host: SITE.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: ` + service + `, port: {number: 80}}}}]}
`
}
