package discover_test

import (
	"fmt"

	"github.com/hapticsdk/haptic/reconcile/discover"
)

// ExampleTLS_Config refuses a CA that cannot be read, in place of trusting
// nobody, or everybody.
func ExampleTLS_Config() {
	tls := discover.TLS{CASecret: "edge/haproxy-ca", ServerName: "haproxy.example"}
	_, err := tls.Config([]byte("-----BEGIN CERTIFICATE-----\ncut sh"))
	fmt.Println(err)
	// Output: CA: 1 of 1 blocks cannot be read
}
