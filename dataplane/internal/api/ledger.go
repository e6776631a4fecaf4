package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// ledgerFile is a stored file in which a client notes what it has deployed, and
// whether the running process has it. A client that comes after one that was killed
// must not take equal files and an equal text for a process that has loaded them.
var ledgerFile = fileRef{config.General, "haptic-ledger.txt"}

// ledger is the content of that file.
type ledger struct {
	loaded string            // hash of the configuration that the process has, or unknown; "" while that is open
	owned  map[string]string // "section backend shop", "file maps hosts.map"; of a certificate its hash
}

// unknown is the hash before there is a ledger.
const unknown = "nothing"

// ledgerTold stands in the place of the hash while the process is told, or was told, what is
// not stored yet, but can be read back from it. That leaves no doubt.
const ledgerTold = "and told more"

const ledgerHead = "# Kept by haptic: the configuration that HAProxy has loaded, and the sections and files that are ours.\n"

func (l ledger) content() []byte {
	var b strings.Builder
	b.WriteString(ledgerHead + "loaded " + l.loaded + "\n")
	for _, name := range slices.Sorted(maps.Keys(l.owned)) {
		b.WriteString(strings.TrimSpace(name+" "+l.owned[name]) + "\n")
	}
	return []byte(b.String())
}

func parseLedger(content []byte) ledger {
	l := ledger{owned: map[string]string{}}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0][0] == '#':
		case words[0] == "loaded":
			l.loaded = strings.TrimSpace(strings.TrimPrefix(line, "loaded"))
		case words[0] == "file" && len(words) == 4:
			l.owned[strings.Join(words[:3], " ")] = words[3]
		default:
			l.owned[line] = ""
		}
	}
	return l
}

func (l ledger) equal(other ledger) bool {
	return l.loaded == other.loaded && maps.Equal(l.owned, other.owned)
}

// newLedger is the ledger of a configuration that is deployed; the parts are its normal
// form. Sections are only of interest beside another owner's.
func newLedger(desired *config.Config, parts []string, shared bool) ledger {
	l := ledger{loaded: desired.Hash(), owned: map[string]string{}}
	for _, f := range desired.Files {
		l.owned[refOf(f).entry()] = certificateHash(f)
	}
	if !shared {
		return l
	}
	for _, s := range haproxycfg.Split(strings.Join(parts, "")) {
		if s.Kind != "" {
			l.owned[sectionEntry(s)] = ""
		}
	}
	return l
}

// open is the ledger while a change from one to the other is under way. What either
// has is ours, so that it does not count as another owner's after a crash.
func (l ledger) open(after ledger) ledger {
	both := map[string]string{}
	for name := range after.owned {
		both[name] = ""
	}
	maps.Copy(both, l.owned)
	return ledger{owned: both}
}

func sectionEntry(s haproxycfg.Section) string {
	return strings.TrimRight("section "+s.Kind+" "+s.Name, " ")
}

func (r fileRef) entry() string { return "file " + string(r.storage()) + " " + r.name }

// readLedger reads the ledger. One that says that a change is open means doubt.
func (c *Client) readLedger(ctx context.Context) error {
	content, err := c.api.ReadFile(ctx, ledgerFile.storage(), ledgerFile.name)
	switch {
	case isStatus(err, http.StatusNotFound):
		c.ledger = ledger{loaded: unknown}
	case err != nil:
		return fileError(err, ledgerFile.kind, ledgerFile.name)
	default:
		c.ledger = parseLedger(content)
		c.doubt = c.doubt || c.ledger.loaded == "" && !c.closing
	}
	return nil
}

// writeLedger stores a ledger, unless it is known to stand there.
func (c *Client) writeLedger(ctx context.Context, l ledger) error {
	if c.ledger.equal(l) {
		return nil
	}
	f := config.File{Kind: config.General, Name: ledgerFile.name, Content: l.content()}
	if _, err := c.write(ctx, fileWrite{file: f, create: c.ledger.loaded == unknown}); err != nil {
		c.known = nil
		return err
	}
	c.ledger = l
	return nil
}
