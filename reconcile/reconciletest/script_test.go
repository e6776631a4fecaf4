package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// fixed is a controller that always renders the same.
func fixed(*Scene) (*Controller, error) {
	return &Controller{Options: reconcile.Options{Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		cfg, err := dataplane.NewConfig("global\n    maxconn 100\n", dataplane.File{Kind: dataplane.Certificate, Name: "c.pem", Content: []byte("c4nary\n")})
		return &reconcile.Rendered{Config: cfg}, err
	})}}, nil
}

// TestScriptsThatFail: each line of a script can fail, and says what differed.
func TestScriptsThatFail(t *testing.T) {
	for script, want := range map[string]string{
		"start\nexpect haproxy.cfg contains 'maxconn 7'":              "s.txtar:2: expect haproxy.cfg contains 'maxconn 7'\nno match in haproxy.cfg of haproxy:\nglobal\n    maxconn 100",
		"start\nexpect not haproxy.cfg contains maxconn":              "it is so, and must not be",
		"start\nexpect map:x.map contains a":                          "haproxy has no map:x.map",
		"start\nexpect cert:c.pem contains zzz":                       "no match in cert:c.pem of haproxy",
		"start\ncmp cert:c.pem f.yaml":                                "cert:c.pem of haproxy differs",
		"start\ncmp haproxy.cfg f.yaml":                               "(-f.yaml +is)",
		"start\ncmp haproxy.cfg none":                                 "the script has no file none",
		"start\nexpect haproxy.cfg contains (":                        "missing closing",
		"start\nexpect nonsense contains a":                           `there is no target "nonsense"`,
		"start\nexpect haproxy.cfg@b contains a":                      "there is no instance b",
		"start\nexpect":                                               "want expect not WHAT...",
		"start\nexpect nothing":                                       `nothing can be expected as "nothing"`,
		"start\nexpect reloads 2":                                     "1 reloads, haproxy 1",
		"start\nexpect reloads many":                                  `"many" is not a number`,
		"start\nexpect deployments haproxy 0":                         "1 deployments, haproxy 1",
		"start\nexpect events InstanceDeployed ReconciliationStarted": "there is no ReconciliationStarted in its place; events were:\n",
		"start\nexpect instance haproxy stale":                        "haproxy is not stale: map[current:true",
		"start\nexpect instance haproxy perfect":                      `no instance is "perfect"`,
		"start\nexpect error .":                                       "the error is empty",
		"start\nexpect refused .":                                     "what was refused is empty",
		"leader lost\nstart\nexpect haproxy.cfg contains a":           "haproxy has no haproxy.cfg",
		"leader lost\nstart\nwait deployed":                           "not deployed after 5m0s: haproxy has not the newest",
		"fail instance haproxy down\nstart\nwait deployed":            "connection refused",
		"fail instance haproxy 500\nstart\nwait deployed":             "(status 500)",
		"fail instance haproxy somehow\nstart":                        `an instance cannot fail with "somehow"`,
		"fail validation 'no good'\nstart\nexpect ready":              "the loop is not ready",
		"fail\nstart":                   "want fail validation MESSAGE, or fail instance NAME WHY",
		"hang haproxy\nstart":           "want hang instance NAME",
		"recover instance b\nstart":     "there is no instance b",
		"leader\nstart":                 "want leader lost",
		"instance\nstart":               "want instance NAME...",
		"instance a a\nstart":           "two targets have the name",
		"create none.yaml\nstart":       "the script has no file none.yaml",
		"create\nstart":                 "want create FILE...",
		"delete f.yaml\nstart":          "what is deleted is not there",
		"create bad.yaml\nstart":        "bad.yaml:1: not a Kubernetes object",
		"create empty.yaml\nstart":      "empty.yaml has no objects",
		"start\nstart":                  "runs already",
		"start\nadvance soon":           `"soon" is not a duration`,
		"start\nadvance -1s":            `"-1s" is not a duration`,
		"start\nwait":                   "want wait deployed",
		"start\nnonsense":               `there is no command "nonsense"`,
		"start\nexpect error 'a":        "a quote is not closed",
		"advance 1s":                    "the controller has not been started",
		"expect ready":                  "the controller has not been started",
		"# nothing but a comment":       "never says start",
		"start\ntrigger\nexpect events": `nothing can be expected as "events"`,
	} {
		t.Run(strings.ReplaceAll(script, "\n", "; "), func(t *testing.T) {
			archive := txtar.Parse([]byte(script + "\n-- f.yaml --\napiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: default}\n" +
				"-- bad.yaml --\nkind: Service\nspec: 1\n-- empty.yaml --\n# nothing\n"))
			synctest.Test(t, func(t *testing.T) {
				err := play(t.Context(), "s.txtar", archive, fixed)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
				if err != nil && strings.Contains(err.Error(), "c4nary") {
					t.Errorf("a key is printed: %v", err)
				}
			})
		})
	}
}

func TestSetupThatFails(t *testing.T) {
	for want, setup := range map[string]func(*Scene) (*Controller, error){
		"setup: no such thing":          func(*Scene) (*Controller, error) { return nil, errors.New("no such thing") },
		"setup: it returned no":         func(*Scene) (*Controller, error) { return nil, nil },
		"Options.Debounce is negative:": func(s *Scene) (*Controller, error) { c, err := fixed(s); c.Options.Debounce = -1; return c, err },
	} {
		synctest.Test(t, func(t *testing.T) {
			err := play(t.Context(), "s.txtar", txtar.Parse([]byte("start\n")), setup)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"a b", "'a b' c", "# a", "  'a", "''", "a'b'", "'a'b", "\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := split(line)
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range words {
			if strings.ContainsAny(w, "'") {
				return // it was inside of a word
			}
			quoted = append(quoted, "'"+w+"'")
		}
		again, err := split(strings.Join(quoted, "\t "))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(words) {
			t.Errorf("%q, then %q, %v", words, again, err)
		}
	})
}
