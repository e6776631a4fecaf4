package haptic

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pages are the Markdown files of this repository.
func pages(t *testing.T) map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		all[filepath.ToSlash(name)] = string(text)
		return err
	})
	require.NoError(t, err)
	if len(all) < 20 {
		t.Fatalf("found only %d pages", len(all))
	}
	return all
}

// prose is a page without its code: blocks between fences, indented blocks and spans.
func prose(text string) string {
	text = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllStringFunc(text, func(block string) string {
		return strings.Repeat("\n", strings.Count(block, "\n")) // the others keep their lines
	})
	text = regexp.MustCompile(`(?m)^ {4,}[^-* ].*$`).ReplaceAllString(text, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "``")
}

var (
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestLinks: what a page links to is there, with its heading.
func TestLinks(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, m := range pageLink.FindAllStringSubmatch(prose(text), -1) {
			file, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			to := name
			if file != "" {
				to = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
				continue
			}
			if heading != "" && !hasHeading(all[filepath.ToSlash(to)], heading) {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
		}
	}
}

// hasHeading looks for an anchor as GitHub makes them.
func hasHeading(text, anchor string) bool {
	for _, m := range pageHeading.FindAllStringSubmatch(text, -1) {
		is := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(is, " ", "-") == anchor {
			return true
		}
	}
	return false
}
