package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkedSite is a site whose servers have health checks.
func checkedSite(name string, first, endpoints int) string {
	var addresses []string
	for i := first; i < first+endpoints; i++ {
		addresses = append(addresses, fmt.Sprintf("127.1.%d.%d", i/250, i%250+1))
	}
	return strings.Replace(site(name, name+".test", "9", addresses...), "namespace: evil}\nspec:\n  ing", "namespace: evil, annotations: {haproxy.org/check: \"true\"}}\nspec:\n  ing", 1)
}

// TestChecksWithinOpenFiles: HAProxy starts and reloads where tenants ask for more health checks
// than it can open files for, and those that it has room for are done.
func TestChecksWithinOpenFiles(t *testing.T) {
	const files = 700
	if os.Getenv("HAPTIC_FEW_FILES") == "" {
		t.Parallel()
		needHAProxy(t)
		again := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" -test.v -test.run '^TestChecksWithinOpenFiles$'`, files), os.Args[0])
		again.Env = append(os.Environ(), "HAPTIC_FEW_FILES=1")
		out, err := again.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestChecksWithinOpenFiles")
		return
	}
	d := startDemo(t, "-allow-endpoint", "127.1.0.0/16")
	d.edit("few.yaml", func(string) string { return checkedSite("few", 0, files/10) })
	d.edit("many.yaml", func(string) string { return checkedSite("many", 250, 300) })
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), "Service evil/many") && strings.Contains(d.stderr.String(), "more than 70 servers with health checks, its share of the 70 of all namespaces (checks-of-all): the 300 servers of port 80 are used without checks")
	})
	require.NotRegexp(t, `Service evil/few.*without checks`, d.stderr.String())
	d.until(func() bool { return strings.Contains(d.plans(), "+ backend evil_many_80") })
	d.edit("passed.yaml", func(string) string {
		return strings.NewReplacer("ANNOTATION", "haproxy.org", "VALUE", "true", "HOST", "passed.test", "name: secure", "name: few").Replace(passed)
	})
	d.until(func() bool { return strings.Contains(d.plans(), "+ frontend tls") })
	d.until(func() bool { return d.answers("shop.demo.test", "/cart") == "127.0.0.13:18080" })
	require.NotContains(t, d.stderr.String(), "level=ERROR")
	d.stop()
	d.start("-allow-endpoint", "127.1.0.0/16")
	d.until(func() bool { return d.answers("shop.demo.test", "/cart") == "127.0.0.13:18080" })
}
