package haproxycfg

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	parser "github.com/haproxytech/client-native/v6/config-parser"
	"github.com/haproxytech/client-native/v6/config-parser/options"
)

// parserMu guards every use of client-native's config parser. That parser keeps the name of
// the last defaults section in a package variable.
var parserMu sync.Mutex

// Refusal says that the Dataplane API would silently change the meaning of a text. The API
// sends every text that it stores through its config parser.
type Refusal struct {
	Line int    // counted from 1
	Text string // the line, without surrounding space
	Why  string
}

// Error returns line, text and reason.
func (r *Refusal) Error() string {
	return fmt.Sprintf("line %d: %s: %s", r.Line, r.Text, r.Why)
}

// Normalise returns the text as the Dataplane API stores it: sections ordered by kind and
// name, directives in the order of the parser, unnamed defaults named, proxies with an
// explicit "from". It returns a [*Refusal] if that would lose or change something.
//
// The result has none of the lines that the API adds.
func Normalise(text string) (string, error) {
	before := directives(text)
	if err := checkText(text, before); err != nil {
		return "", err
	}
	out, err := RoundTrip(text)
	if errors.Is(err, errPanic) {
		return "", panics(text)
	}
	if err != nil {
		return "", err
	}
	after := directives(out)
	if err := checkLost(before, after); err != nil {
		return "", err
	}
	if err := checkOrder(before, after); err != nil {
		return "", err
	}
	return out, nil
}

// RoundTrip is [Normalise] without any refusal: it returns what the Dataplane API would
// store, even if parts get lost.
func RoundTrip(text string) (out string, err error) {
	parserMu.Lock()
	defer parserMu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			out, err = "", fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	p, err := parser.New(options.String(text))
	if err != nil {
		return "", fmt.Errorf("config parser: %w", err)
	}
	return p.String(), nil
}

// errPanic says that the parser panics. It does so on some lines that are too short, here and
// in the API as well.
var errPanic = errors.New("the config parser panics")

// panics finds the line on which the parser panics. It is the last line of the shortest
// beginning of the text with a panic.
func panics(text string) error {
	lines := slices.Collect(strings.Lines(text))
	n := sort.Search(len(lines), func(n int) bool {
		_, err := RoundTrip(strings.Join(lines[:n], ""))
		return errors.Is(err, errPanic)
	})
	return refusal(n, lines[n-1], "the Dataplane API cannot read this line: something is missing")
}

func refusal(line int, text, why string, args ...any) error {
	text = strings.TrimSpace(text)
	if len(text) > maxShown {
		text = text[:maxShown] + " ..."
	}
	return &Refusal{Line: line, Text: text, Why: fmt.Sprintf(why, args...)}
}

// maxShown bounds how many bytes of a line a [Refusal] shows.
const maxShown = 120

// maxParserLine is the length from which on a line makes the parser silently ignore the rest
// of the file.
const maxParserLine = 64 << 10

// maxUnnamed bounds the defaults sections without a name. For each, the parser tries all
// numbers for a name, while all other instances wait.
const maxUnnamed = 1000

// foreignHeaders start a section for HAProxy, but not for the parser, which folds their lines
// into the section before. True says that the word is a header only at the start of a line,
// because it is also a directive.
var foreignHeaders = map[string]bool{"namespace_list": false, "healthcheck": true}

// conditionals are the directives of section 2.4 of the configuration manual, "Conditional
// blocks". The parser keeps them and drops the lines that they enclose.
var conditionals = map[string]bool{
	".if": true, ".elif": true, ".else": true, ".endif": true,
	".notice": true, ".warning": true, ".diag": true, ".alert": true,
}

// builtinACL matches the built-in ACLs of HAProxy (configuration manual, section 7.4).
var builtinACL = regexp.MustCompile(`^(TRUE|FALSE|LOCALHOST|RDP_COOKIE|REQ_CONTENT|WAIT_END|HTTP(_.*)?|METH_.*)$`)

// lasting matches the settings of a global section that apply to the whole process. Other
// settings, such as log targets and folders, apply only to the lines below.
var lasting = regexp.MustCompile(`^(max\w+|spread-checks|max-spread-checks|hard-stop-after|ulimit-n|fd-hard-limit|daemon|pidfile|chroot|` +
	`user|group|uid|gid|stats|node|description|quiet|zero-warning|server-state-\w+)$`)

// directive is a line that is not a comment.
type directive struct {
	line    int
	section string // "backend shop", or only the kind if there may be several
	kind    string
	header  bool
	words   []string
	raw     string
}

func (d *directive) refuse(why string, args ...any) error {
	return refusal(d.line, d.raw, why, args...)
}

func (d *directive) has(a, b string) bool {
	return slices.Contains(d.words, a) && slices.Contains(d.words, b)
}

// directives cuts a text into directives as the parser does.
func directives(text string) []directive {
	list := make([]directive, 0, strings.Count(text, "\n"))
	var d directive
	unnamed := 0
	for d.raw = range strings.Lines(text) {
		d.line++
		d.words = strings.Fields(d.raw)
		if len(d.words) == 0 || d.words[0][0] == '#' {
			continue
		}
		d.header = isSection(d.words[0])
		if d.header {
			d.kind = d.words[0]
			d.section = cmp.Or(sectionKey(d.raw), d.kind)
			if d.kind == "defaults" && len(d.words) == 1 {
				unnamed++
				d.section = "defaults unnamed_defaults_" + strconv.Itoa(unnamed)
			}
		}
		list = append(list, d)
	}
	return list
}

