package dataplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// ops tells the operations of a plan in short: "- acl a 3".
func ops(plan *dataplane.Plan) []string {
	var out []string
	for _, op := range plan.Ops {
		s := map[dataplane.Action]string{dataplane.Create: "+", dataplane.Update: "~", dataplane.Delete: "-"}[op.Action] + " " + op.Kind
		if op.Name != "" {
			s += " " + op.Name
		}
		if op.Index != nil {
			s += fmt.Sprint(" ", *op.Index)
		}
		out = append(out, s)
	}
	return out
}

// frontend makes a text of one frontend.
func frontend(lines ...string) string {
	return "frontend www\n  " + strings.Join(lines, "\n  ") + "\n"
}

func TestDiffDeletesFromTheEnd(t *testing.T) {
	t.Parallel()
	plan := diffOf(t,
		frontend("http-request deny if a", "http-request deny if b", "http-request deny if c", "http-request deny if d"),
		frontend("http-request deny if b", "http-request deny if d"))
	require.Equal(t, []string{"- http-request 2", "- http-request 0"}, ops(plan))
}

func TestDiffInsertionIsOneInsertion(t *testing.T) {
	t.Parallel()
	plan := diffOf(t,
		frontend("http-request deny if a", "http-request deny if b", "http-request deny if c"),
		frontend("http-request deny if a", "http-request deny if x", "http-request deny if b", "http-request deny if c"))
	require.Equal(t, []string{"+ http-request 1"}, ops(plan))
}

func TestDiffACLsOfOneName(t *testing.T) {
	t.Parallel()
	plan := diffOf(t,
		frontend("acl a path /1", "acl a path /2", "acl b path /3", "acl a path /4"),
		frontend("acl a path /1", "acl b path /3", "acl a path /4", "acl a path /5"))
	require.Equal(t, []string{"+ acl a 3", "- acl a 1"}, ops(plan))
}

func TestDiffUpdateHasTheDesiredIndex(t *testing.T) {
	t.Parallel()
	plan := diffOf(t,
		frontend("http-request deny if a", "http-request set-header X a", "http-request set-path /a"),
		frontend("http-request set-query a", "http-request deny if a", "http-request set-header X b", "http-request set-path /a"))
	require.Equal(t, []string{"+ http-request 0", "~ http-request 2"}, ops(plan))
}

// Each line that comes, goes or changes is one operation, whatever its kind.
func TestDiffEveryChild(t *testing.T) {
	t.Parallel()
	for _, child := range []string{
		"frontend acl", "frontend http-request", "frontend use_backend", "frontend bind", "backend stick", "backend filter", "global log",
		"userlist user", "userlist group", "resolvers nameserver", "mailers mailer", "peers peer", "log-forward dgram-bind", "cache x",
	} {
		section, keyword, _ := strings.Cut(child, " ")
		t.Run(child, func(t *testing.T) {
			header := section
			if section != "global" {
				header += " x"
			}
			text := func(lines ...string) string { return header + "\n  " + strings.Join(lines, "\n  ") + "\n" }
			one, two, three := keyword+" a b c", keyword+" b c d", keyword+" a c d"
			for _, c := range [][2]string{
				{text(), text(one)}, {text(one), text()}, {text(one), text(one, two)}, {text(one, two), text(two)}, {text(one), text(three)},
			} {
				plan := diffOf(t, c[0], c[1])
				require.Len(t, plan.Ops, 1, "%s", plan)
				back := diffOf(t, c[1], c[0])
				require.Len(t, back.Ops, 1, "%s", back)
			}
		})
	}
}

