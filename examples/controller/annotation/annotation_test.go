package annotation

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/templating/regex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleRead() {
	o, problems := Read(Ingress, map[string]string{NGINX + "rewrite-target": "/new", NGINX + "proxy-read-timeout": "long", NGINX + "canari": "true"}, Options{})
	fmt.Println(o.SetPath, o.Hash()[:8])
	for _, p := range problems {
		fmt.Println(p.Field(), p.Reason)
	}
	// Output:
	// /new 4f686057
	// metadata.annotations[nginx.ingress.kubernetes.io/canari] it is not known, and does nothing: did you mean nginx.ingress.kubernetes.io/canary?
	// metadata.annotations[nginx.ingress.kubernetes.io/proxy-read-timeout] "long" is not a time from 1 ms to 20 days: write a number and ms, s, m, h or d, as in "60s"
}

func ExampleVerdicts() {
	for _, v := range Verdicts(Ingress, map[string]string{NGINX + "app-root": "/app", NGINX + "server-snippet": "deny all;", NGINX + "proxy-buffering": "off"}, nil) {
		fmt.Println(v)
	}
	// Output:
	// nginx.ingress.kubernetes.io/app-root: same
	// nginx.ingress.kubernetes.io/server-snippet: refused: lines of a configuration are not taken from an annotation: write a template of your own and give it by -templates; the paths of the Ingress answer 503 until it is right, because they would be open without it
	// nginx.ingress.kubernetes.io/proxy-buffering: not needed: HAProxy streams, with buffers of its own
}

// TestOptionsWithoutEffectAreNone: values that ask for nothing make no other backend.
func TestOptionsWithoutEffectAreNone(t *testing.T) {
	for name, value := range map[string]string{"ssl-redirect": "false", "use-regex": "false", "enable-cors": "false", "proxy-body-size": "0", "limit-rps": "0", "backend-protocol": "HTTP", "load-balance": "round_robin", "canary": "false",
		"cors-allow-origin": "*", "session-cookie-name": "x", "auth-realm": "x", "proxy-ssl-verify": "off", "satisfy": "all", "enable-modsecurity": "false", "enable-global-auth": "false", "auth-tls-verify-client": "off", "from-to-www-redirect": "false", "mirror-request-body": "off", "session-cookie-path": "/"} {
		o, problems := Read(Ingress, map[string]string{NGINX + name: value}, Options{})
		for _, p := range problems {
			require.True(t, p.Warning, "%s: %s", name, p.Reason)
		}
		require.Equal(t, "", o.Hash(), name)
	}
}

// TestNoOptionsShareAName: backends with the same name are one. With names of 32 bits a tenant
// finds an open and a closed one that share it in seconds; 128 bits take longer than the world.
func TestNoOptionsShareAName(t *testing.T) {
	names := map[string]bool{}
	for i := range 1000 {
		name := (&Options{Allow: List(fmt.Sprintf("10.0.%d.0/24", i))}).Hash()
		bits, err := hex.DecodeString(name)
		require.NoError(t, err)
		require.Len(t, bits, 128/8)
		require.False(t, names[name])
		names[name] = true
	}
}

// TestAloneTheyDoNothing: what needs another annotation says so.
func TestAloneTheyDoNothing(t *testing.T) {
	given := map[string]string{NGINX + "cors-max-age": "60", HAProxy + "check-http": "/", NGINX + "canary-weight": "10", NGINX + "proxy-ssl-secret": "ca"}
	o, problems := Read(Ingress, given, Options{})
	require.Equal(t, Options{}, o)
	require.Len(t, problems, len(given))
	for _, p := range problems {
		require.True(t, p.Warning)
		require.Contains(t, p.Reason, "it does nothing without ")
	}
	for _, r := range Table() {
		for _, name := range strings.Fields(r.Needs) {
			require.True(t, Of(NGINX+name) != nil || Of(HAProxy+name) != nil, name)
		}
	}
}

