package ingress

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestEndpointsThatLeadElsewhere: addresses that no pod has are refused, however
// they are spelled, and the other endpoints serve.
func TestEndpointsThatLeadElsewhere(t *testing.T) {
	const good = "192.0.2.1:8080"
	for ip, why := range map[string]string{
		"127.0.0.1":             "127.0.0.1:8080 is a loopback address: -allow-endpoint 127.0.0.0/8 would allow it",
		"127.255.255.254":       "is a loopback address",
		"::1":                   "[::1]:8080 is a loopback address: -allow-endpoint ::1/128 would allow it",
		"0:0:0:0:0:0:0:1":       "is a loopback address",
		"0.0.0.0":               "is an unspecified address",
		"0.1.2.3":               "is an unspecified address: -allow-endpoint 0.0.0.0/8",
		"::":                    "is an unspecified address",
		"169.254.169.254":       "169.254.169.254:8080 is a link-local address: -allow-endpoint 169.254.0.0/16 would allow it",
		"fe80::1":               "is a link-local address",
		"febf:ffff::1":          "is a link-local address",
		"224.0.0.1":             "is a multicast address",
		"239.255.255.255":       "is a multicast address",
		"ff02::1":               "is a multicast address",
		"255.255.255.255":       "is the broadcast address",
		"::ffff:127.0.0.1":      "127.0.0.1:8080 is a loopback address",
		"::FFFF:7F00:1":         "127.0.0.1:8080 is a loopback address",
		"::ffff:169.254.169.25": "is a link-local address",
		"::127.0.0.1":           "leads to 127.0.0.1, which is a loopback address: -allow-endpoint ::7f00:1/128 would allow it",
		"::ffff:0:7f00:1":       "leads to 127.0.0.1",
		"64:ff9b::7f00:1":       "leads to 127.0.0.1",
		"64:ff9b::a9fe:a9fe":    "[64:ff9b::a9fe:a9fe]:8080 leads to 169.254.169.254, which is a link-local address",
		"64:ff9b:1::1":          "is a local NAT64 address",
		"2002:7f00:1::":         "leads to 127.0.0.1",
		"2002:e000:1::9":        "leads to 224.0.0.1, which is a multicast address",
		"fd00:ec2::254":         "is the metadata service of a cloud",
		"fd20:ce::254":          "is the metadata service of a cloud",
		"100.100.100.200":       "is the metadata service of a cloud",
		"fe80::1%eth0":          "is no IP address",
		"192.0.2.1%eth0":        "is no IP address",
		"127.1":                 "is no IP address",
		"0177.0.0.1":            "is no IP address",
		"2130706433":            "is no IP address",
		"localhost":             "is no IP address",
	} {
		t.Run(ip, func(t *testing.T) {
			w := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"), path(prefix, "/b", "a"), path(prefix, "/c", "b"))))
			w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, ip, "192.0.2.1")}
			r := w.build()
			require.Len(t, r.Refused, 1, "once for a Service")
			require.Equal(t, "EndpointSlice ns/slice", r.Refused[0].Resource)
			require.Equal(t, "endpoints[0].addresses[0]", r.Refused[0].Field)
			require.True(t, strings.HasSuffix(r.Refused[0].Reason, "; the other endpoints of Service ns/a serve"), r.Refused[0].Reason)
			require.Contains(t, r.Refused[0].Reason, why)
			require.Equal(t, []Server{{Name: "s1", Address: good}}, r.Backends[0].Servers)
		})
	}
	for _, ip := range []string{"192.0.2.1", "10.0.0.1", "100.64.0.1", "240.0.0.1", "2001:db8::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1"} {
		at := netip.MustParseAddr(ip).Unmap()
		require.Empty(t, newJudge(nil).problem(at, 80), ip)
	}
}

// TestManyRefusedEndpoints: they are one refusal, with their number, and cost
// nothing beside.
func TestManyRefusedEndpoints(t *testing.T) {
	var all []string
	for i := range 60_000 {
		all = append(all, netip.AddrFrom4([4]byte{127, 0, byte(i >> 8), byte(i)}).String())
	}
	w := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"))))
	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 9090, all...)}
	cluster := w.cluster()
	cluster.Limits = Limits{ServersPerBackend: 30_000, ServersPerNamespace: 30_000} // twice as many are read
	r := Build(cluster, &Slots{})
	require.Empty(t, r.Backends[0].Servers)
	require.Len(t, r.Refused, 1)
	require.Equal(t, "EndpointSlice ns/slice: endpoints[0].addresses[0]: 127.0.0.0:9090 is a loopback address: -allow-endpoint 127.0.0.0/8 would allow it; no other endpoint of Service ns/a is ready, requests get 503; 59999 more refusals", r.Refused[0].String())
}

