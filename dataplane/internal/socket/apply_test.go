package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// site has one of each that changes at runtime.
func site(t *testing.T) (text string, files []config.File) {
	return `frontend f
    bind unix@DIR/f
    http-request set-header a %[path,map(DIR/maps/m.map,none)]
    http-request set-header b %[path,map_reg(DIR/maps/auth.map,none)]
    http-request deny if { req.hdr(host) -f DIR/general/p.txt }
frontend tls
    bind unix@DIR/tls ssl crt-list DIR/general/list.txt
backend b
    server s 192.0.2.1:80 weight 3 maxconn 5
    server spare 192.0.2.2:80
backend secured
    server s 192.0.2.1:443 ssl verify required ca-file DIR/general/ca.pem
    server follows 192.0.2.2:80 track leads
    server leads 192.0.2.3:80 check disabled
`, []config.File{
			file(config.Map, "m.map", "a 1", "b 2"), file(config.Map, "auth.map", "^a$ hunter2"),
			file(config.General, "p.txt", "a.test"), file(config.CRTList, "list.txt", "DIR/ssl/a.pem", "DIR/ssl/b.pem"),
			made(t, config.Certificate, "a.pem", "a.test"), made(t, config.Certificate, "b.pem", "b.test"),
			made(t, config.CA, "ca.pem", "ca.test"),
		}
}

// applied is a change, and what HAProxy shows after it.
type applied struct {
	dos   []change.Do
	sent  int
	ask   string
	shows string // pattern of the answer
	not   string
}

func entries(f config.File, whole bool, list ...change.Entry) change.Do {
	return &change.ChangeEntries{File: f, Entries: list, Whole: whole}
}

// fieldCases has one case for each field of a server, by its name.
func fieldCases() map[string]applied {
	s := ref("b", "s")
	return map[string]applied{
		"address": {dos: []change.Do{set(s, "address", "[2001:db8::1]:81")}, sent: 1, ask: "show servers state b", shows: ` s 2001:db8::1 .* 81 `},
		"weight":  {dos: []change.Do{set(s, "weight", "7")}, sent: 1, ask: "get weight b/s", shows: `^7 \(initial 3\)`},
		"state":   {dos: []change.Do{set(s, "state", change.Maint)}, sent: 1, ask: "show stat b 4 -1", shows: `(?m)^b,s,.*,MAINT,`},
		"maxconn": {dos: []change.Do{set(s, "maxconn", "6")}, sent: 1, ask: "show stat b 4 -1", shows: `(?m)^b,s,0,0,0,0,6,`},
	}
}

