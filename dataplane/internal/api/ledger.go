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

// ledgerFile is a stored file in which a client notes what it has deployed, and whether the
// running process has it. Equal files and an equal text do not prove that the process has
// loaded them: the last client may have been killed before.
var ledgerFile = fileRef{config.General, "haptic-ledger.txt"}

// ledger is the content of ledgerFile.
type ledger struct {
	loaded string            // hash of the configuration that the process has, or unknown; "" while a change is open
	owned  map[string]string // keys such as "section backend shop" and "file maps hosts.map"; the value is the hash of a certificate
}

// unknown is the hash before there is a ledger.
const unknown = "nothing"

// ledgerTold replaces the hash while the process has, or is getting, changes that are not
// stored yet. They can be read back from the process, so there is no doubt.
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

// newLedger returns the ledger for a deployed configuration; parts is its normal form. The
// ledger lists sections only beside another owner.
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

// open returns the ledger for the time of the change from l to after. Entries of both are
// ours, so that after a crash they do not count as another owner's.
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

// readLedger reads the ledger. If a change is open in it, there is doubt.
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

// writeLedger stores a ledger, unless it is known to be stored.
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