// TestClosed: what is refused of a row that closes leaves nothing else.
func TestClosed(t *testing.T) {
	for _, r := range Table() {
		for _, name := range r.Names() {
			o, problems := Read(Ingress, map[string]string{name: "\x00", NGINX + "app-root": "/"}, Options{})
			require.Equal(t, r.Closes, o.Closed, name)
			require.NotEmpty(t, problems, name)
			if r.Closes {
				require.Equal(t, Options{Closed: true}, o, name)
				require.Contains(t, problems[len(problems)-1].Reason+problems[0].Reason, "503", name)
			}
		}
	}
}

// TestRefusedThatClose: a snippet that denies closes, and one that does something else does not.
func TestRefusedThatClose(t *testing.T) {
	for text, closes := range map[string]bool{
		"deny all;": true, "location /metrics {\n  deny all;\n}": true, "deny 192.0.2.0/24;": true, "auth_basic \"x\";": true, "if ($http_x = \"\") { return 403; }": true, "limit_req zone=a;": true,
		"more_set_headers \"X-Frame-Options: DENY\";": false, "proxy_set_header Authorization \"\";": false, "return 301 https://a.test;": false, "add_header Access-Control-Allow-Origin *;": false,
	} {
		o, problems := Read(Ingress, map[string]string{NGINX + "configuration-snippet": text}, Options{})
		require.Len(t, problems, 1)
		require.Equal(t, closes, o.Closed, text)
	}
	for text, closes := range map[string]bool{"http-request deny if { src 10.0.0.1 }": true, "http-request auth unless { http_auth(a) }": true, "tcp-request content reject": true, "http-request set-header X-A b": false} {
		o, _ := Read(Ingress, map[string]string{HAProxy + "backend-config-snippet": text}, Options{})
		require.Equal(t, closes, o.Closed, text)
	}
}

// TestOffThatAsksForSomething: where off is not what HAProxy does, it is refused.
func TestOffThatAsksForSomething(t *testing.T) {
	for _, name := range []string{NGINX + "proxy-next-upstream", HAProxy + "http-keep-alive", NGINX + "ssl-prefer-server-ciphers"} {
		_, problems := Read(Ingress, map[string]string{name: "off"}, Options{})
		require.Len(t, problems, 1, name)
	}
}

// TestDefaultsOfBoth: what is not given is as the controller of the prefix has it.
func TestDefaultsOfBoth(t *testing.T) {
	origin := map[string]string{NGINX + "enable-cors": "true", NGINX + "cors-allow-origin": "https://*.A.test, capacitor://localhost"}
	o, problems := Read(Ingress, origin, Options{})
	require.Empty(t, problems)
	require.Equal(t, CORS{Enabled: true, Origins: "capacitor://localhost", Patterns: `^https://[A-Za-z0-9-]+\.a\.test$`, Methods: "GET, PUT, POST, DELETE, PATCH, OPTIONS", MaxAge: "1728000", Credentials: true,
		Headers: "DNT, Keep-Alive, User-Agent, X-Requested-With, If-Modified-Since, Cache-Control, Content-Type, Range, Authorization"}, o.CORS)
	o, problems = Read(Ingress, map[string]string{HAProxy + "cors-enable": "true", HAProxy + "cors-allow-origin": "https://a.test"}, Options{})
	require.Empty(t, problems)
	require.Equal(t, CORS{Enabled: true, Origins: "https://a.test", Methods: "*", Headers: "*", MaxAge: "5"}, o.CORS)
	o, _ = Read(Ingress, map[string]string{HAProxy + "cors-enable": "true", HAProxy + "cors-max-age": "1m"}, Options{})
	require.Equal(t, "60", o.CORS.MaxAge)

	o, _ = Read(Ingress, map[string]string{NGINX + "permanent-redirect": "https://a.test/", NGINX + "temporal-redirect-code": "307", HAProxy + "request-redirect-code": "303"}, Options{})
	require.Equal(t, 301, o.Answer.Code, "a status is of its own redirect")
	o, _ = Read(Ingress, map[string]string{NGINX + "permanent-redirect": "https://a.test/", NGINX + "permanent-redirect-code": "308", NGINX + "temporal-redirect": "https://b.test/", NGINX + "temporal-redirect-code": "307"}, Options{})
	require.Equal(t, Answer{Code: 307, Location: "https://b.test/"}, o.Answer)

	o, _ = Read(Ingress, map[string]string{NGINX + "rewrite-target": "/$1", HAProxy + "path-rewrite": "/one"}, Options{})
	require.Equal(t, "/one", o.SetPath, "the one under haproxy.org counts")
	require.Empty(t, o.RewriteTo)

	o, problems = Read(Ingress, map[string]string{Other + "allow-list": "ten"}, Options{})
	require.True(t, o.Closed, "haproxy.com is a prefix of haproxytech, too")
	require.Equal(t, Other+"allow-list", problems[0].Name)
	_, problems = Read(Ingress, map[string]string{HAProxy + "check": "true", HAProxy + "check-interval": "999"}, Options{})
	require.Contains(t, problems[0].Reason, "is not a time from 1s on", "checks without a pause")
}

