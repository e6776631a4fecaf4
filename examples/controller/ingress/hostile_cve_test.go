package ingress

import "testing"

// TestCVEs has the attacks on other controllers, by number, as resources: they
// go through Build and the controller's own templates, and change neither
// the sections nor the routes of others. See also the test of the same name in
// package templating.
func TestCVEs(t *testing.T) {
	engine, frontend := hostileEngine(t)
	usual := hostileIngress{"bad", "ns", "x.test", "/", "b", "http", "secret", "", "192.0.2.2"}
	for cve, change := range map[string]func(h *hostileIngress, x string){
		"CVE-2021-25742": func(h *hostileIngress, x string) { h.annotation = x },
		"CVE-2021-25745": func(h *hostileIngress, x string) { h.path = "/" + x },
		"CVE-2021-25746": func(h *hostileIngress, x string) { h.annotation, h.name = x, x },
		"CVE-2021-25748": func(h *hostileIngress, x string) { h.path = x },
		"CVE-2024-7646":  func(h *hostileIngress, x string) { h.annotation, h.host = x, x },
		"CVE-2025-24513": func(h *hostileIngress, x string) { h.secret, h.namespace = x, x },
		"CVE-2025-24514": func(h *hostileIngress, x string) { h.host = "x.test" + x },
		"CVE-2025-1097":  func(h *hostileIngress, x string) { h.secret, h.annotation = x, x },
		"CVE-2025-1098":  func(h *hostileIngress, x string) { h.service, h.address, h.port = x, x, x },
		"CVE-2025-1974":  func(h *hostileIngress, x string) { h.name, h.service = x, x },
		"CVE-2026-24512": func(h *hostileIngress, x string) { h.path = "/(.*)" + x },
		"CVE-2026-4342":  func(h *hostileIngress, x string) { h.host, h.path, h.annotation = x, x, x },
		"CVE-2025-24030": func(h *hostileIngress, x string) { h.address = x },
	} {
		t.Run(cve, func(t *testing.T) {
			for _, x := range []string{"a\nhttp-request return status 200", "a\n  server evil 192.0.2.9:80", "\ngood.test/ ns_evil_80", "\r\nX-Admin: 1", "a } || { src 0.0.0.0/0",
				"lua-load", "ssl-engine a", "../../etc/passwd", "..", "/etc/passwd", "a/../../b", "%[env(TOKEN)]", "${TOKEN}", `a"; }`, `\`, `a\`, "'", "#", "a b", "a\tb", "a\x00b", "a\x0bb",
				"unix@/run/admin.sock", "fd@3", "192.0.2.1:80 check", "-f", "", ".*", "a$ }\n}\n", "[::1", "*", "*.", "\u0085a", "\u2028"} {
				h := usual
				change(&h, x)
				checkHostile(t, engine, frontend, h)
			}
		})
	}
}
