// Command eventimmutability is for go vet:
//
//	go build -o bin/eventimmutability ./cmd/eventimmutability
//	go vet -vettool=$PWD/bin/eventimmutability ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/hapticsdk/haptic/internal/eventimmutability"
)

func main() { unitchecker.Main(eventimmutability.Analyzer) }
