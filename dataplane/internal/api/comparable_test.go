package api

import (
	"strings"
	"testing"
)

// A stored text that is far larger than the wanted one is not parsed, unless another
// owner may have made it so.
func TestComparable(t *testing.T) {
	t.Parallel()
	const wanted = "global\n  maxconn 1\n"
	for text, want := range map[string]bool{
		wanted:                                true,
		strings.Repeat("backend a\n", 1000):   true,
		strings.Repeat("backend a\n", 2000):   false,
		wanted + strings.Repeat("#\n", 1<<20): false,
		wanted + strings.Repeat("#\n", 1<<18): true,
	} {
		if got := new(Client).comparable(text, wanted); got != want {
			t.Errorf("%d bytes: %v", len(text), got)
		}
		if !(&Client{opts: Options{Shared: true}}).comparable(text, wanted) {
			t.Errorf("%d bytes beside another owner: not comparable", len(text))
		}
	}
}
