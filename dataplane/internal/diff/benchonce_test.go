package diff_test

import (
	"testing"

	"github.com/hapticsdk/haptic/internal/benchtest"
)

func TestBenchmarks(t *testing.T) { benchtest.Once(t) }
