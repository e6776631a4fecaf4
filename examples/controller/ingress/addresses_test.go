package ingress

import (
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
			require.Equal(t, []Server{{Name: "s1", Address: good}}, r.Backends.Slice()[0].Servers)
		})
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
	require.Empty(t, r.Backends.Slice()[0].Servers)
	require.Len(t, r.Refused, 1)
	require.Equal(t, "EndpointSlice ns/slice: endpoints[0].addresses[0]: 127.0.0.0:9090 is a loopback address: -allow-endpoint 127.0.0.0/8 would allow it; no other endpoint of Service ns/a is ready, requests get 503; 59999 more refusals", r.Refused[0].String())
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
	require.Equal(t, []Server{{Name: "s2", Address: "192.0.2.1:8080"}}, Build(w.cluster(), slots).Backends.Slice()[0].Servers)
}
