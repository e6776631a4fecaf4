package phrase

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	for want, got := range map[string]string{
		"0 files": Count(0, "file"), "1 file": Count(1, "file"), "2 files": Count(2, "file"),
		"": InARow(1), " 2 times in a row": InARow(2),
		"a, b, c": Some([]string{"a", "b", "c"}), "a, b, c and 2 more": Some([]string{"a", "b", "c", "d", "e"}),
		"no resources": ByKind(map[string]int{"controller.haproxy_pods": 0}), "2 Ingress, 3 Service": ByKind(map[string]int{"Service": 3, "Ingress": 2}),
		"15:04:05.006": Clock(time.Date(2026, 1, 2, 15, 4, 5, 6e6, time.UTC)),
		"01234567":     Short("0123456789"), "012": Short("012"),
	} {
		require.Equal(t, want, got)
	}
	require.Empty(t, Some(nil))
}
