package change

// Limits bound what a Sync may do.
type Limits struct {
	// NoReload applies only what changes at runtime, and leaves the rest.
	NoReload bool

	// Fence, if set, is called right before each change of an instance. Its error ends the
	// Sync.
	Fence func() error

	// Later leaves it to Store to store the changes of the process.
	Later bool
}

// Fenced calls the fence.
func (l Limits) Fenced() error {
	if l.Fence == nil {
		return nil
	}
	return l.Fence()
}

// Outcome says what a Sync did.
type Outcome struct {
	Steps     []Step // what differed when the Sync began
	Left      []Step // what still differs and waits for a reload
	Started   bool   // HAProxy was started, which is no reload
	Reloads   int
	Commands  int // commands that changed the running process
	Files     int // files written or deleted
	Hash      string
	Pending   bool // the process has the change; the next Store stores it
	WorkerPID int
	Fallback  string // why a change without reload became a reload
}
