package kit

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// Process is a running controller: its listeners, its bus, its observer, and the parts that
// the program adds with Go. Name, Flags, Bus and Observer are required.
type Process struct {
	Group // Run sets its Log and OnStop

	Name     string // of the program
	Flags    *Flags // with the addresses of the listeners
	Bus      *eventbus.Bus
	Observer *observe.Observer

	Local   *dataplane.Local // HAProxy on this host, which Run starts, checks and stops; nil: HAProxy runs elsewhere
	HAProxy string           // for the log, if Local is nil: "pods app=haproxy of namespace edge"
	Watches string           // for the log: "manifests in ./demo"

	// Drain is how long Run goes on after ctx ended, while /readyz answers 503. Traffic still
	// arrives until the whole cluster has noticed. Zero: Run stops at once.
	Drain time.Duration

	draining atomic.Bool
}

// Run first opens the listeners, whose errors name the flag, and checks that no other process
// has the folder of Local. Only then does it log the start and run everything, until ctx ends
// or a part fails. It returns when everything has ended, with nil if ctx ended. After the
// first reconciliation the whole process keeps less garbage, and gives memory back whenever
// nothing happens, unless GOGC is set.
func (p *Process) Run(ctx context.Context) error {
	began, log := time.Now(), p.Flags.log.Logger
	if err := p.listen(ctx); err != nil {
		return err
	}
	p.Group.Log = log
	atEnd := "stopping: the instances behind Dataplane APIs serve on"
	if p.Local != nil {
		atEnd = "stopping: HAProxy is stopped with this controller"
		p.Observer.Health.CheckQuietly("haproxy", observe.ReadyToServe, p.Local.Serving) // its events already tell of failures
		p.Observer.Health.Check("haproxy-master", observe.Reported, p.Local.MasterAnswers)
		p.Go("HAProxy", p.Local.Run)
	}
	p.OnStop = func(failed, cause error) {
		if failed != nil {
			log.Error(atEnd, "error", failed)
		} else {
			log.Info(atEnd, "cause", cause)
		}
	}
	p.Go("observer", p.Observer.Run)
	p.boundGarbage()
	p.Bus.Start()
	serves, stop := p.drained(ctx)
	defer stop()
	err := p.Group.Run(serves)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := p.Bus.Close(end); err != nil {
		log.Warn("events not delivered", "error", err)
	}
	if err == nil { // the caller logs an error as the last line
		log.Info(p.Name+" has ended", "after", time.Since(began).Round(time.Millisecond).String())
	}
	return err
}

// drained returns a context that ends Drain after ctx, when no more requests come. The caller
// calls stop at the end.
func (p *Process) drained(ctx context.Context) (serves context.Context, stop func()) {
	if p.Drain == 0 {
		return ctx, func() {}
	}
	p.Observer.Health.CheckQuietly("drain", observe.ReadyToServe, func() error {
		if p.draining.Load() {
			return fmt.Errorf("this process stops within %s", p.Drain)
		}
		return nil
	})
	serves, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-serves.Done():
			return
		}
		p.draining.Store(true)
		p.Flags.log.Info("draining: /readyz answers 503, and the controller keeps serving", "cause", context.Cause(ctx), "for", p.Drain.String())
		timer := time.NewTimer(p.Drain)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-serves.Done():
		}
		end(context.Cause(ctx))
	}()
	return serves, func() { end(nil); <-ended }
}

// listen opens the listeners and adds them as parts. It then checks the folder of Local and
// logs the start.
func (p *Process) listen(ctx context.Context) error {
	debug := p.Observer.Server()
	debug.Token = p.Flags.DebugToken
	haproxy := p.HAProxy
	if p.Local != nil {
		haproxy = "on this host: " + p.Local.Layout().ConfigPath()
	}
	says := []any{"version", p.Observer.Version(), "watches", p.Watches, "haproxy", haproxy}
	var open []net.Listener
	for _, s := range []struct {
		flag, addr, name string
		server           *observe.Server
	}{{metricsAddr, p.Flags.MetricsAddr, "metrics", p.Observer.MetricsServer()}, {debugAddr, p.Flags.DebugAddr, "debug", debug}} {
		if s.addr == "" {
			says = append(says, s.name, "none")
			continue
		}
		s.server.Addr, s.server.Logger = s.addr, p.Flags.log.Logger
		ln, err := s.server.Listen(ctx)
		if err != nil {
			closeAll(open)
			return OfFlag(s.flag, err)
		}
		open = append(open, ln)
		says = append(says, s.name, fmt.Sprint(ln.Addr()))
		p.Go("listener of -"+s.flag, func(ctx context.Context) error { return OfFlag(s.flag, s.server.Serve(ctx, ln)) })
	}
	if p.Local != nil {
		if err := p.Local.CheckFolder(); err != nil {
			closeAll(open)
			return err
		}
	}
	p.Flags.log.Info(p.Name+" starts", says...)
	return nil
}

func closeAll(listeners []net.Listener) {
	for _, ln := range listeners {
		_ = ln.Close()
	}
}
