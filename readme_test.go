package haptic

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// surroundings are what the snippets of the README take for granted, by the
// package that each is about.
var surroundings = map[string]string{
	"dataplane":  `ctx context.Context, current *dataplane.Config, text string, hosts []byte, user, password string, pods []*dataplane.Client`,
	"k8swatch":   `ctx context.Context, changed func(context.Context, k8swatch.Changes) error`,
	"templating": `ctx context.Context, ingresses []*networkingv1.Ingress`,
	"validate":   `ctx context.Context, local *dataplane.Local, desired *dataplane.Config`,
	"eventbus":   `ctx context.Context, result *dataplane.Result`,
	"render":     `engine *templating.Engine, local *dataplane.Local, ingresses []*networkingv1.Ingress`,
	"reconcile":  `ctx context.Context, renderer reconcile.Renderer, validator reconcile.Validator, local *dataplane.Local, bus *eventbus.Bus`,
	"observe":    `ctx context.Context, bus *eventbus.Bus, loop *reconcile.Loop, folder *k8swatch.Folder`,
	"settings":   `ctx context.Context, bus *eventbus.Bus, folder *k8swatch.Folder, local *dataplane.Local, validator reconcile.Validator`,
}

const snippetImports = `
import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/reconcile/settings"
	"github.com/hapticsdk/haptic/templating"
	"github.com/hapticsdk/haptic/validate"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)
`

// TestReadmeCompiles builds the snippets of the README: whoever copies one gets
// at most told that a variable is not used.
func TestReadmeCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	snippet := regexp.MustCompile("(?s)\\*\\*([a-z8]+)\\*\\*[^\n]*:[^\n]*\n\n```go\n(.*?)```")
	var program strings.Builder
	program.WriteString("package snippets\n" + snippetImports)
	found := snippet.FindAllStringSubmatch(string(readme), -1)
	for _, m := range found {
		with, ok := surroundings[m[1]]
		require.True(t, ok, "a snippet of package %s", m[1])
		fmt.Fprintf(&program, "func of_%s(%s) {\n%s}\n", m[1], with, m[2])
	}
	require.Len(t, found, len(surroundings))

	dir := t.TempDir()
	source, overlay := filepath.Join(dir, "snippets.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(source, []byte(program.String()), 0o600))
	root, err := os.Getwd()
	require.NoError(t, err)
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "snippets", "snippets.go"): source}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))

	out, _ := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "./snippets").CombinedOutput()
	var wrong []string
	for line := range strings.Lines(string(out)) {
		switch line = strings.TrimSpace(line); {
		case line == "", strings.HasPrefix(line, "#"), strings.HasSuffix(line, "and not used"), strings.Contains(line, "declared and not used: "), strings.Contains(line, "imported and not used"):
		default:
			wrong = append(wrong, line)
		}
	}
	require.Empty(t, wrong)
	require.Contains(t, string(out), "declared and not used: plan", "nothing was compiled")
}
