package late

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLate: the cause takes the place of "context deadline exceeded", and is one.
func TestLate(t *testing.T) {
	ctx, cancel := Context(t.Context(), "no answer", time.Millisecond)
	defer cancel()
	<-ctx.Done()
	err := context.Cause(ctx)
	var timeout net.Error
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || err.Error() != "no answer within 1ms" {
		t.Error(err)
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	ctx, cancel = Context(t.Context(), "no answer", 20*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, silent.URL, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	_, err = client.Do(req)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), ": no answer within 20ms") {
		t.Error(err)
	}
	text := (&Error{What: "not ready", After: 30 * time.Second, GoesOn: "it is tried again"}).Error()
	if text != "not ready within 30s; it is tried again" {
		t.Error(text)
	}
}
