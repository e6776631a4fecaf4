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
	"frontend more": {
		"http-request redirect location http://joe:%s@other.test/", `http-request set-header X-Any "Basic %s"`, "http-request set-header X-Any Bearer\\ %s",
		"http-request set-header cookie a=%s", "http-request set-header X-Signing-Key %s", "errorloc 503 https://joe:%s@other.test/",
		`http-request set-header "Auth\x6frization" "%s $HOME"`, "http-request set-header COOKIE %s", "http-response add-header set-cookie a=%s",
		"redirect location https://%s@other.test/", "http-request set-uri http://joe:%s@other.test/", "monitor-uri http://a:%s@b/", `http-request return status 200 string "see http://a.test and http://b:%s@c.test"`,
		"http-request set-var(txn.pwd) str(%s)", "http-request set-var-fmt(txn.my_password) %s",
		"log 192.0.2.1 format raw local0 token %s", `"pass"word %s "$HOME"`, "acl ok http_auth_bearer -m str %s", "http-request set-header Proxy-Authorization %s",
		"http-request set-query auth=%s", "http-request set-path /a?token=%s", "http-request return status 200 string password=%s", "http-request do-log profile a token=%s",
	},
	"backend more": {
		"http-check send meth GET uri / hdr cookie a=%s", "http-check send uri /a body user=joe&password=%s",
		"tcp-check send-lf \"AUTH %s\"", "option httpchk GET /h HTTP/1.1\\r\\nAuthorization:\\ Basic\\ %s", "option mysql-check user joe password %s",
		"http-check expect string token=%s", "external-check command /a --password=%s",
	},
	"program p":  {"command a --token %s", "command curl https://joe:%s@other.test/"},
	"peers more": {"table t type ip size 1 secret %s"},
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
	t.Parallel()
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
