package haproxycfg_test

import (
	"fmt"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

func ExampleSplit() {
	for _, s := range haproxycfg.Split("global\n    maxconn 100\n\n# The shop.\nbackend shop\n    server a 192.0.2.1:80\n") {
		fmt.Printf("line %d: %s %s (%d bytes)\n", s.Header, s.Kind, s.Name, len(s.Text))
	}
	// Output:
	// line 1: global  (24 bytes)
	// line 5: backend shop (51 bytes)
}

func ExampleFields() {
	words, err := haproxycfg.Fields(`http-request set-header X-Note "two words" # a comment`)
	fmt.Printf("%q %v\n", words, err)
	// Output: ["http-request" "set-header" "X-Note" "two words"] <nil>
}
