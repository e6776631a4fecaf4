package validate_test

import (
	"context"
	"fmt"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// A test of a template asks the same, and leaves no line in the log.
func ExampleValidator_Quietly() {
	cfg, err := dataplane.NewConfig(site)
	if err != nil {
		panic(err)
	}
	fmt.Println(new(validate.Validator).Quietly(context.Background(), cfg))
	// Output: <nil>
}
