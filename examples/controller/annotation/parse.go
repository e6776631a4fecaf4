package annotation

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The bounds of the value of one annotation, so that no Ingress makes a configuration large.
const (
	MaxCIDRs    = 500                 // of a list of addresses
	MaxHeaders  = 50                  // that are set
	MaxOrigins  = 50                  // of CORS
	MaxText     = 1024                // bytes of a header, a URL, a path or a realm
	MaxDuration = 20 * 24 * time.Hour // HAProxy's own bound is above 24 days
)

// value is the value of an annotation.
type value struct {
	text    string
	haproxy bool // under the prefix haproxy.org
}

// short cuts a user's text to the length that a message can show.
func short(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

func wrong(s, want string) string { return fmt.Sprintf("%q is not %s", short(s), want) }

func toBool(v value) (is bool, problem string) {
	is, err := strconv.ParseBool(v.text)
	if err != nil {
		problem = wrong(v.text, `a boolean: write "true" or "false"`)
	}
	return is, problem
}

func toNumber(s string, least, most int) (n int, problem string) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most || s != strconv.Itoa(n) {
		return 0, wrong(s, fmt.Sprintf("a whole number from %d to %d", least, most))
	}
	return n, ""
}

// units are the units of HAProxy's times.
var units = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// length parses a time that toDuration made.
func length(s string) time.Duration {
	digits := strings.TrimRight(s, "dhms")
	n, _ := strconv.Atoi(digits)
	return time.Duration(n) * units[s[len(digits):]]
}

