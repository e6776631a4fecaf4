package dataplanetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/haproxytech/client-native/v6/configuration"
)

// edit is one request below configuration/ that the engine carries out.
type edit struct {
	res         resource
	section     string // name of the section around it, "" if there is none
	key         any    // name (string) or index (int64) of the one that is meant, nil for all
	single      bool   // there is but one, without a name
	transaction string
	inside      bool // a transaction is given
	version     int64
	full        bool
	data        reflect.Value // of the model, if the request has a body
}

// configuration answers below configuration/, without raw.
func (s *Server) configuration(w http.ResponseWriter, r *http.Request, path []string) {
	for i := range path {
		var err error
		if path[i], err = url.PathUnescape(path[i]); err != nil {
			notFound(w, r)
			return
		}
	}
	if s.single(w, r, strings.Join(path, "/")) {
		return
	}
	res, section, key, ok := find(path)
	if !ok {
		notFound(w, r)
		return
	}
	e, ok := readEdit(w, r, res)
	if !ok {
		return
	}
	e.section = section
	if res.query != "" {
		if e.section = r.URL.Query().Get(res.query); e.section == "" {
			failRequired(w, res.query+" in query")
			return
		}
	}
	if key != "" && !e.setKey(w, key) {
		return
	}
	s.serve(w, r, e)
}

// readEdit reads what all edits have in the query.
func readEdit(w http.ResponseWriter, r *http.Request, res resource) (e *edit, ok bool) {
	query := r.URL.Query()
	e = &edit{res: res, transaction: query.Get("transaction_id"), inside: query.Has("transaction_id")}
	e.full = res.full && flag(r, "full_section")
	e.version, ok = number(w, r, "version")
	return e, ok
}

func (e *edit) setKey(w http.ResponseWriter, key string) bool {
	if !e.res.byIndex {
		e.key = key
		return true
	}
	index, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		failCode(w, http.StatusUnprocessableEntity, codeType, fmt.Sprintf("index in path must be of type int64: %q", key))
		return false
	}
	e.key = index
	return true
}

// serve finds the method of the engine for a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, e *edit) {
	structured := ""
	if e.full {
		structured = "Structured"
	}
	res := e.res
	all := e.key == nil
	switch {
	case r.Method == http.MethodGet && all:
		s.get(w, e, "Get"+structured+res.many)
	case r.Method == http.MethodGet:
		s.get(w, e, "Get"+structured+res.one)
	case r.Method == http.MethodPost && all == (!res.byIndex || res.posts):
		s.change(w, r, e, "Create"+structured+res.one, http.StatusCreated)
	case r.Method == http.MethodPut && all && res.one == "DefaultsSection":
		s.change(w, r, e, "Create"+structured+res.one, http.StatusCreated)
	case r.Method == http.MethodPut && all && res.replace != "":
		s.change(w, r, e, "Replace"+res.replace, http.StatusOK)
	case r.Method == http.MethodPut && !all && !res.fixed:
		s.change(w, r, e, "Edit"+structured+res.one, http.StatusOK)
	case r.Method == http.MethodDelete && !all:
		s.change(w, r, e, "Delete"+res.one, http.StatusNoContent)
	default:
		notAllowed(w, r, res.methods(all)...)
	}
}

// methods are those that the API has for all of a kind, or for one.
func (res resource) methods(all bool) []string {
	methods := []string{http.MethodGet}
	if all == (!res.byIndex || res.posts) {
		methods = append(methods, http.MethodPost)
	}
	if all && (res.replace != "" || res.one == "DefaultsSection") || !all && !res.fixed {
		methods = append(methods, http.MethodPut)
	}
	if !all {
		methods = append(methods, http.MethodDelete)
	}
	return methods
}

// get answers with what a method returns. A list whose section there is not is
// an empty one.
func (s *Server) get(w http.ResponseWriter, e *edit, method string) {
	if e.res.missing {
		e.failMissing(w, method)
		return
	}
	var found any
	err := s.engine.do(func(cfg configuration.Configuration) (err error) {
		found, err = e.call(cfg, method)
		return err
	})
	if e.key == nil && !e.single && errors.Is(err, configuration.ErrParentDoesNotExist) {
		reply(w, http.StatusOK, []any{})
		return
	}
	if err != nil {
		failError(w, err)
		return
	}
	if v := reflect.ValueOf(found); v.Kind() == reflect.Slice && v.Len() == 0 {
		found = []any{}
	}
	reply(w, http.StatusOK, found)
}

