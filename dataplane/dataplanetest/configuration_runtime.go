package dataplanetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/models"
)

// runtimePath returns what brings a change outside of a transaction to the
// running process, and reports whether that is done and no reload is needed;
// nil if there is no such way. It is called before the change.
func (s *Server) runtimePath(cfg configuration.Configuration, e *edit, method string) (func() bool, error) {
	switch method {
	case "EditServer", "EditFrontend", "EditStructuredFrontend", "EditServerTemplate":
		get := "Get" + e.res.one
		before := *e
		before.data = reflect.Value{}
		old, err := before.call(cfg, get)
		if err != nil || e.inside {
			return nil, err
		}
		return func() bool { return s.changeAtRuntime(e, reflect.ValueOf(old).Elem()) }, nil
	case "CreateServer":
		if e.inside || e.res.parent != "backend" || !addsAtRuntime(cfg, e) {
			return nil, nil
		}
		return func() bool { return s.addAtRuntime(e) }, nil
	}
	return nil, nil
}

// addsAtRuntime reports whether the API tries to add a server to the running
// process: where no default-server applies to it.
func addsAtRuntime(cfg configuration.Configuration, e *edit) bool {
	_, defaults, err := cfg.GetDefaultsConfiguration("")
	if err != nil || defaults.DefaultServer != nil {
		return false
	}
	_, backend, err := cfg.GetBackend(e.section, "")
	return err == nil && backend.DefaultServer == nil
}

// addAtRuntime adds a server as far as a process can take what the model says.
func (s *Server) addAtRuntime(e *edit) bool {
	var data models.RuntimeAddServer
	text, err := json.Marshal(e.data.Interface())
	if err != nil {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&data) != nil {
		return false
	}
	full := e.section + "/" + data.Name
	if _, err := s.exec("add server "+full+" "+serverWords(&data), nil); err != nil {
		return false
	}
	s.actions = append(s.actions, "add server "+full)
	return true
}

// changeAtRuntime carries out a change of fields that the running process can
// take. The API compares only fields that are neither lists nor maps: where
// nothing else differs it does nothing, and no reload either.
func (s *Server) changeAtRuntime(e *edit, old reflect.Value) (done bool) {
	defer func() {
		if recover() != nil {
			done = false // of a field that has gone, which the API reloads for
		}
	}()
	changed := changedFields(e.data.Elem(), old)
	var actions []string
	switch data := e.data.Interface().(type) {
	case *models.Server:
		actions = serverActions(e.section, data, changed)
	case *models.Frontend:
		if slices.Equal(changed, []string{"Maxconn"}) {
			actions = []string{fmt.Sprintf("SetFrontendMaxConn %s %d", data.Name, *data.Maxconn)}
		}
	}
	if len(changed) > 0 && actions == nil {
		return false
	}
	for _, action := range actions {
		if s.act(action) != nil {
			return false
		}
	}
	return true
}

// serverActions are the actions for the fields of a server that have changed,
// nil if one of them needs a reload.
func serverActions(backend string, data *models.Server, changed []string) (actions []string) {
	add := func(action string, args ...any) {
		text := action + " " + backend + " " + data.Name
		for _, a := range args {
			text += " " + fmt.Sprint(a)
		}
		if !slices.Contains(actions, text) {
			actions = append(actions, text)
		}
	}
	for _, field := range changed {
		switch field {
		case "Weight":
			add("SetServerWeight", *data.Weight)
		case "Address", "Port":
			add("SetServerAddr", data.Address, *data.Port)
		case "HealthCheckPort":
			add("SetServerCheckPort", *data.HealthCheckPort)
		case "Maintenance":
			state := "ready"
			if data.Maintenance == "enabled" {
				state = "maint"
			}
			add("SetServerState", state)
		case "AgentCheck":
			switch data.AgentCheck {
			case "enabled":
				add("EnableAgentCheck")
			case "disabled":
				add("DisableAgentCheck")
			}
		case "AgentAddr":
			add("SetServerAgentAddr", data.AgentAddr)
		case "AgentSend":
			add("SetServerAgentSend", data.AgentSend)
		default:
			return nil
		}
	}
	return actions
}

// changedFields are the names of the fields of two models that differ, in
// embedded ones as well, as far as the API compares them.
func changedFields(a, b reflect.Value) (changed []string) {
	for i := range a.NumField() {
		name, x, y := a.Type().Field(i).Name, a.Field(i), b.Field(i)
		if x.Kind() == reflect.Pointer {
			x, y = x.Elem(), y.Elem()
		}
		switch {
		case x.Kind() != y.Kind():
			changed = append(changed, name)
		case x.Kind() == reflect.Struct:
			changed = append(changed, changedFields(x, y)...)
		case x.Kind() == reflect.Invalid, x.Kind() == reflect.Slice, x.Kind() == reflect.Map:
		case !x.Equal(y):
			changed = append(changed, name)
		}
	}
	return changed
}
