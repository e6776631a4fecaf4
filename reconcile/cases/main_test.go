package cases

import (
	"testing"

	"github.com/hapticsdk/haptic/internal/haproxytest"
)

func TestMain(m *testing.M) { haproxytest.Main(m) }
