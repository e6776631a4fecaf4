package dataplanetest

import (
	"net/http"

	"github.com/haproxytech/client-native/v6/configuration"
)

// single answers for what there is one of: the version, the global and the
// traces section.
func (s *Server) single(w http.ResponseWriter, r *http.Request, path string) bool {
	type method struct {
		name   string // of the engine
		forced int    // status after a reload
	}
	var res resource
	methods := map[string]method{}
	switch path {
	case "version":
		methods[http.MethodGet] = method{"GetConfigurationVersion", 0}
	case "global":
		res.full = true
		methods[http.MethodGet] = method{"GetGlobalConfiguration", 0}
		methods[http.MethodPut] = method{"PushGlobalConfiguration", http.StatusOK}
		if flag(r, "full_section") {
			methods[http.MethodGet] = method{"GetStructuredGlobalConfiguration", 0}
			methods[http.MethodPut] = method{"PushStructuredGlobalConfiguration", http.StatusOK}
		}
	case "traces":
		res.putDone = true
		methods[http.MethodGet] = method{"GetTraces", 0}
		methods[http.MethodPost] = method{"CreateTraces", http.StatusCreated}
		methods[http.MethodPut] = method{"EditTraces", http.StatusOK}
		methods[http.MethodDelete] = method{"DeleteTraces", http.StatusNoContent}
		if flag(r, "full_section") {
			methods[http.MethodGet] = method{"GetStructuredTraces", 0}
			methods[http.MethodPut] = method{"PushStructuredTraces", http.StatusOK}
		}
	case "traces/entries":
		res.postDone = true
		methods[http.MethodPost] = method{"CreateTraceEntry", http.StatusCreated}
		methods[http.MethodDelete] = method{"DeleteTraceEntry", http.StatusNoContent}
	default:
		return false
	}
	m, ok := methods[r.Method]
	if !ok {
		var allowed []string
		for name := range methods {
			allowed = append(allowed, name)
		}
		notAllowed(w, r, allowed...)
		return true
	}
	e, ok := readEdit(w, r, res)
	switch {
	case !ok:
	case path == "version":
		s.sendVersion(w, e.transaction)
	case m.forced == 0:
		e.single = true
		s.get(w, e, m.name)
	default:
		s.change(w, r, e, m.name, m.forced)
	}
	return true
}

func (s *Server) sendVersion(w http.ResponseWriter, transaction string) {
	var version int64
	err := s.engine.do(func(cfg configuration.Configuration) (err error) {
		version, err = cfg.GetConfigurationVersion(transaction)
		return err
	})
	if err != nil {
		failError(w, err)
		return
	}
	reply(w, http.StatusOK, version)
}
