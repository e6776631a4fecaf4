package dataplane_test

import (
	"errors"
	"flag"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	full = flag.Bool("full", false, "go from each configuration of the contract to each other one, and cut at each step")
	seed = flag.Uint64("seed", 1, "which pairs of configurations, steps and lines the tests draw without -full")
)

// drawn is a source of numbers that differ from test to test, and by -seed.
func drawn(t *testing.T) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(*seed, sum.Sum64())) //nolint:gosec // to be repeatable
}

// each returns the first number to try and the distance to the next: all
// numbers with -full, and one of k without.
func each(t *testing.T, k int) (first, distance int) {
	if *full {
		return 0, 1
	}
	first = drawn(t).IntN(k)
	t.Logf("tries %d and each %d. after it; -full tries all", first, k)
	return first, k
}

// cutAt tries to cut at one n after the other, until there is no n-th point.
func cutAt(t *testing.T, k int, try func(n int) (wasCut bool)) {
	t.Helper()
	first, distance := each(t, k)
	n := first
	for try(n) {
		n += distance
	}
	require.Greater(t, n, first, "nothing was cut")
}

// never is for a cut that only records the points.
const never = 1 << 30

// cut ends a process, a request or a Sync at its n-th point.
type cut struct {
	n   int
	end func() // if set, is called there

	mu     sync.Mutex
	points []string
	over   bool
}

// at reports whether the one that came to that point may go on.
func (c *cut) at(point string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.points = append(c.points, point)
	if len(c.points) > c.n {
		c.over = true
		if c.end != nil {
			c.end()
		}
	}
	return !c.over
}

// reached returns all points so far, and whether the last was the end.
func (c *cut) reached() (points []string, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.points, c.over
}

// severed is a way to an API that is cut at a request: before the API gets it,
// or when the API has done it and nothing has read the answer.
type severed struct {
	*cut
	next    http.RoundTripper
	after   bool
	reading bool          // requests that change nothing count, too
	dies    bool          // with its process: no later request gets through
	between func(all int) // if set, is called before each request

	turn sync.Mutex
	all  int // requests
}

var errGone = errors.New("the process is gone")

func (s *severed) RoundTrip(r *http.Request) (*http.Response, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	point := func() {
		if s.reading || r.Method != http.MethodGet {
			s.at(r.Method + " " + r.URL.Path)
		}
	}
	if s.between != nil && s.lost(r) == nil {
		s.between(s.all)
	}
	s.all++
	if !s.after {
		point()
	}
	if err := s.lost(r); err != nil {
		return nil, err
	}
	answer, err := s.next.RoundTrip(r)
	if s.after {
		point()
	}
	if lost := s.lost(r); err == nil && lost != nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return nil, lost
	}
	return answer, err
}

// lost is the error of a request whose sender is gone.
func (s *severed) lost(r *http.Request) error {
	if _, over := s.reached(); over && s.dies {
		return errGone
	}
	return r.Context().Err()
}
