package dpapi

import (
	"context"
	"net/http"
)

type fenceKey struct{}

// WithFence returns a context whose calls that change something are made only
// if fence, asked right before each, returns nil.
func WithFence(ctx context.Context, fence func() error) context.Context {
	return context.WithValue(ctx, fenceKey{}, fence)
}

// WithoutFence returns a context without the fence of ctx, for what cleans up and
// changes nothing that HAProxy reads.
func WithoutFence(ctx context.Context) context.Context {
	return WithFence(ctx, func() error { return nil })
}

// Fenced asks the fence of a context whether something may be changed now.
func Fenced(ctx context.Context) error {
	if fence, ok := ctx.Value(fenceKey{}).(func() error); ok {
		return fence()
	}
	return nil
}

func (r *call) changes() bool { return r.method != http.MethodGet }
