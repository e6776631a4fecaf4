package k8swatch

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// Options of a [Watcher]. The zero value watches all namespaces, indexes by
// namespace and name, and calls nothing.
type Options struct {
	Namespace     string // one namespace; "" for all
	LabelSelector string // as in kubectl -l
	FieldSelector string // as in kubectl --field-selector, e.g. "type!=helm.sh/release.v1"

	// IndexBy are the JSONPath expressions whose values, in this order, are the
	// keys of Snapshot.Get, such as "metadata.namespace",
	// "metadata.labels['kubernetes.io/service-name']" and
	// `{.spec.ports[?(@.name=="http")].port}`; see "JSONPath" in the documentation
	// of the package. An expression may have many values: the object is found under
	// each. Several of them make all combinations; an object with more than 1,000
	// keys, or with a field that a filter cannot compare, is left out like any that
	// cannot be stored. Empty means metadata.namespace, metadata.name.
	IndexBy []string

	// IgnoreFields are JSONPath expressions of what is dropped before an object
	// is stored, such as "status": of fields, ['key'], [3] and [*] alone. Dropped
	// in any case, for nothing that renders
	// a configuration needs these copies of the object: metadata.managedFields
	// and the annotation kubectl.kubernetes.io/last-applied-configuration.
	IgnoreFields []string

	// Debounce is how long OnChange is held back after a call; the first change
	// after a quiet time is delivered at once. Zero means 500 ms, negative none.
	Debounce time.Duration

	// OnChange tells of changes once the initial sync is complete, and of the
	// initial sync too with CallOnChangeDuringSync. Calls of OnChange and
	// OnSyncComplete never overlap. When it returns an error or panics, that is
	// logged and the same changes, with what came since, are delivered again
	// with back-off, 0.2 to 10 s. ForceSync has it called at once. The context
	// ends with Run.
	OnChange func(context.Context, Changes) error

	// MaxChanges bounds the objects that Changes lists. Zero means
	// [DefaultMaxChanges], negative none.
	MaxChanges int

	// OnSyncComplete is called once, after the last initial object is in the
	// store, with the number of objects.
	OnSyncComplete func(count int)

	CallOnChangeDuringSync bool

	// NoWatchList fetches the initial objects with LISTs of 500 instead of a
	// stream. A stream in which nothing moves for 10 s is given up anyhow. Pages
	// are of the latest state, which API servers before 1.34 read from etcd.
	NoWatchList bool

	Logger *slog.Logger // nil means slog.Default()
}

const defaultDebounce = 500 * time.Millisecond

func debounce(d time.Duration) time.Duration {
	switch {
	case d == 0:
		return defaultDebounce
	case d < 0:
		return 0
	}
	return d
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.Default()
	}
	return l
}

// compiled is what the expressions of Options become.
type compiled struct {
	index  []*jsonpath.Bound
	ignore []*jsonpath.Bound
}

// compile checks everything in the options that can be wrong.
func (o *Options) compile(typ reflect.Type) (*compiled, error) {
	if o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		return nil, fmt.Errorf("Namespace %q: want the name of a namespace: a-z, 0-9 and -, 63 characters at most", o.Namespace)
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return nil, fmt.Errorf("LabelSelector %q: want one such as app=haproxy: %w", o.LabelSelector, err)
	}
	if _, err := fields.ParseSelector(o.FieldSelector); err != nil {
		return nil, fmt.Errorf("FieldSelector %q: want one such as type=kubernetes.io/tls: %w", o.FieldSelector, err)
	}
	var c compiled
	var err error
	if c.index, err = bind("IndexBy", o.IndexBy, typ, jsonpath.Compile); err != nil {
		return nil, err
	}
	if c.ignore, err = bind("IgnoreFields", o.IgnoreFields, typ, jsonpath.CompileField); err != nil {
		return nil, err
	}
	for _, expr := range o.IgnoreFields {
		if needed(expr) {
			return nil, fmt.Errorf("IgnoreFields: %q: a watcher cannot do without it", expr)
		}
	}
	return &c, nil
}

// needed reports whether a path, however it is written, drops what identifies an
// object and its version.
func needed(expr string) bool {
	path, err := jsonpath.CompileField(expr)
	if err != nil {
		return false // refused elsewhere
	}
	probe, err := path.Bind(nil)
	if err != nil {
		return false
	}
	metadata := map[string]any{"name": "n", "namespace": "n", "uid": "u", "resourceVersion": "1"}
	fields := len(metadata)
	object := map[string]any{"metadata": metadata}
	probe.Delete(object)
	return len(object) == 0 || len(metadata) < fields
}

func bind(option string, exprs []string, typ reflect.Type, compile func(string) (*jsonpath.Path, error)) ([]*jsonpath.Bound, error) {
	bound := make([]*jsonpath.Bound, 0, len(exprs))
	for _, expr := range exprs {
		path, err := compile(expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", option, err)
		}
		b, err := path.Bind(typ)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", option, err)
		}
		bound = append(bound, b)
	}
	return bound, nil
}
