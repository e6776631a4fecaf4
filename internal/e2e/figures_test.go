package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var figures = flag.Bool("figures", false, "measure start and changes with 1,000 and 5,000 Ingresses, and print a table")

// TestFigures measures; it asserts only that everything arrives. Each Ingress
// has a Service and an EndpointSlice with one endpoint of its own.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("a measurement: run it with -figures")
	}
	for port := range int32(figurePorts) {
		startBackends(t, backendPort+port)
	}
	table := &strings.Builder{}
	w := tabwriter.NewWriter(table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "Ingresses\tready\tall live\tcontroller MB (peak)\tHAProxy MB\tendpoint p50\tp99\tnew Ingress p50\tmost\t100 at once\treloads\t")
	for _, n := range []int{100, 1000, 5000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) { measure(t, n, w) })
	}
	_ = w.Flush()
	t.Logf("\n%s", table)
}

const figurePorts = 25 // times some 200 addresses are 5,000 endpoints

func figureEndpoint(i int) (string, int32) {
	return host(strconv.Itoa(20 + i%200)), backendPort + int32(i/200%figurePorts)
}

func measure(t *testing.T, n int, w *tabwriter.Writer) {
	k := newKube(t)
	name := func(i int) string { return fmt.Sprintf("n%05d", i) }
	create := func(ctx context.Context, i int) error {
		addr, port := figureEndpoint(i)
		if err := k.createService(ctx, name(i), port, addr); err != nil {
			return err
		}
		return k.createIngress(ctx, name(i), site(name(i)+".test", name(i)))
	}
	inParallel(t, n, create)

	start := time.Now()
	c := startController(t, options{notReady: true})
	c.awaitReady(5 * time.Minute)
	ready := time.Since(start)
	v := c.visit()
	live := func(i int) {
		t.Helper()
		addr, port := figureEndpoint(i)
		eventuallyWithin(t, 5*time.Minute, "a host answers", v.expect(name(i)+".test", "/", endpoint(addr, port)))
	}
	for i := 0; i < n; i += max(1, n/50) {
		live(i)
	}
	live(n - 1)
	all := time.Since(start)
	own, peak, haproxy := rss(c.pid()), peakRSS(c.pid()), int64(0)
	for _, pid := range descendants(c.pid()) {
		haproxy += rss(pid)
	}

	pace := time.NewTicker(hold + hold/10)
	defer pace.Stop()
	pause := func(int) { <-pace.C }
	change := timed(50, pause, func(i int) {
		i %= n
		port := int32(backendPort + (i+1)%figurePorts)
		k.endpoints(name(i), port, host("250"))
		eventually(t, "the new endpoint answers", v.expect(name(i)+".test", "/", endpoint(host("250"), port)))
	})
	pace.Reset(minInterval + hold)
	fresh := timed(10, pause, func(i int) {
		k.must(create(t.Context(), n+i))
		live(n + i)
	})
	mark, start := c.reloads(), time.Now()
	inParallel(t, 100, func(ctx context.Context, i int) error { return create(ctx, n+10+i) })
	for i := range 100 {
		live(n + 10 + i)
	}
	burst := time.Since(start)

	ms := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	const mb = 1 << 20
	fmt.Fprintf(w, "%d\t%s\t%s\t%d (%d)\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t\n", n, ms(ready), ms(all), own/mb, peak/mb, haproxy/mb,
		ms(quantile(change, .5)), ms(quantile(change, .99)), ms(quantile(fresh, .5)), ms(quantile(fresh, 1)),
		ms(burst), c.reloads()-mark)
	c.stop()
}

var vmHWM = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakRSS is the most resident memory that a process has ever had, in bytes.
func peakRSS(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	m := vmHWM.FindSubmatch(text)
	if m == nil {
		panic(errors.New("no VmHWM in /proc/PID/status"))
	}
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10
}
