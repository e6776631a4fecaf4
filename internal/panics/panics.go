// Package panics turns panics of code that others wrote into errors.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic.
type Error struct {
	Value any
	Stack []byte
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Guard calls f, and returns a panic as an [*Error].
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
