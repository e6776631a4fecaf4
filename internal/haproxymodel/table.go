package haproxymodel

import (
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	parser "github.com/haproxytech/client-native/v6/config-parser"
	"github.com/haproxytech/client-native/v6/config-parser/common"
	parsererrors "github.com/haproxytech/client-native/v6/config-parser/errors"
)

// Kind describes one kind of section.
type Kind struct {
	Name     string  // as in the text: "backend", "log-forward"
	Path     string  // path of the Dataplane API v3 below .../configuration: "backends"
	Single   bool    // there is only one, and it has no name: global and traces
	NoUpdate bool    // the API cannot change the section's own fields
	Children []Child // in the order in which differences are told

	model  reflect.Type // models.Backend
	base   reflect.Type // models.BackendBase where the model embeds it, else model
	parse  func(p parser.Parser, name string) (any, error)
	write  func(p parser.Parser, name string, model any) error
	gates  []gate
	byWord map[string]*Child // children that are read and written one by one
	byName map[string]*Child // by their field of the model
}

// gate is a directive without which client-native does not look at those that
// follow, and the field of the model that holds it.
type gate struct{ word, field string }

// Child describes one collection of children of a kind of section.
type Child struct {
	Field    string // of the section's model: "HTTPRequestRuleList"
	Kind     string // as people say it: "http-request rule", "server"
	Key      string // field of the child's model that names it: "Name"; "" for children by position
	Words    string // first words of the lines that make it: "http-request"
	Path     string // of the collection in the API, with {parent}: "backends/{parent}/acls"; "" where the API takes the children as fields of the section
	NoUpdate bool   // the API can only create and delete
	Append   bool   // children by position that the API can only create at the end

	slice bool         // the field is a slice of pointers, not a map
	elem  reflect.Type // models.HTTPRequestRule
	index []int        // of the field in the section's model
	json  string       // name of the field
	parse func(p parser.Parser, name string) (any, error)
	write func(model any) (common.ParserData, error)
	lines func() lineParser
}

// lineParser is what client-native uses to write one sort of lines.
type lineParser interface {
	Init()
	Insert(data common.ParserData, index int) error
	ResultAll() ([]common.ReturnResultLine, []string, error)
}

// ByName reports whether names tell the children apart; all others are told
// apart by their position.
func (c *Child) ByName() bool { return c.Key != "" }

// Inline reports whether the API takes the children as fields of the section:
// a difference of one is a change of the section's own fields.
func (c *Child) Inline() bool { return c.Path == "" }

// Kinds returns the descriptors of all kinds of sections. All callers share
// them and must not change them.
func Kinds() []*Kind { return allKinds }

// KindOf returns the descriptor of a kind by its name in the text, or nil.
func KindOf(name string) *Kind { return kindsByName[name] }

// ChildOf returns the descriptor of a collection by its field, or nil.
func (k *Kind) ChildOf(field string) *Child { return k.byName[field] }

// Target returns path and query of the section below
// /v3/services/haproxy/configuration/, for PUT and DELETE: "backends/shop".
func (k *Kind) Target(name string) string {
	if k.Single {
		return k.Path
	}
	return k.Path + "/" + url.PathEscape(name)
}

// Collection returns path and query of the children of one section below
// /v3/services/haproxy/configuration/, "" for inline ones. POST goes there for
// children by name and for those that are appended, see [Child.Append].
func (c *Child) Collection(section string) string {
	if c.Path == "" {
		return ""
	}
	path, query, found := strings.Cut(c.Path, "?")
	path = strings.ReplaceAll(path, "{parent}", url.PathEscape(section))
	if found {
		path += "?" + strings.ReplaceAll(query, "{parent}", url.QueryEscape(section))
	}
	return path
}

// Target returns path and query of one child, for PUT and DELETE, and for POST
// of other children by position: "backends/shop/acls/3". Children with NoUpdate
// are deleted at the collection, with the old model as the body.
func (c *Child) Target(section, name string, index int) string {
	if c.Path == "" || c.NoUpdate {
		return c.Collection(section)
	}
	item := url.PathEscape(name)
	if !c.ByName() {
		item = strconv.Itoa(index)
	}
	path, query, found := strings.Cut(c.Collection(section), "?")
	if found {
		return path + "/" + item + "?" + query
	}
	return path + "/" + item
}

var (
	allKinds    = buildKinds() // never changes, nor do the next
	kindsByName = indexKinds(allKinds)
)

func indexKinds(kinds []*Kind) map[string]*Kind {
	byName := make(map[string]*Kind, len(kinds))
	for _, k := range kinds {
		byName[k.Name] = k
	}
	return byName
}

// noLines reports the error by which client-native says that a directive is absent.
func noLines(err error) bool { return errors.Is(err, parsererrors.ErrFetch) }

// finish adds what reflection tells about the model.
func finish(k *Kind, model any) *Kind {
	k.model = reflect.TypeOf(model)
	k.base = k.model
	if f := k.model.Field(0); f.Anonymous {
		k.base = f.Type
	}
	k.byWord = make(map[string]*Child)
	k.byName = make(map[string]*Child)
	for i := range k.Children {
		c := &k.Children[i]
		f, ok := k.model.FieldByName(c.Field)
		if !ok {
			panic("haproxymodel: " + k.model.Name() + " has no field " + c.Field)
		}
		c.index, c.json = f.Index, jsonName(f)
		c.slice, c.elem = f.Type.Kind() == reflect.Slice, f.Type.Elem()
		if c.slice {
			c.elem = c.elem.Elem()
		}
		k.byName[c.Field] = c
		if c.write != nil {
			k.byWord[c.Words] = c
		}
	}
	return k
}

// jsonName returns the name of a field in JSON.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
