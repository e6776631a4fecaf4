// The analyzer has a module of its own, so that what it needs never reaches
// those who import the SDK.
module github.com/hapticsdk/haptic/internal/eventimmutability

go 1.25.0

require golang.org/x/tools v0.47.0

require (
	golang.org/x/mod v0.37.0 // indirect
	golang.org/x/sync v0.21.0 // indirect
)
