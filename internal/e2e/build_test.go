package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// needs says what the machine lacks to run the tests.
func needs() error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("namespaces need root"))
	}
	for program, pkg := range map[string]string{
		"haproxy": "haproxy", "ip": "iproute2", "go": "golang-go",
	} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("%s is not installed (apt-get install %s)", program, pkg))
		}
	}
	return errors.Join(errs...)
}

// binary is where build puts a program.
func binary(name string) string {
	path, err := filepath.Abs(filepath.Join("bin", name))
	if err != nil {
		panic(err) // the working directory is gone
	}
	return path
}

// build compiles the programs under test, one go build after the other: each takes what the one
// before has compiled. Go's build cache makes that a matter of seconds, except for the very first
// kube-apiserver and etcd. Those two are linked without what a debugger reads.
func build() error {
	type program struct {
		dir  string
		args []string
	}
	programs := []program{
		{"apiserver", []string{"-ldflags=-s -w", "-o", binary("kube-apiserver"), "k8s.io/kubernetes/cmd/kube-apiserver"}},
		{"etcd", []string{"-ldflags=-s -w", "-o", binary("etcd"), "go.etcd.io/etcd/server/v3"}},
		{"../..", []string{"-o", binary("") + "/", "./examples/controller", "./examples/settings"}},
	}
	if *soakRace {
		programs = append(programs, program{"../..", []string{"-race", "-o", binary("controller-race"), "./examples/controller"}})
	}
	for _, p := range programs {
		fmt.Fprintf(os.Stderr, "e2e: building %s\n", strings.Join(p.args[slices.Index(p.args, "-o")+2:], ", "))
		cmd := exec.Command("go", append([]string{"build"}, p.args...)...)
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(cmd.Args[1:], " "), err, out)
		}
	}
	return nil
}
