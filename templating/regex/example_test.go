package regex_test

import (
	"fmt"

	"github.com/hapticsdk/haptic/templating/regex"
)

// An expression of a tenant is checked before a template shows it with regex(s).
func ExampleCheck() {
	is, err := regex.Check("^/shop/([a-z]+)/(.*)")
	fmt.Println(is.Groups, "groups, it weighs", is.Weight(), err)
	_, err = regex.Check("^/(a+)+$")
	fmt.Println(err)
	// Output:
	// 2 groups, it weighs 1 <nil>
	// pattern "^/(a+)+$" has a repeat, a ? or a | inside a repeat, which can take HAProxy seconds: write it without
}

// An expression behind a "^" of the template is tried at one place alone, so on longer texts.
func ExampleCheckStart() {
	behind, _ := regex.CheckStart("/a(.*)b")
	anywhere, _ := regex.Check("/a(.*)b")
	fmt.Println(behind.Longest, anywhere.Longest)
	// Output: 16384 479
}

// A whole expression of a tenant, as a line of a map or of a configuration has it.
func ExampleBounded() {
	fmt.Println(regex.Bounded("^/shop/([a-z]+)$"))
	// Output: (*LIMIT_MATCH=500000)^/shop/([a-z]+)$
}
