package templating

import (
	"iter"

	"github.com/hapticsdk/haptic/templating/internal/rewrite"
)

// Code iterates over the code of a template: the text between its delimiters, without
// comments, quoted texts and raw blocks. It yields the start and the end of each piece, in
// bytes.
func Code(text string) iter.Seq2[int, int] { return rewrite.Code(text) }
