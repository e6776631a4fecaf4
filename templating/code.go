package templating

import (
	"iter"

	"github.com/hapticsdk/haptic/templating/internal/rewrite"
)

// Code iterates over the code of a template: over what stands between its
// delimiters, without comments, quoted texts and raw blocks. Each piece is given by
// where it starts and ends, in bytes.
func Code(text string) iter.Seq2[int, int] { return rewrite.Code(text) }
