package render

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestOnlyChangedCallsAreAsked: an input that knows which calls have another answer is asked
// about these alone, also if renders fail meanwhile.
func TestOnlyChangedCallsAreAsked(t *testing.T) {
	type table struct {
		rows    map[string]string
		changed []any // since the one before
		before  *table
	}
	var now *table
	set := func(row, value string) {
		next := &table{map[string]string{}, []any{row}, now}
		for i := range 100 {
			if key := fmt.Sprint("row ", i); now != nil {
				next.rows[key] = now.rows[key]
			}
		}
		next.rows[row] = value
		now = next
	}
	engine, err := templating.Compile(fstest.MapFS{
		"haproxy.cfg":        {Data: []byte("global\n")},
		"haproxy.d/rows.cfg": {Data: []byte("# {{ key }}{{ row(key) }}\n")},
	}, &templating.Options{Vars: map[string]any{"key": "", "row": func(string) string { return "" }}})
	require.NoError(t, err)
	var items, asked []any
	var made []string
	templates := &Templates{Engine: engine, Pure: true, Input: func(context.Context) (*Input, error) {
		at := now
		reads := &Reads{Vars: []string{"row"}, State: at, Same: func(key, revision any) bool {
			asked = append(asked, key)
			return at.rows[key.(string)] == revision
		}, Changed: func(before any) (keys []any, known bool) {
			from := at
			for ; from != nil && from != before; from = from.before {
				keys = append(keys, from.changed...)
			}
			return keys, from != nil
		}}
		row := func(key string) string {
			made = append(made, key)
			reads.Note(key, at.rows[key])
			return at.rows[key]
		}
		return &Input{Vars: map[string]any{"key": "", "row": row}, Reads: reads, Each: map[string]Each{"haproxy.d/rows.cfg": {Var: "key", Items: items}}}, nil
	}}
	render := func(fails bool) (wasMade []string, wasAsked int) {
		asked, made = nil, nil
		_, err := templates.Render(t.Context())
		require.Equal(t, fails, err != nil, "%v", err)
		slices.Sort(made) // a text that fails is rendered twice, for the place of its error
		return slices.Compact(made), len(asked)
	}
	expect := func(wantMade []string, wantAsked int, fails bool) {
		t.Helper()
		made, asked := render(fails)
		require.Equal(t, wantMade, made)
		require.Equal(t, wantAsked, asked)
	}
	for i := range 100 {
		items = append(items, fmt.Sprint("row ", i))
	}
	set("row 0", "")
	all, _ := render(false)
	require.Len(t, all, 100)
	expect(nil, 100, false) // the first time that there are answers
	set("row 7", "other")
	expect([]string{"row 7"}, 1, false)
	set("row 8", "\n")
	expect([]string{"row 8"}, 1, true)
	set("row 9", "also while row 8 fails")
	expect([]string{"row 8", "row 9"}, 1, true)
	set("row 8", "good")
	expect([]string{"row 8"}, 1, false)
	expect(nil, 0, false)
	now = now.before.before // as it was
	made, n := render(true)
	require.Equal(t, 100, n, "that is not known")
	require.Equal(t, []string{"row 8", "row 9"}, made)
	set("row 8", "good")
	render(false)

	// Answers that no text needs are dropped in the end.
	for i := range 500 {
		items = []any{fmt.Sprint("another ", i)}
		render(false)
	}
	require.Less(t, templates.texts.asked[ofInput].Len(), 10)
}
