package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// build compiles the programs under test. Go's build cache makes that a matter
// of seconds, except for the very first kube-apiserver and etcd.
func build() error {
	type program struct{ dir, name, pkg, flag string }
	programs := []program{
		{"apiserver", "kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "-v=false"},
		{"etcd", "etcd", "go.etcd.io/etcd/server/v3", "-v=false"},
		{"../..", "controller", "./examples/controller", "-v=false"},
		{"../..", "settings", "./examples/settings", "-v=false"},
	}
	if *soakRace {
		programs = append(programs, program{"../..", "controller-race", "./examples/controller", "-race"})
	}
	for _, p := range programs {
		fmt.Fprintf(os.Stderr, "e2e: building %s\n", p.name)
		cmd := exec.Command("go", "build", p.flag, "-o", binary(p.name), p.pkg)
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", p.name, err, out)
		}
	}
	return nil
}
