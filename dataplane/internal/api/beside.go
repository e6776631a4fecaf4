package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// Before version 3.4, the Dataplane API changes the address or the weight of a server only
// together with a push of the whole text. A push takes most of a second at 5,000 backends. So
// a stand-in, which is another server, first takes the traffic of such a server. The stand-in
// goes when a push has changed the server itself.

// lateServer is a server that the process has in an old form until the next push.
type lateServer struct {
	server  *config.Server   // its new form
	set     []change.Setting // what the push changes: its state, and all late fields
	standIn string           // name of the server that takes its traffic; "" while it is disabled
}

// now returns the late server after one more change.
func (l lateServer) now(do *change.SetServer) lateServer {
	l.server = do.Server
	var set []change.Setting
	for _, s := range change.SettingsOf(do.Server) {
		same := func(other change.Setting) bool { return other.Row.Field == s.Row.Field }
		if !s.Row.Pushed || slices.ContainsFunc(l.set, same) || slices.ContainsFunc(do.Set, same) {
			set = append(set, s)
		}
	}
	l.set = set
	return l
}

// Above maxLate late servers in one job, one push is quicker. maxAllLate bounds the late
// servers of all jobs until the next push, which keeps the header of that push small.
const maxLate, maxAllLate = 32, 1000

// maxStandIns bounds the names that addStandIn tries. An older stand-in keeps its name until
// its last connection has ended.
const maxStandIns = 8

// standInPrefix begins the name of a stand-in, before a number.
const standInPrefix = "haptic-"

// toldFirst reports whether the process can take all changes of a job before anything is
// stored.
func (c *Client) toldFirst(j *job) bool {
	if j.impact() != change.Runtime {
		return false
	}
	late := 0
	for _, one := range change.RuntimeChanges(j.steps) {
		do, ok := one.(*change.SetServer)
		if !ok || !c.isLate(j, do) {
			continue
		}
		_, why := addedServer(do.Server)
		if do.Server.Disabled() {
			why = ""
		} else if !do.Beside {
			why = "a server cannot stand in for it"
		}
		late++
		if why != "" || late > maxLate || len(c.late)+late > maxAllLate {
			return false
		}
	}
	return true
}

// isLate reports whether only the next push can change the server itself.
func (c *Client) isLate(j *job, do *change.SetServer) bool {
	if j.direct {
		return false
	}
	_, late := c.late[do.Ref]
	for _, set := range do.Set {
		late = late || set.Row.Pushed
	}
	return late
}

// setServer changes a server of the process, or starts a stand-in for it.
func (c *Client) setServer(ctx context.Context, j *job, do *change.SetServer) (calls int, err error) {
	if c.isLate(j, do) {
		return c.standIn(ctx, do)
	}
	fields, ready, err := serverFields(do)
	if len(fields) > 0 && err == nil {
		calls, err = calls+1, c.api.SetServer(ctx, do.Ref.Backend, do.Ref.Server, fields)
	}
	if ready && err == nil { // last, or the server would get traffic at its old address
		calls, err = calls+1, c.setState(ctx, do.Ref, change.Ready)
	}
	return calls, err
}

// serverFields returns what the API is asked to set. ready is not among it: it comes last.
// A field that the API does not change wraps errNotApplied, and takes a reload.
func serverFields(do *change.SetServer) (fields map[string]any, ready bool, err error) {
	fields = map[string]any{}
	for _, set := range do.Set {
		switch {
		case set.Value == change.Ready:
			ready = true
			continue
		case set.Row.ServerField == nil || set.Row.Fields == nil:
			return nil, false, fmt.Errorf("nothing sends the %s of a server to the Dataplane API: %w", set.Row.Field, errNotApplied)
		}
		of, err := set.Row.Fields(set.Value)
		if err != nil {
			return nil, false, err
		}
		maps.Copy(fields, of)
	}
	return fields, ready, nil
}

func (c *Client) setState(ctx context.Context, ref change.ServerRef, state string) error {
	return c.api.SetServer(ctx, ref.Backend, ref.Server, map[string]any{"admin_state": state})
}

