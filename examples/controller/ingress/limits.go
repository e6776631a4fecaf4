package ingress

import (
	"cmp"

	"github.com/hapticsdk/haptic/reconcile/limits"
)

// Limits bound what the resources of one namespace, and of all together, can add to a
// configuration, so that they exhaust neither HAProxy nor the controller. Zero means the
// default of [LimitsUsage]. The model refuses by name what exceeds a limit. The first ones are
// served, and no other namespace suffers: see [limits.Quota].
type Limits struct {
	// Memory is how many bytes HAProxy and the controller have. Defaults of what all namespaces
	// may take follow it. Zero means [UsualMemory].
	Memory uint64

	// These bound the same as those below that end with PerNamespace, for all together, and in
	// the same units.
	ServersOfAll, BackendsOfAll, PathsOfAll, MapBytesOfAll, SecretsOfAll, OptionBytesOfAll, RateAddressesOfAll int

	// PatternsOfAll, CanariesOfAll and UserMillisecondsOfAll bound time, whatever the memory is:
	// that of a request, and that of a start.
	PatternsOfAll, CanariesOfAll, UserMillisecondsOfAll int

	// ServersPerBackend bounds the endpoints of a Service that serve. Those that
	// already serve stay. A server takes 5.5 KB in HAProxy.
	ServersPerBackend int
	// ServersPerNamespace bounds endpoints times ports: 20,000 take 110 MB in HAProxy.
	ServersPerNamespace int
	// PortsPerService bounds the usable ports of a Service: the first of its list.
	PortsPerService int
	// BackendsPerNamespace bounds the ports of Services that Ingresses name. A backend
	// takes 10 KB in HAProxy.
	BackendsPerNamespace int
	// PathsPerIngress bounds the paths of an Ingress. A rule without paths counts as
	// one, and so does a TLS host.
	PathsPerIngress int
	// PathsPerNamespace bounds the same for all Ingresses together. The first
	// build reads all of them, a change reads one. An Ingress with a TLS host counts for two.
	PathsPerNamespace int
	// MapBytesPerNamespace bounds hosts and paths in bytes. Each render that changes a
	// map prints it whole, and HAProxy holds it twice.
	MapBytesPerNamespace int
	// HostsPerSecret bounds the TLS hosts that use one certificate. They share a line,
	// which must also fit into a runtime command: 12,000 bytes.
	HostsPerSecret int
	// SecretsPerNamespace bounds certificates: each takes 30 KB in HAProxy.
	SecretsPerNamespace int
	// SecretBytesPerNamespace bounds the Secrets with certificates that Ingresses name, in bytes.
	// Those of type Opaque have a quarter of it. The controller holds them. All namespaces
	// together have eight times as much.
	SecretBytesPerNamespace int
	// ObjectBytesPerNamespace bounds Ingresses in bytes, and once more Services and EndpointSlices,
	// with all that nothing reads. The controller holds them. No model sees those beyond it.
	ObjectBytesPerNamespace int
	// CertificatesPerSecret bounds a chain: each handshake sends it whole.
	CertificatesPerSecret int
	// PatternsPerNamespace bounds the weights of paths that are regular expressions. HAProxy tries all
	// of them for requests without an exact path, 1,000 in 0.1 ms.
	PatternsPerNamespace int
	// CanariesPerNamespace bounds paths with a canary. Each takes up to four rules,
	// which HAProxy tries for each request.
	CanariesPerNamespace int
	// UserMillisecondsPerNamespace bounds the time that HAProxy takes to read users
	// with passwords: it computes the hash of each at each start and reload.
	UserMillisecondsPerNamespace int
	// OptionBytesPerNamespace bounds the texts of annotations in bytes, times the
	// backends that they are printed for: each start and reload reads them.
	OptionBytesPerNamespace int
	// ConnectionsPerNamespace bounds the requests and TCP connections that are open at once.
	// HAProxy keeps it, see [Settings.Share]: what is above it gets 503, or is closed.
	ConnectionsPerNamespace int
	// ChecksPerNamespace bounds the servers with health checks. HAProxy keeps a file for each, and
	// does not start with more than it can open. With TLS, one takes 50 KB.
	ChecksPerNamespace int
	// ChecksPerSecondPerNamespace bounds the checks themselves. With TLS, one takes HAProxy 0.2 ms.
	ChecksPerSecondPerNamespace int
	// ChecksOfAll and ChecksPerSecondOfAll bound those of all namespaces together.
	ChecksOfAll, ChecksPerSecondOfAll int
	// RateAddressesPerNamespace bounds the addresses that rates of annotations count, for
	// each backend with rates. An address takes 208 bytes in HAProxy while it is counted.
	RateAddressesPerNamespace int
}

// UsualMemory is the memory for which [LimitsUsage] has the defaults.
const UsualMemory = 3 << 29 // 1.5 GiB

// UsualChecks is the default of ChecksOfAll, where HAProxy can open files enough.
const UsualChecks = 4000

