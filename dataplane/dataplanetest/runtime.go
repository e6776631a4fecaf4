package dataplanetest

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// socket is the path that messages about the running process begin with.
func (s *Server) socket() string {
	return filepath.Join(filepath.Dir(s.opts.Layout.ConfigPath()), "master.sock")
}

// exec sends a command and tells errors from answers by their severity, as far
// as HAProxy gives one.
func (s *Server) exec(command string) (string, error) { return s.execAs(command, nil) }

// execAs is exec for a command whose errors are of a kind.
func (s *Server) execAs(command string, kind error) (string, error) {
	out, err := s.proc.Command(command)
	if err == nil && len(out) > 4 && out[0] == '[' && strings.ContainsRune("0123", rune(out[1])) && out[2:4] == "]:" {
		err = fmt.Errorf("[%c] %s [%s]", out[1], out[4:], command)
	}
	if err != nil && kind != nil {
		err = fmt.Errorf("%s %w", err.Error(), kind)
	}
	if err != nil {
		return "", fmt.Errorf("%s %w", s.socket(), err)
	}
	return out, nil
}

// expect sends a command whose answer has to hold some words.
func (s *Server) expect(command string, words ...string) error {
	out, err := s.execAs(command, errGeneral)
	if err != nil {
		return err
	}
	said := func(word string) bool { return strings.Contains(strings.ToLower(out), word) }
	if !slices.ContainsFunc(words, said) {
		return s.runtimeError(out, errGeneral)
	}
	return nil
}

// runtimeError is an error of that kind in the words of client-native.
func (s *Server) runtimeError(text string, kind error) error {
	return fmt.Errorf("%s %s %w", s.socket(), text, kind)
}

// did records a change of the running process and answers.
func (s *Server) did(status int, body any, what ...string) (answer, error) {
	s.actions = append(s.actions, strings.Join(what, " "))
	return answer{status: status, body: body}, nil
}

// rows returns the words of each line that has so many at least, without
// headers.
func rows(out string, least int) (list [][]string) {
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= least && !strings.HasPrefix(f[0], "#") {
			list = append(list, f)
		}
	}
	return list
}

func (s *Server) processInfo(*request) (answer, error) {
	info := map[string]any{}
	out, err := s.exec("show info typed")
	for line := range strings.Lines(out) {
		// 6.Pid.1:CGS:u32:1234
		fields := strings.SplitN(strings.TrimSpace(line), ":", 4)
		name := strings.Split(fields[0], ".")
		if len(fields) != 4 || len(name) < 2 {
			continue
		}
		switch name[1] {
		case "Version":
			info["version"] = fields[3]
		case "Pid":
			info["pid"], _ = strconv.Atoi(fields[3])
		case "Uptime_sec":
			info["uptime"], _ = strconv.Atoi(fields[3])
		}
	}
	body := map[string]any{"info": info, "runtimeAPI": s.socket()}
	if err != nil {
		body["error"] = err.Error()
	}
	return answer{status: http.StatusOK, body: body}, nil
}

// stat is an element of the answer of stats/native.
type stat struct {
	Name    string         `json:"name,omitempty"`
	Type    string         `json:"type,omitempty"`
	Backend string         `json:"backend_name,omitempty"`
	Stats   map[string]any `json:"stats"`
}

func (s *Server) stats(q *request) (answer, error) {
	kind, parent := q.param("type"), q.param("parent")
	body := map[string]any{"runtimeAPI": s.socket() + "@1"}
	out, err := s.exec("show stat")
	if err != nil {
		body["error"] = err.Error()
		return answer{status: http.StatusInternalServerError, body: body}, nil
	}
	stats := slices.DeleteFunc(readStats(out), func(st stat) bool {
		return kind != "" && st.Type != kind || parent != "" && st.Backend != parent
	})
	if len(stats) > 0 {
		body["stats"] = stats
	}
	return answer{status: http.StatusOK, body: body}, nil
}

// Columns that answers carry: words and numbers. The API carries more.
var (
	wordColumns   = []string{"addr", "algo", "check_status", "cookie", "mode", "status"}
	numberColumns = []string{"act", "bck", "iid", "lastchg", "pid", "scur", "sid", "slim", "smax", "stot", "weight"}
)

// readStats reads the answer to "show stat" as the API does, which takes the
// first line for the names of the columns, whatever it is: before HAProxy 2.7
// the master socket has an error there, and nothing can be told of the rest.
func readStats(out string) (stats []stat) {
	header, rest, _ := strings.Cut(out, "\n")
	keys := strings.Split(strings.TrimPrefix(header, "# "), ",")
	for line := range strings.Lines(rest) {
		fields := strings.Split(strings.TrimRight(line, "\n"), ",")
		if len(fields) < len(keys) {
			continue
		}
		st := stat{Stats: map[string]any{}}
		for i, key := range keys {
			switch n, err := strconv.ParseInt(fields[i], 10, 64); {
			case fields[i] == "":
			case key == "type":
				st.Name, st.Type, st.Backend = named(fields, fields[i])
			case slices.Contains(numberColumns, key) && err == nil:
				st.Stats[key] = n
			case slices.Contains(wordColumns, key):
				st.Stats[key] = fields[i]
			}
		}
		stats = append(stats, st)
	}
	return stats
}

// named tells what a line is about, by the number of its type. The API does not
// tell of a listener.
func named(fields []string, number string) (name, kind, backend string) {
	switch number {
	case "0", "1":
		return fields[0], strings.ToLower(fields[1]), ""
	case "2":
		return fields[1], "server", fields[0]
	}
	return "", "", ""
}

// ofMaps wraps an endpoint of maps, which has statuses of its own for errors.
func ofMaps(do func(*Server, *request) (answer, error)) func(*Server, *request) (answer, error) {
	return func(s *Server, q *request) (answer, error) {
		a, err := do(s, q)
		switch {
		case errors.Is(err, errExists):
			err = problemf(http.StatusConflict, "%s", err)
		case errors.Is(err, errGeneral):
			err = problemf(http.StatusBadRequest, "%s", err)
		}
		return a, err
	}
}
