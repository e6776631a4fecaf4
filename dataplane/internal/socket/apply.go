package socket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/late"
)

// Leaving has the servers of one process that are in maintenance but still had connections. A
// reference without a server name stands for a whole backend that still had requests.
type Leaving map[change.ServerRef]struct{}

// applier is one Apply under way.
type applier struct {
	*Worker
	layout  config.Layout
	leaving Leaving
	sent    int
	queue   []command                             // changes of servers: many and short
	ids     map[string]int                        // highest identifier of a server, by backend
	want    map[change.ServerRef][]change.Setting // settings to read back
}

// Apply carries out the changes in order, and reads the changed servers back as far as
// HAProxy shows them. It returns the number of commands that changed something. If HAProxy
// refuses a command, the error is a *[Refused].
//
// A server that still has connections when it goes stays in maintenance. Apply puts it into
// leaving, and each later Apply tries to delete it again. It treats backends that HAProxy can
// delete in the same way; [Worker.Deleted] lists the deleted ones.
func (w *Worker) Apply(ctx context.Context, layout config.Layout, leaving Leaving, dos []change.Do) (sent int, err error) {
	a := &applier{Worker: w, layout: layout, leaving: leaving,
		ids: make(map[string]int), want: make(map[change.ServerRef][]change.Setting)}
	for _, do := range dos {
		if take, ok := do.(*change.TakeBackend); ok { // the backend comes back
			delete(leaving, change.ServerRef{Backend: take.Name.Backend})
		}
	}
	for ref := range leaving {
		if ref.Server == "" {
			if err := a.deleteBackend(ctx, ref.Backend); err != nil {
				return a.sent, err
			}
			continue
		}
		// A change of the state closes the remaining idle connections.
		again := "set server " + a.inProcess(ref).String() + " state "
		if err := a.send(ctx, command{text: again + "drain"}, command{text: again + "maint"}); err != nil {
			return a.sent, err
		}
		if err := a.remove(ctx, ref); err != nil {
			return a.sent, err
		}
	}
	if err := a.learnIDs(ctx, dos); err != nil {
		return a.sent, err
	}
	for _, do := range dos {
		if err := a.one(ctx, do); err != nil {
			return a.sent, err
		}
	}
	return a.sent, a.readBack(ctx)
}

