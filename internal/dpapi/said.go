package dpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

var (
	errTooMany = fmt.Errorf("a list has more than %d elements", maxValues)
	errKind    = errors.New("the answer has a value of a wrong type: check that the URL leads to a Dataplane API")
)

// unreadable says why an answer is not JSON, or not an answer of the API. It quotes no value.
func unreadable(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, errTooMany) {
		return err
	}
	return errKind
}

// list is a list in an answer. It has at most maxValues elements, because a list of empty
// elements can take a hundred times the memory of its text.
type list[T any] []T

// UnmarshalJSON decodes one element after the other, and ends at the first that is wrong.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	if bytes.Count(data, []byte(",")) < maxValues { // the usual case
		return json.Unmarshal(data, (*[]T)(l))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return cmp.Or(err, errKind)
	}
	for d.More() {
		if len(*l) == maxValues {
			return errTooMany
		}
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		*l = append(*l, element)
	}
	return nil
}
