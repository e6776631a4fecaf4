package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// runSettings has a controller whose settings are a file.
func runSettings(t *testing.T, b *board, g *group) {
	f := newManifests(t, g.mistakes)
	text, err := os.ReadFile("../../examples/settings/testdata/settings.yaml")
	must(t, err)
	dir := shortDir(t)
	settings := filepath.Join(dir, "settings.yaml")
	must(t, os.WriteFile(settings, text, 0o644))
	c := &controller{t: t, http: subnet + "226:8080", debug: "127.0.0.1:9126", state: shortDir(t)}
	binary := env.settings
	if *mistakesController != "" {
		binary = filepath.Join(filepath.Dir(*mistakesController), "settings")
	}
	c.again = func() (err error) {
		c.process, err = startProcess("settings", nil, binary, "-settings", settings, "-manifests", f.dir, "-local", c.state,
			"-http-addr", c.http, "-metrics-addr", "", "-debug-addr", c.debug, "-debug-token-file", debugTokenFile(t))
		return err
	}
	must(t, c.again())
	t.Cleanup(func() {
		if _, err := c.terminate(syscall.SIGINT, patience); err != nil {
			t.Error(err)
		}
	})
	s := &stage{t: t, b: b, group: g.name, c: c, manifest: f, plain: c.visit(), settings: settings}
	eventually(t, "the other site is served", s.plain.expectStatus("others.test", "/", 200))
	c.awaitReady(patience)
	s.startOthers("others.test")
	s.runAll(g)
}

// inSettings replaces each first text of a pair by the second one.
func inSettings(pairs ...string) func(sc *scene) {
	return func(sc *scene) {
		sc.t.Helper()
		before, err := os.ReadFile(sc.settings)
		sc.fatal(err)
		text := string(before)
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				sc.t.Fatalf("%q is not in the settings", pairs[i])
			}
			sc.line = strings.Count(text[:strings.Index(text, pairs[i])], "\n") + 1
			text = strings.Replace(text, pairs[i], pairs[i+1], 1)
		}
		sc.putSettings(text)
		sc.undo = append(sc.undo, func() { sc.putSettings(string(before)) })
	}
}

// putSettings writes the file at once, as those who know do.
func (sc *scene) putSettings(text string) {
	sc.t.Helper()
	fresh := filepath.Join(env.dir, fmt.Sprint("settings-", sc.site))
	sc.fatal(os.WriteFile(fresh, []byte(text), 0o644))
	sc.fatal(os.Rename(fresh, sc.settings))
}

// settingsMistakes are settings that are wrong. Those before stay in use.
var settingsMistakes = []mistake{
	{name: "a bracket that is not closed", noSite: true, plant: inSettings("[status]", "[status"), says: []string{"settings.yaml:"}},
	{name: "an unknown key", noSite: true, plant: inSettings("debounceInterval:", "debounce:"), says: []string{"settings.yaml:LINE", "debounce"}},
	{name: "a duration without a unit", noSite: true, plant: inSettings("100ms", "100"), says: []string{"settings.yaml:LINE", "debounceInterval", "100"}},
	{name: "a negative duration", noSite: true, plant: inSettings("100ms", "-100ms"), says: []string{"settings.yaml:LINE", "debounceInterval", "-100ms"}},
	{name: "a resource that there is not", noSite: true, plant: inSettings("resources: ingresses", "resources: ingreses"),
		says: []string{"settings.yaml:LINE", "watchedResources", "ingreses", "ingresses"}},
	{name: "a resource that is not watched", noSite: true, plant: inSettings("resources.services.GetSingle", "resources.service.GetSingle"),
		says: []string{"settings.yaml:LINE", "watchedResources", "service", "services"}},
	{name: "an unknown field in a template", noSite: true, plant: inSettings("in svc.Spec.Ports", "in svc.Spec.Prots"), says: []string{"settings.yaml:", "Prots"}},
	{name: "a template that does not end", noSite: true, plant: inSettings("{% if p.Backend.Service != nil %}", ""), says: []string{"settings.yaml:", "end"}},
	{name: "a word that HAProxy refuses", noSite: true, plant: inSettings("mode http", "mode smtp"), says: []string{"settings.yaml:LINE", "smtp"}},
	{name: "a case that fails", noSite: true, plant: inSettings("/ shop_web_80$", "/ shop_web_81$"), says: []string{"settings.yaml:", "a host leads to its Service"}},
	{name: "the file is empty", noSite: true, plant: func(sc *scene) {
		inSettings()(sc)
		sc.putSettings("")
	}, says: []string{"settings.yaml"}},
	{name: "the file is gone", noSite: true, plant: func(sc *scene) {
		inSettings()(sc)
		sc.fatal(os.Remove(sc.settings))
	}, says: []string{"settings.yaml", "no such file"}},
}