func (a *applier) one(ctx context.Context, do change.Do) error {
	switch do := do.(type) { // a plan may have thousands of these; their commands are sent together
	case *change.SetServer:
		a.setServer(do)
		return nil
	case *change.AddServer:
		return a.addServer(do.Ref, do.Server)
	case *change.TakeBackend, *change.LeaveBackend, *change.MakeBackend:
		return a.backend(ctx, do)
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	switch do := do.(type) {
	case *change.DeleteServer:
		return a.deleteServer(ctx, do.Ref)
	case *change.ChangeEntries:
		return a.changeEntries(ctx, do)
	case *change.NewCertificate:
		if err := a.send(ctx, command{text: "new ssl cert", args: []string{a.path(do.File)}, good: []string{"New empty", "already exists"}}); err != nil {
			return err
		}
		return a.commit(ctx, "cert", do.File)
	case *change.SetCertificate:
		return a.commit(ctx, "cert", do.File)
	case *change.DeleteCertificate:
		return a.send(ctx, command{text: "del ssl cert", args: []string{a.path(do.File)}, good: []string{"' deleted", "doesn't exist", "not referenced"}})
	case *change.ChangeListEntry:
		return a.changeList(ctx, do)
	case *change.SetCA:
		return a.commit(ctx, "ca-file", do.File)
	}
	return fmt.Errorf("unknown change %T", do)
}

// flush sends the queued changes of servers together.
func (a *applier) flush(ctx context.Context) error {
	queue := a.queue
	a.queue = nil
	return a.send(ctx, queue...)
}

func (a *applier) path(f config.File) string { return a.layout.Path(f.Kind, f.Name) }

// setServer queues the commands that change a server.
func (a *applier) setServer(do *change.SetServer) {
	settings := change.InOrder(do.Set)
	for _, s := range settings {
		a.queue = append(a.queue, command{text: s.Row.Command(a.inProcess(do.Ref), s.Value), good: s.Row.Good})
	}
	a.want[do.Ref] = append(a.want[do.Ref], settings...)
}

// addServer queues the commands that add a server as it would be after a reload: with checks,
// and enabled.
func (a *applier) addServer(ref change.ServerRef, server *config.Server) error {
	if _, ok := a.leaving[ref]; ok {
		return fmt.Errorf("HAProxy cannot add server %s: a removed server of this name still has connections", ref)
	}
	args := a.addArgs(ref, server)
	a.queue = append(a.queue, command{text: "add server", args: args, good: []string{"New server registered"}})
	a.want[ref] = change.SettingsOf(server)
	if server.Has("check") {
		a.queue = append(a.queue, command{text: "enable health", args: args[:1]})
	}
	if !server.Disabled() {
		a.queue = append(a.queue, command{text: change.FieldRow("state").Command(a.inProcess(ref), change.Ready)})
	}
	return nil
}

// addArgs returns the arguments with which "add server" gives the same server as a reload.
// HAProxy does not derive some settings for added servers (management manual, section 9.3).
// The health check does not speak TLS and the PROXY protocol by itself. Up to 2.6 minconn
// does not follow maxconn. Up to 2.8 servers without an identifier push each other out of the
// tree of balance random.
func (a *applier) addArgs(ref change.ServerRef, server *config.Server) []string {
	words := append([]string{a.inProcess(ref).String()}, server.Args...)
	words = slices.DeleteFunc(words, func(w string) bool { return w == "disabled" || w == "enabled" }) // an added server starts in maintenance anyway
	if server.Disabled() {
		words = append(words, "disabled") // pauses its checks
	}
	if limit := server.Value("maxconn"); limit != "" && !server.Has("minconn") {
		words = append(words, "minconn", limit)
	}
	likeTraffic := server.Has("check") && !server.CheckElsewhere()
	if likeTraffic && server.Has("ssl") && !server.Has("check-ssl") {
		words = append(words, "check-ssl")
	}
	if likeTraffic && server.SendsProxy() && !server.Has("check-send-proxy") {
		words = append(words, "check-send-proxy")
	}
	if server.Has("id") {
		return words
	}
	a.ids[ref.Backend]++
	return append(words, "id", strconv.Itoa(a.ids[ref.Backend]))
}

// learnIDs asks once for the highest identifiers in all backends that get servers.
func (a *applier) learnIDs(ctx context.Context, dos []change.Do) error {
	for _, do := range dos {
		if _, made := do.(*change.MakeBackend); made { // a new backend has no server yet
			continue
		}
		for _, one := range append([]change.Do{do}, change.ServersOf(do)...) {
			if add, ok := one.(*change.AddServer); ok && !add.Server.Has("id") {
				a.ids[add.Ref.Backend] = 0
			}
		}
	}
	if len(a.ids) == 0 {
		return nil
	}
	states, err := a.servers(ctx, slices.Collect(maps.Keys(a.ids))...)
	for ref, s := range states {
		a.ids[ref.Backend] = max(a.ids[ref.Backend], s.ID)
	}
	return err
}

// deleteServer takes a server out of service and deletes it, now or when its
// last connection has ended.
func (a *applier) deleteServer(ctx context.Context, ref change.ServerRef) error {
	delete(a.want, ref)
	if err := a.send(ctx, command{text: change.FieldRow("state").Command(a.inProcess(ref), change.Maint), good: []string{"", "No such server"}}); err != nil {
		return err
	}
	return a.remove(ctx, ref)
}

// remove deletes a server in maintenance, unless it still has connections.
func (a *applier) remove(ctx context.Context, ref change.ServerRef) error {
	err := a.send(ctx, command{text: "del server", args: []string{a.inProcess(ref).String()}, good: []string{"Server deleted", "No such server"}})
	if refused := (*Refused)(nil); errors.As(err, &refused) && strings.Contains(refused.Answer, "connection") {
		a.leaving[ref] = struct{}{}
		return nil
	}
	if err == nil {
		delete(a.leaving, ref)
	}
	return err
}

// readBack sends the queue, and checks that the servers have their changes. HAProxy may
// accept a command although another part of it decides otherwise. From HAProxy 2.9 on a task
// applies addresses, so readBack asks again for changes that do not show yet.
func (a *applier) readBack(ctx context.Context) error {
	begin, over := time.Now(), time.After(waitForChange)
	for pause := pollEvery / 16; ; pause = min(2*pause, pollEvery) {
		states, err := a.sendAndShow(ctx)
		if err != nil {
			return err
		}
		if err = a.missing(states); err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-over:
			return err
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return &late.Error{What: err.Error(), After: time.Since(begin)}
		}
	}
}

// sendAndShow sends the queue, and asks for the servers to read back.
func (a *applier) sendAndShow(ctx context.Context) (map[change.ServerRef]change.ServerState, error) {
	backends := make(map[string]bool)
	for ref := range a.want {
		backends[ref.Backend] = true
	}
	queue := a.queue
	a.queue = nil
	answers, err := a.sendAsking(ctx, a.showServers(slices.Collect(maps.Keys(backends))...), queue...)
	if err != nil || len(backends) == 0 {
		return nil, err
	}
	return a.serversOf(answers)
}

// missing returns an error if a server does not show its changes. It drops the other servers
// from the list to read back.
func (a *applier) missing(states map[change.ServerRef]change.ServerState) (err error) {
	for ref, settings := range a.want {
		state, there := states[ref]
		if field := state.Misses(settings); !there || field != "" {
			err = fmt.Errorf("HAProxy accepted a change of server %s but does not show it: %s", ref, field)
		} else {
			delete(a.want, ref)
		}
	}
	return err
}
