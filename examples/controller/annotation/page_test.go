package annotation

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/annotations.md")

const pageFile = "../../../docs/annotations.md"

// head is what stands above the tables.
const head = `# Annotations

The reference controller takes the annotations of ingress-nginx, under ` + "`nginx.ingress.kubernetes.io/`" + `, and those
of haproxytech's controller, under ` + "`haproxy.org/`" + ` or ` + "`haproxy.com/`" + `. Most options have both names. This page is made of the table in
[examples/controller/annotation](../examples/controller/annotation): ` + "`go test ./examples/controller/annotation -update`" + `.

- A wrong value is refused by name, with the reason: in the log, on the page of the controller, and as an Event. The
  rest of the Ingress is served, as if the annotation was not there.
- Where serving it so would open what its author meant to close, the paths of the Ingress answer 503 until the value is
  right. These annotations have "closes" in the table. A snippet closes where it denies or asks for a password.
- A refused annotation with the value "false" or "off" asks for nothing, and nothing is said of it, where HAProxy does
  the same without it.
- An option may have two names: the one under haproxy.org counts. Options of a Service go before those of the Ingress.
- An Ingress with annotations has backends of its own, whose names end in 32 digits of its options. Those with the
  same options share them. A change of options takes a reload; an endpoint that changes takes none, but for one more
  where servers are chosen by a hash, or before HAProxy 3.0 by a cookie. Usually only the changed Ingress is rebuilt.
  With a Secret, canary or passthrough all are.
- A Secret is of the namespace of the Ingress, and of type Opaque or kubernetes.io/tls. ` + "`-opaque-secrets=false`" + ` keeps the
  controller from reading the first.
- A namespace can have 500 paths that are patterns, 100 canaries, and rates for 1,048,576 addresses, which is 102
  backends with rates: [limits](tenants.md#limits). A host that all namespaces share has no patterns.
- Paths are compared as clients send them; ingress-nginx normalises them. Users or an allow list on ` + "`/admin`" + `, beside an
  open ` + "`/`" + ` of the same host, do not protect it: ` + "`/%61dmin`, `//admin` and `/x/../admin`" + ` go by ` + "`/`" + `, and the Service may
  read them as ` + "`/admin`" + `. Protect ` + "`/`" + ` as well: [ingress.md](ingress.md).
- Timeouts have an hour at most, or ` + "`-longest-timeout`" + `. A longer one is cut, and its object has a warning.
- Rates are counted in each HAProxy by itself. A reload counts anew.
- Templates of your own must print ` + "`backend.Options`" + `; older copies do not, and ignore annotations.
- ` + "`controller -migrate`" + ` says of each annotation in a cluster, or in the folder of ` + "`-manifests`" + `, what becomes of it.
- The steps of a pattern are counted before it is taken. One with two repeats that can share a text, as ` + "`/(.*)/(.*)x`" + `, is taken for
  paths of some hundred bytes. Longer ones of its host get 414, where no exact path has them. Write ` + "`[^/]*`" + ` in place of
  ` + "`.*`" + `, and it is for any path. A header that is too long for a canary's pattern leads to no canary.
- HAProxy must have PCRE or PCRE2, as in its usual packages: ` + "`(*LIMIT_MATCH=500000)`" + ` stands before each pattern.

`

const passwords = `
## Passwords

HAProxy checks the password of each request, and no other request of its thread goes on meanwhile. A hash takes it
5 ms at most; an Ingress whose Secret has a heavier one is closed. A login has 180 bytes of ` + "`Authorization`" + ` at most, which
are 130 of user and password. After twenty failed logins in a minute, an address gets 429 until there are fewer. IPv6 addresses count
by /64, and each Secret by itself in each HAProxy. The times are those of the longest login; bcrypt has its usual cost, 5.
` + "`$apr1$` and `{SHA}`" + ` of Apache are refused: HAProxy does not know them.

| Kind | Begins with | Is taken | Takes HAProxy | Made by |
|---|---|---|---|---|
`

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// page is docs/annotations.md.
func page() string {
	var b strings.Builder
	b.WriteString(head)
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	names := func(r Row) string {
		var all []string
		for _, name := range r.Names() {
			name = strings.TrimPrefix(name, NGINX)
			all = append(all, "`"+name+"`")
		}
		return strings.Join(all, ", ")
	}
	b.WriteString("## Taken\n\nNames without a prefix are those under `nginx.ingress.kubernetes.io/`.\n\n| Annotation | Value | On | What it becomes | How it differs |\n|---|---|---|---|---|\n")
	for _, r := range Table() {
		if r.set == nil {
			continue
		}
		on, becomes := "Ingress", r.Becomes
		if r.Service {
			on = "Ingress, Service"
		}
		if r.Closes {
			becomes += " (closes)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", names(r), cell(r.Value), on, cell(becomes), cell(r.Differs))
	}
	b.WriteString(passwords)
	for _, k := range hashKinds {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %.1f ms | %s |\n", k.name, strings.ReplaceAll(k.prefixes, " ", "` `"), k.taken(), float64(k.login(0, 5))/1000, code(k.makes))
	}
	b.WriteString("\n## Refused\n\n| Annotation | Why, and what to do |\n|---|---|\n")
	for _, r := range Table() {
		if r.Refused != "" {
			why := r.Refused
			if r.Closes {
				why += " (closes)"
			}
			if r.closesOn != nil {
				why += " (closes where it denies)"
			}
			fmt.Fprintf(&b, "| %s | %s |\n", names(r), cell(why))
		}
	}
	b.WriteString("\n## Not needed\n\n| Annotation | Why |\n|---|---|\n")
	for _, r := range Table() {
		if r.Ignored != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", names(r), cell(r.Ignored))
		}
	}
	return b.String()
}

// TestPage: docs/annotations.md says what the table does.
func TestPage(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile(pageFile, []byte(page()), 0o644))
	}
	text, err := os.ReadFile(pageFile)
	require.NoError(t, err)
	require.Equal(t, page(), string(text), "run go test -update in this folder")
}

// TestTable: each row is of one kind, and each name is of one row.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Table() {
		kinds := 0
		for _, is := range []bool{r.set != nil && r.Value != "" && r.Becomes != "", r.Refused != "", r.Ignored != ""} {
			if is {
				kinds++
			}
		}
		require.Equal(t, 1, kinds, r.Names())
		require.NotEmpty(t, r.Names())
		for _, name := range r.Names() {
			require.False(t, seen[name], name)
			require.Equal(t, r.Names(), Of(name).Names())
			seen[name] = true
		}
	}
	t.Log(len(seen), "names")
}

// TestMovingPage: each annotation that docs/moving.md names as ours is one that is taken.
func TestMovingPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/moving.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`(haproxy\\.org/[a-z-]+)`").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(named), 10)
	for _, m := range named {
		row := Of(m[1])
		require.True(t, row != nil && row.Refused == "" && row.Ignored == "", "%s is not taken", m[1])
	}
}
