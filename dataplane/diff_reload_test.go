package dataplane_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// What a runtime change would get wrong, or what a process in operation would
// not hear of, takes a reload.
func TestDiffTakesReload(t *testing.T) {
	t.Parallel()
	server := func(old, now string) [2]string {
		return [2]string{"backend b\n server s " + old + "\n", "backend b\n server s " + now + "\n"}
	}
	for name, texts := range map[string][2]string{
		"defaults from defaults with a default-server": {
			"defaults a\n default-server init-addr none\ndefaults b from a\n mode http\nbackend b from b\n server s 192.0.2.1:80\n",
			"defaults a\n default-server init-addr none\ndefaults b from a\n mode http\nbackend b from b\n server s 192.0.2.1:80\n server t 192.0.2.2:80\n",
		},
		"defaults from defaults with a balance": {
			"defaults a\n balance source\ndefaults b from a\n mode http\nbackend b\n server s 192.0.2.1:80 weight 5\n",
			"defaults a\n balance source\ndefaults b from a\n mode http\nbackend b\n server s 192.0.2.1:80 weight 6\n",
		},
		"order of check and no-check with another weight": server("192.0.2.1:80 check no-check weight 1", "192.0.2.1:80 no-check check weight 2"),
		"order of forced versions":                        server("192.0.2.1:80 ssl force-tlsv12 force-tlsv13", "192.0.2.1:80 ssl force-tlsv13 force-tlsv12"),
		"order of stick and non-stick":                    server("192.0.2.1:80 stick non-stick", "192.0.2.1:80 non-stick stick"),
		"order of addr and agent-addr":                    server("192.0.2.1:80 agent-addr 192.0.2.2 addr 192.0.2.3", "192.0.2.1:80 addr 192.0.2.3 agent-addr 192.0.2.2"),
		"weight with an agent check":                      server("192.0.2.1:80 agent-check weight 1", "192.0.2.1:80 agent-check weight 2"),
		"an agent check comes":                            server("192.0.2.1:80", "192.0.2.1:80 agent-check agent-port 1"),
		"an agent check goes":                             server("192.0.2.1:80 agent-check agent-port 1", "192.0.2.1:80"),
		"the check of a TLS server gets a port":           server("192.0.2.1:80 check ssl", "192.0.2.1:80 check ssl port 81"),
		"an address of the check goes":                    server("192.0.2.1:80 check addr 192.0.2.2", "192.0.2.1:80 check"),
		"a port of a check that does not run":             server("192.0.2.1:80 port 81", "192.0.2.1:80 port 82"),
		"maxconn with the minconn of a default-server": {
			"backend b\n default-server minconn 1\n server s 192.0.2.1:80 maxconn 5\n",
			"backend b\n default-server minconn 1\n server s 192.0.2.1:80 maxconn 6\n",
		},
		"a server that would not inherit all of a default-server": {
			"backend b\n default-server check check-proto h2\n server s 192.0.2.1:80\n",
			"backend b\n default-server check check-proto h2\n server s 192.0.2.1:80\n server t 192.0.2.2:80\n",
		},
		"a default-server with a variable": {
			"backend b\n default-server weight $W\n server s 192.0.2.1:80\n",
			"backend b\n default-server weight $W\n server s 192.0.2.2:80\n",
		},
		"a server with a file that is not loaded": {
			"backend b\n server s 192.0.2.1:80\n",
			"backend b\n server s 192.0.2.1:80\n server t 192.0.2.2:80 ssl ca-file /etc/ca.pem\n",
		},
		"a server with an agent check comes, which would be down until the agent says up": {
			"backend b\n server s 192.0.2.1:80\n",
			"backend b\n server s 192.0.2.1:80\n server t 192.0.2.2:80 agent-check agent-port 1\n",
		},
		"a server with a cookie on 2.6": {
			"backend b\n cookie A insert\n server s 192.0.2.1:80 cookie s\n",
			"backend b\n cookie A insert\n server s 192.0.2.1:80 cookie s\n server t 192.0.2.2:80 cookie t\n",
		},
		"a limit beyond that of the start": {"global\n maxconn 10\n", "global\n maxconn 11\n"},
		"the limit of a process with pipes": {
			"global\n maxconn 10\ndefaults\n option splice-auto\n", "global\n maxconn 9\ndefaults\n option splice-auto\n",
		},
		"the limit of a frontend with dynamic limits behind": {
			"frontend f\n maxconn 10\nbackend b\n server s 192.0.2.1:80 minconn 1 maxconn 5\n",
			"frontend f\n maxconn 11\nbackend b\n server s 192.0.2.1:80 minconn 1 maxconn 5\n",
		},
		"the first limit of a frontend": {"frontend f\n mode tcp\n", "frontend f\n mode tcp\n maxconn 10\n"},
		"one of two backends in branches": {
			".if defined(A)\nbackend x\n server s 192.0.2.1:80\nbackend y\n.else\nbackend x\n server s 192.0.2.2:80\nbackend y\n.endif\n",
			".if defined(A)\nbackend x\n server s 192.0.2.1:80\nbackend y\n.else\nbackend x\n server s 192.0.2.3:80\nbackend y\n.endif\n",
		},
		"a server that a rule looks at": {
			"frontend f\n acl d srv_is_up(b/s)\nbackend b\n server s 192.0.2.1:80\n server t 192.0.2.2:80\n",
			"frontend f\n acl d srv_is_up(b/s)\nbackend b\n server t 192.0.2.2:80\n",
		},
		"a server that a rule of its backend looks at": {
			"backend b\n http-request deny if { srv_conn(s) gt 5 }\n server s 192.0.2.1:80\n server t 192.0.2.2:80\n",
			"backend b\n http-request deny if { srv_conn(s) gt 5 }\n server t 192.0.2.2:80\n",
		},
		"the address of a log server": {
			"defaults\n mode log\nbackend b\n server s 192.0.2.1:514\n", "defaults\n mode log\nbackend b\n server s 192.0.2.2:514\n",
		},
		"a server of a log backend comes": {
			"backend b\n mode log\n server s 192.0.2.1:514\n", "backend b\n mode log\n server s 192.0.2.1:514\n server t 192.0.2.2:514\n",
		},
		"a server that another one of its backend tracks": {
			"backend b\n server s 192.0.2.1:80 check\n server t 192.0.2.2:80 track s\n",
			"backend b\n server t 192.0.2.2:80 track s\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			current, err := dataplane.NewConfig(texts[0])
			require.NoError(t, err)
			desired, err := dataplane.NewConfig(texts[1])
			require.NoError(t, err)
			plan, err := dataplane.Diff(current, desired)
			require.NoError(t, err)
			require.Equal(t, dataplane.ImpactReload, plan.Impact(), "%s", plan)
		})
	}
}

