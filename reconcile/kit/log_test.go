package kit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/kit"
)

// TestLogChangesWhileItRuns: level and format change for every logger that was made
// from the log, with its attributes.
func TestLogChangesWhileItRuns(t *testing.T) {
	var out bytes.Buffer
	log := kit.NewLog(&out)
	child := log.With("part", "loop").WithGroup("g")
	said := func() string { s := out.String(); out.Reset(); return s }

	child.Debug("hidden")
	child.Info("one", "n", 1)
	require.Regexp(t, `^time=\S+ level=INFO msg=one part=loop g\.n=1\n$`, said())

	require.NoError(t, log.SetFormat("json"))
	require.NoError(t, log.SetLevel("debug"))
	child.Debug("two", "n", 2)
	var record map[string]any
	require.NoError(t, json.Unmarshal([]byte(said()), &record))
	require.Equal(t, "two", record["msg"])
	require.Equal(t, "loop", record["part"])
	require.Equal(t, map[string]any{"n": 2.0}, record["g"])

	require.NoError(t, log.SetFormat(""))
	require.NoError(t, log.SetLevel("error"))
	child.Warn("hidden")
	require.Empty(t, said())
	require.NoError(t, log.SetLevel(""))
	child.Info("three")
	require.Contains(t, said(), "msg=three")

	require.EqualError(t, log.SetLevel("loud"), `log level "loud": want debug, info, warn or error`)
	require.EqualError(t, log.SetFormat("xml"), `log format "xml": want text or json`)
	child.Info("four")
	require.Contains(t, said(), "level=INFO msg=four", "what is wrong changes nothing")
}

// TestLogOfTheEnd: the last word of a program is in the format of the log.
func TestLogOfTheEnd(t *testing.T) {
	var out bytes.Buffer
	log := kit.NewLog(&out)
	log.Fail(errors.New("-local: no such folder"))
	require.Equal(t, "error: -local: no such folder\n", out.String())
	out.Reset()
	require.NoError(t, log.SetFormat("json"))
	log.Fail(errors.New("-local: no such folder"))
	var record map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &record))
	require.Equal(t, "-local: no such folder", record["error"])
	require.Equal(t, "ERROR", record["level"])
}

// TestLogOfSeveral: lines of several goroutines are whole while the format changes.
func TestLogOfSeveral(t *testing.T) {
	var out bytes.Buffer
	log := kit.NewLog(&out)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				log.Info("a line", "of", "words")
			}
		})
	}
	for _, format := range []string{"json", "text", "json", "text"} {
		log.Follow("info", format)
	}
	wg.Wait()
	for line := range strings.Lines(out.String()) {
		require.True(t, json.Valid([]byte(line)) || strings.HasPrefix(line, "time=") && strings.HasSuffix(line, "of=words\n"), line)
	}
	require.Equal(t, 200, strings.Count(out.String(), "\n"))
}
