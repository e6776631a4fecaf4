package dataplane

import (
	"context"
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// checkEntries reads entries of a map back that were changed one by one. What
// the look-up of single keys cannot tell, the whole map does.
func (a *applier) checkEntries(ctx context.Context, do *action) error {
	path := a.path(do.file)
	commands := []string{"show map"}
	for _, c := range do.changes {
		if c.action != Delete {
			commands = append(commands, "get map "+path+" "+c.key)
		}
	}
	answers, err := a.conn.Batch(ctx, commands)
	if err != nil {
		return err
	}
	if countOf(answers[0], path) != len(parseMap(do.file.Content)) {
		return a.checkMap(ctx, do.file)
	}
	at := 1
	for _, c := range do.changes {
		if c.action == Delete {
			continue
		}
		if !strings.Contains(answers[at], fmt.Sprintf("key=%q, value=%q", c.key, c.value)) {
			return a.checkMap(ctx, do.file)
		}
		at++
	}
	return nil
}

// countOf returns how many entries "show map" counts for a file, -1 if it does
// not tell.
func countOf(answer, path string) int {
	for l := range strings.Lines(answer) {
		if !strings.Contains(l, " ("+path+") ") {
			continue
		}
		_, text, ok := strings.Cut(l, "entry_cnt=")
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if ok && err == nil {
			return n
		}
	}
	return -1
}

// checkMap compares a map as a whole with what it should be.
func (a *applier) checkMap(ctx context.Context, f File) error {
	answer, err := a.conn.Exec(ctx, "show map "+a.path(f))
	if err != nil {
		return err
	}
	var shown []string
	for l := range strings.Lines(answer) {
		if _, entry, ok := strings.Cut(strings.TrimRight(l, "\n"), " "); ok { // behind the address in memory
			shown = append(shown, strings.TrimRight(entry, " ")) // a value may be empty
		}
	}
	var want []string
	for _, e := range parseMap(f.Content) {
		want = append(want, strings.TrimRight(e.key+" "+e.value, " "))
	}
	return sameEntries(f, shown, want)
}

// checkPatterns compares the patterns of ACLs with what they should be.
func (a *applier) checkPatterns(ctx context.Context, f File) error {
	answer, err := a.conn.Exec(ctx, "show acl "+a.path(f))
	if err != nil {
		return err
	}
	var shown []string
	for l := range strings.Lines(answer) {
		if _, pattern, ok := strings.Cut(strings.TrimRight(l, "\n"), " "); ok {
			shown = append(shown, pattern)
		}
	}
	slices.Sort(shown)
	return sameEntries(f, slices.Compact(shown), parsePatterns(f.Content))
}

func sameEntries(f File, shown, want []string) error {
	slices.Sort(shown)
	slices.Sort(want)
	if !slices.Equal(shown, want) {
		return fmt.Errorf("%s %s has other entries after the change: %d instead of %d", f.Kind, f.Name, len(shown), len(want))
	}
	return nil
}

// checkCertificate compares the fingerprint of a loaded certificate with that of
// the file.
func (a *applier) checkCertificate(ctx context.Context, f File) error {
	var block *pem.Block
	for rest := f.Content; ; {
		if block, rest = pem.Decode(rest); block == nil || block.Type == "CERTIFICATE" {
			break
		}
	}
	if block == nil {
		return nil // HAProxy took it all the same
	}
	answer, err := a.conn.Exec(ctx, "show ssl cert "+a.path(f))
	if err != nil {
		return err
	}
	sum := sha1.Sum(block.Bytes) //nolint:gosec // see above
	if !strings.Contains(answer, "SHA1 FingerPrint: "+strings.ToUpper(hex.EncodeToString(sum[:]))) {
		return fmt.Errorf("%s %s is another one after the change", f.Kind, f.Name)
	}
	return nil
}
