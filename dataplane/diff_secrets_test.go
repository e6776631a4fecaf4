package dataplane_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// secretLines are lines that hold a secret in the place of "%s", by the header
// of their section.
var secretLines = map[string][]string{
	"userlist people": {
		"user anna password %s", "user anna insecure-password %s", "user anna groups a insecure-password %s",
	},
	"global": {
		"setenv TOKEN %s", "presetenv TOKEN %s", "cluster-secret %s", "anonkey %s",
		"ssl-passphrase-cmd echo %s", "set-var proc.token str(%s)",
	},
	"frontend www": {
		"stats auth admin:%s", "http-request set-header Authorization %s", `http-request set-header Authorization "Basic %s"`,
		"http-request set-header X-Api-Key %s if { path /a }", "http-request add-header Cookie %s",
		`http-request return status 200 hdr Set-Cookie "a=%s"`, "http-response set-header Set-Cookie session=%s",
		"http-request set-var(txn.a) req.hdr(a),hmac(sha256,%s)", "http-request deny unless { http_auth(people) } { req.hdr(authorization) %s }",
		"acl ok req.hdr(authorization) -m str %s", "acl ok req.hdr(x-api-key) %s", "http-request auth realm %s",
		"bind :443 ssl ca-sign-file /etc/ca.pem ca-sign-pass %s", "http-after-response set-header X-Token %s",
		"use_backend a if { req.hdr(x-auth) %s }", "http-request set-var(txn.token) str(%s)",
	},
	"backend shop": {
		"dynamic-cookie-key %s", "http-check send meth GET uri / hdr Authorization %s", "tcp-check send AUTH\\ %s\\r\\n",
		`tcp-check send "AUTH %s"`, "http-request replace-header Authorization .* %s",
		"http-check send-header Authorization %s",
	},
	"listen all": {"stats auth admin:%s", "http-request set-header Authorization %s", "bogus password %s"},
	"acme a":     {"eab-mac-key %s"},
	"mailers m":  {"mailer one 192.0.2.1:25 password %s"},
	"ring r":     {"server one 192.0.2.1:514 secret %s"},
}

// showsNothing checks that nothing that prints a plan prints these.
func showsNothing(t testing.TB, plan *dataplane.Plan, secrets ...string) {
	t.Helper()
	raw, err := json.Marshal(plan)
	require.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("plan", "plan", plan)
	for _, text := range []string{string(raw), plan.String(), plan.Summary(), log.String(), fmt.Sprintf("%v %+v %#v", plan, plan.Ops, plan.Ops)} {
		for _, s := range secrets {
			require.NotContains(t, text, s)
		}
	}
}

func TestDiffShowsNoSecrets(t *testing.T) {
	for section, lines := range secretLines {
		for _, l := range lines {
			t.Run(section+" "+l, func(t *testing.T) {
				text := func(secret string) string {
					return section + "\n  " + strings.ReplaceAll(l, "%s", secret) + "\n"
				}
				for _, c := range [][2]string{
					{text("hunter1x"), text("hunter2y")}, {section + "\n", text("hunter2y")}, {text("hunter1x"), section + "\n"},
					{text("hunter1x"), text("hunter2y") + "  bogus\n"}, {text("hunter1x"), "  " + text("'hunter2y'")},
					{"global\n", text("hunter1x")}, {text("hunter1x") + ".if 1\n.endif\n", text("hunter2y")},
				} {
					plan := diffOf(t, c[0], c[1])
					require.False(t, plan.Empty(), "%s\n%s", c[0], c[1])
					showsNothing(t, plan, "hunter1x", "hunter2y")
				}
			})
		}
	}
}

func FuzzDiffShowsNoSecrets(f *testing.F) {
	f.Add("userlist people", "user anna password", "check inter 2s")
	f.Add("backend b", "http-request set-header Authorization", "if { path /a }")
	f.Add("global", "stats socket /a level admin password", "x")
	f.Fuzz(func(t *testing.T, section, before, after string) {
		if !strings.Contains(before, " password ") && !strings.Contains(before, " Authorization ") {
			before += " password "
		}
		text := func(secret string) string { return section + "\n  " + before + " " + secret + " " + after + "\n" }
		one, err := dataplane.NewConfig(text("hunter1x"))
		if err != nil {
			return
		}
		two, err := dataplane.NewConfig(text("hunter2y"))
		if err != nil {
			return
		}
		plan, err := dataplane.Diff(one, two)
		require.NoError(t, err)
		for _, op := range plan.Ops {
			require.NotContains(t, op.Name+op.Parent, "hunter", "%s", text("S"))
		}
		showsNothing(t, plan, "hunter1x", "hunter2y")
	})
}