// Files that HAProxy reads without the text naming them in full.
func TestDiffFilesByOtherNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		kind  dataplane.FileKind
		file  string
		other []dataplane.File
	}{
		"bundle in a crt-list": {
			"frontend f\n bind :443 ssl crt-list /etc/haproxy/general/l.txt\n", dataplane.Certificate, "site.rsa",
			[]dataplane.File{{Kind: dataplane.CRTList, Name: "l.txt", Content: []byte("/etc/haproxy/ssl/site\n")}},
		},
		"key beside a certificate": {
			"global\n ssl-load-extra-del-ext\nfrontend f\n bind :443 ssl crt /etc/haproxy/ssl/site.crt\n", dataplane.Certificate, "site.key",
			[]dataplane.File{{Kind: dataplane.Certificate, Name: "site.crt"}},
		},
		"folder behind a tab": {"frontend f\n bind :443 ssl\tcrt\t/etc/haproxy/ssl/\n", dataplane.Certificate, "site.pem", nil},
		"folder of CAs":       {"backend b\n server s 192.0.2.1:443 ssl ca-file /etc/haproxy/general\n", dataplane.CA, "one.pem", nil},
		"issuers":             {"global\n issuers-chain-path /etc/haproxy/general\n", dataplane.General, "one.pem", nil},
		"module of Lua": {
			"global\n lua-load /etc/haproxy/general/main.lua\n", dataplane.General, "util.lua",
			[]dataplane.File{{Kind: dataplane.General, Name: "main.lua", Content: []byte("local u = require(\"util\")\n")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := func(content string) *dataplane.Config {
				files := append([]dataplane.File{{Kind: c.kind, Name: c.file, Content: []byte(content)}}, c.other...)
				config, err := dataplane.NewConfig(c.text, files...)
				require.NoError(t, err)
				return config
			}
			plan, err := dataplane.Diff(config("old"), config("new"))
			require.NoError(t, err)
			require.NotEqual(t, dataplane.ImpactNone, plan.Impact(), "%s", plan)
		})
	}
}

