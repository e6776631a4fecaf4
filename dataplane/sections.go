package dataplane

import "github.com/hapticsdk/haptic/internal/haproxycfg"

// SectionCount returns the number of sections in the text: global, defaults,
// frontends, backends and so on.
func (c *Config) SectionCount() int {
	n := 0
	for _, s := range haproxycfg.Split(c.main) {
		if s.Kind != "" {
			n++
		}
	}
	return n
}