// toDuration reads a time as the controller of the prefix does. Without a unit it is in
// seconds in ingress-nginx, and in milliseconds in HAProxy.
func toDuration(v value) (text, problem string) {
	digits := strings.TrimRight(v.text, "abcdefghijklmnopqrstuvwxyz")
	unit := v.text[len(digits):]
	if unit == "" {
		unit = "s"
		if v.haproxy {
			unit = "ms"
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	per := units[unit]
	if err != nil || n < 1 || per == 0 || n > int64(MaxDuration/per) || digits != strconv.FormatInt(n, 10) {
		return "", wrong(v.text, fmt.Sprintf(`a time from 1 ms to %d days: write a number and ms, s, m, h or d, as in "60s"`, MaxDuration/(24*time.Hour)))
	}
	return digits + unit, ""
}

// toSize reads a number of bytes with k, m or g behind it; "": no bound.
func toSize(s string) (bytes, problem string) {
	digits, factor := strings.ToLower(s), int64(1)
	if n := len(digits); n > 0 {
		if i := strings.IndexByte("kmg", digits[n-1]); i >= 0 {
			digits, factor = digits[:n-1], 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	switch {
	case err != nil || n < 0 || digits != strconv.FormatInt(n, 10) || n*factor > 1<<40:
		return "", wrong(s, `a size up to 1024g: write a number of bytes, or one with k, m or g, as in "8m"`)
	case n == 0:
		return "", ""
	}
	return strconv.FormatInt(n*factor, 10), ""
}

// words splits a list at commas, white space and line ends.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}

// toCIDRs reads addresses and ranges of addresses.
func toCIDRs(s string) (list List, problem string) {
	all := words(s)
	if len(all) == 0 {
		return "", "it is empty: give addresses or ranges, as in 10.0.0.0/8"
	}
	if len(all) > MaxCIDRs {
		return "", fmt.Sprintf("it has %d addresses, more than the %d that are taken", len(all), MaxCIDRs)
	}
	for i, word := range all {
		p, err := netip.ParsePrefix(word)
		if a, bad := netip.ParseAddr(word); err != nil && bad == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return "", wrong(word, "an address or a range of addresses, as in 10.0.0.0/8")
		}
		if p.Addr().Is4In6() {
			return "", wrong(word, "an address that clients have: write it as one of IPv4")
		}
		all[i] = p.Masked().String()
	}
	slices.Sort(all)
	return listOf(slices.Compact(all)), ""
}

// oneOf checks that s is one of a few words.
func oneOf(s string, known ...string) (problem string) {
	if slices.Contains(known, s) {
		return ""
	}
	for _, k := range known {
		if Near(s, k) {
			return fmt.Sprintf("%q is not known: write %q", short(s), k)
		}
	}
	return fmt.Sprintf("%q is not known: write one of %s", short(s), strings.Join(known, ", "))
}

// isToken reports whether a text is the name of a header, a method or a cookie.
func isToken(s string) bool {
	return s != "" && len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

func toToken(s, what string) (token, problem string) {
	if isToken(s) {
		return s, ""
	}
	return "", wrong(s, "the name of "+what+`: letters, digits, "-" and "_" are allowed, up to 100`)
}

// toTokens reads a list of names, or "*".
func toTokens(s, what string) (list, problem string) {
	all := words(s)
	for _, word := range all {
		if _, problem := toToken(word, what); problem != "" && word != "*" {
			return "", problem
		}
	}
	if len(all) == 0 || len(all) > MaxHeaders {
		return "", fmt.Sprintf("it names %d, from 1 to %d are taken", len(all), MaxHeaders)
	}
	return strings.Join(all, ", "), ""
}

// toText checks that a text is printable.
func toText(s string) (problem string) {
	if len(s) > MaxText {
		return fmt.Sprintf("it has %d bytes, more than the %d that are taken", len(s), MaxText)
	}
	for _, r := range s {
		if r < ' ' || r >= 0x7f {
			return fmt.Sprintf("%q holds %q: printable ASCII is allowed", short(s), r)
		}
	}
	return ""
}

// toPath checks a path without a query.
func toPath(s string) (problem string) {
	switch problem := toText(s); {
	case problem != "":
		return problem
	case !strings.HasPrefix(s, "/"):
		return wrong(s, "a path: write "+strconv.Quote(short("/"+s)))
	case strings.ContainsAny(s, "?# '\"\\"):
		return fmt.Sprintf("%q holds %q, which no path can hold", short(s), s[strings.IndexAny(s, "?# '\"\\")])
	}
	return ""
}

// toURL checks the target of a redirect.
func toURL(s string) (problem string) {
	if problem := toText(s); problem != "" {
		return problem
	}
	u, err := url.Parse(s)
	switch {
	case strings.ContainsAny(s, " '\"\\<>"):
		return fmt.Sprintf("%q holds %q, which no URL can hold", short(s), s[strings.IndexAny(s, " '\"\\<>")])
	case strings.Contains(s, "$"):
		return fmt.Sprintf("%q has a variable of nginx: write the URL in full", short(s))
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || toHost(u.Host) != "" || u.User != nil:
		return wrong(s, "a URL: write one such as https://example.com/new")
	}
	return ""
}

// toHost checks a host, with or without a port.
func toHost(s string) (problem string) {
	name, port, has := strings.Cut(s, ":")
	if _, problem := toNumber(port, 1, 65535); has && problem != "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return wrong(s, "a host such as example.com")
	}
	return ""
}

// toSecret checks the name of a Secret, with or without a namespace before it.
func toSecret(s string) (problem string) {
	namespace, name, has := strings.Cut(s, "/")
	if !has {
		namespace, name = "x", s
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return wrong(s, `the name of a Secret: write "name" or "namespace/name"`)
	}
	return ""
}

// ofProxy are headers that only HAProxy sets. Servers take "_" for "-" in their names.
var ofProxy = func() map[string]string {
	all := map[string]string{}
	for why, names := range map[string]string{
		"it says how the connection is used":    "connection content-length transfer-encoding upgrade http2-settings keep-alive te trailer proxy-connection expect",
		"set-host does":                         "host",
		"it finds requests that go in a circle": "haptic-via",
		"HAProxy says in it where a request comes from, and -trust-proxy whom it believes": "x-forwarded-for x-forwarded-proto x-forwarded-host x-forwarded-port forwarded x-real-ip proxy",
	} {
		for _, name := range strings.Fields(names) {
			all[name] = why
		}
	}
	return all
}()

// toHeaders reads lines with a name and a value.
func toHeaders(s string) (all Headers, problem string) {
	var lines []string
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, text, _ := strings.Cut(line, " ")
		name, text = strings.TrimSuffix(name, ":"), strings.TrimSpace(text)
		if n := len(text); n > 1 && text[0] == '"' && text[n-1] == '"' {
			text = text[1 : n-1]
		}
		if _, problem := toToken(name, "a header"); problem != "" {
			return "", problem
		}
		if why := ofProxy[strings.ReplaceAll(strings.ToLower(name), "_", "-")]; why != "" {
			return "", fmt.Sprintf("%s is not set by an annotation: %s", name, why)
		}
		if text == "" {
			return "", fmt.Sprintf("header %s has no value: write the name, a space and the value", name)
		}
		if problem := toText(text); problem != "" {
			return "", problem
		}
		lines = append(lines, name+" "+text)
		if len(lines) > MaxHeaders {
			return "", fmt.Sprintf("it has more than the %d headers that are taken", MaxHeaders)
		}
	}
	if len(lines) == 0 {
		return "", "it is empty: write a line with the name, a space and the value for each header"
	}
	return Headers(listOf(lines)), ""
}
