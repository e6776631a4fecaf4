package change

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVersionsPage: docs/versions.md has the versions that the table knows, from the
// oldest on, and those of the table in docs/process.md.
func TestVersionsPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/versions.md")
	require.NoError(t, err)
	column := func(title string) (versions []Version) {
		_, rows, ok := strings.Cut(string(page), "| "+title+" | How it is tested |\n|---|---|\n")
		require.True(t, ok, title)
		for _, m := range regexp.MustCompile(`(?m)\A(?:^\| [^\n]*\n)+`).FindAllString(rows, 1) {
			for _, v := range regexp.MustCompile(`(?m)^\| ([0-9.]+) \|`).FindAllStringSubmatch(m, -1) {
				versions = append(versions, ParseVersion(v[1]))
			}
		}
		return versions
	}
	haproxy, api := column("HAProxy"), column("Dataplane API")
	require.Equal(t, HAProxy26, haproxy[0], "the oldest")
	require.Contains(t, string(page), "2.6 | all tests, in each run; the oldest")
	require.Equal(t, []Version{API30, API32, API34}, api)
	require.Equal(t, APINewest, api[len(api)-1])
	newest := HAProxy26
	for _, row := range Table() {
		for _, v := range []Version{row.Since, row.SinceAPI} {
			if v.Compare(newest) > 0 {
				newest = v
			}
		}
	}
	require.Equal(t, newest, haproxy[len(haproxy)-1], "the newest that a row needs")

	process, err := os.ReadFile("../../../docs/process.md")
	require.NoError(t, err)
	head := "| Without a reload, by the sockets |"
	for _, v := range haproxy {
		head += " " + v.String() + " |"
	}
	require.Contains(t, string(process), head)
}
