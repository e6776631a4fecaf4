// Package late makes errors about things that did not happen in time.
package late

import (
	"context"
	"fmt"
	"time"
)

// Error says what did not happen, after how long and, if known, what happens next. It is a
// [context.DeadlineExceeded], and a time-out of package net.
type Error struct {
	What   string // "no answer", "not done"
	After  time.Duration
	GoesOn string // "it is tried again"; "" if the caller adds it
}

// Error returns a text such as "no answer within 5s; it is tried again".
func (e *Error) Error() string {
	text := fmt.Sprintf("%s within %s", e.What, e.After.Round(time.Millisecond))
	if e.GoesOn != "" {
		text += "; " + e.GoesOn
	}
	return text
}

func (e *Error) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout and Temporary implement net.Error.
func (e *Error) Timeout() bool   { return true }
func (e *Error) Temporary() bool { return true }

// Context returns a context that ends after a time, with an [*Error] as its cause.
func Context(ctx context.Context, what string, after time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, after, &Error{What: what, After: after})
}
