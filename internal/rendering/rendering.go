// Package rendering is what a loop and the objects that its renders read know of each other.
// Their packages do not import each other.
package rendering

import "iter"

// Key names an object, whatever its version. An empty APIVersion stands for any.
type Key struct{ APIVersion, Kind, Namespace, Name string }

// View is what renders read. The loop chooses the instant, and holds objects back in it.
type View interface {
	// Newest returns the objects as they are now.
	Newest() Objects
	// Show makes renders read these objects from here on.
	Show(Objects)
}

// Objects are the objects at one instant. They never change.
type Objects interface {
	// Get returns an object, nil if there is none.
	Get(Key) any
	// All yields all objects.
	All() iter.Seq[any]
	// With returns the same objects, but others in place of some; nil: none in its place.
	With(instead map[Key]any) Objects
}
