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

// Leaving are servers of one process in maintenance that still had connections. One
// without a name stands for a whole backend that still had requests.
type Leaving map[change.ServerRef]struct{}

// applier is one Apply under way.
type applier struct {
	*Worker
	layout  config.Layout
	leaving Leaving
	sent    int
	queue   []command                             // changes of servers, which are many and short
	ids     map[string]int                        // highest identifier of a server, by backend
	want    map[change.ServerRef][]change.Setting // what is to be read back
}

// Apply carries out the changes in order, and reads back what can be read of the
// servers that it told something. It returns how many commands changed
// something. The error is a *[Refused] for a command that HAProxy did not take.
//
// A server that still has connections when it goes stays in maintenance. Apply
// puts it into leaving, and each later Apply tries to delete it again. So it does with
// backends that HAProxy can delete; Deleted tells when.
func (w *Worker) Apply(ctx context.Context, layout config.Layout, leaving Leaving, dos []*change.Do) (sent int, err error) {
	a := &applier{Worker: w, layout: layout, leaving: leaving,
		ids: make(map[string]int), want: make(map[change.ServerRef][]change.Setting)}
	for _, do := range dos {
		if do.Verb == change.TakeBackend { // it comes back
			delete(leaving, change.ServerRef{Backend: do.Name.Backend})
		}
	}
	for ref := range leaving {
		if ref.Server == "" {
			if err := a.deleteBackend(ctx, ref.Backend); err != nil {
				return a.sent, err
			}
			continue
		}
		// A change of the state closes the idle connections that are left.
		again := "set server " + a.inProcess(ref).String() + " state "
		if err := a.tell(ctx, command{text: again + "drain"}, command{text: again + "maint"}); err != nil {
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

func (a *applier) one(ctx context.Context, do *change.Do) error {
	switch do.Verb { // those of which a plan may have thousands travel together
	case change.SetServer:
		a.setServer(do)
		return nil
	case change.AddServer:
		return a.addServer(do.Ref, do.Server)
	case change.TakeBackend, change.LeaveBackend, change.MakeBackend:
		return a.backend(ctx, do)
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	switch do.Verb {
	case change.DeleteServer:
		return a.deleteServer(ctx, do.Ref)
	case change.ChangeEntries:
		return a.changeEntries(ctx, do)
	case change.NewCertificate:
		if err := a.tell(ctx, command{text: "new ssl cert", args: []string{a.path(do.File)}, good: []string{"New empty", "already exists"}}); err != nil {
			return err
		}
		fallthrough
	case change.SetCertificate:
		return a.commit(ctx, "cert", do.File)
	case change.DeleteCertificate:
		return a.tell(ctx, command{text: "del ssl cert", args: []string{a.path(do.File)}, good: []string{"' deleted", "doesn't exist", "not referenced"}})
	case change.AddListEntry, change.SetListEntry, change.DeleteListEntry:
		return a.changeList(ctx, do)
	case change.SetCA:
		return a.commit(ctx, "ca-file", do.File)
	}
	return fmt.Errorf("unknown verb %d", do.Verb)
}

// flush sends the changes of servers that wait to travel together.
func (a *applier) flush(ctx context.Context) error {
	queue := a.queue
	a.queue = nil
	return a.tell(ctx, queue...)
}

func (a *applier) path(f config.File) string { return a.layout.Path(f.Kind, f.Name) }

// setServer queues the commands that change a server. No request shall meet the
// new address of one that goes, or the old address of one that comes.
func (a *applier) setServer(do *change.Do) {
	turn := map[string]int{change.Maint: -1, change.Ready: 1}
	settings := slices.SortedStableFunc(slices.Values(do.Set), func(x, y change.Setting) int { return turn[x.Value] - turn[y.Value] })
	for _, s := range settings {
		a.queue = append(a.queue, command{text: s.Row.Command(a.inProcess(do.Ref), s.Value), good: s.Row.Good})
	}
	a.want[do.Ref] = append(a.want[do.Ref], settings...)
}

// addServer queues the commands that add a server as it would be after a reload:
// with checks, and enabled.
func (a *applier) addServer(ref change.ServerRef, server *config.Server) error {
	if _, ok := a.leaving[ref]; ok {
		return fmt.Errorf("the server %s of before still has connections", ref)
	}
	args := a.addArgs(ref, server)
	a.queue = append(a.queue, command{text: "add server", args: args, good: []string{"New server registered"}})
	a.want[ref] = change.SettingsOf(server)
	if server.Has("check") {
		a.queue = append(a.queue, command{text: "enable health", args: args[:1]})
	}
	if server.Value("state") != "disabled" {
		a.queue = append(a.queue, command{text: change.FieldRow("state").Command(a.inProcess(ref), change.Ready)})
	}
	return nil
}

// addArgs returns the words with which a server is after "add server" what it
// is after a reload. Of what HAProxy works out for servers of its configuration,
// it leaves some undone for those (management manual, section 9.3): the health
// check does not speak TLS and the PROXY protocol by itself, and up to 2.6
// minconn does not follow maxconn. Up to 2.8 servers without an identifier push
// each other out of the tree of balance random.
func (a *applier) addArgs(ref change.ServerRef, server *config.Server) []string {
	words := append([]string{a.inProcess(ref).String()}, server.Args...)
	words = slices.DeleteFunc(words, func(w string) bool { return w == "disabled" || w == "enabled" }) // it starts in maintenance anyway
	if server.Value("state") == "disabled" {
		words = append(words, "disabled") // so that its checks pause
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

// learnIDs asks once for the highest identifiers of all backends that get servers.
func (a *applier) learnIDs(ctx context.Context, dos []*change.Do) error {
	for _, do := range dos {
		if do.Verb == change.MakeBackend { // it has no server yet
			continue
		}
		for _, one := range append([]*change.Do{do}, do.Servers...) {
			if one.Verb == change.AddServer && !one.Server.Has("id") {
				a.ids[one.Ref.Backend] = 0
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
	if err := a.tell(ctx, command{text: change.FieldRow("state").Command(a.inProcess(ref), change.Maint), good: []string{"", "No such server"}}); err != nil {
		return err
	}
	return a.remove(ctx, ref)
}

// remove deletes a server in maintenance, unless it still has connections.
func (a *applier) remove(ctx context.Context, ref change.ServerRef) error {
	err := a.tell(ctx, command{text: "del server", args: []string{a.inProcess(ref).String()}, good: []string{"Server deleted", "No such server"}})
	if refused := (*Refused)(nil); errors.As(err, &refused) && strings.Contains(refused.Answer, "connection") {
		a.leaving[ref] = struct{}{}
		return nil
	}
	if err == nil {
		delete(a.leaving, ref)
	}
	return err
}

// readBack sends what waits, and checks that the servers are as they were told to be: a
// command may be taken and yet another part of HAProxy have the last word. It asks again
// for what does not show, because from HAProxy 2.9 on a task applies addresses.
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

// sendAndShow sends what waits, and asks for the servers that are to be read back.
func (a *applier) sendAndShow(ctx context.Context) (map[change.ServerRef]change.ServerState, error) {
	backends := make(map[string]bool)
	for ref := range a.want {
		backends[ref.Backend] = true
	}
	queue := a.queue
	a.queue = nil
	answers, err := a.tellAsking(ctx, a.showServers(slices.Collect(maps.Keys(backends))...), queue...)
	if err != nil || len(backends) == 0 {
		return nil, err
	}
	return a.serversOf(answers)
}

// missing is an error about a server that does not show what it was told. The others
// need not be read back again.
func (a *applier) missing(states map[change.ServerRef]change.ServerState) (err error) {
	for ref, settings := range a.want {
		state, there := states[ref]
		if field := state.Misses(settings); !there || field != "" {
			err = fmt.Errorf("server %s does not show what it was told: %s", ref, field)
		} else {
			delete(a.want, ref)
		}
	}
	return err
}