// A section that cannot be read in full is still there.
func TestDiffUnreadableLine(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`http-request set-header X "open`, `acl a path \`, "nonsense x", "http-request nonsense", "bind"} {
		plan := diffOf(t, frontend("mode http"), frontend("mode http", line))
		for _, op := range plan.Ops {
			require.NotEqual(t, dataplane.Delete, op.Action, line)
			require.NotEqual(t, "section", op.Kind, line)
		}
		require.Len(t, plan.Ops, 1, line)
		require.Contains(t, plan.String(), strings.Fields(line)[0])
		require.True(t, diffOf(t, frontend(line), frontend(line, "")).Empty())
	}
}

func TestDiffOnlyDefaultServer(t *testing.T) {
	t.Parallel()
	for _, texts := range [][2]string{
		{"backend b\n  default-server check\n  server s 192.0.2.1:80\n", "backend b\n  default-server check inter 5s\n  server s 192.0.2.1:80\n"},
		{"backend b\n  default-server check\n  server s 192.0.2.1:80\n", "backend b\n  server s 192.0.2.1:80\n"},
		{"backend b\n  default-server check\n  server s 192.0.2.1:80\n", "backend b\n  server s 192.0.2.1:80\n  default-server check\n"},
		{"defaults\n  default-server check\n", "defaults\n  default-server no-check\n"},
	} {
		for _, plan := range []*dataplane.Plan{diffOf(t, texts[0], texts[1]), diffOf(t, texts[1], texts[0])} {
			require.Equal(t, dataplane.ImpactReload, plan.Impact(), "%s", plan)
		}
	}
}

func TestDiffNamesAreNoDescriptions(t *testing.T) {
	t.Parallel()
	plan := diffOf(t, "frontend 'a in frontend b'\n  acl in path /1\n", "frontend 'a in frontend b'\n  acl in path /1\n  acl frontend path /2\n")
	require.Len(t, plan.Ops, 1)
	op := plan.Ops[0]
	require.Equal(t, []string{"acl", "frontend", "frontend a in frontend b"}, []string{op.Kind, op.Name, op.Parent})
}

// Rules may be carried out one after the other: what comes out is the desired
// list.
func TestDiffApplied(t *testing.T) {
	t.Parallel()
	for i, c := range [][2]string{
		{"a b c d e", "a c e"}, {"a c e", "a b c d e"}, {"a b c", "c b a"}, {"", "a b"}, {"a b", ""}, {"a b c d", "x b y d z"},
		{"a a b a", "a b a a"}, {"a b c d e f", "b x d f y a"},
	} {
		lines := func(text string) (out []string) {
			for _, w := range strings.Fields(text) {
				out = append(out, "http-request set-path /"+w)
			}
			return out
		}
		list, want := lines(c[0]), lines(c[1])
		plan := diffOf(t, frontend(list...), frontend(want...))
		for _, op := range plan.Ops {
			at := *op.Index
			switch op.Action {
			case dataplane.Delete:
				require.Equal(t, op.Changes[0].Old, list[at], "%d: %s", i, plan)
				list = slices.Delete(list, at, at+1)
			case dataplane.Create:
				list = slices.Insert(list, at, op.Changes[0].New)
			case dataplane.Update:
				require.NotEqual(t, want[at], list[at], "%d: %s", i, plan)
				list[at] = want[at]
			}
		}
		require.Empty(t, slices.Compare(want, list), "%d: %s", i, plan)
	}
}

// A server may come with a file that HAProxy knows by another name than a path.
func TestDiffServerWithFileByName(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"@system-ca", "ca.pem", "/etc/haproxy/general/ca.pem"} {
		text := func(servers int) string {
			lines := "global\n\tca-base /etc/haproxy/general\nbackend b\n\tmode http\n"
			for i := range servers {
				lines += fmt.Sprintf("\tserver s%d 10.0.0.%d:443 ssl verify required ca-file %s\n", i, i+1, file)
			}
			return lines
		}
		plan := diffOf(t, text(1), text(2))
		require.Equal(t, dataplane.ImpactRuntime, plan.Impact(), "%s", plan)
		require.Equal(t, dataplane.ImpactReload, diffOf(t, text(0), text(1)).Impact(), "it is not loaded yet")
	}
}
