package claims

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Claimant is an object that claims hosts or keys. The zero value is no object, and older than
// all.
type Claimant struct {
	Kind, Namespace, Name string
	Created               time.Time
}

// By makes a claimant of an object.
func By(kind string, o metav1.Object) Claimant {
	return Claimant{kind, o.GetNamespace(), o.GetName(), o.GetCreationTimestamp().Time}
}

// Compare puts the older one first, and then the first by namespace, name and kind.
func (c Claimant) Compare(other Claimant) int {
	return cmp.Or(c.Created.Compare(other.Created), cmp.Compare(c.Namespace, other.Namespace), cmp.Compare(c.Name, other.Name), cmp.Compare(c.Kind, other.Kind))
}

// String is "Kind namespace/name".
func (c Claimant) String() string { return c.Kind + " " + c.Namespace + "/" + c.Name }

func (c Claimant) isSame(other Claimant) bool {
	return c.Name == other.Name && c.Namespace == other.Namespace && c.Kind == other.Kind
}
