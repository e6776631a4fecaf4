package k8swatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hapticsdk/haptic/k8swatch"
)

// A program that finds something deployed waits until it knows what the manifests say.
func ExampleFolder_WaitForKnown() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte("kind: Servic"), 0o600); err != nil {
		panic(err)
	}
	folder, err := k8swatch.NewFolder(dir, nil)
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	fmt.Println(folder.WaitForKnown(ctx))
	// Output: context deadline exceeded
}
