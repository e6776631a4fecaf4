package claims

// Holder is who has a key, and what serves it: for example a backend, or a certificate. The
// zero value is that of a free key. Keep it with the key for the next transaction.
//
// A Holder that is read from an earlier configuration has only the namespace of its claimant.
type Holder[S comparable] struct {
	By     Claimant
	Serves S
}

// Then returns the holder to keep for the next transaction: now, which got the key. away: the
// claimant of the former one is quarantined. It stays the holder, and others have the key for
// the time being.
func (h Holder[S]) Then(now Holder[S], away bool) Holder[S] {
	if away {
		return h
	}
	return now
}

// turn orders claims of a key. Those that are served as before come first, then the former
// holder, and then all others. Otherwise an object whose name sorts first could take a path
// from a live one.
func (h Holder[S]) turn(claim Holder[S]) int {
	var free S
	switch {
	case h.Serves == free || h.Serves == claim.Serves:
		return 0
	case h.By.isSame(claim.By):
		return 1
	}
	return 2
}

// First returns the claim that gets a key, and false if there is none. had is the former
// holder. claims are in the order of their age. asks says who claims, and what would serve.
func First[C any, S comparable](had Holder[S], claims []C, asks func(C) Holder[S]) (first C, ok bool) {
	best := 3
	for _, c := range claims {
		if t := had.turn(asks(c)); t < best {
			first, best = c, t
		}
	}
	return first, len(claims) > 0
}

// Owner returns the namespace that a key belongs to. had is the former owner, which keeps it
// while it claims it; "": none. Otherwise the oldest claim decides. claims are in the order of
// their age, and namespace returns that of one. Without claims the owner is "".
func Owner[C any](had string, claims []C, namespace func(C) string) string {
	owner := ""
	for _, c := range claims {
		if of := namespace(c); of == had || owner == "" {
			owner = of
		}
	}
	return owner
}