// TestManyThatAreNotKnown: an object full of them takes no time.
func TestManyThatAreNotKnown(t *testing.T) {
	all := map[string]string{}
	for i := range 10_000 {
		all[fmt.Sprintf("%sauth-secre%d", NGINX, i)] = ""
	}
	_, problems := Read(Ingress, all, Options{})
	require.Len(t, problems, len(all))
	require.NotContains(t, problems[0].Reason, "did you mean")
}

func TestNear(t *testing.T) {
	for _, words := range [][2]string{{"rewrite-traget", "rewrite-target"}, {"canari", "canary"}, {"Cookie", "cookie"}, {"prefx", "Prefix"}, {"shop-api", "shop-apis"}, {"ab", "abcd"}, {"lesatconn", "leastconn"}, {"path-per-ingres", "paths-per-ingress"}} {
		require.True(t, Near(words[0], words[1]), words)
	}
	for _, words := range [][2]string{{"", "a"}, {"a", "b"}, {"true", "false"}, {"shop", "blog"}, {"web", "db"}, {strings.Repeat("a", 99), "a"}} {
		require.False(t, Near(words[0], words[1]), words)
	}
}

func TestPatterns(t *testing.T) {
	is, problem := CheckPath("/a(/|$)(.*)")
	require.Empty(t, problem)
	require.Equal(t, 2, is.Groups)
	for s, why := range map[string]string{"/(a+)+": "inside a repeat", "/a b": "holds ' '", "/a'": "holds '\\''", "/a#": "holds '#'"} {
		for _, check := range []func(string) (regex.Expression, string){CheckPath, CheckPattern} {
			_, problem := check(s)
			require.Contains(t, problem, why, s)
		}
	}
}

// TestWrongValuesOpenNothing: what a wrong value or a Service leaves is the safer of both.
func TestWrongValuesOpenNothing(t *testing.T) {
	o, _ := Read(Ingress, map[string]string{NGINX + "enable-cors": "true", NGINX + "cors-allow-origin": "https://a.test", NGINX + "cors-allow-credentials": "fasle"}, Options{})
	require.True(t, o.CORS.Enabled)
	require.False(t, o.CORS.Credentials, "credentials")

	o, problems := Read(Ingress, map[string]string{NGINX + "canary": "ture", NGINX + "canary-weight": "100", NGINX + "canary-by-header": "X-A"}, Options{})
	require.NotEmpty(t, problems)
	require.Equal(t, Canary{Is: true, Total: 100}, o.Canary, "no Ingress that could get all requests")

	verified, _ := Read(Ingress, map[string]string{HAProxy + "server-ca": "ca"}, Options{})
	for _, plain := range []string{HAProxy + "server-ssl", NGINX + "backend-protocol"} {
		o, _ = Read(Service, map[string]string{plain: map[bool]string{true: "false", false: "HTTP"}[plain == HAProxy+"server-ssl"]}, verified)
		require.True(t, o.Server.TLS && o.Server.Verify, plain)
	}
	o, problems = Read(Service, map[string]string{HAProxy + "server-ca": "ca", HAProxy + "server-ssl": "true"}, Options{})
	require.Equal(t, Options{Closed: true}, o, "a Service whose servers were verified")
	require.Contains(t, problems[0].Reason, "only an Ingress can have it: move it; the paths of the Ingress answer 503")

	o, _ = Read(Ingress, map[string]string{HAProxy + "rate-limit-requests": "5", HAProxy + "rate-limit-period": "1h"}, Options{})
	require.Equal(t, "1h", o.Rate.Expire, "an address is not forgotten while it is counted")
	o, _ = Read(Ingress, map[string]string{HAProxy + "rate-limit-requests": "5", HAProxy + "rate-limit-period": "90s"}, Options{})
	require.Equal(t, "10m", o.Rate.Expire)
}

