package strictyaml

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/haproxytest"
)

func TestMain(m *testing.M) { haproxytest.Main(m) }

type sample struct {
	Name  string            `json:"name" required:"true"`
	Kind  string            `json:"kind,omitempty" enum:"a,b"`
	Count int               `json:"count" min:"1" max:"3"`
	Wait  metav1.Duration   `json:"wait"`
	Texts map[string]string `json:"texts" is:"odd"`
	Yes   bool              `json:"yes"`
	Below []sample          `json:"below"`
}

func problems(t *testing.T, text string) string {
	t.Helper()
	d, roots := Read("f.yaml", []byte(text))
	var s sample
	d.Decode(roots, &s)
	kinds := map[string]func(string) error{"odd": func(text string) error {
		if len(text)%2 == 1 {
			return nil
		}
		return &Error{Message: "not odd"}
	}}
	err := append(d.Errs, d.Check("", s, kinds)...).OrNil()
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAllAtOnce: everything that is wrong has its place, and is said once.
func TestAllAtOnce(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\nkind: a\ncount: 3\nwait: 1s\ntexts: {a: b}\nyes: true\nbelow: [{name: y}]\n": "",
		"kind: c\ncount: 4\nwait: 5\ntexts: {'a.b': bb}\nbelow:\n- {name: ''}\n- {coun: 1}\n": `f.yaml:1:1: name: missing
f.yaml:1:7: kind: "c" is not one of a, b
f.yaml:2:8: count: 4 is not between 1 and 3
f.yaml:3:7: wait: a duration with its unit wanted, such as 500ms or 2s, in place of 5
f.yaml:4:16: texts['a.b']: not odd
f.yaml:6:10: below[0].name: empty
f.yaml:7:3: below[1].name: missing
f.yaml:7:4: below[1].coun: unknown key; did you mean count?`,
		"name: 5\ncount: x\nwait: 2\nyes: 1\nbelow: {}\n": `f.yaml:1:7: name: a string wanted, not a number; put it in quotes
f.yaml:2:8: count: a number wanted, not a string
f.yaml:3:7: wait: a duration with its unit wanted, such as 500ms or 2s, in place of 2
f.yaml:4:6: yes: true or false wanted, not a number
f.yaml:5:8: below: a list wanted, not a mapping`,
		"":               "f.yaml:1:1: empty",
		"{}\n---\n{}\n":  "more than one document",
		"a: [\n":         "not YAML: ",
		"name: \xff\n":   "f.yaml: not UTF-8",
		"name: !!null\n": "no value: give one, or leave the key out",
	} {
		if got := problems(t, text); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestInText: a line of a literal block is one of the file.
func TestInText(t *testing.T) {
	d, roots := Read("f.yaml", []byte("name: |\n  a\n  b\nkind: c\n"))
	var s sample
	d.Decode(roots, &s)
	if e := d.InText("name", 2, 1, nil, "bad"); e.Line != 3 || e.Column != 3 {
		t.Error(e)
	}
	if e := d.InText("kind", 2, 1, nil, "bad"); e.Line != 4 || e.Column != 7 {
		t.Error(e)
	}
	var none *Document
	if e := none.InText("name", 2, 1, nil, "bad"); e.Error() != "name: line 2, column 1: bad" {
		t.Error(e)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"watchedResources", "haproxyConfig", "maps"}
	for word, want := range map[string]string{"watchedresources": "watchedResources", "haproxy_config": "haproxyConfig", "map": "maps", "mops": "maps", "m": "", "something": ""} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%s: %q, not %q", word, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"name: x\n", "a: &a [*a]\n", "below: &b [{name: x, below: *b}]\n", "? {a: b}\n: c\n", "- - -\n", "\t", "<<: {name: a}\n", "name: |2\n   x\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, roots := Read("f.yaml", []byte(text))
		var s sample
		d.Decode(roots, &s)
		errs := append(d.Errs, d.Check("", s, map[string]func(string) error{"odd": func(string) error { return nil }})...)
		for _, e := range errs {
			if e.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%v: behind the end", e)
			}
		}
		if len(errs) == 0 && reflect.DeepEqual(s, sample{}) {
			t.Error("nothing was read, and nothing said")
		}
	})
}
