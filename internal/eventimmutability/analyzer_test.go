package eventimmutability_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/hapticsdk/haptic/internal/eventimmutability"
)

func Test(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), eventimmutability.Analyzer, "events", "handlers", "imported")
}
