package e2e

import (
	"os"
	"path/filepath"
	"strings"
)

// manifestMistakes are files that cannot be read as manifests. What they had made
// stays.
var manifestMistakes = []mistake{
	{name: "a bracket that is not closed", edit: []string{"{name: SITE, namespace: shop, annotations: {}}", "{name: SITE, namespace: shop"},
		says: []string{"SITE.yaml:"}},
	{name: "a tab", edit: []string{"  rules:", "\trules:"}, says: []string{"SITE.yaml:6", "tab"}},
	{name: "wrong indentation", edit: []string{"  rules:", "rules:"}, says: []string{"SITE.yaml:6", "rules"}},
	{name: "an unknown field", edit: []string{"ingressClassName:", "ingressClasName:"}, says: []string{"SITE.yaml:5", "ingressClasName"}},
	{name: "a number in place of a text", edit: []string{"pathType: Prefix", "pathType: 7"}, says: []string{"SITE.yaml:11", "pathType"}},
	{name: "a text in place of a list", edit: []string{"addresses: [198.51.100.20]", "addresses: 198.51.100.20"}, says: []string{"SITE.yaml:28", "endpoints[0].addresses"}},
	{name: "a port that is no number", edit: []string{"port: 80,", "port: eighty,"}, says: []string{"SITE.yaml:20", "spec.ports[0].port"}},
	{name: "no apiVersion", edit: []string{"apiVersion: networking.k8s.io/v1\n", ""}, says: []string{"SITE.yaml:1", "apiVersion"}},
	{name: "no kind", edit: []string{"kind: Ingress\n", ""}, says: []string{"SITE.yaml:1", "kind"}},
	{name: "no name", edit: []string{"name: SITE, namespace: shop, annotations", "namespace: shop, annotations"}, says: []string{"SITE.yaml:1", "name"}},
	{name: "an unknown kind", edit: []string{"kind: Ingress\n", "kind: Ingres\n"}, says: []string{"SITE.yaml:1", "Ingres"}, own: 404},
	{name: "an old apiVersion", edit: []string{"networking.k8s.io/v1\n", "extensions/v1beta1\n"}, says: []string{"SITE.yaml:1", "extensions/v1beta1"}},
	{name: "an object in two files", plant: func(sc *scene) {
		text, _, _ := strings.Cut(siteManifest, "---")
		sc.add(sc.site+"-copy.yaml", text)
	}, says: []string{"Ingress shop/SITE", "SITE.yaml", "SITE-copy.yaml"}},
	{name: "a file that is too large", plant: func(sc *scene) {
		sc.write(sc.manifest.read(sc.t, sc.file()))
		sc.fatal(os.Truncate(filepath.Join(sc.manifest.dir, sc.file()), 65<<20))
	}, says: []string{"SITE.yaml", "bytes"}},
	{name: "a link that leads nowhere", plant: func(sc *scene) {
		path := filepath.Join(sc.manifest.dir, sc.file())
		sc.write(sc.manifest.read(sc.t, sc.file()))
		sc.fatal(os.Remove(path))
		sc.fatal(os.Symlink("nowhere.yaml", path))
	}, says: []string{"SITE.yaml"}},
	{name: "an empty file", plant: func(sc *scene) { sc.write("") }, says: []string{"SITE.yaml"}},
	{name: "half a file", plant: func(sc *scene) {
		text := sc.manifest.read(sc.t, sc.file())
		sc.write(text[:strings.Index(text, "pathType")+len("pathTy")])
	}, says: []string{"SITE.yaml:"}},
	{name: "a binary file", plant: func(sc *scene) { sc.write("\x7fELF\x02\x01\x01\x00\x00") }, says: []string{"SITE.yaml"}},
	{name: "a folder that is gone", noSite: true, plant: func(sc *scene) {
		away := filepath.Join(env.dir, "away")
		sc.fatal(os.Rename(sc.manifest.dir, away))
		sc.undo = append(sc.undo, func() { sc.fatal(os.Rename(away, sc.manifest.dir)) })
	}, says: []string{"DIR"}},
}

func (sc *scene) fatal(err error) {
	sc.t.Helper()
	if err != nil {
		sc.t.Fatal(err)
	}
}
