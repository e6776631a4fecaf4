package host

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A HAProxy that came and went has few lines in the end. One that then stays silent is
// told of anew, as one that falls for the first time.
func TestSilenceThatLastsIsToldAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []ProcessEvent
		s := &status{tell: func(e ProcessEvent) { told = append(told, e) }}
		silent := errors.New("silent")
		for range 5 {
			s.heard(7, silent, nil)
			time.Sleep(10 * time.Second)
			s.heard(7, nil, nil)
			time.Sleep(10 * time.Second)
		}
		told = nil
		for range 2 * 60 * 60 { // an hour
			s.heard(7, silent, nil)
			time.Sleep(askEvery)
		}
		s.heard(7, nil, nil)
		require.Equal(t, []ProcessEvent{{Kind: Silent, PID: 7, Err: silent, Times: 6}, {Kind: Silent, PID: 7, Err: silent, Times: 1},
			{Kind: Answers, PID: 7, Away: time.Hour, Times: 1}}, told)
	})
}
