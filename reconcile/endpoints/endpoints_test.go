package endpoints

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func slice(port string, number int32, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: "slice"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

// TestOrdinaryAddresses: they are served.
func TestOrdinaryAddresses(t *testing.T) {
	for _, ip := range []string{"192.0.2.1", "10.0.0.1", "100.64.0.1", "240.0.0.1", "2001:db8::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1"} {
		at := netip.MustParseAddr(ip).Unmap()
		require.Empty(t, NewJudge(nil).Problem(at, 80), ip)
	}
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
	j := NewJudge(&Addresses{
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
			require.Contains(t, j.Problem(to.Addr(), to.Port()), "is where HAProxy or the controller listens", at)
		} else {
			require.Empty(t, j.Problem(to.Addr(), to.Port()), at)
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
			require.NotEmpty(t, NewJudge(&Addresses{Listeners: listeners}).Problem(ip, 8080), ip)
			require.Empty(t, NewJudge(&Addresses{Listeners: listeners}).Problem(ip, 8081), ip)
		}
	}
	require.NotEmpty(t, NewJudge(&Addresses{Listeners: listeners, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}).Problem(netip.MustParseAddr("127.9.9.9"), 8080))
}

// BenchmarkEndpoints judges the endpoints of one large Service.
func BenchmarkEndpoints(b *testing.B) {
	const n = 10_000
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10.0.%d.%d", i>>8, i&255))
	}
	slices := []*discoveryv1.EndpointSlice{slice("http", 8080, all...)}
	judge := NewJudge(&Addresses{Listeners: Listeners{8080: {netip.Addr{}}}})
	for b.Loop() {
		require.Len(b, Find(judge, slices, "http", 2*n).Addresses, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/endpoint")
}

func TestFind(t *testing.T) {
	no, yes := false, true
	http := slice("http", 8080, "192.0.2.1", "192.0.2.2", "192.0.2.3")
	http.Endpoints[1].Conditions.Ready = &no
	other := slice("metrics", 9090, "192.0.2.9")
	twice := slice("http", 8080, "192.0.2.1")
	v6 := slice("http", 8080, "2001:db8::1")
	found := Find(NewJudge(nil), []*discoveryv1.EndpointSlice{http, other, twice, v6}, "http", 100)
	require.Equal(t, []string{"192.0.2.1:8080", "192.0.2.3:8080", "[2001:db8::1]:8080"}, found.Addresses)
	require.Empty(t, found.Refused)

	ending := slice("http", 8080, "192.0.2.1")
	ending.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
	found = Find(NewJudge(nil), []*discoveryv1.EndpointSlice{ending}, "http", 100)
	require.Equal(t, []string{"192.0.2.1:8080"}, found.Addresses,
		"what still serves while it terminates is better than nothing")

}

// TestSlotsKeepTheirNames: an endpoint keeps its server, and a new one takes the server of one
// that left just now.
func TestSlotsKeepTheirNames(t *testing.T) {
	names := func(s Slots) map[string]string {
		m := map[string]string{}
		for _, x := range s.Servers(0) {
			m[x.Name] = x.Address
		}
		return m
	}
	s := Slots(nil).Assign([]string{"1", "2", "3"}, 9)
	s = s.Assign([]string{"1", "3"}, 9)
	require.Equal(t, map[string]string{"s1": "1", "s3": "3"}, names(s))
	s = s.Assign([]string{"0", "1", "3"}, 9)
	require.Equal(t, map[string]string{"s1": "1", "s2": "0", "s3": "3"}, names(s))
	last := s.Assign([]string{"1"}, 9)
	require.Equal(t, map[string]string{"s1": "1"}, names(last))
	require.Equal(t, map[string]string{"s1": "1", "s2": "0", "s3": "3"}, names(s), "slots never change")
	require.Equal(t, map[string]string{"s1": "1", "s3": "3"}, names(s.Assign([]string{"1", "3", "4"}, 2)), "what serves stays")

	servers := Slots(nil).Assign([]string{"1", "2"}, 9).Servers(4)
	require.Len(t, servers, 4)
	require.False(t, servers[1].Disabled)
	require.Equal(t, Server{Name: "s4", Address: SpareAddress, Disabled: true}, servers[3])
	require.Len(t, Slots(nil).Assign([]string{"1", "2", "3", "4", "5"}, 9).Servers(4), 8)
	require.Len(t, Slots(nil).Servers(4), 4)
}

// TestReadSlots: the servers of an earlier configuration are found, and nothing else.
func TestReadSlots(t *testing.T) {
	cfg, err := dataplane.NewConfig("backend a\n    server s3 192.0.2.3:80\n    server s1 192.0.2.1:80 weight 1\n    server s2 127.0.0.1:9 disabled\nbackend b\n    server web 192.0.2.9:80\n    server s0 192.0.2.9:80\n    server s99999 192.0.2.9:80\n")
	require.NoError(t, err)
	require.Equal(t, map[string]Slots{"a": {"192.0.2.1:80", "", "192.0.2.3:80"}}, ReadSlots(cfg))
	require.Empty(t, ReadSlots(nil))
}

// FuzzListeners: no text makes Add panic, and what it takes has a port.
func FuzzListeners(f *testing.F) {
	for _, s := range []string{":80", "[::]:1-3,ipv4@1.2.3.4:5", "unix@/x", "a:b", "1:2:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, bind string) {
		l := Listeners{}
		if l.Add(bind) == nil {
			for port, at := range l {
				require.NotEmpty(t, at, port)
			}
		}
	})
}
