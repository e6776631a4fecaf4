package dataplanetest

import (
	"crypto/md5" //nolint:gosec // the checksum that the API keeps in the file
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// config is the stored configuration. The API reads haproxy.cfg when it starts
// and when an editor changed it, and otherwise believes what it has in memory.
type config struct {
	file    string // haproxy.cfg
	good    string // content of the file at the last successful load
	memory  string // with the lines of the API, without the checksum
	version int64

	// check says why a text in a file is refused, "" if it is not.
	check func(file, text string) string
}

// disclaimer is what the API puts above a text that it reads from the file.
const disclaimer = "# Dataplaneapi managed File\n# changing file directly can cause a conflict if dataplaneapi is running\n"

// open writes the file and reads it as the API does when it starts.
func (c *config) open(text string) (err error) {
	c.good = text
	plain, version := splitVersion(text)
	c.version = max(version, 1)
	if c.memory, err = rewrite(disclaimer+plain, c.version); err != nil {
		return err
	}
	return os.WriteFile(c.file, []byte(text), 0o644)
}

// edit is a change of the file with an editor: the API reads it, counts the
// version up and writes it back.
func (c *config) edit(text string) error {
	plain, version := splitVersion(text)
	stored, err := rewrite(disclaimer+plain, max(version, 1)+1)
	if err != nil {
		return err
	}
	return c.save(stored, max(version, 1)+1)
}

// overwrite is a push by another client that nothing checks.
func (c *config) overwrite(text string) error {
	plain, _ := splitVersion(text)
	stored, err := rewritePushed(plain, c.version+1)
	if err != nil {
		return err
	}
	return c.save(stored, c.version+1)
}

// splitVersion takes the lines with a version out of a text.
func splitVersion(text string) (plain string, version int64) {
	_, version = dpapi.SplitText(text)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "# _version=") {
			b.WriteString(line)
		}
	}
	return b.String(), version
}

// rewrite returns a text as the config parser of the API writes it.
func rewrite(plain string, version int64) (string, error) {
	return haproxycfg.RoundTrip(fmt.Sprintf("# _version=%d\n%s", version, plain))
}

// proxy finds the header of a proxy that names its defaults.
var proxy = regexp.MustCompile(`(?m)^[ \t]*(frontend|backend|listen)\s+(\S+)\s+from\s+\S+`)

// rewritePushed is rewrite for a text that a client pushes. Its proxies do not
// learn the names of their defaults, unlike those of a text in the file.
func rewritePushed(plain string, version int64) (string, error) {
	named := map[[2]string]bool{}
	for _, m := range proxy.FindAllStringSubmatch(plain, -1) {
		named[[2]string{m[1], m[2]}] = true
	}
	stored, err := rewrite(plain, version)
	return proxy.ReplaceAllStringFunc(stored, func(header string) string {
		m := proxy.FindStringSubmatch(header)
		if named[[2]string{m[1], m[2]}] {
			return header
		}
		return m[1] + " " + m[2]
	}), err
}

func (c *config) save(stored string, version int64) error {
	if err := os.WriteFile(c.file, []byte(withChecksum(stored)), 0o644); err != nil {
		return err
	}
	c.memory, c.version = stored, version
	return nil
}

func withChecksum(stored string) string {
	return fmt.Sprintf("# _md5hash=%x\n%s", md5.Sum([]byte(stored)), stored) //nolint:gosec // see the import
}

// push replaces the configuration if it has that version. If the version is not
// to be looked at, the text says what it will be.
func (c *config) push(text string, version int64, skipVersion bool) error {
	plain, next := splitVersion(text)
	switch {
	case skipVersion:
		next = max(next, 1)
	case version == 0:
		return problemf(http.StatusBadRequest, "version or transaction not specified: version or transaction not specified, specify only one")
	case version != c.version:
		return problemf(http.StatusConflict, "version mismatch: version in configuration file is %d, given version is %d", c.version, version)
	default:
		next = version + 1
	}
	stored, err := rewritePushed(plain, next)
	if err != nil {
		return err
	}
	id := newID()
	if why := c.checked(filepath.Join(filepath.Dir(c.file), "tx", filepath.Base(c.file)+"."+id), withChecksum(stored)); why != "" {
		return refused("err transactionId=" + id + " \n" + why)
	}
	return c.save(stored, next)
}

// validate checks a text without storing it.
func (c *config) validate(text string) error {
	if why := c.checked(filepath.Join(filepath.Dir(c.file), "tx", "onlyvalidate"), text); why != "" {
		return refused(why)
	}
	return nil
}

func (c *config) checked(file, content string) (why string) {
	if c.check == nil {
		return ""
	}
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = os.Remove(file) }()
	return c.check(file, content)
}

func refused(why string) error {
	return problemf(http.StatusBadRequest, "validation error: exit status 1: %s", why)
}

// newID makes an identifier in the form of those of transactions.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// loaded tells that HAProxy has loaded the file, or has not: then the file
// becomes that which it loaded last, and the memory stays.
func (c *config) loaded(ok bool) error {
	if !ok {
		return os.WriteFile(c.file, []byte(c.good), 0o644)
	}
	text, err := c.disk()
	c.good = text
	return err
}

// disk returns the content of the file.
func (c *config) disk() (string, error) {
	text, err := os.ReadFile(c.file)
	return string(text), err
}

// withoutHeader removes the lines that the API keeps at the top.
func withoutHeader(text string) string {
	plain, version := dpapi.SplitText(text)
	if version != 0 {
		plain = strings.TrimPrefix(plain, "\n")
	}
	return plain
}
