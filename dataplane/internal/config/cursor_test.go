package config

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// The stretches lead from one list of sections to the other, and hold nothing that
// stands at the same end of both.
func TestStretchesSplice(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		rng := rand.New(rand.NewSource(seed))
		var before, after []string
		for range rng.Intn(60) {
			before = append(before, fmt.Sprintf("backend b%d\n  mode http\n", rng.Intn(40)))
		}
		if rng.Intn(3) == 0 {
			before = append(before, "defaults\n  mode tcp\n", "backend last\n")
		}
		for _, s := range before {
			switch rng.Intn(12) {
			case 0:
			case 1:
				after = append(after, s, fmt.Sprintf("backend n%d\n", rng.Intn(5)))
			case 2:
				after = append(after, s+"  balance source\n")
			default:
				after = append(after, s)
			}
		}
		if cut := rng.Intn(20); cut < len(after) {
			after = append(after[:cut:cut], after[min(len(after), cut+rng.Intn(20)):]...)
		}
		old, err1 := NewFrom(Empty(), append([]string{"global\n"}, before...))
		now, err2 := NewFrom(old, append([]string{"global\n"}, after...))
		require.NoError(t, errors.Join(err1, err2))
		was, is := old.Index().List, now.Index().List
		var spliced []*Section
		at := 0
		stretches := Stretches(old.Index(), now.Index())
		requirePairs(t, old.Index(), now.Index(), stretches)
		for _, s := range stretches {
			spliced = append(spliced, was[at:s.OldFrom]...)
			require.Len(t, spliced, s.NewFrom)
			require.False(t, s.OldFrom == s.OldTo && s.NewFrom == s.NewTo)
			spliced = append(spliced, is[s.NewFrom:s.NewTo]...)
			at = s.OldTo
		}
		spliced = append(spliced, was[at:]...)
		require.Len(t, spliced, len(is), "seed %d", seed)
		for i := range is {
			require.Equal(t, is[i].Text, spliced[i].Text, "seed %d", seed)
		}
	}
	empty, err := New("global\n")
	require.NoError(t, err)
	require.Len(t, Stretches(Empty().Index(), empty.Index()), 1)
	require.Empty(t, Stretches(empty.Index(), empty.Index()))
}

// requirePairs: the pairs have each section of the stretches once and in order, and pair only
// sections of one kind and name.
func requirePairs(t *testing.T, old, now *Index, stretches []Stretch) {
	t.Helper()
	var gone, come, was, is []int
	for _, s := range stretches {
		for i := s.OldFrom; i < s.OldTo; i++ {
			gone = append(gone, i)
		}
		for j := s.NewFrom; j < s.NewTo; j++ {
			come = append(come, j)
		}
	}
	for _, p := range Pairs(old, now, stretches) {
		if p.Old >= 0 {
			was = append(was, p.Old)
		}
		if p.New >= 0 {
			is = append(is, p.New)
		}
		if p.Old >= 0 && p.New >= 0 {
			require.Equal(t, old.List[p.Old].Name, now.List[p.New].Name)
			require.Equal(t, old.List[p.Old].Kind, now.List[p.New].Kind)
		}
	}
	require.Equal(t, gone, was)
	require.Equal(t, come, is)
}
