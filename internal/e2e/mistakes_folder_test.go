package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// manifests is a folder of manifests with one file for each site.
type manifests struct {
	dir   string
	certs *certificates
}

const classManifest = `apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: haptic}
spec: {controller: haptic.hapticsdk.dev/ingress}
`

// siteManifest is a site; lines that mistakes are found by have their number.
const siteManifest = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: SITE, namespace: shop, annotations: {}}
spec:
  ingressClassName: haptic
  rules:
  - host: SITE.test
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service: {name: SITE, port: {name: http}}
---
apiVersion: v1
kind: Service
metadata: {name: SITE, namespace: shop}
spec:
  selector: {app: SITE}
  ports: [{name: http, port: 80, targetPort: 8000}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: SITE-1, namespace: shop, labels: {kubernetes.io/service-name: SITE}}
addressType: IPv4
ports: [{name: http, port: 8000}]
endpoints:
- addresses: [198.51.100.20]
- addresses: [198.51.100.21]
`

// secretManifest is the certificate of a site, and the line before the rules names it.
const (
	secretManifest = `---
apiVersion: v1
kind: Secret
metadata: {name: SITE-tls, namespace: shop}
type: kubernetes.io/tls
data:
  tls.crt: CERT
  tls.key: KEY
`
	rulesLine = "  rules:\n"
	tlsLines  = "  tls:\n  - {hosts: [SITE.test], secretName: SITE-tls}\n"
)

// newManifests makes a folder with the site "others" and those of the mistakes.
func newManifests(t *testing.T, mistakes []mistake) manifests {
	t.Helper()
	f := manifests{dir: shortDir(t), certs: newCertificates(t)}
	f.write(t, "class.yaml", classManifest)
	f.write(t, "others.yaml", f.site("others", true))
	for i, m := range mistakes {
		if !m.noSite {
			f.write(t, siteOf(i)+".yaml", f.site(siteOf(i), m.tls))
		}
	}
	return f
}

// site is the manifest of a site.
func (f *manifests) site(name string, tls bool) string {
	text := siteManifest
	if tls {
		text = namesSecret(text) + withPair(secretManifest, f.certs.issue(name+".test"))
	}
	return strings.ReplaceAll(text, "SITE", name)
}

// namesSecret has the Ingress name a Secret.
func namesSecret(text string) string { return strings.Replace(text, rulesLine, tlsLines+rulesLine, 1) }

// withPair puts a certificate and its key into the text of a Secret.
func withPair(text string, pair keyPair) string {
	in := base64.StdEncoding.EncodeToString
	return strings.NewReplacer("CERT", in(pair.cert), "KEY", in(pair.key)).Replace(text)
}

// write puts a file in its place at once, as those who know do.
func (f *manifests) write(t *testing.T, name, text string) {
	t.Helper()
	path, fresh := filepath.Join(f.dir, name), filepath.Join(env.dir, filepath.Base(f.dir)+"."+name)
	must(t, os.WriteFile(fresh, []byte(text), 0o644))
	must(t, os.Rename(fresh, path))
}

func (f *manifests) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	must(t, err)
	return string(text)
}

// file is that of the site.
func (sc *scene) file() string { return sc.site + ".yaml" }

// write puts another text into the file of the site, until the mistake is mended.
func (sc *scene) write(text string) {
	sc.t.Helper()
	before := sc.manifest.read(sc.t, sc.file())
	sc.manifest.write(sc.t, sc.file(), text)
	sc.undo = append(sc.undo, func() { sc.manifest.write(sc.t, sc.file(), before) })
}

// edit replaces each first text of a pair by the second one.
func (sc *scene) edit(pairs ...string) {
	sc.t.Helper()
	text := sc.manifest.read(sc.t, sc.file())
	pairs = sc.words(pairs)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			sc.t.Fatalf("%q is not in %s", pairs[i], sc.file())
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	sc.write(text)
}

// add writes a file of its own, until the mistake is mended.
func (sc *scene) add(name, text string) {
	sc.t.Helper()
	sc.manifest.write(sc.t, name, strings.ReplaceAll(text, "SITE", sc.site))
	sc.undo = append(sc.undo, func() { _ = os.Remove(filepath.Join(sc.manifest.dir, name)) })
}

// folderFlags are those of a controller with a folder of manifests.
func folderFlags(f manifests) []string {
	args := []string{"-manifests", f.dir}
	if *mistakesFor == 0 { // the order of things is what the short form asks about
		args = append(args, "-debounce", "50ms", "-min-interval", "200ms")
	}
	return args
}

// startFolder is a stage with a folder of manifests and a HAProxy of its own.
func startFolder(t *testing.T, b *board, g *group, number int, args ...string) *stage {
	t.Helper()
	return startFolderWith(t, b, g, options{}, number, args...)
}

// startFolderWith does so with more options.
func startFolderWith(t *testing.T, b *board, g *group, o options, number int, args ...string) *stage {
	t.Helper()
	f := newManifests(t, g.mistakes)
	o.binary, o.addr, o.debugPort, o.args = *mistakesController, fmt.Sprint(subnet, 220+number), 9120+number, append(folderFlags(f), args...)
	c := startController(t, o)
	s := &stage{t: t, b: b, group: g.name, c: c, manifest: f, plain: c.visit(),
		secure: c.visitTLS(&tls.Config{RootCAs: f.certs.ca.pool(), MinVersion: tls.VersionTLS12})}
	eventually(t, "the other site is served", s.plain.expectStatus("others.test", "/", 200))
	eventually(t, "the other site is served with TLS", s.secure.expectStatus("others.test", "/", 200))
	s.startOthers("others.test")
	return s
}

func runFolder(t *testing.T, b *board, g *group) { startFolder(t, b, g, 0).runAll(g) }
