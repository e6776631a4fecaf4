package dataplanetest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// actionWords are how many words a runtime action has to have.
func actionWords(action string) int {
	switch action {
	case "EnableAgentCheck", "DisableAgentCheck", "SetFrontendMaxConn":
		return 3
	case "SetServerWeight", "SetServerCheckPort", "SetServerState", "SetServerAgentAddr", "SetServerAgentSend":
		return 4
	case "SetServerAddr":
		return 5
	}
	return 0
}

var (
	errTooFew     = errors.New("not enough parameters")
	errBadRequest = errors.New("bad request")
)

// splitAction splits a runtime action at its blanks, which nothing escapes.
func splitAction(action string) []string { return strings.Split(action, " ") }

// act carries out a runtime action and records it. One that it does not know
// it ignores, as the real one does.
func (s *Server) act(action string) error {
	s.actions = append(s.actions, action)
	words := splitAction(action)
	want := actionWords(words[0])
	switch {
	case want == 0:
		return nil
	case len(words) < want:
		return errTooFew
	}
	number := ""
	state := []string{"ready", "drain", "maint"}
	switch words[0] {
	case "SetFrontendMaxConn", "SetServerCheckPort":
		number = words[want-1]
	case "SetServerAddr":
		number = words[4]
	}
	if words[0] == "SetServerState" && !slices.Contains(state, words[3]) {
		return errBadRequest
	}
	if number != "" {
		if _, err := strconv.ParseInt(number, 10, 64); err != nil {
			return err
		}
	}
	_, err := s.exec(actionCommand(words), nil)
	return err
}

// actionCommand is the command of HAProxy for a runtime action, "" if there is
// none.
func actionCommand(words []string) string {
	server := func() string { return words[1] + "/" + words[2] }
	switch words[0] {
	case "SetFrontendMaxConn":
		return "set maxconn frontend " + words[1] + " " + words[2]
	case "SetServerWeight":
		return "set server " + server() + " weight " + words[3]
	case "SetServerCheckPort":
		return "set server " + server() + " check-port " + words[3]
	case "SetServerAddr":
		if words[4] == "0" {
			return "set server " + server() + " addr " + words[3]
		}
		return "set server " + server() + " addr " + words[3] + " port " + words[4]
	case "SetServerState":
		return "set server " + server() + " state " + words[3]
	case "EnableAgentCheck":
		return "enable agent " + server()
	case "DisableAgentCheck":
		return "disable agent " + server()
	case "SetServerAgentAddr":
		return "set server " + server() + " agent-addr " + words[3]
	case "SetServerAgentSend":
		return "set server " + server() + " agent-send " + words[3]
	}
	return ""
}
