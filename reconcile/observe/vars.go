package observe

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// Text is a variable that a [Server] shows as it is, and not as JSON.
type Text string

// Bounds of what is shown.
const (
	maxContent  = 256 << 10 // bytes of one map
	maxContents = 4 << 20   // of all maps
	maxOps      = 200       // of one plan
)

// rendered is the newest validated configuration, without its secrets.
func rendered(cfg *dataplane.Config) Text {
	if cfg == nil {
		return "# no valid configuration yet\n"
	}
	return Text(mask(cfg.Main()))
}

// auxFile is a file of the configuration as it may be shown.
type auxFile struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Size    int    `json:"size"`
	Hash    string `json:"hash,omitempty"`    // SHA-256, shortened; not of certificates, since their keys are in them
	Content string `json:"content,omitempty"` // of maps alone
}

// auxFiles lists the files. Only maps have a content that is meant for people,
// and of them those whose name speaks of secrets have not.
func auxFiles(cfg *dataplane.Config) []auxFile {
	files, shown := []auxFile{}, 0
	if cfg == nil {
		return files
	}
	for _, f := range cfg.Files() {
		a := auxFile{Kind: string(f.Kind), Name: f.Name, Size: len(f.Content)}
		if f.Kind != dataplane.Certificate && !secretFile(f.Name) {
			sum := sha256.Sum256(f.Content)
			a.Hash = hex.EncodeToString(sum[:8])
		}
		switch {
		case f.Kind != dataplane.Map:
		case secretFile(f.Name):
			a.Content = masked
		case len(f.Content) > maxContent || shown+len(f.Content) > maxContents:
			a.Content = "(too long)"
		default:
			shown += len(f.Content)
			a.Content = mask(string(f.Content))
		}
		files = append(files, a)
	}
	return files
}

// watchInfo is a watch as it is shown: errors have their text.
type watchInfo struct {
	State      string    `json:"state"`
	Since      time.Time `json:"since,omitzero"`
	StaleSince time.Time `json:"staleSince,omitzero"`
	Synced     bool      `json:"synced"`
	Objects    int       `json:"objects"`
	Refused    int       `json:"refused,omitempty"` // that cannot be stored
	Revision   uint64    `json:"revision"`
	Error      string    `json:"error,omitempty"`
}

func (s *Subject) watchInfos() map[string]watchInfo {
	infos := map[string]watchInfo{}
	for name, w := range s.watches() {
		info := watchInfo{State: string(w.Phase), Since: w.Since, StaleSince: w.StaleSince, Synced: w.Synced,
			Objects: w.Objects, Refused: w.Refused, Revision: uint64(w.Revision)}
		if w.Err != nil {
			info.Error = w.Err.Error()
		}
		infos[name] = info
	}
	return infos
}

// settingsInfo is the state of settings as it is shown.
type settingsInfo struct {
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	AppliedAt time.Time `json:"appliedAt,omitzero"`
	Candidate string    `json:"candidate,omitempty"`
	Error     string    `json:"error,omitempty"`
	ErrorAt   time.Time `json:"errorAt,omitzero"`
}

func infoOf(s settings.State) settingsInfo {
	return settingsInfo{s.Name, s.Version, s.AppliedAt, s.Candidate, s.Error, s.ErrorAt}
}

// shortPlans cuts plans that are too long to read.
func shortPlans(plans []planEntry) []planEntry {
	for i, p := range plans {
		if p.Plan != nil && len(p.Plan.Ops) > maxOps {
			plans[i].Plan = &dataplane.Plan{Ops: p.Plan.Ops[:maxOps]} // the summary counts them all
		}
	}
	return plans
}

// findingInfo is what a check has found as it is shown.
type findingInfo struct {
	Component string `json:"component"`
	Probe     string `json:"probe"`
	Error     string `json:"error,omitempty"`
}

func findingInfos(findings []Finding) []findingInfo {
	infos := make([]findingInfo, 0, len(findings))
	for _, f := range findings {
		info := findingInfo{Component: f.Component, Probe: f.Probe.String()}
		if f.Err != nil {
			info.Error = f.Err.Error()
		}
		infos = append(infos, info)
	}
	return infos
}

// uptime says since when the process runs.
type uptime struct {
	Started time.Time `json:"started"`
	Uptime  string    `json:"uptime"`
	Seconds float64   `json:"seconds"`
}

func uptimeSince(started time.Time) uptime {
	up := time.Since(started)
	return uptime{started, brief(up), up.Seconds()}
}

// buildInfo says what runs. It leaves out build settings that may hold paths.
type buildInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Main     string `json:"main,omitempty"` // path of the module
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // beyond that revision
	SDK      string `json:"sdk,omitempty"`      // version of this module, where the program is another one
}

func (s *Subject) buildInfo() buildInfo {
	b := buildInfo{Version: s.version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Main = info.Main.Path
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/hapticsdk/haptic" {
			b.SDK = m.Version
		}
	}
	return b
}
