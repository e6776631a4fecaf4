package quarantine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestModel changes objects of three tenants at random: good, bad, bad only with another, bad
// without a line. After each step what is served is valid, nobody who did nothing wrong lacks
// anything once the trials are over, and a search is short.
func TestModel(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 26))
		o := newOne()
		o.put("z/always=1")
		require.True(t, o.reconcile())
		for step := range 60 {
			for range 1 + r.IntN(3) {
				space := []string{"a", "b", "c"}[r.IntN(3)]
				text := []string{"ok", "ok", "ok", "bad", "needs:" + space + "0", "blind"}[r.IntN(6)]
				if space == "c" { // does nothing wrong
					text = "ok"
				}
				name := fmt.Sprintf("%s/%s%d", space, space, r.IntN(4))
				if exists := strings.Contains(" "+o.names(), " "+name+" "); exists && r.IntN(5) == 0 {
					o.put(name + "=")
				} else if text == "ok" || text == "bad" || text == "blind" {
					o.put(fmt.Sprintf("%s=%s%d", name, text, step))
				} else {
					o.put(name + "=" + text)
				}
			}
			o.tries = 0
			valid := o.reconcile()
			require.True(t, valid, "seed %d, step %d: a valid configuration without their changes exists", seed, step)
			require.LessOrEqual(t, o.tries, roundsPast+3, "seed %d, step %d", seed, step)
			require.Empty(t, faults(o.q.Good()), "seed %d, step %d: what is served is valid", seed, step)
			if r.IntN(3) > 0 {
				o.trials()
				require.Empty(t, faults(o.q.Good()))
				for _, obj := range o.objs {
					if obj.Namespace == "c" {
						require.Contains(t, o.served(), "c/"+obj.Name+"="+textOf(obj), "seed %d, step %d", seed, step)
					}
				}
			}
			o.now = o.now.Add([]time.Duration{0, time.Second, time.Minute, time.Hour}[r.IntN(4)])
		}
		for _, obj := range o.objs { // all are mended
			o.put(obj.Namespace + "/" + obj.Name + "=fine")
		}
		for range 3 {
			o.now = o.now.Add(2 * time.Hour)
			require.True(t, o.reconcile())
			o.trials()
		}
		require.Empty(t, o.held(), "seed %d", seed)
		require.Equal(t, len(o.objs), strings.Count(o.served(), "=fine"))
	}
}

// names lists the objects, with a space around each.
func (o *one) names() (text string) {
	for _, obj := range o.objs {
		text += obj.Namespace + "/" + obj.Name + " "
	}
	return text
}
