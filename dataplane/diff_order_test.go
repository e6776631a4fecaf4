package dataplane_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines and sections whose order HAProxy looks at, although their keywords
// differ, and repeated ones of which not the last counts.
func TestDiffSeesOrderThatCounts(t *testing.T) {
	t.Parallel()
	const servers = "backend b\n  server s 192.0.2.1:80\n"
	for name, texts := range map[string][2]string{
		"persistence rules, of which the first counts": {
			"backend b\n  force-persist if TRUE\n  ignore-persist if TRUE\n",
			"backend b\n  ignore-persist if TRUE\n  force-persist if TRUE\n",
		},
		"enabled and disabled": {
			"frontend f\n  disabled\n  enabled\n", "frontend f\n  enabled\n  disabled\n",
		},
		"keep-alive of both sides and of one": {
			"listen l\n  option tcpka\n  no option clitcpka\n", "listen l\n  no option clitcpka\n  option tcpka\n",
		},
		"two names of one option": {
			"frontend f\n  option accept-unsafe-violations-in-http-request\n  no option accept-invalid-http-request\n",
			"frontend f\n  no option accept-invalid-http-request\n  option accept-unsafe-violations-in-http-request\n",
		},
		"slots of captures": {
			"frontend f\n  capture request header A len 9\n  http-request capture src len 9\n",
			"frontend f\n  http-request capture src len 9\n  capture request header A len 9\n",
		},
		"slots of captures at two layers": {
			"frontend f\n  tcp-request content capture dst len 9\n  http-request capture src len 9\n",
			"frontend f\n  http-request capture src len 9\n  tcp-request content capture dst len 9\n",
		},
		"requests of a check": {
			"backend b\n  option httpchk GET /a\n  http-check send uri /b\n",
			"backend b\n  http-check send uri /b\n  option httpchk GET /a\n",
		},
		"arguments of a check that replace each other": {
			"backend b\n  http-check send uri /a uri-lf /b\n", "backend b\n  http-check send uri-lf /b uri /a\n",
		},
		"the quotes of a CLF log": {
			"frontend f\n  option httplog clf\n  log-format %ci\n", "frontend f\n  log-format %ci\n",
		},
		"global limit, of which the first counts": {"global\n  maxconn 10\n  maxconn 20\n", "global\n  maxconn 20\n"},
		"tuning, of which the first counts":       {"global\n  tune.maxaccept 10\n  tune.maxaccept 20\n", "global\n  tune.maxaccept 20\n"},
		"defaults of listeners": {
			"peers p\n  bind :1\n  default-bind ssl crt /a\n", "peers p\n  default-bind ssl crt /a\n  bind :1\n",
		},
		"slots of captures of responses": {
			"frontend f\n  capture response header A len 9\n  declare capture response len 9\n",
			"frontend f\n  declare capture response len 9\n  capture response header A len 9\n",
		},
		"one variable, set in two ways": {
			"global\n  set-var proc.a int(1)\n  set-var-fmt proc.a 2\n", "global\n  set-var-fmt proc.a 2\n  set-var proc.a int(1)\n",
		},
		"a variable that is used above": {
			"global\n  log \"$A\" local0\n  setenv A 192.0.2.1\n", "global\n  setenv A 192.0.2.1\n  log \"$A\" local0\n",
		},
		"two ways to name a user":                      {"global\n  uid 5\n  user joe\n", "global\n  user joe\n  uid 5\n"},
		"path of providers":                            {"global\n  ssl-provider-path /a\n  ssl-provider x\n", "global\n  ssl-provider x\n  ssl-provider-path /a\n"},
		"global below what reads it":                   {"global\n  log 192.0.2.1 local0\ndefaults\n  log global\n" + servers, "defaults\n  log global\n" + servers + "global\n  log 192.0.2.1 local0\n"},
		"a second global below what reads it":          {"global\n  crt-base /a\nfrontend f\n  bind :1 ssl crt x\n", "global\n  maxconn 1\nfrontend f\n  bind :1 ssl crt x\nglobal\n  crt-base /a\n"},
		"certificates that are loaded below their use": {"crt-store\n  load crt /a key /b\nfrontend f\n  bind :1 ssl crt /a\n", "frontend f\n  bind :1 ssl crt /a\ncrt-store\n  load crt /a key /b\n"},
		"defaults of one name": {
			"defaults d\n  mode http\n" + servers + "defaults d\n  mode tcp\nbackend c\n",
			"defaults d\n  mode http\ndefaults d\n  mode tcp\n" + servers + "backend c\n",
		},
		"ACL with the name of a built-in one": {
			"frontend f\n  http-request deny if LOCALHOST\n  acl LOCALHOST src 192.0.2.1\n",
			"frontend f\n  acl LOCALHOST src 192.0.2.1\n  http-request deny if LOCALHOST\n",
		},
		"lines of sections that nobody knows yet": {
			servers + "novelty a\n  thing 1\nnovelty b\n  thing 2\n", servers + "novelty a\nnovelty b\n  thing 1\n  thing 2\n",
		},
		"an escaped blank at the end of a line":     {"backend b\n  http-request set-path a\\ \n", "backend b\n  http-request set-path a\\\t\n"},
		"a character that ends the word in HAProxy": {"backend b\n  http-request set-header X a\\x00b\n", "backend b\n  http-request set-header X a b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, diffOf(t, texts[0], texts[1]).Empty())
			require.False(t, diffOf(t, texts[1], texts[0]).Empty())
			for _, text := range texts {
				require.True(t, diffOf(t, text, strings.ReplaceAll(text, "\n  ", "\n\t")).Empty())
			}
		})
	}
}
