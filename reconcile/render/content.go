package render

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

// newFile makes a file from the content that a template gave to [FileRegistry.Register].
func newFile(kind, name string, content any) (dataplane.File, error) {
	f := dataplane.File{Name: name}
	var err error
	if f.Kind, err = fileKind(kind); err != nil {
		return f, err
	}
	if err := dataplane.CheckFileName(f.Kind, name); err != nil {
		return f, err
	}
	if _, raw := content.(templating.Raw); !raw {
		if err := fitsValues(templating.KindOf(name), content); err != nil {
			return f, fmt.Errorf("%s %q: %w", f.Kind, name, err)
		}
	}
	text, err := contentOf(f.Kind, content)
	if err == nil {
		err = checkContent(f.Kind, text)
	}
	if err != nil {
		return f, fmt.Errorf("%s %q: %w", f.Kind, name, err)
	}
	f.Content = []byte(text)
	return f, nil
}

// fitsValues refuses a text whose values are not, or may not be, escaped for its kind of
// file.
func fitsValues(kind templating.Kind, content any) error {
	switch kind {
	case templating.RegMap, templating.RegList, templating.Format, templating.Unknown:
		return fmt.Errorf("values in it are not escaped for %s: make it by a template of its own, or give raw(...)", kind)
	}
	v := reflect.ValueOf(content)
	special := "\\"
	switch lines, _ := content.([]string); {
	case kind == templating.CRTList:
		if text, ok := content.(string); ok {
			lines = append(lines, text)
		} else if b, ok := content.([]byte); ok {
			lines = append(lines, string(b))
		}
		for i, line := range lines {
			if strings.ContainsAny(line, "[]!") || strings.Contains(line, "..") {
				return fmt.Errorf(
					"line %d, %q, has brackets, an exclamation mark or two dots, which a value may have brought: make it by a template of its own, or give raw(...)",
					i+1,
					line,
				)
			}
		}
		special += "\"'[]"
	case kind != templating.Plain:
		special += "\"'"
	}
	if _, plain := content.(string); plain || v.Kind() != reflect.String {
		return nil
	}
	if i := strings.IndexAny(v.String(), special); i >= 0 { // the text of a macro
		return fmt.Errorf(
			"the macro's text has %q, and its values are escaped for the template that it is in: make the file by a template of its own, or give raw(...)",
			v.String()[i],
		)
	}
	return nil
}

// contentOf makes a text from the content that a template gave.
func contentOf(kind dataplane.FileKind, content any) (string, error) {
	switch content := content.(type) {
	case []byte:
		return string(content), checkPlain(kind, string(content))
	case string:
		return content, checkPlain(kind, content)
	case []string:
		var b strings.Builder
		for i, line := range content {
			if j := strings.IndexFunc(line, isControl); j >= 0 {
				return "", fmt.Errorf("line %d has the control character %q", i+1, line[j])
			}
			b.WriteString(line + "\n")
		}
		return b.String(), nil
	case map[string]string:
		if kind != dataplane.Map {
			return "", errors.New("keys and values are the content of a map")
		}
		return mapText(content)
	}
	if v := reflect.ValueOf(content); v.Kind() == reflect.String { // also the text of a macro, and raw
		return v.String(), nil
	}
	return "", fmt.Errorf("the content must be a text, a []string of lines or, for a map, a map[string]string, not a %T", content)
}

// byLine reports whether HAProxy reads a kind of file line by line.
func byLine(kind dataplane.FileKind) bool { return kind == dataplane.Map || kind == dataplane.CRTList }

// checkPlain refuses several lines in one string if each line counts: a value may have added
// one.
func checkPlain(kind dataplane.FileKind, text string) error {
	if byLine(kind) && strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		return errors.New(
			"a string or bytes may have one line only, so that no value adds another: give a []string of lines, what a macro wrote, raw(...) or, for a map, a map[string]string",
		)
	}
	return nil
}

func isControl(c rune) bool { return c < 0x20 || c == 0x7f }

// mapText writes the lines of a map in the order of their keys.
func mapText(entries map[string]string) (string, error) {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		v := entries[k]
		switch {
		case k == "" || k[0] == '#':
			return "", fmt.Errorf("a line cannot start with the key %q", k)
		case strings.ContainsFunc(k, isControl) || strings.Contains(k, " "):
			return "", fmt.Errorf("the key %q has white space or a control character", k)
		case strings.ContainsFunc(v, isControl):
			return "", fmt.Errorf("the value of %q has a control character", k)
		}
		b.WriteString(strings.TrimRight(k+" "+v, " ") + "\n")
	}
	return b.String(), nil
}

// maxMapLine is the longest line of a map, in bytes with its line feed. HAProxy reads the
// rest of a longer one as another line (tune.bufsize, 16384, less one).
const maxMapLine = 16383

// checkContent refuses text that HAProxy would read as something else than it looks like. It
// checks the kinds that HAProxy reads line by line.
func checkContent(kind dataplane.FileKind, text string) error {
	if !byLine(kind) {
		return nil
	}
	if !utf8.ValidString(text) {
		return errors.New("the content is not UTF-8")
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if kind == dataplane.Map && len(line) > maxMapLine {
			return fmt.Errorf("line %d has %d bytes: HAProxy reads at most %d as one line, make it shorter", n, len(line), maxMapLine)
		}
		i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(c rune) bool { return isControl(c) && c != '\t' })
		if i >= 0 {
			return fmt.Errorf("line %d has the control character %q", n, line[i])
		}
	}
	return nil
}
