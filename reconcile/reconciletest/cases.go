package reconciletest

import (
	"io/fs"
	"testing"

	"github.com/hapticsdk/haptic/reconcile/cases"
)

// Cases runs the cases in a folder, each as a subtest. A folder without cases fails the
// test.
func Cases(t *testing.T, runner *cases.Runner, fsys fs.FS) {
	t.Helper()
	cases, err := cases.Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("reconciletest: the folder has no cases")
	}
	for i := range cases {
		t.Run(cases[i].Name, func(t *testing.T) {
			if results := runner.Run(t.Context(), cases[i:i+1]); !results.Passed() {
				t.Errorf("\n%s", results[0].Problems())
			}
		})
	}
}
