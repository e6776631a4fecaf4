package diff

import "github.com/hapticsdk/haptic/dataplane/internal/config"

// apart compares only the sections in the stretches where the texts differ. It reports false,
// and does nothing, if sections outside of the stretches may matter, too. That is so if one
// has the same key, or if the order has changed.
func (d *difference) apart(stretches []config.Stretch) bool {
	cur, des := d.current.Index(), d.desired.Index()
	pairs := config.Pairs(cur, des, stretches)
	if !allStay(pairs) && !matched(cur, des, pairs, stretches) {
		return false
	}
	for _, p := range pairs {
		switch {
		case p.New < 0:
		case p.Old < 0:
			d.sectionComes(des.List[p.New])
		default:
			d.section(cur.List[p.Old], des.List[p.New])
		}
	}
	for _, p := range pairs {
		if p.New < 0 {
			d.sectionGoes(cur.List[p.Old])
		}
	}
	return true
}

// allStay reports whether no section comes or goes.
func allStay(pairs []config.Pair) bool {
	for _, p := range pairs {
		if p.Old < 0 || p.New < 0 {
			return false
		}
	}
	return true
}

// matched reports whether each key belongs to one pair, and to no section outside of the
// stretches. Then every section that stays keeps its order.
func matched(cur, des *config.Index, pairs []config.Pair, stretches []config.Stretch) bool {
	keys := make(map[config.Key]bool, len(pairs))
	for _, p := range pairs {
		var key config.Key
		if p.Old >= 0 {
			key = cur.List[p.Old].Key()
		} else {
			key = des.List[p.New].Key()
		}
		if keys[key] || p.Old >= 0 && p.New >= 0 && des.List[p.New].Key() != key {
			return false
		}
		keys[key] = true
	}
	return des.Alone(keys, stretches)
}
