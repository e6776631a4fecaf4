package haptic

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/hapticsdk/haptic"

// allowed says what a package may import beyond the standard library, in code
// that is not a test: other packages of this module and, by prefix, of others.
// What stands below a folder follows the rule of the folder.
var allowed = map[string][]string{
	"eventbus":                      {},
	"templating":                    {"templating/internal/place", "templating/internal/funcs", "templating/internal/origin", "templating/internal/rewrite", "github.com/open2b/scriggo"},
	"templating/regex":              {},
	"k8swatch":                      {"k8swatch/derive", "internal/rendering", "internal/filewatch", "internal/jsonpath", "internal/printable", "k8swatch/internal/manifest", "k8swatch/internal/memapi", "k8swatch/internal/store", "k8s.io/", "go.yaml.in/yaml/", "github.com/go-logr/logr", "golang.org/x/sync/"},
	"k8swatch/derive":               {},
	"dataplane":                     {"internal/phrase", "dataplane/internal/api", "dataplane/internal/change", "dataplane/internal/config", "dataplane/internal/diff", "dataplane/internal/host", "internal/dpapi", "internal/haproxycfg", "internal/printable"},
	"validate":                      {"internal/late", "dataplane", "internal/haproxycfg", "internal/haproxyctl", "internal/printable"},
	"reconcile":                     {"internal/panics", "reconcile/internal/quarantine", "internal/phrase", "dataplane", "eventbus", "reconcile/event", "internal/rendering", "internal/printable", "golang.org/x/time/rate", "k8s.io/"},
	"reconcile/event":               {"dataplane"},
	"reconcile/fetch":               {"internal/late", "internal/printable", "eventbus", "reconcile/event", "golang.org/x/sync/"},
	"reconcile/render":              {"k8swatch/derive", "reconcile", "reconcile/fetch", "templating", "dataplane"},
	"reconcile/discover":            {"reconcile", "reconcile/event", "dataplane", "eventbus", "k8swatch", "internal/follow", "k8s.io/"},
	"reconcile/settings":            {"internal/panics", "reconcile", "reconcile/event", "reconcile/cases", "reconcile/render", "reconcile/discover", "reconcile/fetch", "dataplane", "templating", "k8swatch", "eventbus", "internal/follow", "internal/jsonpath", "internal/strictyaml", "k8s.io/", "go.yaml.in/yaml/"},
	"reconcile/cases":               {"internal/panics", "internal/phrase", "reconcile", "reconcile/render", "reconcile/fetch", "dataplane", "k8swatch", "internal/jsonpath", "internal/strictyaml", "golang.org/x/sync/", "k8s.io/", "go.yaml.in/yaml/"},
	"reconcile/internal/quarantine": {"internal/rendering", "k8s.io/apimachinery/pkg/apis/meta/v1"},
	"reconcile/limits":              {"k8swatch/derive", "reconcile", "internal/strictyaml", "k8s.io/"},
	"reconcile/claims":              {"k8swatch/derive", "dataplane", "reconcile/limits", "k8s.io/"},
	"reconcile/endpoints":           {"k8swatch/derive", "reconcile", "reconcile/limits", "dataplane", "k8s.io/"},
	"reconcile/certs":               {"reconcile/limits", "dataplane", "k8s.io/"},
	"reconcile/status":              {"internal/panics", "reconcile", "dataplane", "k8swatch", "k8s.io/"},
	"reconcile/kit":                 {"dataplane", "reconcile", "reconcile/discover", "reconcile/observe", "eventbus", "k8swatch", "github.com/go-logr/logr", "golang.org/x/sync/", "k8s.io/"},
	"reconcile/observe":             {"internal/panics", "internal/phrase", "reconcile", "reconcile/discover", "reconcile/event", "reconcile/settings", "reconcile/fetch", "dataplane", "eventbus", "k8swatch", "github.com/prometheus/client_golang/", "go.opentelemetry.io/otel/", "internal/haproxycfg", "internal/jsonpath", "internal/printable", "k8s.io/apimachinery/pkg/runtime/schema", "k8s.io/apimachinery/pkg/util/duration", "k8s.io/utils/lru"},
	"examples":                      {"dataplane", "k8swatch", "k8swatch/derive", "templating", "validate", "reconcile", "reconcile/settings", "reconcile/cases", "reconcile/kit", "reconcile/observe", "reconcile/render", "reconcile/discover", "reconcile/fetch", "eventbus", "golang.org/x/sync/", "k8s.io/"},
	"examples/controller":           {"templating/regex", "examples/controller/ingress", "examples/controller/annotation", "examples/controller/errorpages", "examples/controller/migrate", "reconcile/claims", "reconcile/endpoints", "reconcile/certs", "reconcile/limits", "reconcile/status", "dataplane", "k8swatch", "k8swatch/derive", "templating", "validate", "reconcile", "reconcile/cases", "reconcile/kit", "reconcile/observe", "reconcile/render", "reconcile/discover", "reconcile/fetch", "eventbus", "github.com/prometheus/client_golang/prometheus", "golang.org/x/sync/", "k8s.io/"},
	"internal/haproxycfg":           {"github.com/haproxytech/client-native/v6/"},
	"internal/dpapi":                {"internal/late", "internal/printable"},
	"internal/haproxyctl":           {"internal/late", "internal/printable", "golang.org/x/sys/unix"},
	"internal/filewatch":            {"github.com/fsnotify/fsnotify"},
	"internal/phrase":               {},
	"internal/panics":               {},
	"internal/viewtest":             {"internal/rendering"},
	"internal/benchtest":            {},
	"internal/follow":               {"internal/filewatch", "k8swatch", "k8s.io/api/core/v1"},
	"internal/printable":            {},
	"internal/rendering":            {},
	"internal/late":                 {},
	"internal/jsonpath":             {"k8s.io/client-go/util/jsonpath", "k8s.io/client-go/third_party/forked/golang/template", "k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/util/json"},
	"internal/strictyaml":           {"go.yaml.in/yaml/", "k8s.io/apimachinery/pkg/apis/meta/v1"},

	// Below dataplane data flows down this list: each knows those above it only.
	"dataplane/internal/config": {"internal/haproxycfg"},
	"dataplane/internal/change": {"dataplane/internal/config", "internal/haproxycfg"},
	"dataplane/internal/diff":   {"dataplane/internal/change", "dataplane/internal/config", "internal/haproxycfg", "internal/haproxyctl"},
	"dataplane/internal/socket": {"internal/late", "internal/printable", "dataplane/internal/change", "dataplane/internal/config", "internal/haproxycfg", "internal/haproxyctl"},
	"dataplane/internal/host":   {"internal/late", "internal/printable", "dataplane/internal/socket", "dataplane/internal/diff", "dataplane/internal/change", "dataplane/internal/config", "internal/haproxyctl", "golang.org/x/sys/unix"},
	"dataplane/internal/api":    {"golang.org/x/sync/", "internal/late", "dataplane/internal/diff", "dataplane/internal/change", "dataplane/internal/config", "internal/dpapi", "internal/haproxycfg"},

	"k8swatch/internal/manifest": {"internal/strictyaml", "k8swatch/internal/memapi", "k8s.io/", "sigs.k8s.io/json", "sigs.k8s.io/yaml", "go.yaml.in/yaml/"},
	"k8swatch/internal/memapi":   {"internal/jsonpath", "k8s.io/"},
	"k8swatch/internal/store":    {"k8s.io/", "github.com/google/btree"},

	// Below templating as well.
	"templating/internal/place":   {"github.com/open2b/scriggo/native"},
	"templating/internal/funcs":   {"templating/internal/place", "templating/regex", "github.com/open2b/scriggo/native", "github.com/open2b/scriggo/builtin", "go.yaml.in/yaml/"},
	"templating/internal/origin":  {"templating/internal/funcs", "templating/internal/place", "github.com/open2b/scriggo/native"},
	"templating/internal/rewrite": {"templating/internal/origin", "templating/internal/place", "github.com/open2b/scriggo"},

	// Test kits may use what tests use.
	"dataplane/dataplanetest": {"dataplane", "dataplane/internal/config", "dataplane/dataplanetest/internal/daemon", "dataplane/dataplanetest/internal/pretender", "internal/dpapi", "internal/haproxycfg", "internal/haproxyctl"},
	"k8swatch/k8swatchtest":   {"k8swatch", "k8swatch/internal/memapi", "k8s.io/"},
	"internal/haproxytest":    {"go.uber.org/goleak"},
	"internal/watchtest":      {"k8swatch", "k8s.io/", "github.com/google/go-cmp/"},
	"reconcile/reconciletest": {"internal/viewtest", "reconcile", "reconcile/cases", "dataplane"},
}

// TestImports keeps the direction of imports: only what the list above says.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isModule(name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		rule, ok := ruleFor(dir)
		if !ok {
			if dir != "." {
				t.Errorf("%s: no rule says what package %s may import", name, dir)
			}
			return nil
		}
		seen[rule] = true
		checkImports(t, name, dir, allowed[rule])
		return nil
	})
	require.NoError(t, err)
	for rule := range allowed {
		if !seen[rule] {
			t.Errorf("the rule for %s applies to no package", rule)
		}
	}
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func ruleFor(dir string) (string, bool) {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := allowed[d]; ok {
			return d, true
		}
	}
	return "", false
}

func checkImports(t *testing.T, name, dir string, allow []string) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
			continue // standard library
		}
		local := strings.TrimPrefix(imported, module+"/")
		ok := local == dir
		for _, a := range allow {
			ok = ok || local == a || imported == a || strings.Contains(a, ".") && strings.HasPrefix(imported, a)
		}
		if !ok {
			t.Errorf("%s imports %s, which package %s may not", name, imported, dir)
		}
	}
}
