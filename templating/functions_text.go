package templating

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

var errNilValue = errors.New("the value is nil")

// protoMessage is a protobuf message. Its String is a dump of all fields, for logs:
// that of a Secret has the data.
type protoMessage interface {
	Marshal() ([]byte, error)
	Size() int
}

// ownText returns the text that the methods of a value give it; ok is false
// where there is none. JSON comes first, since the types of Kubernetes have
// there what a manifest has: a metav1.Time is in UTC, a metav1.Duration "5s".
func ownText(v any) (text string, ok bool, err error) {
	switch v.(type) {
	case json.Marshaler, encoding.TextMarshaler, fmt.Stringer, error:
	default:
		return "", false, nil
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return "", false, nil
	}
	if v, is := v.(json.Marshaler); is {
		if text, ok, err := scalarText(v); ok {
			return text, true, err
		}
	}
	_, dumps := v.(protoMessage)
	switch v := v.(type) {
	case encoding.TextMarshaler:
		b, err := v.MarshalText()
		return string(b), true, err
	case fmt.Stringer:
		if !dumps {
			return v.String(), true, nil
		}
	case error:
		return v.Error(), true, nil
	}
	return "", false, nil
}

// scalarText returns what a value is in JSON; ok is false where that is an
// object or a list.
func scalarText(v json.Marshaler) (text string, ok bool, err error) {
	b, err := v.MarshalJSON()
	switch {
	case err != nil:
		return "", true, err
	case len(b) == 0 || b[0] == '{' || b[0] == '[':
		return "", false, nil
	case string(b) == "null":
		return "", true, errNilValue
	case b[0] != '"':
		return strings.TrimSpace(string(b)), true, nil
	}
	err = json.Unmarshal(b, &text)
	return text, true, err
}

// pointerText is ownText of a value whose methods are those of its pointer.
func pointerText(rv reflect.Value) (text string, ok bool, err error) {
	ptr := reflect.New(rv.Type())
	ptr.Elem().Set(rv)
	return ownText(ptr.Interface())
}
