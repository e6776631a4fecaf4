package k8swatch

import "time"

// SetSettle says, before Run, how long f waits for the rest of a file.
func (f *Folder) SetSettle(d time.Duration) { f.settle = d }