func serverCases() map[string]applied {
	var all []change.Do
	for i := range 300 {
		all = append(all, add("b", fmt.Sprintf("n%d 192.0.2.7:80", i)))
	}
	return map[string]applied{
		"all fields": {dos: []change.Do{set(ref("b", "s"), "address", "192.0.2.9:81", "weight", "0", "state", change.Maint, "maxconn", "0"),
			set(ref("b", "spare"), "state", change.Ready, "address", "192.0.2.8:80")}, sent: 6, ask: "show servers state b", shows: `(?s) s 192.0.2.9 0 1 0 .* spare 192.0.2.8 2 0 `},
		"add":                     {dos: []change.Do{add("b", "t 192.0.2.4:80 weight 9 maxconn 4")}, sent: 2, ask: "show servers state b", shows: `(?m) 3 t 192.0.2.4 2 0 9 `},
		"add several":             {dos: all, sent: 600, ask: "show servers state b", shows: `(?m) 302 n299 192.0.2.7 2 0 1 `},
		"add, checked":            {dos: []change.Do{add("b", "t 192.0.2.4:80 check inter 1h")}, sent: 3, ask: "show servers state b", shows: `(?m) t 192.0.2.4 \d 0 1 1 \d+ \d+ \d \d [67] `},
		"add, disabled":           {dos: []change.Do{add("b", "t 192.0.2.4:80 check disabled")}, sent: 2, ask: "show servers state b", shows: ` t 192.0.2.4 0 [15] 1 `},
		"add, with an identifier": {dos: []change.Do{add("b", "t 192.0.2.4:80 id 77")}, sent: 2, ask: "show servers state b", shows: ` 77 t `},
		"delete":                  {dos: []change.Do{&change.DeleteServer{Ref: ref("b", "spare")}}, sent: 2, ask: "show servers state b", shows: ` s `, not: "spare"},
		"delete what is gone":     {dos: []change.Do{&change.DeleteServer{Ref: ref("b", "none")}}, sent: 2, ask: "show servers state b", shows: ` s `},
		"set, then delete":        {dos: []change.Do{set(ref("b", "s"), "weight", "1"), &change.DeleteServer{Ref: ref("b", "s")}}, sent: 3, ask: "show servers state b", not: ` s `},
		"delete, then add": {dos: []change.Do{&change.DeleteServer{Ref: ref("b", "s")}, add("b", "s 192.0.2.4:80")}, sent: 4,
			ask: "show servers state b", shows: ` s 192.0.2.4 2 0 1 `},
		"ready in spite of a maintenance that it inherits": {dos: []change.Do{set(ref("secured", "follows"), "state", change.Ready)}, sent: 1,
			ask: "show stat secured 4 -1", shows: `(?m)^secured,follows,.*,MAINT \(via secured/leads\),`},
	}
}

func entryCases() map[string]applied {
	var many []change.Entry
	var lines []string
	for i := range 3000 {
		many = append(many, change.Entry{Action: change.Create, Key: fmt.Sprintf("host-%d.test", i), Value: "one"})
		lines = append(lines, fmt.Sprintf("host-%d.test one", i))
	}
	hosts := func(lines []string) (hosts []string) {
		for _, l := range lines {
			hosts = append(hosts, strings.TrimSuffix(l, " one"))
		}
		return hosts
	}
	m, p := file(config.Map, "m.map", "b 3", "c 4"), file(config.General, "p.txt", "b.test")
	return map[string]applied{
		"entries": {dos: []change.Do{entries(m, false, change.Entry{Action: change.Update, Key: "b", Value: "3"}, change.Entry{Action: change.Create, Key: "c", Value: "4"},
			change.Entry{Action: change.Delete, Key: "a"}, change.Entry{Action: change.Delete, Key: "none"})}, sent: 4, ask: "show map DIR/maps/m.map", shows: `^0x\S+ b 3\n0x\S+ c 4$`},
		"entries, whole": {dos: []change.Do{entries(file(config.Map, "m.map", "c 4", "b 3", "b 2"), true)}, sent: 3, ask: "show map DIR/maps/m.map",
			shows: `^0x\S+ c 4\n0x\S+ b 3\n0x\S+ b 2$`},
		"entries, none left": {dos: []change.Do{entries(file(config.Map, "m.map"), true)}, sent: 2, ask: "show map DIR/maps/m.map", shows: `^$`},
		"entries of several words": {dos: []change.Do{entries(file(config.Map, "m.map", `b two words; and $1 \ more`), false,
			change.Entry{Action: change.Update, Key: "b", Value: `two words; and $1 \ more`}, change.Entry{Action: change.Delete, Key: "a"})},
			sent: 3, ask: "show map DIR/maps/m.map", shows: `^0x\S+ b two words; and \$1 \\ more$`},
		"several of many entries": {dos: []change.Do{entries(file(config.Map, "m.map", lines...), false, many[:90]...)}, sent: 90, ask: "show map",
			shows: `DIR/maps/m.map\).*entry_cnt=92`},
		"many entries": {dos: []change.Do{entries(file(config.Map, "m.map", lines...), false, many...)}, sent: 6, ask: "show map",
			shows: `DIR/maps/m.map\).*entry_cnt=3000`},
		"patterns": {dos: []change.Do{entries(p, false, change.Entry{Action: change.Create, Key: "b.test"}, change.Entry{Action: change.Delete, Key: "a.test"})}, sent: 2,
			ask: "show acl DIR/general/p.txt", shows: `^0x\S+ b.test$`},
		"many patterns": {dos: []change.Do{entries(file(config.General, "p.txt", hosts(lines)...), false, many...)}, sent: 3002, ask: "show acl",
			shows: `DIR/general/p.txt\).*entry_cnt=3000`},
	}
}

