package diff

import "github.com/hapticsdk/haptic/dataplane/internal/config"

// apart compares only the sections in the stretches where the texts differ. It reports false,
// and does nothing, if sections outside of the stretches may matter, too. That is so if one
// has the same key, or if the order has changed.
func (d *difference) apart(stretches []config.Stretch) bool {
	cur, des := d.current.Index().List, d.desired.Index().List
	pairs := true
	for _, s := range stretches {
		old, now := cur[s.OldFrom:s.OldTo], des[s.NewFrom:s.NewTo]
		pairs = pairs && len(old) == len(now)
		for i := 0; pairs && i < len(now); i++ {
			pairs = old[i].Name == now[i].Name && old[i].Kind == now[i].Kind
		}
	}
	if pairs {
		for _, s := range stretches {
			for i := s.NewFrom; i < s.NewTo; i++ {
				d.section(cur[i-s.NewFrom+s.OldFrom], des[i])
			}
		}
		return true
	}
	was, ok := d.matched(stretches)
	if !ok {
		return false
	}
	stays := make(map[*config.Section]bool)
	for _, s := range stretches {
		for _, want := range des[s.NewFrom:s.NewTo] {
			if have := was[want.Key()]; have != nil {
				stays[have] = true
				d.section(have, want)
			} else {
				d.sectionComes(want)
			}
		}
	}
	for _, s := range stretches {
		for _, have := range cur[s.OldFrom:s.OldTo] {
			if !stays[have] {
				d.sectionGoes(have)
			}
		}
	}
	return true
}

// matched returns the current sections by their keys. It reports false unless each key
// belongs to one section, and every section that stays keeps its order within its stretch.
func (d *difference) matched(stretches []config.Stretch) (was map[config.Key]*config.Section, ok bool) {
	cur, des := d.current.Index().List, d.desired.Index().List
	was = make(map[config.Key]*config.Section)
	place := make(map[config.Key]int) // index of each current section
	names := make(map[config.Key]bool)
	for _, s := range stretches {
		for i, have := range cur[s.OldFrom:s.OldTo] {
			key := have.Key()
			if was[key] != nil {
				return nil, false
			}
			was[key], place[key], names[key] = have, s.OldFrom+i, true
		}
	}
	seen := make(map[config.Key]bool)
	for _, s := range stretches {
		next := s.OldFrom
		for _, want := range des[s.NewFrom:s.NewTo] {
			key := want.Key()
			if seen[key] {
				return nil, false
			}
			seen[key], names[key] = true, true
			if was[key] == nil {
				continue
			}
			if place[key] < next || place[key] >= s.OldTo {
				return nil, false
			}
			next = place[key] + 1
		}
	}
	return was, d.desired.Index().Alone(names, stretches)
}
