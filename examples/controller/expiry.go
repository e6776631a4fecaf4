package main

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hapticsdk/haptic/examples/controller/ingress"
)

// expiryMetric is for an alert. The log and the page name the Secret, 7 days before.
func (c *controller) expiryMetric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "haptic_certificate_expiry_timestamp_seconds",
		Help: "When the first of the certificates in use expires, in seconds since 1970; +Inf: none is in use."}, func() float64 {
		if r := c.routes.Load(); r != nil && !r.Expiry.IsZero() {
			return float64(r.Expiry.Unix())
		}
		return math.Inf(1)
	})
}

// followCertificates triggers a render when a date comes at which a host is free, or a certificate changes
// its state or is replaced by another. No event tells of dates. It asks the clock each
// second, since a timer does not follow a clock that is set.
func (c *controller) followCertificates(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for asked := (*ingress.Routes)(nil); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if r := c.routes.Load(); r != asked && !r.Next.IsZero() && !time.Now().Before(r.Next) {
			asked = r
			c.loop.Trigger("a date of a certificate or of a host has come")
		}
	}
}