func (l *Limits) table() limits.Table {
	byMemory := func(usual int) int { return int(float64(usual) * float64(cmp.Or(l.Memory, UsualMemory)) / UsualMemory) }
	return limits.Table{
		{Name: "servers-per-backend", Value: &l.ServersPerBackend, Usual: 1000, What: "endpoints of a Service that serve"},
		{Name: "servers-per-namespace", Value: &l.ServersPerNamespace, Usual: 20_000, What: "endpoints times ports"},
		{Name: "ports-per-service", Value: &l.PortsPerService, Usual: 100, What: "ports of a Service that can be used"},
		{Name: "backends-per-namespace", Value: &l.BackendsPerNamespace, Usual: 12_000, What: "ports of Services that Ingresses name"},
		{Name: "paths-per-ingress", Value: &l.PathsPerIngress, Usual: 1000, What: "paths, empty rules and TLS hosts of an Ingress"},
		{Name: "paths-per-namespace", Value: &l.PathsPerNamespace, Usual: 24_000, What: "the same of all Ingresses"},
		{Name: "map-bytes-per-namespace", Value: &l.MapBytesPerNamespace, Usual: 4 << 20, What: "hosts and paths together"},
		{Name: "hosts-per-secret", Value: &l.HostsPerSecret, Usual: 500, What: "TLS hosts that use one certificate"},
		{Name: "secrets-per-namespace", Value: &l.SecretsPerNamespace, Usual: 2000, What: "certificates that Ingresses name"},
		{
			Name:  "secret-bytes-per-namespace",
			Value: &l.SecretBytesPerNamespace,
			Usual: 16 << 20,
			What:  "Secrets with certificates that Ingresses name, and 1 KiB for each; those of type Opaque have a quarter of it",
		},
		{
			Name:  "object-bytes-per-namespace",
			Value: &l.ObjectBytesPerNamespace,
			Usual: 64 << 20,
			What:  "Ingresses, and 1 KiB for each; as much for Services, and for EndpointSlices",
		},
		{Name: "certificates-per-secret", Value: &l.CertificatesPerSecret, Usual: 10, What: "length of a chain"},
		{Name: "patterns-per-namespace", Value: &l.PatternsPerNamespace, Usual: 500, What: "paths that are regular expressions"},
		{Name: "canaries-per-namespace", Value: &l.CanariesPerNamespace, Usual: 100, What: "paths with a canary"},
		{Name: "user-milliseconds-per-namespace", Value: &l.UserMillisecondsPerNamespace, Usual: 500, What: "time to read users with passwords"},
		{Name: "option-bytes-per-namespace", Value: &l.OptionBytesPerNamespace, Usual: 6 << 20, What: "lists and texts of annotations, times their backends"},
		{Name: "rate-addresses-per-namespace", Value: &l.RateAddressesPerNamespace, Usual: 1 << 19, What: "addresses that rates of annotations count"},
		{Name: "servers-of-all", Value: &l.ServersOfAll, Usual: byMemory(20_000), What: "those of all namespaces; in proportion to the memory, as are the next six"},
		{Name: "backends-of-all", Value: &l.BackendsOfAll, Usual: byMemory(14_000), What: "those of all namespaces"},
		{Name: "paths-of-all", Value: &l.PathsOfAll, Usual: byMemory(30_000), What: "those of all namespaces"},
		{Name: "map-bytes-of-all", Value: &l.MapBytesOfAll, Usual: byMemory(4 << 20), What: "those of all namespaces"},
		{Name: "secrets-of-all", Value: &l.SecretsOfAll, Usual: byMemory(2000), What: "those of all namespaces"},
		{Name: "option-bytes-of-all", Value: &l.OptionBytesOfAll, Usual: byMemory(6 << 20), What: "those of all namespaces"},
		{Name: "rate-addresses-of-all", Value: &l.RateAddressesOfAll, Usual: byMemory(1 << 19), What: "those of all namespaces"},
		{Name: "patterns-of-all", Value: &l.PatternsOfAll, Usual: 5000, What: "those of all namespaces"},
		{Name: "canaries-of-all", Value: &l.CanariesOfAll, Usual: 1000, What: "those of all namespaces"},
		{Name: "user-milliseconds-of-all", Value: &l.UserMillisecondsOfAll, Usual: 1000, What: "those of all namespaces"},
		{Name: "connections-per-namespace", Value: &l.ConnectionsPerNamespace, Usual: 5000, What: "requests and TCP connections at once; less with a small -maxconn"},
		{Name: "checks-per-namespace", Value: &l.ChecksPerNamespace, Usual: 1000, What: "servers with health checks"},
		{Name: "checks-per-second-per-namespace", Value: &l.ChecksPerSecondPerNamespace, Usual: 500, What: "their checks in a second"},
		{Name: "checks-of-all", Value: &l.ChecksOfAll, Usual: UsualChecks, What: "servers with health checks of all namespaces; less where HAProxy can open few files"},
		{Name: "checks-per-second-of-all", Value: &l.ChecksPerSecondOfAll, Usual: 2000, What: "their checks in a second"},
	}
}

// Set takes "name=number", the value of a flag.
func (l *Limits) Set(text string) error { return l.table().Set(text) }

// LimitsUsage lists all limits with their defaults, one a line.
func LimitsUsage() string { return new(Limits).table().Usage() }

// orUsual replaces zeros by the defaults.
func (l Limits) orUsual() Limits {
	l.table().UseDefaults()
	return l
}

// InForce returns all limits by name, with the defaults in place of zeros.
func (l Limits) InForce() map[string]int { return l.table().InForce() }

func figure(n int) string { return limits.Figure(n) }
