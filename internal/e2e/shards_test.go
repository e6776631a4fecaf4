package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// shards is how many clusters share the tests. Each has namespaces of its own, so that a test
// sees nothing of others. Tests mostly wait: two at a time keep two processors less than busy.
var shards = flag.Int("shards", 0, "clusters that share the tests; 0: one for two processors, at least two, when more than one test is wanted")

// runShards runs the test binary again in each shard. With more than one, what a shard prints
// comes as a whole.
func runShards(dir string) int {
	tests, err := wanted()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	n := *shards
	if n <= 0 {
		n = max(2, runtime.NumCPU()/2)
	}
	if n = min(n, len(tests)); n <= 1 {
		return runInside(dir, os.Stdout, nil)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	code := 0
	for i := range n {
		own := filepath.Join(dir, fmt.Sprint(i))
		if err := errors.Join(os.Mkdir(own, 0o755), os.Chmod(own, 0o755)); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		wg.Go(func() {
			var printed bytes.Buffer
			ended := runInside(own, &printed, tests)
			mu.Lock()
			defer mu.Unlock()
			_, _ = printed.WriteTo(os.Stdout)
			code = max(code, ended)
		})
	}
	wg.Wait()
	return code
}

// wanted lists the tests that this process is to run. One that is wanted for its subtests
// alone runs by itself: a list knows no subtests.
func wanted() ([]string, error) {
	run := flag.Lookup("test.run").Value.String()
	if strings.Contains(run, "/") {
		return nil, nil
	}
	if run == "" {
		run = "."
	}
	out, err := exec.Command("/proc/self/exe", "-test.list="+run).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	var tests []string
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Test") {
			tests = append(tests, name)
		}
	}
	return tests, nil
}

// runClaimed runs the tests of a list that no other shard has claimed, one after the other. A
// claim is a folder beside that of the shard.
func runClaimed(m *testing.M, dir string, tests []string) int {
	code := 0
	for _, name := range tests {
		err := os.Mkdir(filepath.Join(filepath.Dir(dir), name), 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err := errors.Join(err, flag.Set("test.run", "^"+name+"$")); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		code = max(code, m.Run())
	}
	return code
}
