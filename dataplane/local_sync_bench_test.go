package dataplane_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// many is a configuration of n backends with a server each, two maps with an entry for
// each of them, and a certificate for each twentieth.
type many struct {
	h     *host
	n     int
	parts []string // the sections
	files []dataplane.File
	list  int       // of the map that changes, in files
	pairs [2][]byte // certificates to change between
	lines []string  // of that map
	last  *dataplane.Config
}

func newMany(b *testing.B, h *host, n int) *many {
	m := &many{h: h, n: n, pairs: [2][]byte{localCertificate(b, "a.test"), localCertificate(b, "b.test")}}
	layout := h.local.Layout()
	var list strings.Builder
	for i := range max(n/20, 1) {
		name := fmt.Sprintf("c%d.pem", i)
		fmt.Fprintf(&list, "%s c%d.test\n", layout.Path(dataplane.Certificate, name), i)
		m.files = append(m.files, dataplane.File{Kind: dataplane.Certificate, Name: name, Content: m.pairs[0]})
	}
	m.files = append(m.files, dataplane.File{Kind: dataplane.CRTList, Name: "list.txt", Content: []byte(list.String())})
	for i := range n {
		m.lines = append(m.lines, fmt.Sprintf("host-%d.example.com be_%d\n", i, i))
	}
	entries := []byte(strings.Join(m.lines, ""))
	m.list = len(m.files)
	for _, name := range []string{"a.map", "b.map"} {
		m.files = append(m.files, dataplane.File{Kind: dataplane.Map, Name: name, Content: entries})
	}
	m.parts = append(m.parts, h.global(), fmt.Sprintf("frontend f\n bind %s ssl crt-list %s\n use_backend %%[req.hdr(host),map(%s)]\n use_backend %%[req.hdr(host),map_beg(%s)]\n",
		h.socket("f"), layout.Path(dataplane.CRTList, "list.txt"), layout.Path(dataplane.Map, "a.map"), layout.Path(dataplane.Map, "b.map")))
	for i := range n {
		m.parts = append(m.parts, m.backend(i, 1))
	}
	return m
}

func (m *many) backend(i, host int) string {
	return fmt.Sprintf("backend be_%d\n    mode http\n    balance roundrobin\n    option httpchk GET /healthz\n    http-request set-header X-Backend be_%d\n    timeout server 30s\n    timeout queue 5s\n    server srv_0 198.18.%d.%d:%d weight 10 maxconn 100\n", i, i, host/250, 1+host%250, 1024+i%60000)
}

// config is the configuration after one more change of that kind.
func (m *many) config(what string, n int) *dataplane.Config {
	at := len(m.parts) - 1 - n%min(m.n, 100)
	switch what {
	case "server":
		m.parts[at] = m.backend(at-2, 1+n)
	case "map_entry":
		m.lines[n%m.n] = fmt.Sprintf("host-%d.example.com be_%d\n", n%m.n, n/m.n+(n+1)%m.n)
		m.files = append([]dataplane.File(nil), m.files...)
		m.files[m.list].Content = []byte(strings.Join(m.lines, ""))
	case "certificate":
		m.files = append([]dataplane.File(nil), m.files...)
		m.files[0].Content = bytes.Clone(m.pairs[n%2])
	}
	c, err := dataplane.NewConfigFrom(m.last, m.parts, m.files...)
	require.NoError(m.h.t, err)
	m.last = c
	return c
}

// BenchmarkLocalSync changes one thing among many at a HAProxy that runs. told-ns/op is
// the median of how long until HAProxy has it; ns/op is until it is stored, with the
// fsync of the disk; cpu-ns/op is the time of processors in this process.
func BenchmarkLocalSync(b *testing.B) {
	for _, what := range []string{"server", "map_entry", "certificate"} {
		for _, n := range []int{100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
				h := newHost(b)
				m := newMany(b, h, n)
				begin, told, cpu, reloads := time.Time{}, []time.Duration(nil), time.Duration(0), 0
				h.local.SetFailpoint(func(step string) {
					if step == "after tell" {
						told = append(told, time.Since(begin))
					}
				})
				first := m.config(what, 0)
				h.sync(first.Main(), first.Files()...)
				told = nil
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					b.StopTimer()
					desired := m.config(what, i+1)
					before := processorTime(b)
					b.StartTimer()
					begin = time.Now()
					result, err := h.local.Sync(b.Context(), desired)
					require.NoError(b, err)
					reloads, cpu = reloads+result.Reloads, cpu+processorTime(b)-before
				}
				b.StopTimer()
				slices.Sort(told)
				b.ReportMetric(float64(told[len(told)/2]), "told-ns/op")
				b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(float64(reloads)/float64(b.N), "reloads/op")
			})
		}
	}
}

// processorTime is what this process, and none that it started, has used so far.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
