package diff

import (
	"bytes"
	"fmt"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// files compares the files of both configurations.
func (d *difference) files() {
	type pair struct{ old, now *config.File }
	var changed []pair
	names := make(map[string]bool)
	cur, des := d.current.Files, d.desired.Files
	for i, j := 0, 0; i < len(cur) || j < len(des); {
		switch {
		case j == len(des) || i < len(cur) && config.CompareFiles(cur[i], des[j]) < 0:
			changed = append(changed, pair{old: &cur[i]})
			names[cur[i].Name] = true
			i++
		case i == len(cur) || config.CompareFiles(cur[i], des[j]) > 0:
			changed = append(changed, pair{now: &des[j]})
			names[des[j].Name] = true
			j++
		default:
			if !bytes.Equal(cur[i].Content, des[j].Content) {
				changed = append(changed, pair{&cur[i], &des[j]})
				names[des[j].Name] = true
			}
			i, j = i+1, j+1
		}
	}
	if len(changed) == 0 {
		return
	}
	d.was, d.is = findReferences(d.current, names, d.whole), findReferences(d.desired, names, d.whole)
	for _, c := range changed {
		switch {
		case c.now == nil:
			d.fileGoes(*c.old)
		case c.old == nil:
			d.fileComes(*c.now)
		default:
			d.fileChanges(*c.old, *c.now)
		}
	}
}

func fileStep(action change.Action, f config.File) change.Step {
	return change.Step{Action: action, Kind: string(f.Kind), Name: f.Name}
}

const whyFolder = "a bind line reads its certificates from a folder"

func (d *difference) fileComes(f config.File) {
	step, refs := fileStep(change.Create, f), d.is.of(f)
	switch {
	case f.Kind == config.Certificate && refs.onlyList():
		d.ofWholeFile(step, &change.NewCertificate{File: f}, f)
		return
	case f.Kind == config.Certificate && d.is.folder:
		step.Needs(whyFolder)
	case refs.any():
		step.Needs("HAProxy reads files that it does not know yet at a reload")
	}
	d.add(rankFile, step)
}

func (d *difference) fileGoes(f config.File) {
	step := fileStep(change.Delete, f)
	switch {
	case d.is.of(f).any():
		step.Needs("the configuration still refers to it")
	case f.Kind == config.Certificate && d.was.of(f).onlyList():
		step.Impact, step.Do = change.Runtime, &change.DeleteCertificate{File: f}
		step.Needs(d.target.WhyNot(step.Kind, step.Action, ""))
	case f.Kind == config.Certificate && d.was.folder:
		step.Needs(whyFolder)
	}
	d.add(rankFileGone, step)
}

func (d *difference) fileChanges(old, now config.File) {
	was, is := d.was.of(now), d.is.of(now)
	if now.Kind == config.Certificate && d.is.folder && d.was.folder {
		was.crt, is.crt = true, true
	}
	step := fileStep(change.Update, now)
	switch {
	case !is.any():
		d.add(rankFile, step) // HAProxy does not read it
		return
	case was.other || is.other || !was.any():
		// See the reasons below.
	case now.Kind == config.Map && was.mapped && is.mapped:
		d.entries(old, now, config.ParseMap, is.ordered)
		return
	case was == usage{patterns: true} && was == is:
		d.entries(old, now, config.ParsePatterns, false)
		return
	case now.Kind == config.Certificate && (was.crt || was.inList):
		d.ofWholeFile(step, &change.SetCertificate{File: now}, now)
		return
	case was == usage{ca: true} && was == is:
		step.Kind = string(config.CA)
		d.ofWholeFile(step, &change.SetCA{File: now}, now)
		return
	case now.Kind == config.CRTList && was.list && is.list:
		d.listChanges(old, now)
		return
	}
	switch now.Kind {
	case config.Certificate:
		step.Needs("HAProxy reads a certificate that is used in this way only at a reload")
	case config.Map:
		step.Needs("something other than a map converter refers to it")
	default:
		step.Needs(fmt.Sprintf("HAProxy reads a %s file only at a reload", now.Kind))
	}
	d.add(rankFile, step)
}

// ofWholeFile adds the change of a whole file by one command.
func (d *difference) ofWholeFile(step change.Step, do change.Do, f config.File) {
	step.Impact, step.Do = change.Runtime, do
	step.Needs(d.target.WhyNot(step.Kind, step.Action, ""))
	if step.Do != nil && len(f.Content) > haproxyctl.MaxPayload-512 { // with room for the path
		step.Needs("the file does not fit into a runtime command")
	}
	d.add(rankFile, step)
}
