package validate_test

import (
	"testing"

	"github.com/hapticsdk/haptic/validate"
)

// What some HAProxy from 2.6 on takes is not for phase 1 to refuse.
func TestSyntaxTakesWhatHAProxyTakes(t *testing.T) {
	t.Parallel()
	const frontend = "frontend f\n  mode http\n  bind 127.0.0.1:9999\n"
	for name, main := range map[string]string{
		"crt-store without a name":        "crt-store\n  crt-base /tmp\n",
		"crt-store twice":                 "crt-store a\n  crt-base /tmp\ncrt-store a\n  crt-base /tmp\n",
		"listen behind a backend":         "backend a\nlisten a\n  bind 127.0.0.1:9999\n",
		"backend of unused defaults":      "defaults a\n  default_backend b\ndefaults\n" + frontend,
		"errors of unused defaults":       "defaults a\n  errorfiles b\ndefaults\n" + frontend,
		"backend of what is disabled":     frontend + "  disabled\n  default_backend b\n",
		"server of what is disabled":      "backend b\n  disabled\n  server a 192.0.2.1:80 resolvers r\n",
		"header with a name like key":     frontend + "  http-request set-header key /etc/haproxy/ssl/x\n",
		"header of a response":            frontend + "  http-request return status 200 hdr file /etc/haproxy/general/x\n",
		"fetch in a text":                 frontend + "  http-request set-header x nbsrv(b)\n  http-request set-header on map(/etc/haproxy/maps/x.map)\n  http-request set-header x http_auth(u)\n",
		"header with a name like a word":  frontend + "  http-request set-header stick x\n  http-request set-header server track if TRUE\n  http-request set-header return errorfiles if TRUE\n",
		"userlist of what is disabled":    frontend + "  disabled\n  http-request auth unless { http_auth(u) }\n",
		"tables of what is disabled":      frontend + "  disabled\n  http-request track-sc0 src table t\n  http-request deny if { src_conn_rate(t) gt 1 }\n",
		"certificate of what is disabled": frontend + "backend b\n  disabled\n  server a 192.0.2.1:80 ssl crt /etc/haproxy/ssl/x.pem\n",
		"table of what is disabled":       frontend + "  http-request track-sc0 src table t\nbackend t\n  disabled\n  stick-table type ip size 1k\n",
		"table of peers":                  frontend + "  http-request track-sc0 src table p/t\npeers p\n  table t type ip size 1k\n",
		"table of its own":                "backend b\n  stick-table type ip size 1k\n  stick on src table b\n",
		"ring that nobody made":           frontend + "  log ring@r local0\n",
		"mailers that are not used":       frontend + "  email-alert mailers m\n",
		"server of a template":            "backend b\n  server-template s 3 192.0.2.1:80\n  use-server s2 if TRUE\n",
		"server of an expression":         "backend b\n  server s 192.0.2.1:80\n  use-server %[path] if TRUE\n",
		"defaults above":                  "defaults a\n  mode http\ndefaults b from a\n" + frontend,
		"words behind a name":             "resolvers a b\n",
		"certificate in a folder below":   frontend + "backend b\n  server a 192.0.2.1:80 ssl verify none crt /etc/haproxy/ssl/below/x.pem\n",
		"converter in a text":             frontend + "  log-format 'x map(/etc/haproxy/maps/x.map)'\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := validate.Syntax(text(t, main)); err != nil {
				t.Error(err)
			}
		})
	}
}
