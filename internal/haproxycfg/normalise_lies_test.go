package haproxycfg_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// A text that makes the config parser try one name after the other is refused: it
// would keep all instances waiting.
func TestManyUnnamedDefaults(t *testing.T) {
	start := time.Now()
	_, err := haproxycfg.Normalise(strings.Repeat("defaults\n", 30_000))
	if err == nil || !strings.Contains(err.Error(), "more than 1000 defaults sections have no name") {
		t.Errorf("%v", err)
	}
	if _, err := haproxycfg.Normalise(strings.Repeat("defaults\n", 1000)); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("%v", took)
	}
}
