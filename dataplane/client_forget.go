package dataplane

// Forget has the next [Client.Sync] read all that is stored, files included, in
// place of trusting what this client left there. It is for whoever learns that
// another process may have deployed since, such as one that comes to lead again:
// a map or a certificate that has changed no version tells. It never waits, not
// even for a Sync that is under way, and may be called from any goroutine.
func (c *Client) Forget() { c.forgotten.Store(true) }
