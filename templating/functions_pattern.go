package templating

import (
	"path"
	"regexp"
	"sync"
)

// regexps remembers compiled regular expressions, up to a bound, since
// patterns may be made from data.
type regexps struct {
	mu       sync.Mutex
	compiled map[string]*regexp.Regexp
}

const maxRegexps = 1024

func (r *regexps) get(name, pattern string) *regexp.Regexp {
	r.mu.Lock()
	defer r.mu.Unlock()
	if re := r.compiled[pattern]; re != nil {
		return re
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		failf("%s: %w", name, err)
	}
	if len(r.compiled) >= maxRegexps {
		clear(r.compiled)
	}
	r.compiled[pattern] = re
	return re
}

func (r *regexps) search(s, pattern string) bool {
	return r.get("regex_search", pattern).MatchString(s)
}

func (r *regexps) replace(s, pattern, replacement string) string {
	return r.get("regex_replace", pattern).ReplaceAllString(s, replacement)
}

// globMatch returns those strings of a list that match a pattern of path.Match:
// "*" and "?" do not match a slash. One string stands for a list of one.
func globMatch(list any, pattern string) []string {
	items, ok := list.([]string)
	if s, one := list.(string); one {
		items, ok = []string{s}, true
	}
	if !ok {
		for i, item := range listOf("glob_match", list) {
			s, isString := item.(string)
			if !isString {
				failf("glob_match: element %d is a %T, not a string", i, item)
			}
			items = append(items, s)
		}
	}
	matched, err := glob(items, pattern)
	if err != nil {
		failf("glob_match: %w", err)
	}
	return matched
}

// glob checks the whole pattern even if there is nothing to match.
func glob(items []string, pattern string) (matched []string, err error) {
	if err := checkGlob(pattern); err != nil {
		return nil, err
	}
	for _, item := range items {
		if ok, _ := path.Match(pattern, item); ok {
			matched = append(matched, item)
		}
	}
	return matched, nil
}
