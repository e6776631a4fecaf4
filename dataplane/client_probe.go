package dataplane

import "context"

// Probe asks what Dataplane API and what HAProxy there are, and changes nothing.
// The Version of the HAProxy is zero where the API does not tell it, as before
// the process has started. It fails with [ErrUnsupported] for an API older than
// 3.0, and otherwise as [Client.DryRun] does before it reads anything.
func (c *Client) Probe(ctx context.Context) (Target, error) {
	ctx, cancel, err := c.begin(ctx)
	if err != nil {
		return Target{}, err
	}
	defer cancel()
	info, err := c.api.Info(ctx)
	if err != nil {
		return Target{}, c.probeError(err)
	}
	j := &job{api: info}
	if err := c.inspect(ctx, j); err != nil {
		return Target{}, err
	}
	return j.target, nil
}