// sectionKey returns the key of a section, from its header, for the search for duplicates. It
// returns "" for sections that may repeat.
func sectionKey(raw string) string {
	words, _ := Fields(raw)
	switch {
	case len(words) == 1 && words[0] == "crt-store":
		return words[0] // the unnamed one
	case len(words) < 2 || words[0] == "global" || words[0] == "traces" || words[1] == "from":
		return ""
	}
	return words[0] + " " + words[1]
}

// checkText refuses the first line that the parser of the Dataplane API would silently
// change.
func checkText(text string, list []directive) error {
	line := 0
	for raw := range strings.Lines(text) {
		line++
		switch {
		case len(raw) >= maxParserLine:
			return refusal(line, raw, "the Dataplane API drops everything from a line of %d bytes on", len(raw))
		case !utf8.ValidString(raw):
			return refusal(line, raw, "the Dataplane API replaces what is not UTF-8")
		}
	}
	seen := map[string]int{}
	server, variable, rule, unnamed := 0, 0, 0, 0
	for i := range list {
		d := &list[i]
		word := d.words[0]
		onlyAtStart, foreign := foreignHeaders[word]
		if variable == 0 && Expands(d.raw) {
			variable = d.line
		}
		switch {
		case conditionals[word]:
			return d.refuse("the Dataplane API loses what conditional blocks hold")
		case foreign && (!onlyAtStart || !isBlank(d.raw[0])):
			return d.refuse("the Dataplane API does not know this section and folds it into the one before")
		case d.header && d.kind == "defaults" && len(d.words) == 1 && unnamed == maxUnnamed:
			return d.refuse("more than %d defaults sections have no name: name them", maxUnnamed)
		case d.header:
			server, rule = 0, 0
			if d.kind == "defaults" && len(d.words) == 1 {
				unnamed++
			}
			if err := checkPlace(d, seen); err != nil {
				return err
			}
		case word == "acl":
			if rule != 0 && len(d.words) > 1 && builtinACL.MatchString(d.words[1]) {
				return d.refuse("the Dataplane API moves this ACL above lines that mean the built-in one of that name")
			}
			continue
		case word == "http-check" && (d.has("uri", "uri-lf") || d.has("body", "body-lf")):
			return d.refuse("the Dataplane API changes the order of arguments that replace each other")
		case word == "user" && len(d.words) > 4 && d.words[2] == "groups":
			return d.refuse("the Dataplane API loses a password that stands behind the groups")
		case word == "server" || word == "server-template":
			server = cmp.Or(server, d.line)
		case word == "default-server" && server != 0:
			return d.refuse("the Dataplane API moves a default-server above the servers, the first is in line %d", server)
		case d.kind == "global" && seen["any"] != 0 && !lasting.MatchString(word):
			return d.refuse(movedUp)
		case d.kind == "global" && strings.HasSuffix(word, "setenv") && variable != 0 && variable < d.line: // the suffix matches unsetenv, too
			return d.refuse("the Dataplane API moves this line to the top, above a use of a variable in line %d", variable)
		}
		if !d.header {
			rule = d.line
		}
	}
	return nil
}

const movedUp = "the Dataplane API moves this line to the top, above sections that would then follow it: put it there"

// checkPlace refuses sections that the API would move away from the sections that they apply
// to. It keeps in seen the lines of sections, by their names and by what they are.
func checkPlace(d *directive, seen map[string]int) error {
	key := sectionKey(d.raw)
	switch {
	case d.kind == "defaults" && seen["without defaults"] != 0:
		return d.refuse("the Dataplane API moves this section above the one in line %d, which has no defaults yet", seen["without defaults"])
	case d.kind == "crt-store" && seen["proxy"] != 0:
		return d.refuse(movedUp)
	case seen[key] != 0:
		return d.refuse("the Dataplane API keeps only the last of two sections of one name, the first is in line %d", seen[key])
	}
	if key != "" {
		seen[key] = d.line
	}
	switch {
	case d.kind == "defaults":
		seen["defaults"] = d.line
	case sectionKinds[d.kind].proxy:
		seen["proxy"] = d.line
		if seen["defaults"] == 0 && seen["without defaults"] == 0 && !slices.Contains(d.words, "from") {
			seen["without defaults"] = d.line
		}
	}
	if d.kind != "global" && d.kind != "crt-store" {
		seen["any"] = d.line
	}
	return nil
}

// checkLost finds directives that are missing in their section afterwards. One of several
// equal ones may go, because HAProxy also takes the last.
func checkLost(before, after []directive) error {
	key := func(d directive) string {
		if d.kind == "defaults" {
			return "defaults\x00" + d.words[0] // unnamed defaults sections get a name
		}
		return d.section + "\x00" + d.words[0]
	}
	kept, seen := map[string]int{}, map[string]int{}
	for _, d := range after {
		kept[key(d)]++
	}
	for _, d := range before {
		k := key(d)
		seen[k]++
		switch {
		case d.header:
		case kept[k] == 0:
			return d.refuse("the Dataplane API loses this line")
		case d.kind == "global" && seen[k] > kept[k]:
			return d.refuse("the Dataplane API keeps the last of several such lines in a global section, and HAProxy takes the first")
		}
	}
	return nil
}
