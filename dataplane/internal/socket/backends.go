package socket

import (
	"context"
	"encoding/csv"
	"maps"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
)

// experimental allows the connection to make and delete backends (management manual of
// HAProxy 3.4, section 9.3).
const experimental = "experimental-mode on"

// attached is part of HAProxy's answer for a backend that still has requests.
const attached = "attached streams"

// backend queues the commands about a backend and its servers. Requests find a new backend
// only when it has all servers.
func (a *applier) backend(ctx context.Context, do change.Do) error {
	if do, ok := do.(*change.MakeBackend); ok {
		a.queue = append(a.queue, command{text: experimental},
			command{text: "add backend", args: []string{do.Backend, "from", do.From, "mode", do.Mode}, good: []string{"New backend registered"}})
	}
	for _, server := range change.ServersOf(do) {
		if err := a.one(ctx, server); err != nil {
			return err
		}
	}
	switch do := do.(type) {
	case *change.MakeBackend:
		a.publish(do.Backend)
	case *change.TakeBackend:
		if do.Publish {
			a.publish(do.Name.Backend)
		}
	case *change.LeaveBackend:
		if !do.Publish {
			break
		}
		if err := a.flush(ctx); err != nil {
			return err
		}
		return a.deleteBackend(ctx, do.Name.Backend)
	}
	return nil
}

// publish queues the command that lets requests find a backend.
func (a *applier) publish(name string) {
	a.queue = append(a.queue, command{text: "publish backend", args: []string{name}, good: []string{"Backend published"}})
}

// deleteBackend hides a backend from requests, and deletes it with its servers if it has no
// requests. Until it is deleted, the backend is in leaving. If HAProxy can never delete it,
// it stays until the next reload.
func (a *applier) deleteBackend(ctx context.Context, name string) error {
	whole := change.ServerRef{Backend: name}
	of := func(ref change.ServerRef) bool { return ref.Backend == name }
	maps.DeleteFunc(a.want, func(ref change.ServerRef, _ []change.Setting) bool { return of(ref) })
	a.leaving[whole] = struct{}{}
	del, stat := "del backend "+name, "show stat "+name+" 2 -1"
	answers, err := a.sendAsking(ctx, []string{experimental, del, stat},
		command{text: "unpublish backend", args: []string{name}, good: []string{"Backend unpublished", "No such backend"}})
	if err != nil {
		return err
	}
	answer := answers[1]
	if strings.Contains(answer, "without server") {
		if !isIdle(answers[2], name) {
			return nil
		}
		if answer, err = a.deleteWithServers(ctx, name, del); err != nil {
			return err
		}
	}
	switch {
	case strings.Contains(answer, "Backend deleted"), strings.Contains(answer, "No such backend"):
		maps.DeleteFunc(a.leaving, func(ref change.ServerRef, _ struct{}) bool { return of(ref) })
		a.deleted, a.sent = append(a.deleted, name), a.sent+1
	case !strings.Contains(answer, attached) && !strings.Contains(answer, "without server"):
		delete(a.leaving, whole)
	}
	return nil
}

// deleteWithServers deletes all servers of a backend without requests, and then sends the
// command del. It returns the answer to it. It deletes no server unless it can delete all,
// because idle connections take a moment to close.
func (a *applier) deleteWithServers(ctx context.Context, name, del string) (answer string, err error) {
	states, err := a.servers(ctx, name)
	if err != nil {
		return "", err
	}
	var closes, waits, deletes []string
	for ref := range states {
		set := "set server " + ref.String() + " state "
		closes = append(closes, set+"drain", set+"maint") // a change of the state closes idle connections
		waits = append(waits, "wait 10ms srv-removable "+ref.String())
		deletes = append(deletes, "del server "+ref.String())
	}
	answers, err := a.conn.Batch(ctx, append(closes, waits...))
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(answers[len(closes):], func(answer string) bool { return !strings.Contains(answer, "Done") }) {
		return attached, nil
	}
	if answers, err = a.conn.Batch(ctx, append(deletes, del)); err != nil {
		return "", err
	}
	return answers[len(answers)-1], nil
}

// isIdle reports whether a backend has no requests, from the answer to "show stat".
func isIdle(answer, name string) bool {
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(answer, "# "))).ReadAll()
	if err != nil || len(rows) != 2 {
		return false
	}
	is, now := slices.Index(rows[0], "pxname"), slices.Index(rows[0], "scur")
	return is >= 0 && now >= 0 && rows[1][is] == name && rows[1][now] == "0"
}

// Deleted returns the backends that Apply has deleted.
func (w *Worker) Deleted() []string { return w.deleted }
