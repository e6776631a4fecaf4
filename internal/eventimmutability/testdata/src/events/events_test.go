package events

import "github.com/hapticsdk/haptic/eventbus"

type ofTest struct{ Items []string }

func publishInTest(b *eventbus.Bus) { eventbus.Publish(b, ofTest{}) }
