// Package eventbus has the signatures of the real one.
package eventbus

import "context"

type Bus struct{}

type Policy struct{}

type Delivery[E any] struct {
	Event E
	Seq   uint64
}

type Answers[A any] struct{ Got map[string]A }

func Publish[E any](b *Bus, e E) {}

func Subscribe[E any](b *Bus, p Policy, fn func(context.Context, Delivery[E])) {}

func Latest[E any, K comparable](key func(E) K) Policy { return Policy{} }

func Answer[Q, A any](b *Bus, name string, fn func(context.Context, Q) (A, error)) {}

func Ask[A, Q any](ctx context.Context, b *Bus, q Q) (*Answers[A], error) { return nil, nil }