// change carries out a method that changes something. Forced is the status of
// an answer that a reload went before.
func (s *Server) change(w http.ResponseWriter, r *http.Request, e *edit, method string, forced int) {
	if !e.readData(w, r, reflect.TypeOf(s.engine.cfg), method) {
		return
	}
	if e.res.missing {
		e.failMissing(w, method)
		return
	}
	if e.inside && e.transaction != "" && flag(r, "force_reload") {
		fail(w, http.StatusBadRequest, "Both force_reload and transaction specified, specify only one")
		return
	}
	if !e.inside {
		s.beforeWrite()
	}
	var atRuntime func() bool
	err := s.engine.do(func(cfg configuration.Configuration) (err error) {
		if atRuntime, err = s.runtimePath(cfg, e, method); err != nil {
			return err
		}
		return s.engine.checked(cfg, e, method)
	})
	if err != nil {
		failError(w, err)
		return
	}
	var body any
	if e.data.IsValid() && r.Method != http.MethodDelete {
		body = e.data.Interface()
	}
	switch {
	case e.inside && (e.res.putDone && forced == http.StatusOK || e.res.postDone && forced == http.StatusCreated):
		reply(w, forced, body)
	case e.inside:
		send(w, http.StatusAccepted, body)
	case atRuntime != nil && (!flag(r, "force_reload") || forced == http.StatusOK) && atRuntime():
		reply(w, forced, body)
	default:
		s.finish(w, r, forced, body)
	}
}

// readData decodes and checks the model that a method takes, if it takes one.
func (e *edit) readData(w http.ResponseWriter, r *http.Request, engine reflect.Type, method string) bool {
	m, ok := engine.MethodByName(method)
	if !ok {
		failf(w, http.StatusNotImplemented, "the engine has no method %s", method)
		return false
	}
	for i := range m.Type.NumIn() {
		in := m.Type.In(i)
		if i == 0 || in.Kind() != reflect.Pointer && (in.Kind() != reflect.Slice || m.Type.IsVariadic()) {
			continue
		}
		e.data = reflect.New(in)
	}
	if !e.data.IsValid() {
		return true
	}
	body, _ := io.ReadAll(r.Body)
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch {
	case len(body) == 0:
		failRequired(w, "data in body")
		return false
	case kind != "application/json":
		failf(w, http.StatusUnsupportedMediaType, "unsupported media type %q, only [application/json] are allowed", kind)
		return false
	}
	if err := json.Unmarshal(body, e.data.Interface()); err != nil {
		failf(w, http.StatusBadRequest, "parsing data body from %q failed, because %s", "", err)
		return false
	}
	e.data = e.data.Elem()
	if err := checkModel(e.data); err != nil {
		failModel(w, err)
		return false
	}
	return true
}

// failModel answers that a model is not valid.
func failModel(w http.ResponseWriter, err error) {
	code := http.StatusUnprocessableEntity
	var coded interface{ Code() int32 }
	if errors.As(err, &coded) {
		code = int(coded.Code())
	}
	failCode(w, http.StatusUnprocessableEntity, code, err.Error())
}

// failMissing answers 501, as the API does for operations that it lacks.
func (e *edit) failMissing(w http.ResponseWriter, method string) {
	group := strings.ToLower(camel.ReplaceAllString(e.res.one, "${1}_$2"))
	verb, one := "Get", strings.HasSuffix(method, e.res.one)
	for engine, api := range map[string]string{"Edit": "Replace", "Replace": "Replace", "Create": "Create", "Delete": "Delete"} {
		if strings.HasPrefix(method, engine) {
			verb = api
		}
	}
	if !one {
		verb += "All"
	}
	reply(w, http.StatusNotImplemented, "operation "+group+"."+verb+e.res.one+"Defaults has not yet been implemented")
}

// camel finds where the words of a name such as HTTPRequestRule meet.
var camel = regexp.MustCompile(`([a-zP])([A-Z][a-z])`)

// checkModel validates a model as the API does on its way in and returns the
// first thing that is wrong. No model of the configuration has a field of a
// format, so none needs the registry of formats.
func checkModel(data reflect.Value) error {
	validate := data.MethodByName("Validate")
	if !validate.IsValid() {
		return nil
	}
	out := validate.Call([]reflect.Value{reflect.Zero(validate.Type().In(0))})
	err, _ := out[0].Interface().(error)
	for {
		var many interface{ Unwrap() []error }
		if !errors.As(err, &many) || len(many.Unwrap()) == 0 {
			return err
		}
		err = many.Unwrap()[0]
	}
}

// call calls a method of the engine, all of which have their parameters in one
// order, each leaving out what does not apply to it: name or index, kind and
// name of the section around it, the model, the transaction, the version.
func (e *edit) call(cfg configuration.Configuration, method string) (found any, err error) {
	m := reflect.ValueOf(cfg).MethodByName(method)
	if !m.IsValid() {
		return nil, fmt.Errorf("the engine has no method %s", method)
	}
	want := m.Type().NumIn()
	if m.Type().IsVariadic() {
		want--
	}
	var args []reflect.Value
	if e.data.IsValid() {
		args = append(args, e.data)
	}
	args = append(args, reflect.ValueOf(e.transaction))
	if !strings.HasPrefix(method, "Get") {
		args = append(args, reflect.ValueOf(e.version))
	}
	var front []reflect.Value
	if e.key != nil {
		front = append(front, reflect.ValueOf(e.key))
	}
	if e.section != "" || e.res.parent != "" {
		if e.res.parent != "" && len(front)+2+len(args) == want {
			front = append(front, reflect.ValueOf(e.res.parent))
		}
		front = append(front, reflect.ValueOf(e.section))
	}
	out := m.Call(append(front, args...))
	if len(out) > 1 {
		found = out[1].Interface()
	}
	err, _ = out[len(out)-1].Interface().(error)
	return found, err
}
