package e2e

import (
	"html"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// view is what the controller says of itself at one time.
type view struct {
	ready  bool
	title  string
	rows   []string // of the page, without events and plans
	failed float64  // what the metrics count of components and resources
}

func (s *stage) look() view {
	v, err := s.c.view()
	if err != nil {
		s.t.Log(err)
	}
	return v
}

// problemGauges are those that say that something is wrong, and healthy is the one
// that says the contrary.
var problemGauges = []string{"haptic_quarantined_resources", "haptic_refused_resources", "haptic_warned_resources"}

func (c *controller) view() (view, error) {
	page, err := c.page("/?reload=0")
	if err != nil {
		return view{}, err
	}
	families, err := c.metrics()
	if err != nil {
		return view{}, err
	}
	v := readPage(page)
	for _, name := range problemGauges {
		v.failed += sum(families[name])
	}
	if valid, known := families["haptic_settings_valid"]; known {
		v.failed += 1 - sum(valid)
	}
	healthy := families["haptic_component_healthy"]
	v.failed += float64(len(healthy.GetMetric())) - sum(healthy)
	_, err = c.page("/readyz")
	v.ready = err == nil
	return v, nil
}

var (
	pageTitle = regexp.MustCompile(`(?s)<h1>(.*?)</h1>`)
	pageRows  = regexp.MustCompile(`(?s)<(?:li|tr)[ >].*?</(?:li|tr)>`)
	pageNews  = regexp.MustCompile(`(?s)<section id="(?:plans|events)".*?</section>`)
	anyTag    = regexp.MustCompile(`<[^>]*>`)
)

// readPage reads what the page says now; its events and last changes are the past.
func readPage(page string) (v view) {
	page = pageNews.ReplaceAllString(page, "")
	plain := func(text string) string {
		return strings.Join(strings.Fields(html.UnescapeString(anyTag.ReplaceAllString(text, " "))), " ")
	}
	if title := pageTitle.FindStringSubmatch(page); title != nil {
		v.title = plain(title[1])
	}
	for _, row := range pageRows.FindAllString(page, -1) {
		v.rows = append(v.rows, plain(row))
	}
	return v
}

// allWell is the title of a page with nothing to look at.
const allWell = "All is well"

// words puts the site, the folder of manifests and so on into texts.
func (sc *scene) words(texts []string) (all []string) {
	pairs := []string{"SITE", sc.site, "DIR", sc.manifest.dir, "LINE", strconv.Itoa(sc.line)}
	if sc.api != nil {
		pairs = append(pairs, "INSTANCE", strings.TrimPrefix(sc.api.URL, "http://"))
	}
	known := strings.NewReplacer(pairs...)
	for _, text := range texts {
		all = append(all, known.Replace(text))
	}
	return all
}

// find returns the first text that has all words, in upper or lower case.
func find(texts []string, words []string) string {
next:
	for _, text := range texts {
		text := unquote.Replace(text)
		for _, word := range words {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
				continue next
			}
		}
		return text
	}
	return ""
}

// unquote takes back what the log does to texts.
var unquote = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, " ")

// message is what a line of the log says.
func message(line string) string {
	_, text, found := strings.Cut(line, " msg=")
	if !found {
		return line
	}
	return strings.Trim(text, `"`)
}

// warned are the lines of the log that are warnings or errors.
func warned(text string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

func warnings(text string) int { return strings.Count(warned(text), "\n") }

// address is one of HAProxy that no Ingress asks for.
func (c *controller) address(port int) string {
	host, _, _ := net.SplitHostPort(c.http)
	return net.JoinHostPort(host, strconv.Itoa(port))
}
