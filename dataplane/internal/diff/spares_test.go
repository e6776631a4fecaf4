package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

const spareHead = "global\n maxconn 10\ndefaults\n mode http\nfrontend web\n bind :80\n use_backend %[path,map_str(/etc/haproxy/maps/m.map)]\n"

func sparesIn(n int, backends ...string) string {
	text := spareHead
	for i := range n {
		text += fmt.Sprintf("backend haptic-spare-%d\n balance roundrobin\n", i)
	}
	return text + strings.Join(backends, "")
}

func backendOf(name, server string) string {
	return "backend " + name + "\n balance roundrobin\n server s " + server + "\n"
}

func impacts(steps []change.Step) (s []string) {
	for i := range steps {
		text := fmt.Sprintf("%s %s %d", steps[i].Action, steps[i].Name, steps[i].Impact)
		switch do := steps[i].Do.(type) {
		case *change.TakeBackend:
			text += " " + do.Name.Process
		case *change.LeaveBackend:
			text += " " + do.Name.Process
		case *change.MakeBackend:
			text += " " + do.Backend
		}
		s = append(s, text)
	}
	return s
}

// Spares are given out in the order of the text, none twice, and not those that the
// process has as another backend.
func TestCompareGivesSparesOut(t *testing.T) {
	from := configOf(t, sparesIn(3))
	to := configOf(t, sparesIn(3, backendOf("a", "192.0.2.1:80"), backendOf("b", "192.0.2.2:80"), backendOf("c", "192.0.2.3:80")))
	require.Equal(t, []string{"create a 2 haptic-spare-0", "create b 2 haptic-spare-1", "create c 2 haptic-spare-2"}, impacts(Compare(from, to, change.Target{})))

	names := change.NewNames([]change.Name{{Backend: "x", Process: "haptic-spare-1", Gone: &change.Gone{Text: backendOf("x", "192.0.2.1:80")}}})
	steps := Compare(from, to, change.Target{Names: names})
	require.Equal(t, []string{"create a 2 haptic-spare-0", "create b 2 haptic-spare-2", "create c 3"}, impacts(steps))
	require.Equal(t, "all spare backends with its lines are taken until the next reload", steps[2].Reason)

	for _, target := range []change.Target{{Transport: change.API, Version: change.HAProxy30, API: change.API32}, {Silent: true}} {
		steps = Compare(from, to, target)
		require.Equal(t, change.Reload, change.ImpactOf(steps))
		require.Contains(t, steps[0].Reason, map[bool]string{true: "no stats socket", false: "the Dataplane API cannot create a backend"}[target.Silent])
	}
}

// An owner of many new backends leaves the last spare ones to others, whichever comes first.
// What it has taken counts until the next reload, deleted backends too.
func TestCompareSharesSpares(t *testing.T) {
	const spares, kept = 256, 16
	var many []string
	for i := range spares {
		many = append(many, backendOf(fmt.Sprintf("a_svc%03d_80", i), "192.0.2.1:80"))
	}
	taken := func(steps []change.Step) (owners map[string]int, names []change.Name) {
		owners = map[string]int{}
		for i := range steps {
			if do, ok := steps[i].Do.(*change.TakeBackend); ok {
				owners[change.OwnerOf(do.Name.Backend)]++
				names = append(names, do.Name)
			}
		}
		return owners, names
	}
	v := backendOf("v_web_80", "192.0.2.2:80")
	steps := Compare(configOf(t, sparesIn(spares)), configOf(t, sparesIn(spares, append(many, v)...)), change.Target{})
	owners, names := taken(steps)
	require.Equal(t, map[string]int{"a": spares - kept, "v": 1}, owners)
	require.Equal(t, "backends a_... have 240 spare ones, and the last 16 are for others until the next reload", steps[spares-kept].Reason)

	// Later changes find the same, also where all that a has taken is gone.
	for i := range spares - kept {
		names[i].Gone = &change.Gone{Text: backendOf(names[i].Backend, "192.0.2.1:80")}
	}
	from, target := configOf(t, sparesIn(spares, v)), change.Target{Names: change.NewNames(names)}
	owners, _ = taken(Compare(from, configOf(t, sparesIn(spares, v, many[spares-1])), target))
	require.Empty(t, owners, "a has its share")
	others := []string{v}
	for owner := range 2 * kept {
		for i := range 3 {
			others = append(others, backendOf(fmt.Sprintf("o%02d_svc%02d_80", owner, i), "192.0.2.3:80"))
		}
	}
	owners, _ = taken(Compare(from, configOf(t, sparesIn(spares, others...)), target))
	require.Len(t, owners, kept-1, "one for each: %v", owners)
}

// Without spares nothing is otherwise than before.
func TestCompareWithoutSpares(t *testing.T) {
	a, b := configOf(t, sparesIn(0)), configOf(t, sparesIn(0, backendOf("a", "192.0.2.1:80")))
	for _, pair := range [][2]*config.Config{{a, b}, {b, a}} {
		steps := Compare(pair[0], pair[1], change.Target{})
		require.Len(t, steps, 1)
		require.Equal(t, change.Reload, steps[0].Impact)
		require.Contains(t, []string{whyNewSection, whyOldSection}, steps[0].Reason)
	}
}