// TestHeadersOfHAProxy: headers that say where a request comes from, and where it went, are
// not those of an annotation, in no spelling.
func TestHeadersOfHAProxy(t *testing.T) {
	for _, name := range []string{"X-Forwarded-For", "x_forwarded_proto:", "X-Forwarded_Host", "Forwarded", "X-Real-IP", "Haptic-Via", "haptic_via", "Host", "Connection", "Transfer_Encoding", "content-length", "Upgrade", "HTTP2-Settings", "Proxy", "Expect"} {
		for _, row := range []string{"request-set-header", "response-set-header"} {
			o, problems := Read(Ingress, map[string]string{HAProxy + row: "X-A b\n" + name + " evil"}, Options{})
			require.Len(t, problems, 1, name)
			require.Contains(t, problems[0].Reason, "is not set by an annotation: ", name)
			require.Equal(t, Options{}, o, name)
		}
	}
	o, problems := Read(Ingress, map[string]string{HAProxy + "request-set-header": "X-Forwarded-User b\nAuthorization c"}, Options{})
	require.Empty(t, problems)
	require.Len(t, o.SetRequest.All(), 2)
}

// TestTimeoutsAreCut: a timeout that is longer than the operator allows is cut, and the object says
// so. HAProxy would keep connections and old workers that long.
func TestTimeoutsAreCut(t *testing.T) {
	given := map[string]string{HAProxy + "timeout-server": "20d", HAProxy + "timeout-tunnel": "61m", HAProxy + "timeout-queue": "3600001", HAProxy + "timeout-connect": "1h", HAProxy + "timeout-check": "5s"}
	for _, c := range []struct {
		longest              time.Duration
		server, tunnel, most string
		cut                  int
	}{{0, "1h", "1h", "1h", 3}, {90 * time.Minute, "90m", "61m", "90m", 1}, {1500 * time.Millisecond, "1500ms", "1500ms", "1500ms", 5}, {MaxDuration, "20d", "61m", "", 0}} {
		o, problems := Reader{LongestTimeout: c.longest}.Read(Ingress, given, Options{})
		require.Equal(t, c.server, o.ServerTimeout)
		require.Equal(t, c.tunnel, o.TunnelTimeout)
		require.Len(t, problems, c.cut)
		for _, p := range problems {
			require.True(t, p.Warning)
			require.Contains(t, p.Reason, "is longer than the "+c.most+" that -longest-timeout allows: "+c.most+" is in use")
		}
	}
	o, problems := Reader{}.Read(Service, map[string]string{HAProxy + "timeout-server": "20d"}, Options{})
	require.Equal(t, "1h", o.ServerTimeout)
	require.Equal(t, "haproxy.org/timeout-server", problems[0].Name)
	o, _ = Read(Ingress, map[string]string{NGINX + "proxy-send-timeout": "100000"}, Options{})
	require.Equal(t, "1h", o.ServerTimeout)
}

