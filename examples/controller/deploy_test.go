package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/hapticsdk/haptic/reconcile/kit"
)

// readDeployment reads the first Deployment of a manifest, and one of its containers.
func readDeployment(t *testing.T, file, container string) (*corev1.PodSpec, *corev1.Container) {
	f, err := os.Open(filepath.Join("deploy", file))
	require.NoError(t, err)
	defer f.Close()
	var d appsv1.Deployment
	require.NoError(t, yaml.NewYAMLOrJSONDecoder(bufio.NewReader(f), 4096).Decode(&d))
	spec := &d.Spec.Template.Spec
	for i := range spec.Containers {
		if c := &spec.Containers[i]; c.Name == container {
			return spec, c
		}
	}
	t.Fatalf("%s has no container %s", file, container)
	return nil, nil
}

// TestDeployArguments: the controller takes the arguments of the manifests as they are.
// What follows SIGTERM fits into the time that a pod has, and a pod that drains is not
// taken for one that is broken.
func TestDeployArguments(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "haptic")
	for _, file := range []string{"local/deployment.yaml", "fleet/controller.yaml"} {
		spec, c := readDeployment(t, file, "controller")
		args := slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return strings.HasPrefix(arg, "-endpoint-ca=") }) // a file of the pod
		cfg, err := parseFlags(args, kit.NewLog(io.Discard))
		require.NoError(t, err, file)
		require.Empty(t, cfg.Args(), file)
		if file == "fleet/controller.yaml" {
			require.Positive(t, cfg.maxConn, "a container may have no limit of open files")
			continue
		}
		grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
		require.Less(t, cfg.targets.Drain+cfg.targets.StopTimeout+3*time.Second, grace, "SIGKILL comes later")
		require.GreaterOrEqual(t, cfg.targets.StopTimeout, 30*time.Second, "long requests end by themselves")
		p := c.ReadinessProbe
		require.Greater(t, time.Duration(p.PeriodSeconds*(p.FailureThreshold-1))*time.Second, cfg.targets.Drain-time.Second, "endpoints that end serve as long as they are ready")
	}
	var delays []string
	for _, container := range []string{"haproxy", "dataplane"} {
		spec, c := readDeployment(t, "fleet/haproxy.yaml", container)
		delay := regexp.MustCompile(`\b\d+\b`).FindString(strings.Join(c.Lifecycle.PreStop.Exec.Command[1:], " "))
		delays = append(delays, delay)
		seconds, err := time.ParseDuration(delay + "s")
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Duration(*spec.TerminationGracePeriodSeconds)*time.Second, seconds+30*time.Second, "long requests end by themselves")
	}
	require.Equal(t, delays[0], delays[1], "a pod is ready while all its containers are")
}

// TestDeployMemory: Go leaves to HAProxy what it needs with 10,000 Ingresses: each
// configuration that is checked, and two workers at a reload.
func TestDeployMemory(t *testing.T) {
	const mb, local, fleet = 1_000_000, 189, 282 // HAProxy's: docs/operations.md
	for _, c := range []struct {
		file, container string
		haproxy         int64
	}{{"local/deployment.yaml", "controller", 3 * local}, {"fleet/controller.yaml", "controller", fleet}, {"fleet/haproxy.yaml", "dataplane", fleet}} {
		_, container := readDeployment(t, c.file, c.container)
		i := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		require.GreaterOrEqual(t, i, 0, c.file)
		bound, err := resource.ParseQuantity(strings.TrimSuffix(container.Env[i].Value, "B"))
		require.NoError(t, err)
		rest := container.Resources.Limits.Memory().Value() - bound.Value()
		require.Greater(t, rest, c.haproxy*mb, "%s: %s", c.file, c.container)
		require.Greater(t, bound.Value(), int64(2*173*mb), "%s: a limit near what is in use costs all processors", c.file)
	}
}

// TestDockerfile: each source file that the image is built of is in its context, and
// nothing else that matters; each COPY finds what it copies, and what starts is what was built.
func TestDockerfile(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile("deploy/Dockerfile")
	require.NoError(t, err)
	ignored := readIgnored(t, "deploy/Dockerfile.dockerignore")
	var built, copied, entry, base []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "FROM":
			base = append(base, words[1])
		case "RUN":
			if i := slices.Index(words, "-o"); i > 0 {
				built = append(built, words[i+1])
				require.Equal(t, "./examples/controller", words[len(words)-1])
			}
		case "COPY":
			if from, ok := strings.CutPrefix(words[1], "--from=build"); ok {
				require.Empty(t, from)
				require.Contains(t, built, words[2])
				copied = append(copied, words[3])
				continue
			}
			for _, source := range words[1 : len(words)-1] {
				require.True(t, source == "." || !ignored(source), source)
				_, err := os.Stat(filepath.Join(root, source))
				require.NoError(t, err)
			}
		case "ENTRYPOINT":
			require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "ENTRYPOINT")), &entry))
		}
	}
	require.Len(t, built, 1)
	require.Equal(t, copied, entry)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(mod), "\ngo "+regexp.MustCompile(`\d+\.\d+`).FindString(base[0])+".", "the Go of %s builds this module", base[0])

	_, haproxy := readDeployment(t, "fleet/haproxy.yaml", "haproxy")
	branch := regexp.MustCompile(`:\d+\.\d+`)
	require.Equal(t, branch.FindString(base[1]), branch.FindString(haproxy.Image), "one HAProxy checks what the other gets")

	list := exec.Command("go", "list", "-deps", "-json=Dir,Module,GoFiles,EmbedFiles", "./examples/controller")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	files := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var pkg struct {
			Dir                 string
			Module              *struct{ Main bool }
			GoFiles, EmbedFiles []string
		}
		require.NoError(t, d.Decode(&pkg))
		if pkg.Module == nil || !pkg.Module.Main {
			continue
		}
		for _, name := range slices.Concat(pkg.GoFiles, pkg.EmbedFiles) {
			file, err := filepath.Rel(top, filepath.Join(pkg.Dir, name))
			require.NoError(t, err)
			require.False(t, ignored(filepath.ToSlash(file)), "%s is not in the context of the image", file)
			files++
		}
	}
	require.Greater(t, files, 100)
	for _, file := range []string{".git/config", "bin/controller", "internal/e2e/go.mod", "examples/controller/deploy/fleet/role.yaml", "docs/operations.md"} {
		require.True(t, ignored(file), file)
	}
}

// readIgnored reads a .dockerignore: the last line that fits a file, or a folder of it, counts.
func readIgnored(t *testing.T, file string) func(file string) bool {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return func(file string) (ignored bool) {
		for line := range strings.Lines(string(text)) {
			pattern := strings.TrimSpace(line)
			if pattern == "" || pattern[0] == '#' {
				continue
			}
			pattern, not := strings.CutPrefix(pattern, "!")
			for part := file; part != "."; part = path.Dir(part) {
				fits, err := path.Match(pattern, part)
				if base, ok := strings.CutPrefix(pattern, "**/"); ok {
					fits, err = path.Match(base, path.Base(part))
				}
				require.NoError(t, err, fmt.Sprint(line))
				if fits {
					ignored = !not
				}
			}
		}
		return ignored
	}
}