func fileCases(t *testing.T) map[string]applied {
	list := file(config.CRTList, "list.txt")
	entry := func(action change.Action, words ...string) change.Do {
		return &change.ChangeListEntry{Action: action, File: list, Entry: words}
	}
	a, fresh, ca := made(t, config.Certificate, "a.pem", "renewed.test"), made(t, config.Certificate, "c.pem", "c.test"), made(t, config.CA, "ca.pem", "other.test")
	const shown = `^# DIR/general/list.txt\n`
	return map[string]applied{
		"certificate": {dos: []change.Do{&change.SetCertificate{File: a}}, sent: 2, ask: "show ssl cert DIR/ssl/a.pem", shows: "FingerPrint: " + config.Fingerprint(a.Content)},
		"new certificate with an entry": {dos: []change.Do{&change.NewCertificate{File: fresh}, entry(change.Create, "DIR/ssl/c.pem", "[ssl-min-ver", "TLSv1.2]", "c.test", "!d.test")},
			sent: 4, ask: "show ssl crt-list -n DIR/general/list.txt", shows: shown + `DIR/ssl/a.pem:1\nDIR/ssl/b.pem:2\nDIR/ssl/c.pem:\d+ \[ssl-min-ver TLSv1.2\] c.test !d.test$`},
		"entry twice": {dos: []change.Do{entry(change.Update, "DIR/ssl/b.pem", "x.test"), entry(change.Update, "DIR/ssl/b.pem", "y.test")}, sent: 4,
			ask: "show ssl crt-list DIR/general/list.txt", shows: shown + `DIR/ssl/a.pem\nDIR/ssl/b.pem y.test$`},
		"certificate that goes": {dos: []change.Do{entry(change.Delete, "DIR/ssl/b.pem"), &change.DeleteCertificate{File: file(config.Certificate, "b.pem")},
			&change.DeleteCertificate{File: file(config.Certificate, "b.pem")}}, sent: 3, ask: "show ssl cert", shows: "DIR/ssl/a.pem", not: "b.pem"},
		"ca": {dos: []change.Do{&change.SetCA{File: ca}}, sent: 2, ask: "show ssl ca-file DIR/general/ca.pem", shows: "FingerPrint: " + config.Fingerprint(ca.Content)},
	}
}

// kind names the kind of a change.
func kind(do change.Do) string {
	if do, ok := do.(*change.ChangeListEntry); ok {
		return fmt.Sprintf("%T %s", do, do.Action)
	}
	return fmt.Sprintf("%T", do)
}

