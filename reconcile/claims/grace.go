package claims

import (
	"time"

	"github.com/hapticsdk/haptic/k8swatch/derive"
)

// UsualGrace is the recommended Grace of [HostOptions].
const UsualGrace = 5 * time.Minute

// tenure is who owns a host.
type tenure struct {
	owner string
	gone  time.Time // since when the owner claims it no longer, while others do; zero: it does
}

// keeps reports whether the last owner of a host keeps it though it claims it no longer, and since
// when it has been gone. An object that is replaced is gone for an instant. Without grace,
// a claim that was refused so far would get the host in that instant, and keep it.
func (h *Hosts) keeps(at *derive.Reads, last string, claims bool, gone time.Time) (tenure, bool) {
	if claims || last == "" || last == AllNamespaces || h.opts.Grace <= 0 {
		return tenure{}, false
	}
	now := tenure{last, gone}
	if now.gone.IsZero() {
		now.gone = at.Now()
	}
	end := now.gone.Add(h.opts.Grace)
	if !at.Now().Before(end) {
		return tenure{}, false
	}
	at.Again(end)
	return now, true
}

// ownerOf is the owner of a tenure.
func ownerOf(_ *derive.Reads, _ string, t tenure, _ string) (string, bool) { return t.owner, true }
