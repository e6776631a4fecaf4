package place

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeywords has all that HAProxy knows in the tables: the one that is installed, and
// the versions in testdata. A line that keywords.txt alone has, and an argument with
// the letter w in samples.txt, is strict deliberately. What is new is printed.
func TestKeywords(t *testing.T) {
	lists := map[string]map[string][]string{}
	files, err := filepath.Glob("testdata/haproxy-*.txt")
	require.NoError(t, err, "no lists in testdata")
	require.NotEmpty(t, files, "no lists in testdata")
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		list := map[string][]string{}
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); words[0] != "#" {
				list[words[0]] = append(list[words[0]], words[1:]...)
			}
		}
		lists[file] = list
	}
	if haproxy, err := exec.LookPath("haproxy"); err == nil {
		text, _ := exec.Command(haproxy, "-dKall", "-q", "-c", "-f", os.DevNull).Output() // fails, since nothing is configured
		require.NotEmpty(t, text, haproxy)
		lists[haproxy] = keywordsOf(string(text))
	} else if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	known := map[string]func(word string) bool{
		"line": isKeyword,
		"bind": func(word string) bool { return directives["bind"].options[word] != nil },
		"server": func(word string) bool {
			return directives["server"].names[word] || directives["server"].names[word+"("]
		},
		"crt-list":  func(word string) bool { return directives["bind"].options[word] != nil },
		"option":    func(word string) bool { return directives["option"].options[word] != nil },
		"converter": func(word string) bool { return converters[word] },
		"fetch":     func(word string) bool { return samples.of(word) != "" },
		"rule": func(word string) bool {
			begin, ok := strings.CutSuffix(word, "*")
			return slices.ContainsFunc(slices.Collect(maps.Keys(directives["http-request"].options)), func(option string) bool {
				return option == word || ok && strings.HasPrefix(option, begin)
			})
		},
	}
	for from, list := range lists {
		if len(list["line"]) < 50 || len(list["server"]) < 50 || len(list["converter"]) < 50 || len(list["fetch"]) < 50 || len(list["rule"]) < 50 {
			t.Errorf("%s: few keywords: the list is read wrongly", from)
		}
		for class, words := range list {
			for _, word := range words {
				require.True(t, known[class](word), "%s knows the %s %q, which is new: the tables need a row, or a word in keywords.txt or samples.txt where the strictest rule is right", from, class, word)
			}
		}
	}
}

// keywordsOf reads what haproxy -dKall prints.
func keywordsOf(text string) map[string][]string {
	list := map[string][]string{}
	add := func(class, word string) {
		if !slices.Contains(list[class], word) {
			list[class] = append(list[class], word)
		}
	}
	rules := []string{"tcp-request", "tcp-response", "http-request", "http-response", "http-after-response", "quic-initial"}
	sample := regexp.MustCompile(`^(?:\[[ Y.]*\])?\s*([^(: ]+)(\(.*\))?:`)
	part, section := "", ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case strings.HasPrefix(line, "# List of registered "):
			part, section = words[4], ""
		case words[0] == "#":
		case part == "sample":
			if m := sample.FindStringSubmatch(line); m != nil {
				if strings.Contains(m[2], "string") || strings.Contains(m[2], "regex") {
					add("fetch", m[1])
				}
				if line[0] != '[' {
					add("converter", m[1])
				}
			}
		case part != "configuration":
		case line[0] != '\t':
			section = words[0]
		case section == "crt-list":
			add("crt-list", words[0])
		case words[0] == "bind":
			word := words[2]
			if word == "ssl" && len(words) > 3 {
				word = words[3]
			}
			add("bind", word)
		case words[0] == "server":
			add("server", words[3])
		case words[0] == "option":
			add("option", words[1])
		case slices.Contains(rules, words[0]) && len(words) > 1:
			add("rule", words[len(words)-1])
		default:
			add("line", words[0])
		}
	}
	return list
}
