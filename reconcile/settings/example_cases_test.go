package settings_test

import (
	"context"
	"fmt"

	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// Settings made in Go are checked as those of a file.
func ExampleSettings_Check() {
	s := settings.Settings{HAProxyConfig: settings.Template{Template: "global\n"}, Dataplane: settings.Dataplane{Scheme: "ftp"}}
	fmt.Println(s.Check())
	// Output: dataplane.scheme: "ftp" is not one of http, https
}

// A pipeline runs the cases of settings.
func ExampleProgram_CaseRenderer() {
	program, err := settings.ParseProgram("settings.yaml", []byte(exampleSettings+`
validationTests:
- name: a Service has a backend
  fixtures:
  - {apiVersion: v1, kind: Service, metadata: {namespace: shop, name: web}}
  assertions:
  - {type: contains, pattern: ^backend shop_web$}
`), nil)
	if err != nil {
		panic(err)
	}
	runner := cases.Runner{Renderer: program.CaseRenderer}
	fmt.Print(runner.Run(context.Background(), program.Settings().Cases))
	// Output:
	// ok    a Service has a backend
	// 1 case: 1 passed, 0 failed
}