// standIn starts a stand-in for a server that changes only with the next push.
func (c *Client) standIn(ctx context.Context, do *change.SetServer) (calls int, err error) {
	before, was := c.late[do.Ref]
	late := before.now(do)
	late.standIn = ""
	if c.late == nil {
		c.late = map[change.ServerRef]lateServer{}
	}
	if !do.Server.Disabled() {
		if late.standIn, err = c.addStandIn(ctx, do); err != nil {
			return 0, err
		}
	}
	c.late[do.Ref] = late
	if was && before.standIn != "" {
		return 1, c.retireNow(ctx, change.ServerRef{Backend: do.Ref.Backend, Server: before.standIn})
	}
	return 1, c.setState(ctx, do.Ref, change.Maint)
}

// addStandIn adds a stand-in under the first free name.
func (c *Client) addStandIn(ctx context.Context, do *change.SetServer) (name string, err error) {
	for n := range maxStandIns {
		name = standInPrefix + strconv.Itoa(n+1) + "-" + do.Ref.Server
		err = c.addServer(ctx, change.ServerRef{Backend: do.Ref.Backend, Server: name}, do.Server)
		if !isStatus(err, http.StatusConflict) {
			break
		}
	}
	return name, err
}

// retireNow takes the traffic from a stand-in, and deletes it as retire does.
func (c *Client) retireNow(ctx context.Context, ref change.ServerRef) error {
	if err := c.setState(ctx, ref, change.Maint); err != nil {
		return err
	}
	c.leaving = append(c.leaving, ref)
	c.retire(ctx)
	return nil
}

// retire deletes the stand-ins that no longer get traffic. A stand-in that still has
// connections stays until the next call or the next reload.
func (c *Client) retire(ctx context.Context) {
	c.leaving = slices.DeleteFunc(c.leaving, func(ref change.ServerRef) bool {
		return except(c.api.DeleteServer(ctx, ref.Backend, ref.Server), http.StatusNotFound) == nil
	})
}

// inherit takes over the stand-ins without traffic that an earlier client left.
func (c *Client) inherit(servers map[change.ServerRef]change.ServerState, stored *config.Config) {
	for ref, server := range servers {
		if server.State == change.Maint && strings.HasPrefix(ref.Server, standInPrefix) && !slices.Contains(c.leaving, ref) &&
			!stored.Index().Contains(" "+ref.Server+" ") {
			c.leaving = append(c.leaving, ref)
		}
	}
}

// meetLate adds all late servers to the push of a job.
func (c *Client) meetLate(j *job) {
	for _, one := range change.RuntimeChanges(j.steps) {
		if do, ok := one.(*change.SetServer); ok {
			if late, ok := c.late[do.Ref]; ok {
				c.late[do.Ref] = late.now(do)
			}
		}
	}
	j.late = maps.Clone(c.late)
}

// settle checks that a push has changed these late servers themselves, and retires their
// stand-ins.
func (c *Client) settle(ctx context.Context, late map[change.ServerRef]lateServer) error {
	var dos []change.Do
	for ref, l := range late {
		dos = append(dos, &change.SetServer{Ref: ref, Set: l.set})
		delete(c.late, ref)
		if l.standIn != "" {
			c.leaving = append(c.leaving, change.ServerRef{Backend: ref.Backend, Server: l.standIn})
		}
	}
	if err := c.readBack(ctx, dos); err != nil {
		return err
	}
	c.retire(ctx)
	return nil
}

// seen corrects what the process reports about late servers: a late server gets the values of
// its stand-in. If the stand-in is gone, as after a reload, the server keeps its own values.
func (c *Client) seen(servers map[change.ServerRef]change.ServerState) {
	for ref, late := range c.late {
		own, ok := servers[ref]
		if !ok {
			continue
		}
		state := own
		if late.standIn != "" {
			name := change.ServerRef{Backend: ref.Backend, Server: late.standIn}
			state, ok = servers[name]
			if !ok || own.State != change.Maint {
				continue
			}
			delete(servers, name)
		} else if state.Address, ok = late.server.Literal(); !ok {
			continue
		}
		state.ID = own.ID
		if weight, err := strconv.Atoi(cmp.Or(late.server.Value("weight"), "1")); err == nil {
			state.Weight = weight
		}
		servers[ref] = state
	}
}
