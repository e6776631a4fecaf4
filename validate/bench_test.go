package validate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/validate"
)

func large(sections, change int) string {
	var b strings.Builder
	b.WriteString(good)
	b.WriteString("frontend apps\n  bind :8081\n")
	for i := range sections {
		fmt.Fprintf(&b, "  use_backend app-%d if { hdr(host) %d.test }\n", i, i)
	}
	for i := range sections {
		port := 10000 + i%1000
		if i == sections/2 {
			port += change
		}
		fmt.Fprintf(&b, "backend app-%d\n  balance roundrobin\n  option httpchk GET /\n  server s1 10.0.0.1:%d check\n  server s2 10.0.0.2:%d check\n", i, port, port)
	}
	return b.String()
}

// BenchmarkSyntaxOneSectionChanged is phase 1 after one of 5,000 sections
// changed.
func BenchmarkSyntaxOneSectionChanged(b *testing.B) {
	v := &validate.Validator{}
	cfgs := []string{large(brief(5000), 0), large(brief(5000), 1)}
	first, second := text(b, cfgs[0]), text(b, cfgs[1])
	if err := v.Syntax(first); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		cfg := first
		if i%2 == 0 {
			cfg = second
		}
		if err := v.Syntax(cfg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSyntaxNew is phase 1 of 5,000 sections that were not seen before.
func BenchmarkSyntaxNew(b *testing.B) {
	cfg := text(b, large(brief(5000), 0))
	for b.Loop() {
		if err := validate.Syntax(cfg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSemantics is haproxy -c and what is around it.
func BenchmarkSemantics(b *testing.B) {
	needHAProxy(b)
	cfg := text(b, large(brief(5000), 0))
	for b.Loop() {
		if _, err := new(validate.Validator).Semantics(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBeyondHAProxy runs phase 2 and haproxy -c alone over the same text in
// turns, and reports how much longer phase 2 takes. A Validator that is kept
// asks for the version once; here it is part of each turn's preparation.
func BenchmarkBeyondHAProxy(b *testing.B) {
	needHAProxy(b)
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(large(brief(5000), 0)), 0o600); err != nil {
		b.Fatal(err)
	}
	cfg := text(b, large(brief(5000), 0))
	var alone, whole time.Duration
	for b.Loop() {
		start := time.Now()
		if out, err := exec.CommandContext(b.Context(), binary, "-c", "-f", file).CombinedOutput(); err != nil {
			b.Fatal(err, string(out))
		}
		alone += time.Since(start)
		v := &validate.Validator{}
		if _, err := v.Semantics(b.Context(), text(b, good)); err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		if _, err := v.Semantics(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
		whole += time.Since(start)
	}
	b.ReportMetric(100*(float64(whole)/float64(alone)-1), "%beyond")
}

// BenchmarkInherited is phase 2 after an address changed.
func BenchmarkInherited(b *testing.B) {
	needHAProxy(b)
	v := &validate.Validator{}
	if _, err := v.Semantics(b.Context(), text(b, large(brief(5000), 0))); err != nil {
		b.Fatal(err)
	}
	cfg := text(b, large(brief(5000), 1))
	for b.Loop() {
		if r, err := v.Semantics(b.Context(), cfg); err != nil || !r.Inherited {
			b.Fatal(r, err)
		}
	}
}