// TestEndpointsOfHAProxyItself: no setting allows an address and port that HAProxy
// or the controller listens at.
func TestEndpointsOfHAProxyItself(t *testing.T) {
	listeners := Listeners{}
	for _, bind := range []string{":8080", "ipv6@[::]:8443", "127.0.0.1:9090", "192.0.2.5:81,*:7000-7002", "/run/x.sock", "unix@/run/y", "unix:/run/z", "", "host.test:88", "0.0.0.0:89"} {
		require.NoError(t, listeners.Add(bind), bind)
	}
	listeners.AddAddr(netip.MustParseAddr("::ffff:192.0.2.60"), 5555) // an instance with its API
	for _, bad := range []string{"8080x", "a:b", "a:1-x", ":70000"} {
		require.ErrorContains(t, listeners.Add(bad), "want address:port")
	}
	j := newJudge(&Addresses{
		Listeners: listeners,
		Allow:     []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
		Host:      []netip.Prefix{netip.MustParsePrefix("192.0.2.2/32"), netip.MustParsePrefix("127.0.0.1/8"), netip.MustParsePrefix("fd00::2/128")},
	})
	for at, ours := range map[string]bool{
		"192.0.2.2:8080": true, "[fd00::2]:8443": true, "127.0.0.1:8080": true, "127.7.7.7:8080": true, "[::1]:8080": true,
		"0.0.0.0:8080": true, "[::]:9090": true, "[64:ff9b::c000:202]:8080": true, "[::7f00:1]:9090": true,
		"127.0.0.1:9090": true, "127.0.0.2:9090": false, "192.0.2.2:9090": false,
		"192.0.2.5:81": true, "192.0.2.2:81": false, "192.0.2.2:7001": true, "192.0.2.2:7003": false,
		"192.0.2.2:88": true, "192.0.2.2:89": true, "192.0.2.60:5555": true, "192.0.2.2:5555": false,
		"192.0.2.3:8080": false, "192.0.2.2:8081": false, "169.254.1.1:8080": false,
	} {
		to := netip.MustParseAddrPort(at)
		if ours {
			require.Contains(t, j.problem(to.Addr(), to.Port()), "is where HAProxy or the controller listens", at)
		} else {
			require.Empty(t, j.problem(to.Addr(), to.Port()), at)
		}
	}
}

// TestInterfacesOfThisHost: the addresses of this host are found without being
// told.
func TestInterfacesOfThisHost(t *testing.T) {
	listeners := Listeners{}
	require.NoError(t, listeners.Add(":8080"))
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		if ip := netip.MustParsePrefix(a.String()).Addr(); !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			require.NotEmpty(t, newJudge(&Addresses{Listeners: listeners}).problem(ip, 8080), ip)
			require.Empty(t, newJudge(&Addresses{Listeners: listeners}).problem(ip, 8081), ip)
		}
	}
	require.NotEmpty(t, newJudge(&Addresses{Listeners: listeners, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}).problem(netip.MustParseAddr("127.9.9.9"), 8080))
}

// TestRefusedEndpointsDoNotComeBack: neither from the configuration that is
// deployed nor out of quarantine.
func TestRefusedEndpointsDoNotComeBack(t *testing.T) {
	previous, err := dataplane.NewConfig("backend ns_a_80\n    server s1 127.0.0.1:9090\n    server s2 192.0.2.1:8080\n    server s3 169.254.169.254:80\n")
	require.NoError(t, err)
	slots := &Slots{}
	slots.Remember(previous)
	w := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"))))
	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 9090, "127.0.0.1"), slice("http", 80, "169.254.169.254"), slice("http", 8080, "192.0.2.1")}
	require.Equal(t, []Server{{Name: "s2", Address: "192.0.2.1:8080"}}, Build(w.cluster(), slots).Backends[0].Servers)
}

// BenchmarkEndpoints judges the endpoints of one large Service.
func BenchmarkEndpoints(b *testing.B) {
	const n = 10_000
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10.0.%d.%d", i>>8, i&255))
	}
	slices := []*discoveryv1.EndpointSlice{slice("http", 8080, all...)}
	judge := newJudge(&Addresses{Listeners: Listeners{8080: {netip.Addr{}}}})
	for b.Loop() {
		found := endpoints{judge: judge}
		require.Len(b, found.addresses(slices, "http"), n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/endpoint")
}
