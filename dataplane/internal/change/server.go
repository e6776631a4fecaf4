package change

// Balance is the part of a backend that decides what its servers may do at runtime.
type Balance struct {
	Algorithm string // the first word after balance
	HashType  string
}

// Dynamic reports whether servers may come, go and change places at runtime. The algorithm
// must be dynamic (configuration manual, "balance"), and must not depend on the order or the
// identifiers of servers.
func (b Balance) Dynamic() bool {
	return b.Algorithm == "roundrobin" || b.Algorithm == "leastconn" || b.Algorithm == "random"
}

// Weighs reports whether weights other than 0% and 100% may be set at runtime.
func (b Balance) Weighs() bool {
	return b.Dynamic() || b.Algorithm == "first" || b.Algorithm != "static-rr" && b.HashType == "consistent"
}

// Addable says how a server with a certain keyword is added at runtime.
type Addable struct {
	Field string  // name of the field in the Dataplane API; "" if it has none
	As    FieldAs // how the Dataplane API takes its value
	Own   bool    // a default-server does not pass it on in the same way
}

// FieldAs is how the Dataplane API takes the value of a keyword.
type FieldAs int

// The forms of a value.
const (
	AsWord   FieldAs = iota // a string, as it is
	AsNumber                // an integer
	AsFlag                  // "enabled"
)

// addable lists the keywords that "add server" takes in HAProxy 2.6 (management manual,
// section 9.3). Agent checks and tracking are missing: such a server would need more commands
// to work as it does after a reload. The fields are those of the specification of the
// Dataplane API, "runtime_add_server".
var addable = map[string]Addable{
	"allow-0rtt": {}, "addr": {Own: true}, "alpn": {Field: "alpn"}, "backup": {Field: "backup", As: AsFlag},
	"ca-file": {Field: "ssl_cafile"}, "check": {}, "check-alpn": {}, "check-proto": {Own: true}, "check-send-proxy": {},
	"check-sni": {}, "check-ssl": {}, "check-via-socks4": {}, "ciphers": {Field: "ciphers"},
	"ciphersuites": {Field: "ciphersuites"}, "crl-file": {}, "crt": {Field: "ssl_certificate"}, "disabled": {},
	"downinter": {}, "enabled": {}, "error-limit": {}, "fall": {}, "fastinter": {}, "force-sslv3": {}, "force-tlsv10": {},
	"force-tlsv11": {}, "force-tlsv12": {}, "force-tlsv13": {}, "id": {Own: true}, "inter": {},
	"maxconn": {Field: "maxconn", As: AsNumber}, "maxqueue": {Field: "maxqueue", As: AsNumber},
	"minconn": {Field: "minconn", As: AsNumber}, "no-ssl-reuse": {}, "no-sslv3": {Own: true}, "no-tlsv10": {Own: true},
	"no-tlsv11": {Own: true}, "no-tlsv12": {Own: true}, "no-tlsv13": {Own: true}, "no-tls-tickets": {}, "npn": {},
	"observe": {}, "on-error": {}, "on-marked-down": {}, "on-marked-up": {},
	"pool-low-conn": {Field: "pool_low_conn", As: AsNumber}, "pool-max-conn": {Field: "pool_max_conn", As: AsNumber},
	"pool-purge-delay": {}, "port": {}, "proto": {Field: "proto"}, "proxy-v2-options": {}, "rise": {},
	"send-proxy": {Field: "send-proxy", As: AsFlag}, "send-proxy-v2": {Field: "send-proxy-v2", As: AsFlag},
	"send-proxy-v2-ssl": {}, "send-proxy-v2-ssl-cn": {}, "slowstart": {}, "sni": {Field: "sni"}, "source": {},
	"ssl": {Field: "ssl", As: AsFlag}, "ssl-max-ver": {Field: "ssl_max_ver"}, "ssl-min-ver": {Field: "ssl_min_ver"},
	"tfo": {}, "tls-tickets": {}, "usesrc": {}, "verify": {Field: "verify"}, "verifyhost": {Field: "verifyhost"},
	"weight": {Field: "weight", As: AsNumber}, "ws": {Field: "ws"},
}

// AddableKeyword returns how to add a server with that keyword.
func AddableKeyword(keyword string) (Addable, bool) {
	a, ok := addable[keyword]
	return a, ok
}
