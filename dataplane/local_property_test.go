package dataplane_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// shape is a configuration that changes at random.
type shape struct {
	random   *rand.Rand
	up       []string // servers that answer
	certs    map[string][]byte
	process  int
	frontend int
	timeout  int // of no interest, but changes at a reload only
	backends [3]shapeBackend
	hosts    map[string]string
	blocked  map[string]bool
	listed   map[string]string // filters by certificate
}

type shapeBackend struct {
	balance, preset string
	servers         map[string]string
}

func newShape(t testing.TB, random *rand.Rand, u *upstreams) *shape {
	s := &shape{random: random, up: []string{u.plain, u.other}, certs: make(map[string][]byte), process: 90, frontend: 10,
		hosts: map[string]string{"a.test": "b0"}, blocked: map[string]bool{"bad.test": true}, listed: map[string]string{"c0.pem": ""}}
	for i := range 4 {
		s.certs[fmt.Sprintf("c%d.pem", i)] = localCertificate(t, fmt.Sprintf("c%d.test", i))
	}
	for i := range s.backends {
		s.backends[i] = shapeBackend{balance: "roundrobin", servers: map[string]string{"s0": s.server()}}
	}
	return s
}

func (s *shape) pick(words ...string) string { return words[s.random.Intn(len(words))] }

// server is a random server line behind the name.
func (s *shape) server() string {
	const check = " check inter 50ms fastinter 50ms rise 1 fall 2"
	return s.pick(s.up...) + s.pick("", "", check, check+" port "+port(s.up[0]), check+" addr 127.0.0.1") +
		s.pick("", "", " weight 3", " weight 9", " weight 0") + s.pick("", "", " maxconn 5", " maxconn 7", " minconn 2 maxconn 8") +
		s.pick("", "", "", " disabled", " enabled") + s.pick("", "", "", " backup", " slowstart 100ms", " maxqueue 3")
}

// change changes one thing, or a few.
func (s *shape) change(t testing.TB) {
	for range 1 + s.random.Intn(3) {
		b := &s.backends[s.random.Intn(len(s.backends))]
		name := fmt.Sprintf("s%d", s.random.Intn(4))
		host := fmt.Sprintf("h%d.test", s.random.Intn(5))
		cert := fmt.Sprintf("c%d.pem", 1+s.random.Intn(3))
		switch s.random.Intn(16) {
		case 0, 1, 2, 3:
			b.servers[name] = s.server()
		case 4, 5:
			delete(b.servers, name)
		case 6:
			b.balance = s.pick("roundrobin", "leastconn", "random", "source", "static-rr")
		case 7:
			b.preset = s.pick("", "default-server weight 4", "default-server maxconn 6 check inter 50ms fastinter 50ms rise 1 fall 2")
		case 8, 9:
			s.hosts[host] = s.pick("b0", "b1", "b2", "two words")
		case 10:
			delete(s.hosts, host)
		case 11:
			s.blocked[host] = true
		case 12:
			delete(s.blocked, host)
		case 13:
			s.certs[fmt.Sprintf("c%d.pem", s.random.Intn(4))] = localCertificate(t, fmt.Sprintf("r%d.test", s.random.Int31()))
		case 14:
			if _, ok := s.listed[cert]; ok {
				delete(s.listed, cert)
			} else {
				s.listed[cert] = s.pick("", " "+cert+".example", " [alpn h2]")
			}
		default:
			s.frontend, s.process = 10+s.random.Intn(3), 80+s.random.Intn(20)
		}
	}
}

// config is the shape as a configuration of that host.
func (s *shape) config(h *host) (string, []dataplane.File) {
	layout := h.local.Layout()
	var b strings.Builder
	b.WriteString(strings.Replace(h.global(), "maxconn 100", fmt.Sprintf("maxconn %d", s.process), 1))
	fmt.Fprintf(&b, "frontend f\n maxconn %d\n bind %s\n bind %s ssl strict-sni crt-list %s\n", s.frontend, h.socket("f"), h.socket("t"), layout.Path(dataplane.CRTList, "l.txt"))
	fmt.Fprintf(&b, " http-request deny if { req.hdr(host) -f %s }\n use_backend %%[req.hdr(host),map_str(%s)]\n",
		layout.Path(dataplane.General, "blocked.txt"), layout.Path(dataplane.Map, "hosts.map"))
	fmt.Fprintf(&b, "backend unrelated\n timeout server %ds\n", 1+s.timeout)
	for i, be := range s.backends {
		fmt.Fprintf(&b, "backend b%d\n balance %s\n", i, be.balance)
		if be.preset != "" {
			b.WriteString(" " + be.preset + "\n")
		}
		for _, name := range slices.Sorted(maps.Keys(be.servers)) {
			fmt.Fprintf(&b, " server %s %s\n", name, be.servers[name])
		}
	}
	text := func(kind dataplane.FileKind, name string, lines []string) dataplane.File {
		return dataplane.File{Kind: kind, Name: name, Content: []byte("# " + name + "\n" + strings.Join(lines, "\n") + "\n")}
	}
	var hosts, list []string
	for _, host := range slices.Sorted(maps.Keys(s.hosts)) {
		hosts = append(hosts, host+" "+s.hosts[host])
	}
	files := []dataplane.File{}
	for _, cert := range slices.Sorted(maps.Keys(s.listed)) {
		list = append(list, layout.Path(dataplane.Certificate, cert)+s.listed[cert])
		files = append(files, dataplane.File{Kind: dataplane.Certificate, Name: cert, Content: s.certs[cert]})
	}
	return b.String(), append(files, text(dataplane.Map, "hosts.map", hosts), text(dataplane.CRTList, "l.txt", list),
		text(dataplane.General, "blocked.txt", slices.Sorted(maps.Keys(s.blocked))))
}

// A plan that says runtime never changes the process, and leaves it as one that
// starts with the new configuration. So does a later reload, for something else.
func TestRuntimePlansHold(t *testing.T) {
	t.Parallel()
	steps := 16
	if *full {
		steps = 40
	}
	for seed := range int64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newShape(t, rand.New(rand.NewSource(seed)), newUpstreams(t)) //nolint:gosec // to be repeatable
			h := newHost(t)
			text, files := s.config(h)
			last := h.sync(text, files...)
			atRuntime := 0
			for step := range steps {
				s.change(t)
				text, files := s.config(h)
				plan, err := h.local.DryRun(t.Context(), h.config(text, files...))
				require.NoError(t, err)
				result := h.sync(text, files...)
				require.Equal(t, plan.String(), result.Plan.String())
				if plan.Impact() == dataplane.ImpactReload {
					require.Equal(t, 1, result.Reloads, "step %d", step)
				} else {
					require.Empty(t, result.Fallback, "step %d: %s", step, plan)
					require.Zero(t, result.Reloads, "step %d: %s", step, plan)
					require.Equal(t, last.WorkerPID, result.WorkerPID, "step %d: %s", step, plan)
					atRuntime++
					if atRuntime%4 == 0 {
						h.asFresh(s.config)
						require.False(t, t.Failed(), "step %d: %s", step, plan)
					}
				}
				last = result
				if step%8 < 7 {
					continue
				}
				s.timeout++
				text, files = s.config(h)
				last = h.sync(text, files...)
				require.Equal(t, 1, last.Reloads)
				current, err := h.local.Current(t.Context())
				require.NoError(t, err)
				require.Equal(t, h.config(text, files...).Hash(), current.Hash())
				h.asFresh(s.config)
				require.False(t, t.Failed(), "after the reload behind step %d", step)
			}
			require.Greater(t, atRuntime, steps/5)
		})
	}
}