// TestUsersThatTakeLong: a hash that takes HAProxy long is refused without being shown, and with
// a way to make a lighter one.
func TestUsersThatTakeLong(t *testing.T) {
	sum := func(n int) string { return strings.Repeat("a", n) }
	for sum, cost := range map[string]int{"$6$saltsalt$" + sum(86): 1466, "$6$rounds=1$saltsalt$" + sum(86): 293, "$5$saltsalt$" + sum(43): 1600, "$2y$05$" + sum(53): 1600, "$2b$06$" + sum(53): 3200, "$y$j7T$abcdefgh$" + sum(43): 3900, "$1$salt$" + sum(22): 420} {
		users, err := Users(map[string][]byte{"auth": []byte("a:" + sum)}, false)
		require.NoError(t, err, sum)
		require.Equal(t, cost, users[0].Cost(), sum)
	}
	for _, sum := range []string{"$y$jFT$abcdefgh$" + sum(43), "$y$j9T$abcdefgh$" + sum(43), "$y$j8T$abcdefgh$" + sum(43), "$2y$07$" + sum(53), "$2a$10$" + sum(53), "$2y$99$" + sum(53), "$6$rounds=10000$saltsalt$" + sum(86), "$5$rounds=50000$saltsalt$" + sum(43), "$6$rounds=999999999$saltsalt$" + sum(86)} {
		_, err := Users(map[string][]byte{"auth": []byte("a:" + sum)}, false)
		require.ErrorContains(t, err, "for each request", sum)
		require.ErrorContains(t, err, "openssl passwd -6", sum)
		require.NotContains(t, err.Error(), "aaaa")
	}
}

// FuzzRead: no value makes Read panic, and none of its texts leaves its place.
func FuzzRead(f *testing.F) {
	for _, r := range Table() {
		for _, name := range r.Names() {
			for _, value := range []string{"true", "/a(/|$)(.*)", `/$1`, "10.0.0.0/8", "X-A b\nX-C d", "https://*.a.test", "basic", "a/b", "'\n"} {
				f.Add(name, value)
			}
		}
	}
	control := regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f-\xff']`)
	f.Fuzz(func(t *testing.T, name, value string) {
		o, _ := Read(Ingress, map[string]string{name: value, NGINX + "enable-cors": "true", NGINX + "affinity": "cookie"}, Options{})
		o, _ = Read(Service, map[string]string{name: value}, o)
		_ = o.RewriteFrom.Quoted() + o.RewriteTo.Quoted() + o.Canary.Pattern.Quoted()
		for _, p := range o.CORS.Patterns.All() {
			_ = o.CORS.Quoted(p)
		}
		for _, s := range []string{string(o.Allow), string(o.Deny), o.SetPath, o.Host, o.Prefix, o.AppRoot, o.Answer.Location, o.Answer.Host, string(o.CORS.Origins), o.CORS.Methods, o.Cookie.Name, o.Server.Name, o.Server.CheckPath, o.Balance.Of} {
			if control.MatchString(s) {
				t.Fatalf("%s: %q became %q", name, value, s)
			}
		}
	})
}

// TestUsers: what crypt(3) does not know, or takes long over, is refused, and no hash is
// in an error.
func TestUsers(t *testing.T) {
	const good = "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1"
	users, err := Users(map[string][]byte{"auth": []byte("b:" + good + "\n# no\n\na:$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe\r\n")}, false)
	require.NoError(t, err)
	require.Equal(t, "[a b]", fmt.Sprint(users))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", users, users, users, users), "salt")
	for text, why := range map[string]string{
		"": "no user", "a": "no hash", "a:plain": "no hash", ":" + good: "line 1", "a:$apr1$x$JnfUMaRMSDySeWsNAWvmB1": "Apache", "a:{SHA}2PRZAyDhNDqRW2OUFwZQqPNdaSY=": "SHA-1",
		"a:$6$rounds=999999999$saltsalt$" + good[12:]: "for each request", "a:$2y$31$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe": "for each request",
		"a:" + good + "\na:" + good: "twice", "a b:" + good: "name of the user", "a:" + good + " insecure-password x": "no hash", "a:" + good + "\n\x00:x": "line 2",
	} {
		_, err := Users(map[string][]byte{"auth": []byte(text)}, false)
		require.ErrorContains(t, err, why, "%q", text)
		require.NotContains(t, err.Error(), "saltsalt")
	}
}
