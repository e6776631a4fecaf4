package status

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/hapticsdk/haptic/internal/panics"
)

// patch returns a merge patch that brings an object to its status, nil if it has that. The
// API server refuses the patch if the object is another one, or was changed since.
func (s *state) patch(o *object) ([]byte, error) {
	want, err := plain(o.Status)
	if err != nil {
		return nil, err
	}
	was, err := plain(o.given)
	if err != nil {
		return nil, err
	}
	has := o.has.status
	var next map[string]any
	err = panics.Guard(func() (err error) {
		next, err = plain(s.opts.Merge(o.Item, runtime.DeepCopyJSON(has), was, want))
		return err
	})
	if err != nil {
		return nil, err
	}
	changes := difference(has, next)
	if len(changes) == 0 {
		return nil, nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID, "resourceVersion": o.has.version}, "status": changes})
}

// plain returns a status as JSON has it.
func plain(status any) (fields map[string]any, err error) {
	text, err := json.Marshal(status)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("a status must be a JSON object, and this one is a %T: %w", status, err)
	}
	return fields, nil
}

// difference returns the merge patch from one object to another.
func difference(from, to map[string]any) map[string]any {
	changes := map[string]any{}
	for key, value := range to {
		was, isMap := from[key].(map[string]any)
		now, staysMap := value.(map[string]any)
		if isMap && staysMap {
			if inner := difference(was, now); len(inner) > 0 {
				changes[key] = inner
			}
		} else if !reflect.DeepEqual(from[key], value) {
			changes[key] = value
		}
	}
	for key := range from {
		if _, stays := to[key]; !stays {
			changes[key] = nil
		}
	}
	return changes
}

// merge is the Merge that Options describe.
func merge(_ Item, has, was, want map[string]any) map[string]any { return mergeFields(has, was, want) }

func mergeFields(has, was, want map[string]any) map[string]any {
	if has == nil {
		has = map[string]any{}
	}
	for key, value := range want {
		inner, isMap := value.(map[string]any)
		if !isMap {
			has[key] = value
			continue
		}
		now, _ := has[key].(map[string]any)
		before, _ := was[key].(map[string]any)
		has[key] = mergeFields(now, before, inner)
	}
	for key, value := range was {
		if _, stays := want[key]; stays {
			continue
		}
		now, isMap := has[key].(map[string]any)
		if before, ok := value.(map[string]any); ok && isMap {
			mergeFields(now, before, nil)
		} else if reflect.DeepEqual(has[key], value) {
			delete(has, key)
		}
	}
	return has
}
