package dataplanetest

import (
	"crypto/md5" //nolint:gosec // the checksum that the API keeps in the file
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// stored is the stored configuration. The API reads haproxy.cfg when it starts, and then
// trusts its memory.
type stored struct {
	file    string // haproxy.cfg
	good    string // content of the file at the last successful load
	memory  string // with the lines that the API adds, except the checksum
	version int64
}

// splitVersion removes the lines with a version from a text.
func splitVersion(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "# _version=") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// proxy matches the header of a proxy that names its defaults.
var proxy = regexp.MustCompile(`(?m)^[ \t]*(frontend|backend|listen)\s+(\S+)\s+from\s+\S+`)

// rewritten returns a text as the config parser of the API writes it. The headers of proxies
// that do not name their defaults stay as they are.
func rewritten(text string, version int64) (string, error) {
	plain := splitVersion(text)
	named := map[string]bool{}
	for _, m := range proxy.FindAllStringSubmatch(plain, -1) {
		named[m[1]+" "+m[2]] = true
	}
	out, err := haproxycfg.RoundTrip(fmt.Sprintf("# _version=%d\n%s", version, plain))
	return proxy.ReplaceAllStringFunc(out, func(header string) string {
		m := proxy.FindStringSubmatch(header)
		if name := m[1] + " " + m[2]; !named[name] {
			return name
		}
		return header
	}), err
}

// save stores a rewritten text as the next version.
func (c *stored) save(text string) error {
	if err := os.WriteFile(c.file, []byte(withChecksum(text)), 0o644); err != nil {
		return err
	}
	c.memory, c.version = text, c.version+1
	return nil
}

func withChecksum(text string) string {
	return fmt.Sprintf("# _md5hash=%x\n%s", md5.Sum([]byte(text)), text) //nolint:gosec // see the import
}

// overwrite is a push by another client, without any check.
func (c *stored) overwrite(text string) error {
	text, err := rewritten(text, c.version+1)
	if err != nil {
		return err
	}
	return c.save(text)
}

// loaded records whether HAProxy has loaded the file. If it has not, the file gets the
// content of the last successful load, and the memory stays.
func (c *stored) loaded(ok bool) error {
	if !ok {
		return os.WriteFile(c.file, []byte(c.good), 0o644)
	}
	text, err := os.ReadFile(c.file)
	c.good = string(text)
	return err
}

// withoutHeader removes the lines that the API keeps at the top.
func withoutHeader(text string) string {
	plain, version := dpapi.SplitText(text)
	if version != 0 {
		plain = strings.TrimPrefix(plain, "\n")
	}
	return plain
}

func (s *Server) getVersion(*request) (int, any, error) { return http.StatusOK, s.version, nil }

func (s *Server) getRaw(*request) (int, any, error) {
	return http.StatusOK, []byte(s.diskText()), nil
}

func (s *Server) postRaw(q *request) (int, any, error) {
	body, err := q.content()
	if err != nil {
		return 0, nil, err
	}
	if q.flag("only_validate") {
		return http.StatusAccepted, []byte(s.diskText()), s.validate(string(body))
	}
	if len(s.behind) > 0 {
		s.write(s.behind[0])
		s.behind = s.behind[1:]
	}
	if err := s.push(string(body), q.URL.Query().Get("version")); err != nil {
		return 0, nil, err
	}
	pushed := []byte(s.diskText())
	if !q.flag("skip_reload") {
		return s.reloaded(q, http.StatusCreated, pushed)
	}
	if header := q.Header.Get("X-Runtime-Actions"); header != "" {
		for action := range strings.SplitSeq(header, ";") {
			if err := s.act(action); err != nil {
				return 0, nil, err
			}
		}
	}
	return http.StatusCreated, pushed, nil
}

// push replaces the configuration if its version is the given one.
func (s *Server) push(text, version string) error {
	switch now := strconv.FormatInt(s.version, 10); version {
	case now:
	case "":
		return problemf(http.StatusBadRequest, "version or transaction not specified, specify only one")
	default:
		return problemf(http.StatusConflict, "version mismatch: version in configuration file is %s, given version is %s", now, version)
	}
	text, err := rewritten(text, s.version+1)
	if err == nil {
		err = s.validate(withChecksum(text))
	}
	if err != nil {
		return err
	}
	return s.save(text)
}

// validate refuses a text that HAProxy, or the function of the test in its place, refuses.
func (s *Server) validate(text string) error {
	if s.check == nil {
		return nil
	}
	file := filepath.Join(filepath.Dir(s.file), "tx", filepath.Base(s.file))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		return err
	}
	if why := s.check(file, text); why != "" {
		return problemf(http.StatusBadRequest, "validation error: exit status 1: %s", why)
	}
	return nil
}

// act carries out a runtime action and records it. Like the API, it ignores unknown actions
// and splits at blanks; there is no way to escape a blank.
func (s *Server) act(action string) error {
	s.actions = append(s.actions, action)
	words := append(strings.Split(action, " "), "", "", "", "")
	command := "set server " + words[1] + "/" + words[2]
	switch words[0] {
	case "SetServerAddr":
		command += " addr " + words[3] + " port " + words[4]
	case "SetServerWeight":
		command += " weight " + words[3]
	case "SetServerState":
		command += " state " + words[3]
	default:
		return nil
	}
	_, err := s.exec(command)
	return err
}