func TestApply(t *testing.T) {
	t.Parallel()
	text, files := site(t)
	all := make(map[string]applied)
	covered := make(map[string]bool)
	for _, cases := range []map[string]applied{fieldCases(), serverCases(), entryCases(), fileCases(t)} {
		for name, c := range cases {
			require.NotContains(t, all, name)
			all[name] = c
			for _, do := range c.dos {
				covered[kind(do)] = true
			}
		}
	}
	lists := []change.Do{&change.ChangeListEntry{Action: change.Create}, &change.ChangeListEntry{Action: change.Update}, &change.ChangeListEntry{Action: change.Delete}}
	for _, do := range append(lists, &change.SetServer{}, &change.AddServer{}, &change.DeleteServer{}, &change.ChangeEntries{}, &change.SetCertificate{},
		&change.NewCertificate{}, &change.DeleteCertificate{}, &change.SetCA{}) {
		require.True(t, covered[kind(do)], "no case for %s", kind(do))
	}
	for _, row := range change.Table() {
		if row.ServerField != nil {
			require.Contains(t, fieldCases(), row.Field, "no case for this row")
		}
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, text, files...)
			dir := func(s string) string { return strings.ReplaceAll(s, "DIR/", p.layout.Base+"/") }
			for _, do := range c.dos {
				if do, ok := do.(*change.ChangeListEntry); ok {
					for i, word := range do.Entry {
						do.Entry[i] = dir(word)
					}
				}
			}
			sent, err := p.apply(c.dos...)
			require.NoError(t, err)
			require.Equal(t, c.sent, sent)
			answer := p.ask(c.ask)
			require.Regexp(t, dir(c.shows), answer)
			if c.not != "" {
				require.NotContains(t, answer, c.not)
			}
			require.Empty(t, p.leaving)
		})
	}
}

// What HAProxy refuses is an error that shows no secret, and the process takes
// the next change.
func TestApplyRefused(t *testing.T) {
	t.Parallel()
	text, files := site(t)
	wrong, other := made(t, config.Certificate, "a.pem", "wrong.test"), made(t, config.Certificate, "a.pem", "wrong.test")
	cert, _, _ := strings.Cut(string(wrong.Content), "-----BEGIN PRIVATE")
	_, key, _ := strings.Cut(string(other.Content), "-----BEGIN PRIVATE")
	wrong.Content = []byte(cert + "-----BEGIN PRIVATE" + key)
	one := func(f config.File, key, value string) change.Do {
		return entries(f, false, change.Entry{Action: change.Create, Key: key, Value: value})
	}
	for name, c := range map[string]struct {
		do   change.Do
		says string
	}{
		"unknown server":      {set(ref("b", "none"), "weight", "3"), `HAProxy refused "set server b/none weight 3": No such server.`},
		"secret name":         {set(ref("b", "token"), "weight", "3"), `HAProxy refused "set server b/token weight 3": No such server.`},
		"unknown keyword":     {add("b", "t 192.0.2.1:80 resolvers r"), `HAProxy refused "add server b/t 192.0.2.1:80 resolvers r id 3"`},
		"secret of a server":  {add("b", "t 192.0.2.1:80 ssl verify none sni str(token=hunter2) resolvers r"), `HAProxy refused "add server b/t 192.0.2.1:80 ssl verify none sni (secret)"`},
		"unknown change":      {nil, "unknown change"},
		"several words":       {addWords("b", "t", "192.0.2.1:80", "sni", "str(a b)"), "cannot carry"},
		"unsayable":           {add("b", "t 192.0.2.1:80 sni str(hunter;2)"), `a runtime command cannot carry "add server b/t 192.0.2.1:80 sni str(hunter;2) id 3"`},
		"unknown map":         {one(file(config.Map, "none.map"), "a", "1"), `maps/none.map a 1": Unknown map identifier`},
		"unknown map, whole":  {one(file(config.Map, "none.map"), "a", "1 2"), `maps/none.map": Unknown map identifier`},
		"secret map":          {one(file(config.Map, "auth-x.map"), "user-hunter2", "hunter2"), `HAProxy refused "change of auth-x.map": (secret)`},
		"secret map, whole":   {one(file(config.Map, "auth.map", "hunter2([ x"), "hunter2([", "1 2"), `HAProxy refused "change of auth.map": (secret)`},
		"secret key":          {one(file(config.Map, "none.map"), "x-auth-key", "hunter2"), `HAProxy refused "change of none.map": (secret)`},
		"unsayable pattern":   {one(file(config.General, "p.txt", "a b"), "a b", ""), "cannot carry"},
		"wrong key":           {&change.SetCertificate{File: wrong}, "inconsistencies between private key and certificate"},
		"unknown certificate": {&change.SetCertificate{File: made(t, config.Certificate, "none.pem", "x.test")}, "none.pem"},
		"certificate in use":  {&change.DeleteCertificate{File: wrong}, "in use"},
		"no authority":        {&change.SetCA{File: file(config.CA, "ca.pem", "hunter2")}, `HAProxy refused "set ssl ca-file`},
		"too many":            {&change.SetCA{File: file(config.CA, "ca.pem", strings.Repeat("x", 20<<10))}, "are too many"},
		"entry of nothing":    {&change.ChangeListEntry{Action: change.Create, File: file(config.CRTList, "list.txt"), Entry: haproxycfg.ListEntry{"/none.pem"}}, "none.pem"},
		"list without entry":  {&change.ChangeListEntry{Action: change.Delete, File: file(config.CRTList, "list.txt"), Entry: haproxycfg.ListEntry{"/none.pem"}}, "none.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, text, files...)
			before := p.read(files...).Maps
			_, err := p.apply(c.do)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "PRIVATE")
			if strings.HasPrefix(c.says, "HAProxy refused") {
				refused := new(Refused)
				require.ErrorAs(t, err, &refused)
			}
			require.Equal(t, before, p.read(files...).Maps)
			require.NotContains(t, p.ask("show ssl cert")+p.ask("show ssl ca-file"), "*", "no transaction is open")
			sent, err := p.apply(set(ref("b", "s"), "weight", "9"), &change.SetCertificate{File: other})
			require.NoError(t, err)
			require.Equal(t, 3, sent)
		})
	}
}

