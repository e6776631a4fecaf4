package validate_test

import (
	"testing"

	"github.com/hapticsdk/haptic/validate"
)

// What some HAProxy from 2.6 on takes is not for phase 1 to refuse.
func TestSyntaxTakesWhatHAProxyTakes(t *testing.T) {
	const frontend = "frontend f\n  mode http\n  bind 127.0.0.1:9999\n"
	for name, main := range map[string]string{
		"crt-store without a name":    "crt-store\n  crt-base /tmp\n",
		"crt-store twice":             "crt-store a\n  crt-base /tmp\ncrt-store a\n  crt-base /tmp\n",
		"listen behind a backend":     "backend a\nlisten a\n  bind 127.0.0.1:9999\n",
		"backend of unused defaults":  "defaults a\n  default_backend b\ndefaults\n" + frontend,
		"errors of unused defaults":   "defaults a\n  errorfiles b\ndefaults\n" + frontend,
		"backend of what is disabled": frontend + "  disabled\n  default_backend b\n",
		"server of what is disabled":  "backend b\n  disabled\n  server a 192.0.2.1:80 resolvers r\n",
		"header with a name like key": frontend + "  http-request set-header key /etc/haproxy/ssl/x\n",
		"header of a response":        frontend + "  http-request return status 200 hdr file /etc/haproxy/general/x\n",
		"converter in a text":         frontend + "  log-format 'x map(/etc/haproxy/maps/x.map)'\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := validate.Syntax(text(t, main)); err != nil {
				t.Error(err)
			}
		})
	}
}
