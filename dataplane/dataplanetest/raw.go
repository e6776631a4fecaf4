package dataplanetest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (s *Server) getVersion(*request) (answer, error) {
	return answer{status: http.StatusOK, body: s.config.version}, nil
}

// getRaw sends the file.
func (s *Server) getRaw(*request) (answer, error) { return s.rawText(http.StatusOK), nil }

func (s *Server) rawText(status int) answer {
	a := answer{status: status, body: s.diskText()}
	if rest, ok := strings.CutPrefix(s.diskText(), "# _md5hash="); ok {
		a.checksum, _, _ = strings.Cut(rest, "\n")
	}
	return a
}

// plainly answers with an error as the handlers of raw texts do, whose JSON
// comes as plain text.
func plainly(err error) (answer, error) {
	a := refusal(err)
	_, body := a.content()
	a.body = string(body)
	return a, nil
}

func (s *Server) postRaw(q *request) (answer, error) {
	text := string(q.body)
	version, err := q.number("version")
	switch {
	case err != nil:
		return answer{}, err
	case text == "":
		return answer{}, invalid(codeRequired, "data in body is required")
	case !strings.Contains(text, "\n"):
		return plainly(problemf(http.StatusBadRequest, "invalid configuration: no newline character found"))
	case q.flag("only_validate"):
		if err := s.config.validate(text); err != nil {
			return plainly(err)
		}
		return s.rawText(http.StatusAccepted), nil
	}
	if len(s.behind) > 0 {
		s.write(s.behind[0])
		s.behind = s.behind[1:]
	}
	if err := s.config.push(text, version, q.flag("skip_version")); err != nil {
		return plainly(err)
	}
	stored := s.rawText(0).body
	if !q.flag("skip_reload") {
		a, err := s.reloaded(q, http.StatusCreated, stored)
		if err != nil {
			return plainly(err)
		}
		return a, nil
	}
	for action := range strings.SplitSeq(q.Header.Get("X-Runtime-Actions"), ";") {
		if err := s.act(action); err != nil {
			return plainly(err)
		}
	}
	return s.rawText(http.StatusCreated), nil
}

// action returns the command of HAProxy for a runtime action, with a number for
// each word that it takes; "" for an action that the API does not know.
func action(name string) (command string, words int) {
	const server = "$1/$2"
	switch name {
	case "SetServerWeight":
		return "set server " + server + " weight $3", 4
	case "SetServerCheckPort":
		return "set server " + server + " check-port $3", 4
	case "SetServerAddr":
		return "set server " + server + " addr $3 port $4", 5
	case "SetServerState":
		return "set server " + server + " state $3", 4
	case "EnableAgentCheck":
		return "enable agent " + server, 3
	case "DisableAgentCheck":
		return "disable agent " + server, 3
	case "SetServerAgentAddr":
		return "set server " + server + " agent-addr $3", 4
	case "SetServerAgentSend":
		return "set server " + server + " agent-send $3", 4
	}
	return "", 0
}

// act carries out a runtime action and records it. Like the API it ignores one
// that it does not know, and splits at blanks, which nothing escapes.
func (s *Server) act(text string) error {
	if text == "" {
		return nil
	}
	s.actions = append(s.actions, text)
	words := strings.Split(text, " ")
	command, want := action(words[0])
	if command == "" {
		return nil
	}
	if err := s.actWith(command, words, want); err != nil {
		return fmt.Errorf("cannot execute %s: %w", words[0], err)
	}
	return nil
}

func (s *Server) actWith(command string, words []string, want int) error {
	if len(words) < want {
		return errors.New("not enough parameters")
	}
	last := words[want-1]
	switch words[0] {
	case "SetServerAddr", "SetServerCheckPort":
		if _, err := strconv.Atoi(last); err != nil {
			return err
		}
	case "SetServerState":
		if !slices.Contains([]string{"ready", "drain", "maint"}, last) {
			return errors.New("bad request")
		}
	}
	if words[0] == "SetServerAddr" && last == "0" {
		command = strings.TrimSuffix(command, " port $4")
	}
	var places []string
	for i, word := range words[1:want] {
		places = append(places, "$"+strconv.Itoa(i+1), word)
	}
	_, err := s.exec(strings.NewReplacer(places...).Replace(command))
	return err
}