// A batch tells how many commands changed something when one of them fails.
func TestApplyCounts(t *testing.T) {
	t.Parallel()
	p := start(t, "backend b\n server s 192.0.2.1:80\n")
	sent, err := p.apply(set(ref("b", "s"), "weight", "9"), set(ref("b", "none"), "weight", "9"), set(ref("b", "s"), "maxconn", "9"))
	require.ErrorContains(t, err, "b/none")
	require.Equal(t, 2, sent)
	sent, err = p.apply()
	require.NoError(t, err)
	require.Zero(t, sent)
}

// A server with a connection stays in maintenance until the connection ends.
func TestLeaving(t *testing.T) {
	t.Parallel()
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = upstream.Close() }()
	p := start(t, "listen b\n mode tcp\n balance roundrobin\n bind unix@DIR/b\n server s "+upstream.Addr().String()+"\n")
	client, err := net.Dial("unix", p.layout.Base+"/b")
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	_, err = client.Write([]byte("a"))
	require.NoError(t, err)
	served, err := upstream.Accept()
	require.NoError(t, err)
	defer func() { _ = served.Close() }()

	sent, err := p.apply(&change.DeleteServer{Ref: ref("b", "s")})
	require.NoError(t, err)
	require.Equal(t, 1, sent, "only the maintenance")
	require.Equal(t, Leaving{ref("b", "s"): {}}, p.leaving)
	require.Equal(t, change.Maint, p.read().Servers[ref("b", "s")].State)

	_, err = p.apply(add("b", "s 192.0.2.1:80"))
	require.ErrorContains(t, err, "still has connections")
	_, err = p.apply(add("b", "t 192.0.2.1:80"))
	require.NoError(t, err, "others come")
	require.Contains(t, p.leaving, ref("b", "s"))
	_, err = served.Write([]byte("b"))
	require.NoError(t, err)
	_, err = io.ReadFull(client, make([]byte, 1))
	require.NoError(t, err, "the connection lasts")

	require.NoError(t, errors.Join(client.Close(), served.Close()))
	eventually(t, "the server is gone", func() bool {
		_, err := p.apply()
		require.NoError(t, err)
		return len(p.leaving) == 0
	})
	require.NotContains(t, p.read().Servers, ref("b", "s"))
	_, err = p.apply(add("b", "s 192.0.2.1:80"))
	require.NoError(t, err)
}
