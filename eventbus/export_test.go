package eventbus

// Kept is the number of events that the bus keeps.
func (b *Bus) Kept() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.log)
}
