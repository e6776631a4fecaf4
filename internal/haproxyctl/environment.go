package haproxyctl

import (
	"os"
	"slices"
	"strings"
)

// passed lists the variables that each haproxy gets. Other variables of the controller may be
// credentials, and HAProxy shows its environment to every process that can use its socket.
var passed = []string{
	"PATH", "HOME", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH",
	"OPENSSL_CONF", "OPENSSL_MODULES", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// Environment returns the environment for a haproxy: the variables of this process that every
// program needs, and those in names.
func Environment(names []string) []string {
	env := []string{}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") || slices.Contains(names, name) {
			env = append(env, variable)
		}
	}
	return env
}
