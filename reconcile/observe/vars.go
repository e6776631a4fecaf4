package observe

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// plain is a variable that a [Server] shows as plain text, not as JSON.
type plain string

// Bounds of the variables.
const (
	maxContent  = 256 << 10 // bytes of one map
	maxContents = 4 << 20   // of all maps
	maxOps      = 200       // of one plan
)

// rendered returns the newest validated configuration, without its secrets.
func rendered(cfg *dataplane.Config) plain {
	if cfg == nil {
		return "# no valid configuration yet\n"
	}
	return plain(redact(cfg.Main()))
}

// redact hides the secrets in each line. Lines keep their numbers and their indent.
func redact(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		words := strings.TrimLeft(line, " \t")
		lines[i] = line[:len(line)-len(words)] + haproxycfg.Redact(words)
	}
	return strings.Join(lines, "\n")
}

// secretFile matches names of files whose entries may be secrets, such as auth.map.
var secretFile = regexp.MustCompile(`(?i)auth|cookie|key|pass|session|signature`)

// auxFile is the public part of a file of the configuration.
type auxFile struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Size    int    `json:"size"`
	Hash    string `json:"hash,omitempty"`    // SHA-256, shortened; not of certificates, because they contain their keys
	Content string `json:"content,omitempty"` // only of maps
}

// auxFiles lists the files. It shows only the content of maps, and not of maps whose name
// suggests secrets.
func auxFiles(cfg *dataplane.Config) []auxFile {
	files, shown := []auxFile{}, 0
	if cfg == nil {
		return files
	}
	for _, f := range cfg.Files() {
		a := auxFile{Kind: string(f.Kind), Name: f.Name, Size: len(f.Content)}
		hidden := haproxycfg.NamesSecret(f.Name) || secretFile.MatchString(f.Name)
		if f.Kind != dataplane.Certificate && !hidden {
			sum := sha256.Sum256(f.Content)
			a.Hash = hex.EncodeToString(sum[:8])
		}
		switch {
		case f.Kind != dataplane.Map:
		case hidden:
			a.Content = haproxycfg.Secret
		case len(f.Content) > maxContent || shown+len(f.Content) > maxContents:
			a.Content = "(too long)"
		default:
			shown += len(f.Content)
			a.Content = redact(string(f.Content))
		}
		files = append(files, a)
	}
	return files
}

// watchInfo is a watch in printable form: its error is a text.
type watchInfo struct {
	State      string    `json:"state"`
	Since      time.Time `json:"since,omitzero"`
	StaleSince time.Time `json:"staleSince,omitzero"`
	Synced     bool      `json:"synced"`
	Objects    int       `json:"objects"`
	Refused    int       `json:"refused,omitempty"` // objects that cannot be stored
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

// settings returns the current settings without the watches: watchInfos has those.
func (s *Subject) settings() *settings.State {
	if s.Settings == nil {
		return nil
	}
	state := s.Settings()
	state.Watched = nil
	return &state
}

// shortPlans cuts plans that are too long to read.
func shortPlans(plans []planEntry) []planEntry {
	for i, p := range plans {
		if p.Plan != nil && len(p.Plan.Ops) > maxOps {
			plans[i].Plan = &dataplane.Plan{Ops: p.Plan.Ops[:maxOps]} // the summary still counts them all
		}
	}
	return plans
}

func uptimeSince(started time.Time) map[string]any {
	up := time.Since(started)
	return map[string]any{"started": started, "uptime": brief(up), "seconds": up.Seconds()}
}

// version returns the version of the program.
func (s *Subject) version() string {
	if s.Version != "" {
		return s.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// buildInfo describes the build, without build settings that may hold paths.
func (s *Subject) buildInfo() map[string]any {
	b := map[string]any{"version": s.version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b["main"] = info.Main.Path
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b["revision"] = setting.Value
		case "vcs.modified":
			b["modified"] = setting.Value == "true"
		}
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/hapticsdk/haptic" {
			b["sdk"] = m.Version
		}
	}
	return b
}
