package reconcile_test

import (
	"fmt"

	"github.com/hapticsdk/haptic/reconcile"
)

// ExampleDataplaneTLS_Config refuses a CA that cannot be read, in place of trusting
// nobody, or everybody.
func ExampleDataplaneTLS_Config() {
	settings := reconcile.DataplaneTLS{CASecret: reconcile.KeyRef{Name: "haproxy-ca"}, ServerName: "haproxy.example"}
	_, err := settings.Config([]byte("-----BEGIN CERTIFICATE-----\ncut sh"), nil, nil)
	fmt.Println(err)
	// Output: CA: 1 of 1 blocks cannot be read
}