// HAProxy 3.4 makes and deletes backends that have only servers, under defaults with a
// name. Older ones give them spare backends, if there are any.
func TestCompareMakesBackends(t *testing.T) {
	const named = "defaults of-all\n mode http\n balance roundrobin\n"
	v34, v32 := change.Target{Version: change.HAProxy34}, change.Target{Version: change.Version{Major: 3, Minor: 2}}
	made := func(name string) string { return "backend " + name + "\n server s 192.0.2.1:80\n" }
	for name, c := range map[string]struct {
		above, backend string
		target         change.Target
		why            string
	}{
		"made":                       {named, made("a"), v34, ""},
		"made, by its header":        {named + "defaults other\n", "backend a from of-all\n", v34, ""},
		"a later version":            {named, made("a"), change.Target{Version: change.Version{Major: 4}}, ""},
		"before 3.4":                 {named, made("a"), v32, "HAProxy 3.2 cannot create a backend from defaults at runtime"},
		"no stats socket":            {named, made("a"), change.Target{Version: change.HAProxy34, Silent: true}, "no stats socket"},
		"the Dataplane API":          {named, made("a"), change.Target{Version: change.HAProxy34, Transport: change.API}, "the Dataplane API cannot create a backend from defaults"},
		"defaults without a name":    {"defaults\n mode http\n", made("a"), v34, whyNewSection},
		"no defaults":                {"", "backend a from nobody\n", v34, whyNewSection},
		"a line of its own":          {named, backendOf("a", "192.0.2.1:80"), v34, whyNewSection},
		"a word in its header":       {named, "backend a from of-all more\n", v34, whyNewSection},
		"two defaults of that name":  {named + named, made("a"), v34, whyNewSection},
		"mode log":                   {"defaults of-all\n mode log\n", made("a"), v34, "a backend of mode log cannot come at runtime"},
		"the name of a frontend":     {named, made("web"), v34, "another section has its name"},
		"a name that is no word":     {named, "backend a\\ b\n", v34, "cannot stand in a runtime command"},
		"a server with a name":       {named, "backend a\n server s shop.test:80\n", v34, "server s: only a server with an IP address"},
		"a balance that is too firm": {"defaults of-all\n mode http\n balance source\n", made("a"), v34, "server s: balance source depends on the list of servers"},
		"a template of servers":      {named, "backend a\n server-template s 3 192.0.2.1:80\n", v34, whyNewSection},
		"a spare one":                {named, "backend haptic-spare-9\n", v34, whyNewSection},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := configOf(t, spareHead+c.above), configOf(t, spareHead+c.above+c.backend)
			steps := Compare(from, to, c.target)
			require.Len(t, steps, 1)
			require.Contains(t, steps[0].Reason, c.why)
			require.Equal(t, c.why == "", steps[0].Impact == change.Runtime)
			if c.why == "" {
				do := steps[0].Do.(*change.MakeBackend)
				require.Equal(t, "of-all", do.From)
				require.Equal(t, "http", do.Mode)
				steps = Compare(to, from, c.target)
				require.Len(t, steps, 1)
				require.True(t, steps[0].Do.(*change.LeaveBackend).Publish)
			}
		})
	}
	spare := spareHead + named + "backend haptic-spare-0\n"
	for target, do := range map[change.Target]change.Do{v34: &change.MakeBackend{}, v32: &change.TakeBackend{}} {
		steps := Compare(configOf(t, spare), configOf(t, spare+made("a")), target)
		require.IsType(t, do, steps[0].Do)
		steps = Compare(configOf(t, spare+made("a")), configOf(t, spare), target)
		require.Equal(t, target == v34, steps[0].Do.(*change.LeaveBackend).Publish)
	}
}

// A process keeps only so many backends that are gone.
func TestCompareBoundsBackendsThatAreGone(t *testing.T) {
	var backends []string
	for i := range maxGone + 1 {
		backends = append(backends, backendOf(fmt.Sprintf("b%d", i), "192.0.2.1:80"))
	}
	steps := Compare(configOf(t, sparesIn(1, backends...)), configOf(t, sparesIn(1)), change.Target{})
	require.Equal(t, change.Runtime, change.ImpactOf(steps[:maxGone]))
	require.Equal(t, fmt.Sprintf("HAProxy already keeps %d removed backends until the next reload", maxGone), steps[maxGone].Reason)
}

// What can be taken is taken ahead of a reload, with what leads to it. What cannot
// waits, and so does what leads there. Backends that go wait, too.
func TestRuntimePartWithSpares(t *testing.T) {
	m := func(lines ...string) config.File {
		return config.File{Kind: config.Map, Name: "m.map", Content: []byte("# routes\n" + strings.Join(lines, ""))}
	}
	from := configOf(t, sparesIn(1, backendOf("old", "192.0.2.9:80")), m("/old old\n"))
	to := configOf(t, sparesIn(1, backendOf("a", "192.0.2.1:80"), backendOf("b", "192.0.2.2:80")), m("/a a\n", "/b b\n"))
	part := RuntimePart(from, to, Compare(from, to, change.Target{}), change.Target{})
	want := configOf(t, sparesIn(1, backendOf("a", "192.0.2.1:80"), backendOf("old", "192.0.2.9:80")), m("/a a\n"))
	require.Empty(t, Compare(part, want, change.Target{}), "%s", part.Main())
	require.Equal(t, []string{"create a 2 haptic-spare-0", "create /a 2", "delete /old 2"}, impacts(Compare(from, part, change.Target{})))
}

func TestHasWord(t *testing.T) {
	for text, has := range map[string]bool{
		"shop": true, "shop,x": true, "x shop": true, `"shop"`: true, "shop/a": true, "shop-1": false, "my_shop": false, "shop.test": false,
		"shops shop": true, "shopshop": false, "": false, "sho": false, "a:shop": false,
	} {
		require.Equal(t, has, hasWord(text, "shop"), text)
	}
}
