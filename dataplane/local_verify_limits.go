package dataplane

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"
)

// Types of "show stat" (management manual, section 9.3).
const (
	statFrontends = "1"
	statServers   = "4"
)

// slims asks for the limits of connections of the frontends or the servers of a
// proxy, or with "-1" of all: by the name of the proxy and that of the row. A
// limit that is not there is "".
func (a *applier) slims(ctx context.Context, proxy, kind string) (map[[2]string]string, error) {
	answer, err := a.conn.Exec(ctx, "show stat "+proxy+" "+kind+" -1")
	if err != nil {
		return nil, err
	}
	return parseSlims(answer)
}

// parseSlims reads the answer to "show stat" (management manual, section 9.1).
func parseSlims(answer string) (map[[2]string]string, error) {
	text, ok := strings.CutPrefix(answer, "# ")
	if !ok {
		return nil, &refused{"show stat", answer}
	}
	rows := csv.NewReader(strings.NewReader(text))
	rows.FieldsPerRecord = -1
	all, err := rows.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("show stat: %w", err)
	}
	column := make(map[string]int, len(all[0]))
	for i, name := range all[0] {
		column[name] = i
	}
	slim, ok := column["slim"]
	if !ok || all[0][0] != "pxname" || len(all[0]) < 2 || all[0][1] != "svname" {
		return nil, &refused{"show stat", strings.Join(all[0], ",")}
	}
	limits := make(map[[2]string]string, len(all)-1)
	for _, row := range all[1:] {
		if slim < len(row) {
			limits[[2]string{row[0], row[1]}] = row[slim]
		}
	}
	return limits, nil
}

// checkFrontends reads the limits of frontends back.
func (a *applier) checkFrontends(ctx context.Context, do *action) error {
	if len(do.frontends) == 0 {
		return nil
	}
	limits, err := a.slims(ctx, "-1", statFrontends) // a backend may have the same name
	if err != nil {
		return err
	}
	for _, name := range do.frontends {
		if is := limits[[2]string{name, "FRONTEND"}]; is != do.limit {
			return fmt.Errorf("frontend %s has another limit of connections after the change: %q instead of %s", name, is, do.limit)
		}
	}
	return nil
}

// checkServerLimits reads the limits of servers back, which "show servers
// state" does not tell. The servers are in the order of their backends.
func (a *applier) checkServerLimits(ctx context.Context, want map[serverRef]*action) error {
	var limits map[[2]string]string
	asked, err := "", error(nil)
	for _, ref := range a.touched {
		limit, ok := want[ref].serverLimit()
		if !ok {
			continue
		}
		if ref.backend != asked {
			if limits, err = a.slims(ctx, ref.backend, statServers); err != nil {
				return err
			}
			asked = ref.backend
		}
		row := [2]string{ref.backend, ref.server}
		is, ok := limits[row]
		if !ok { // a frontend has the same name
			if limits, err = a.slims(ctx, "-1", statServers); err != nil {
				return err
			}
			is = limits[row]
		}
		if is != limit {
			return fmt.Errorf("server %s/%s has another maxconn after the change", ref.backend, ref.server)
		}
	}
	return nil
}

// serverLimit returns the limit that a server has after the action as "show
// stat" writes it, and whether the action sets one.
func (do *action) serverLimit() (string, bool) {
	fields := do.fields
	if do.kind == addServer {
		line, _ := parseServer(append([]string{"server", do.server}, do.args...))
		if !line.has("maxconn") {
			return "", false
		}
		fields = []serverField{{"maxconn", line.value("maxconn")}}
	}
	for _, f := range fields {
		if f.name == "maxconn" {
			return strings.TrimLeft(f.value, "0"), true
		}
	}
	return "", false
}
