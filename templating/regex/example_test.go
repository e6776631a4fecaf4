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
	// 2 groups, it weighs 17 <nil>
	// pattern "^/(a+)+$" has a repeat, a ? or a | inside a repeat, which can take HAProxy seconds: write it without
}

// What stands behind a "^" of the template is tried at one place alone.
func ExampleCheckStart() {
	behind, _ := regex.CheckStart("/a(.*)")
	anywhere, _ := regex.Check("/a(.*)")
	fmt.Println(behind.Steps, anywhere.Steps)
	// Output: 8000 64000000
}
