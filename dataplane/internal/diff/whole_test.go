package diff

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// town is a configuration that changes a little from time to time.
type town struct {
	r        *rand.Rand
	parts    []string
	contents map[string][]string // lines of each file
}

func newTown(r *rand.Rand) *town {
	w := &town{r: r, contents: map[string][]string{}}
	w.parts = []string{"global\n  maxconn 5\n", "defaults\n  mode http\n",
		"frontend f\n  bind :443 ssl crt /etc/haproxy/ssl/a.pem crt-list /etc/haproxy/general/list.txt\n" +
			"  use_backend %[req.hdr(host),map(/etc/haproxy/maps/m.map)]\n  use_backend %[path,map_reg(/etc/haproxy/maps/o.map)]\n" +
			"  acl office src -f /etc/haproxy/general/office.txt\n  use_backend b2 if office\n"}
	for range 12 {
		w.parts = append(w.parts, w.section())
	}
	for name, n := range map[string]int{"m.map": 12, "o.map": 8, "office.txt": 6, "list.txt": 3, "a.pem": 1, "b.key": 1} {
		for range n {
			w.contents[name] = append(w.contents[name], w.line(name))
		}
	}
	return w
}

func (w *town) pick(options ...string) string { return options[w.r.Intn(len(options))] }

func (w *town) section() string {
	switch w.r.Intn(25) {
	case 0:
		return w.pick("global\n", "defaults\n", "defaults named\n", "# a\n\n", "backend\n") + w.pick("  timeout client 5s\n", "  retries 3\n")
	case 1:
		return "userlist u" + w.pick("1", "2") + "\n  user x password y\n"
	}
	text := fmt.Sprintf("backend b%d\n  balance %s\n", w.r.Intn(20), w.pick("roundrobin", "roundrobin", "source"))
	text += w.pick("", "", "  acl x path -f /etc/haproxy/general/office.txt\n", "  http-request deny if { srv_is_up(b3/s1) }\n", "  http-request set-header X %[path,map(/etc/haproxy/maps/m.map)]\n")
	for s := range w.r.Intn(4) {
		text += fmt.Sprintf("  server s%d 192.0.2.%d:80%s\n", s, 1+w.r.Intn(3), w.pick("", " weight 5", " disabled", " track b1/s0", " ssl ca-file /etc/haproxy/ssl/a.pem"))
	}
	return text
}

func (w *town) line(name string) string {
	switch name {
	case "list.txt":
		return fmt.Sprintf("/etc/haproxy/ssl/%s.pem x%d.example.com\n", w.pick("a", "b", "c", "d"), w.r.Intn(4))
	case "office.txt":
		return w.pick(fmt.Sprintf("192.0.2.%d\n", w.r.Intn(12)), "m.map\n", "# m.map\n")
	case "a.pem", "b.key":
		return fmt.Sprintf("%d\n", w.r.Intn(100))
	}
	return w.pick("", " ", "#") + fmt.Sprintf("host-number-%d b%d\n", w.r.Intn(30), w.r.Intn(20)) + w.pick("", "", "", "\n", "k v\n")
}

func (w *town) edit(list []string, fresh func() string) []string {
	list = slices.Clone(list)
	for range 1 + w.r.Intn(2) {
		i := w.r.Intn(len(list) + 1)
		switch w.r.Intn(4) {
		case 0:
			list = slices.Insert(list, i, fresh())
		case 1:
			list = slices.Delete(list, min(i, len(list)), min(i+1, len(list)))
		default:
			if i < len(list) {
				list[i] = fresh()
			}
			if j := w.r.Intn(len(list) + 1); w.r.Intn(4) == 0 && i < len(list) && j < len(list) {
				list[i], list[j] = list[j], list[i]
			}
		}
	}
	return list
}

func (w *town) change() {
	if w.r.Intn(3) > 0 {
		w.parts = append(slices.Clone(w.parts[:3]), w.edit(w.parts[3:], w.section)...)
	}
	if w.r.Intn(20) == 0 {
		w.parts[w.r.Intn(3)] += "  # note\n"
	}
	for name := range w.contents {
		if w.r.Intn(4) == 0 {
			w.contents[name] = w.edit(w.contents[name], func() string { return w.line(name) })
		}
	}
}

func (w *town) files() (files []config.File) {
	for name, kind := range map[string]config.FileKind{"m.map": config.Map, "o.map": config.Map, "office.txt": config.General, "list.txt": config.CRTList, "a.pem": config.Certificate, "b.key": config.Certificate} {
		if len(w.contents[name]) > 0 {
			files = append(files, config.File{Kind: kind, Name: name, Content: []byte(strings.Join(w.contents[name], ""))})
		}
	}
	return files
}

// Reading only what differs finds what reading all does, in the same order.
func TestCompareIsWhole(t *testing.T) {
	t.Parallel()
	runtime := 0
	for seed := range int64(300) {
		w := newTown(rand.New(rand.NewSource(seed)))
		last := config.Empty()
		for i := range 8 {
			next, err := config.NewFrom(last, w.parts, w.files()...)
			require.NoError(t, err)
			old, now := config.Empty().With(last.Main()).WithFiles(slices.Clone(last.Files)), configOf(t, next.Main(), next.Files...)
			target := change.Target{Version: change.HAProxy30}
			want := compare(&difference{current: old, desired: now, target: target, whole: true})
			require.Equal(t, want, Compare(last, next, target), "seed %d, change %d\n%s\nto\n%s", seed, i, last.Main(), next.Main())
			require.Equal(t, want, Compare(old, now, target), "seed %d, change %d", seed, i)
			if len(want) > 0 && change.ImpactOf(want) <= change.Runtime {
				runtime++
			}
			last = next
			w.change()
		}
	}
	require.Greater(t, runtime, 100)
}

// A section that names something may name it.
func TestMayName(t *testing.T) {
	t.Parallel()
	found, wrong, mapped := 0, 0, 0
	for seed := range int64(200) {
		w := newTown(rand.New(rand.NewSource(seed)))
		c, err := config.NewFrom(config.Empty(), w.parts, w.files()...)
		require.NoError(t, err)
		var names []config.Word
		for i := range 20 {
			names = append(names, config.NewWord(fmt.Sprintf("b%d", i)))
		}
		naming := c.Index().Naming(names)
		for _, name := range names {
			for _, s := range c.Index().List {
				if sectionNames(s, name.Text) {
					require.True(t, s.MayName(name), "%s in %s", name.Text, s.Text)
					require.True(t, s.Kind == "backend" && s.Name == name.Text || slices.Contains(naming, s), "%s in %s", name.Text, s.Text)
					found++
				} else if s.MayName(name) && s.Name != name.Text {
					wrong++
				}
			}
			for f, file := range c.Files {
				for _, e := range config.ParseMap(file.Content) {
					if has := file.Kind == config.Map && hasWord(e.Value, name.Text); has {
						require.True(t, c.MayName(f, name))
						require.Equal(t, e.Value != name.Text, slices.Contains(c.Several(f), e.Value))
						mapped++
					}
				}
			}
		}
	}
	require.Greater(t, found, 100)
	require.Greater(t, mapped, 100)
	require.Less(t, wrong, found)
}
