package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// templateHoles are what somebody adds to templates of their own: values of
// annotations, used without much thought.
const templateHoles = `{% for p in prefix %}{% var note = p.Ingress.Annotations %}
{% if note["snippet"] != "" %}
    {{ raw(note["snippet"]) }}
{% end %}
{% if note["note"] != "" %}
    http-request set-header X-Note "{{ note["note"] }}"
{% end %}
{% if note["part"] != "" %}
    http-request set-header X-Part {{ split(note["part"], "/")[2] }}
{% end %}
{% if note["loop"] != "" %}{% for true %}{% end %}{% end %}
{% if note["print"] != "" %}{% for true %}
    # more
{% end %}{% end %}
{% end %}
`

// ownTemplates is a copy of the templates with holes.
func ownTemplates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("../../examples/controller/templates")))
	replaceIn(t, filepath.Join(dir, "haproxy.cfg"), "    use_backend %", templateHoles+"    use_backend %")
	return dir
}

// replaceIn replaces the first text in a file, and returns what was in it.
func replaceIn(t *testing.T, file, old, new string) (before string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	if !strings.Contains(string(text), old) {
		t.Fatalf("%q is not in %s", old, file)
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644))
	return string(text)
}

func runTemplates(t *testing.T, b *board, g *group) {
	dir := ownTemplates(t)
	s := startFolder(t, b, g, 3, "-templates", dir)
	s.templates = dir
	s.runAll(g)
}

// annotated gives the Ingress of the site an annotation.
func annotatedWith(key, value string) []string {
	return []string{"annotations: {}", "annotations: {" + key + ": " + value + "}"}
}

// templateMistakes are values that a template or HAProxy fails on, and templates that
// are wrong themselves. The resource is named, and served as it was before.
var templateMistakes = []mistake{
	{name: "a directive that HAProxy does not know", edit: annotatedWith("snippet", "frobnicate yes"),
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "frobnicate", "haproxy.cfg:"}},
	{name: "an argument that HAProxy refuses", edit: annotatedWith("snippet", "http-request deny deny_status never"),
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "deny_status", "haproxy.cfg:"}},
	{name: "a backend that is not there", edit: annotatedWith("snippet", `"use_backend gone if { always_true }"`),
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "gone"}},
	{name: "a file that is not there", edit: annotatedWith("snippet", "http-request return status 200 content-type text/plain file /nowhere"),
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "/nowhere"}},
	{name: "a line that begins another section", edit: annotatedWith("snippet", "backend more"),
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "haproxy.cfg:"}},
	{name: "a newline in a value", edit: annotatedWith("note", `"one\ntwo"`),
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "haproxy.cfg:"}},
	{name: "a part that the value does not have", edit: annotatedWith("part", "one"),
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "haproxy.cfg:"}},
	{name: "a loop without an end", edit: annotatedWith("loop", "x"),
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "haproxy.cfg:"}},
	{name: "output without an end", edit: annotatedWith("print", "x"), within: 15 * time.Second,
		says: []string{"Ingress shop/SITE", "SITE.yaml:1", "haproxy.cfg:"}},
	{name: "a port that another process has", plant: func(sc *scene) {
		taken, err := net.Listen("tcp", sc.c.address(9999))
		sc.fatal(err)
		sc.undo = append(sc.undo, func() { sc.fatal(taken.Close()) })
		sc.edit(annotatedWith("snippet", `"bind `+sc.c.address(9999)+`"`)...)
	}, says: []string{":9999", "process", "has the address"}},
	{name: "a template with a syntax error, at a restart", noSite: true, ended: true, unready: true,
		plant: brokenTemplate("{% end %}"), says: []string{"haproxy.cfg:"}},
	{name: "a template with a type error, at a restart", noSite: true, ended: true, unready: true,
		plant: brokenTemplate("{{ settings.Nothing }}"), says: []string{"haproxy.cfg:", "Nothing"}},
	{name: "cases that fail, at a restart", noSite: true, ended: true, unready: true, plant: func(sc *scene) {
		sc.restartWith(filepath.Join(sc.templates, "cases", "routing.yaml"), "^backend shop_web_80$", "^backend shop_web_81$")
	}, says: []string{"routing.yaml:", "a host and a path lead to a backend"}},
}

func brokenTemplate(text string) func(sc *scene) {
	return func(sc *scene) {
		sc.restartWith(filepath.Join(sc.templates, "haproxy.cfg"), "    use_backend %", text+"\n    use_backend %")
	}
}

// restartWith edits a file and starts the controller again, until the mistake is
// mended.
func (sc *scene) restartWith(file, old, new string) {
	sc.t.Helper()
	before := replaceIn(sc.t, file, old, new)
	sc.restart()
	sc.undo = append(sc.undo, func() {
		sc.fatal(os.WriteFile(file, []byte(before), 0o644))
		sc.restart()
	})
}

// restart kills the controller, which has no time to say goodbye, and starts it again.
func (sc *scene) restart() {
	sc.t.Helper()
	sc.fatal(sc.c.crash())
	sc.fatal(sc.c.again())
}
