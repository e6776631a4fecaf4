package dataplanetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/haproxytech/client-native/v6/models"
)

// addServer adds a server to the running process, where it starts in
// maintenance.
func (s *Server) addServer(w http.ResponseWriter, r *http.Request, backend string) {
	var data models.RuntimeAddServer
	if !decode(w, r, &data) {
		return
	}
	if err := checkModel(reflect.ValueOf(&data)); err != nil {
		failModel(w, err)
		return
	}
	if data.Name == "" {
		fail(w, http.StatusBadRequest, "the new server must have a name")
		return
	}
	full := backend + "/" + data.Name
	if _, err := s.exec("add server "+full+" "+serverWords(&data), nil); err != nil {
		status := statusOf(err)
		switch {
		case strings.Contains(err.Error(), "No such backend"):
			status = http.StatusNotFound
		case strings.Contains(err.Error(), "Already exists"):
			status = http.StatusConflict
		}
		fail(w, status, err.Error())
		return
	}
	s.did(w, http.StatusCreated, data, "add server", full)
}

// serverWords are the words of a server line for what a model says.
func serverWords(data *models.RuntimeAddServer) string {
	address := data.Address
	if data.Port != nil {
		address += fmt.Sprintf(":%d", *data.Port)
	}
	words := []string{"", address}
	fields := map[string]any{}
	text, _ := json.Marshal(data)
	_ = json.Unmarshal(text, &fields)
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := fmt.Sprint(fields[name])
		switch name {
		case "name", "address", "port":
			continue
		case "maintenance":
			name = "disabled"
		case "health_check_port":
			name = "port"
		case "health_check_address":
			name = "addr"
		case "ssl_cafile":
			name = "ca-file"
		case "ssl_certificate":
			name = "crt"
		}
		switch value {
		case "enabled", "true":
			words = append(words, strings.ReplaceAll(name, "_", "-"))
		case "disabled", "false":
		default:
			words = append(words, strings.ReplaceAll(name, "_", "-"), value)
		}
	}
	return strings.Join(words, " ")
}