// The words of a plan never hold these.
func TestDiffSecretDirectives(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"global\n cluster-secret %s\n",
		"global\n anonkey %s\n",
		"acme a\n eab-mac-key %s\n",
		"frontend f\n bind :443 ssl ca-sign-file /etc/ca.pem ca-sign-pass %s\n",
		"frontend f\n http-request set-var(txn.a) req.hdr(a),hmac(sha256,%s)\n",
		"frontend f\n http-request deny unless { var(txn.t),jwt_verify(txn.a,\"%s\") 1 }\n",
		"frontend f\n http-request set-header X-Auth %s\n",
		"frontend f\n http-request set-var(txn.a) var(txn.b),aes_gcm_dec(128,txn.n,%s,txn.t)\n",
	} {
		current, err := dataplane.NewConfig(strings.Replace(line, "%s", "hunter1", 1))
		require.NoError(t, err)
		desired, err := dataplane.NewConfig(strings.Replace(line, "%s", "hunter2", 1))
		require.NoError(t, err)
		plan, err := dataplane.Diff(current, desired)
		require.NoError(t, err)
		require.False(t, plan.Empty())
		checkPlan(t, plan)
	}
	users := func(entries string) *dataplane.Config {
		c, err := dataplane.NewConfig("frontend f\n http-request set-var(txn.a) req.hdr(a),map(/etc/haproxy/maps/basic_auth.map)\n",
			dataplane.File{Kind: dataplane.Map, Name: "basic_auth.map", Content: []byte(entries)})
		require.NoError(t, err)
		return c
	}
	plan, err := dataplane.Diff(users("joe hunter1\nhunter3 x\n"), users("joe hunter2\n"))
	require.NoError(t, err)
	require.Len(t, plan.Ops, 2)
	checkPlan(t, plan)
}

// Of two certificates for one name HAProxy serves the first.
func TestDiffCrtListOrder(t *testing.T) {
	t.Parallel()
	const text = "frontend f\n bind :443 ssl crt-list /etc/haproxy/general/l.txt\n"
	certificate := siteCertificate(t, "a.test")
	for name, c := range map[string]struct {
		old, now string
		impact   dataplane.Impact
	}{
		"changed places":        {"d.pem\na.pem www.test\nb.pem www.test\n", "d.pem\nb.pem www.test\na.pem www.test\n", dataplane.ImpactReload},
		"comes before another":  {"d.pem\nb.pem WWW.test\n", "d.pem\na.pem [alpn h2] !x.test www.test\nb.pem WWW.test\n", dataplane.ImpactReload},
		"by the certificate":    {"d.pem\nb.pem a.test\n", "d.pem\na.pem\nb.pem a.test\n", dataplane.ImpactReload},
		"for other names":       {"d.pem\nb.pem b.test\n", "d.pem\na.pem www.test\nb.pem b.test\n", dataplane.ImpactRuntime},
		"at the end":            {"d.pem\nb.pem www.test\n", "d.pem\nb.pem www.test\na.pem www.test\n", dataplane.ImpactRuntime},
		"changed, not the last": {"d.pem\na.pem www.test\nb.pem www.test\n", "d.pem\na.pem [alpn h2] www.test\nb.pem www.test\n", dataplane.ImpactReload},
	} {
		t.Run(name, func(t *testing.T) {
			contents := map[string][]byte{"a": certificate, "b": []byte("b"), "d": []byte("d")}
			config := func(list string) *dataplane.Config {
				files := []dataplane.File{{Kind: dataplane.CRTList, Name: "l.txt", Content: []byte(list)}}
				for _, f := range []string{"a", "b", "d"} {
					files = append(files, dataplane.File{Kind: dataplane.Certificate, Name: f + ".pem", Content: contents[f]})
				}
				config, err := dataplane.NewConfig(text, files...)
				require.NoError(t, err)
				return config
			}
			plan, err := dataplane.Diff(config(c.old), config(c.now))
			require.NoError(t, err)
			require.Equal(t, c.impact, plan.Impact(), "%s", plan)
		})
	}
}
