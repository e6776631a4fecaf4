package dataplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// large is a configuration of 5,000 backends with three servers each, in which
// the addresses of the first servers of some backends follow from n.
func large(h *host, backends, changed, n int) string {
	var b strings.Builder
	b.WriteString(h.global())
	fmt.Fprintf(&b, "frontend f\n bind %s\n default_backend be_0\n", h.socket("f"))
	for i := range backends {
		fmt.Fprintf(&b, "backend be_%d\n    mode http\n    balance roundrobin\n    option httpchk GET /healthz\n    http-request set-header X-Backend be_%d\n    timeout server 30s\n    timeout queue 5s\n", i, i)
		for s := range 3 {
			host := 1
			if i < changed && s == 0 {
				host = 1 + n%250
			}
			fmt.Fprintf(&b, "    server srv_%d 198.18.%d.%d:%d weight 10 maxconn 100\n", s, host, s+1, 1024+i%60000)
		}
	}
	return b.String()
}

// measureSync syncs one configuration after the other and reports what it took.
func measureSync(b *testing.B, h *host, next func(n int) *dataplane.Config) {
	b.Helper()
	h.sync(next(0).Main(), next(0).Files()...)
	reloads, commands := 0, 0
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		b.StopTimer()
		desired := next(n + 1)
		b.StartTimer()
		result, err := h.local.Sync(b.Context(), desired)
		require.NoError(b, err)
		reloads, commands = reloads+result.Reloads, commands+result.Commands
	}
	b.ReportMetric(float64(reloads)/float64(b.N), "reloads/op")
	b.ReportMetric(float64(commands)/float64(b.N), "commands/op")
}

// To live and persisted, with the fsync of the disk; BenchmarkLocal/reload is
// the plain way.
func BenchmarkLocal(b *testing.B) {
	for _, changed := range []int{1, 100} {
		b.Run(fmt.Sprintf("addresses=%d", changed), func(b *testing.B) {
			h := newHost(b)
			measureSync(b, h, func(n int) *dataplane.Config { return h.config(large(h, brief(5000), changed, n)) })
		})
	}
	b.Run("reload", func(b *testing.B) {
		h := newHost(b)
		measureSync(b, h, func(n int) *dataplane.Config {
			return h.config(large(h, brief(5000), 0, 0) + fmt.Sprintf("backend last\n timeout server %ds\n", n+1))
		})
	})
	for _, changed := range []int{1, brief(50000)} {
		b.Run(fmt.Sprintf("map=%d/changed=%d", brief(50000), changed), func(b *testing.B) {
			h := newHost(b)
			text := h.global() + fmt.Sprintf("frontend f\n bind %s\n use_backend %%[req.hdr(host),map(%s)]\n", h.socket("f"), h.local.Layout().Path(dataplane.Map, "m.map"))
			measureSync(b, h, func(n int) *dataplane.Config {
				var m strings.Builder
				for i := range brief(50000) {
					value := 0
					if i < changed {
						value = n
					}
					fmt.Fprintf(&m, "host-%d.example.com be_%d\n", i, value)
				}
				return h.config(text, dataplane.File{Kind: dataplane.Map, Name: "m.map", Content: []byte(m.String())})
			})
		})
	}
	b.Run("certificate", func(b *testing.B) {
		h := newHost(b)
		text := h.global() + fmt.Sprintf("frontend f\n bind %s ssl crt %s\n", h.socket("f"), h.local.Layout().Path(dataplane.Certificate, "a.pem"))
		pair := [][]byte{localCertificate(b, "a.test"), localCertificate(b, "b.test")}
		measureSync(b, h, func(n int) *dataplane.Config {
			return h.config(text, dataplane.File{Kind: dataplane.Certificate, Name: "a.pem", Content: pair[n%2]})
		})
	})
	b.Run("crt-list", func(b *testing.B) {
		h := newHost(b)
		layout := h.local.Layout()
		text := h.global() + fmt.Sprintf("frontend f\n bind %s ssl crt-list %s\n", h.socket("f"), layout.Path(dataplane.CRTList, "l.txt"))
		path := layout.Path(dataplane.Certificate, "a.pem")
		a := dataplane.File{Kind: dataplane.Certificate, Name: "a.pem", Content: localCertificate(b, "a.test")}
		c := dataplane.File{Kind: dataplane.Certificate, Name: "b.pem", Content: localCertificate(b, "b.test")}
		measureSync(b, h, func(n int) *dataplane.Config {
			list := fmt.Sprintf("%s\n%s n%d.test\n", path, layout.Path(dataplane.Certificate, "b.pem"), n)
			return h.config(text, a, c, dataplane.File{Kind: dataplane.CRTList, Name: "l.txt", Content: []byte(list)})
		})
	})
}

// BenchmarkLocalFiles syncs with 5,000 certificates: nothing changed, or the
// address of a server.
func BenchmarkLocalFiles(b *testing.B) {
	for name, start := range map[string]func(testing.TB) *host{"started": newHost, "attached": attached} {
		for _, changed := range []int{0, 1} {
			b.Run(fmt.Sprintf("%s/changed=%d", name, changed), func(b *testing.B) {
				h := start(b)
				var files []dataplane.File
				content := localCertificate(b, "a.test")
				for i := range brief(5000) {
					files = append(files, dataplane.File{Kind: dataplane.Certificate, Name: fmt.Sprintf("c%d.pem", i), Content: content})
				}
				measureSync(b, h, func(n int) *dataplane.Config {
					return h.config(large(h, 10, 1, n*changed), files...)
				})
			})
		}
	}
}

// brief is n, or a part of it with -short: CI runs each benchmark once.
func brief(n int) int {
	if testing.Short() {
		return n / 50
	}
	return n
}
