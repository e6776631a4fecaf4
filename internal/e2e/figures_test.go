package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	figures        = flag.Bool("figures", false, "measure start, memory and changes with many Ingresses, and print a table; -count=3 prints three")
	figureSizes    = flag.String("figuresizes", "100,1000,5000,10000", "how many Ingresses TestFigures measures with")
	figuresProfile = flag.String("figuresprofile", "", "`folder` for profiles of the controller at the largest size, during endpoint changes")
	figuresBinary  = flag.String("figurescontroller", "", "controller that TestFigures measures, such as one of before; empty: that of this tree")
)

// How much is measured of each.
const (
	figureChanges = 200              // of an EndpointSlice, each by itself
	figureNew     = 50               // Ingresses with Services, each by itself
	figureBurst   = 100              // of them at once
	figureRest    = 10 * time.Second // after the start, and then memory is read
	figureCPU     = 20 * time.Second // of 10 endpoint changes a second
)

// TestFigures measures; it asserts only that everything arrives. Each Ingress has a
// Service and an EndpointSlice with one endpoint of its own. API server, etcd,
// controller, HAProxy, backends and the test itself share the processors of this
// machine.
//
// The clock of a change starts when the first write to the API server begins, and ends
// with the first answer that is as the change wants it: the table also has what the API
// server takes to answer the writes. The probe asks on a kept connection about every
// millisecond. HAProxy is the one in $PATH.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("a measurement: run it with -figures")
	}
	for port := range int32(figurePorts) {
		// HAProxy would go on with a connection to the address of before that is in use
		// while the address changes.
		startBackends(t, backendPort+port).once.Store(true)
	}
	var sizes []int
	for s := range strings.SplitSeq(*figureSizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("-figuresizes %q: want numbers, such as 100,1000", *figureSizes)
		}
		sizes = append(sizes, n)
	}
	table := &figureTable{}
	for _, n := range sizes {
		t.Run(strconv.Itoa(n), func(t *testing.T) { measure(t, n, n == slices.Max(sizes), table) })
	}
	t.Logf("%s\n%s", haproxyVersion(t), table)
}

// figureTable has a line for each figure and a column for each size.
type figureTable struct {
	names  []string
	values map[string][]string
	sizes  int
}

func (f *figureTable) add(name, format string, args ...any) {
	if f.values == nil {
		f.values = map[string][]string{}
	}
	if _, ok := f.values[name]; !ok {
		f.names = append(f.names, name)
	}
	for len(f.values[name]) < f.sizes-1 { // a size that did not come so far
		f.values[name] = append(f.values[name], "-")
	}
	f.values[name] = append(f.values[name], fmt.Sprintf(format, args...))
}

// quantiles adds p50, p99 and the most.
func (f *figureTable) quantiles(name string, took []time.Duration) {
	ms := func(q float64) float64 { return float64(quantile(took, q)) / float64(time.Millisecond) }
	f.add(name+", ms p50 / p99 / most", "%.1f / %.1f / %.1f", ms(.5), ms(.99), ms(1))
}

func (f *figureTable) String() string {
	text := &strings.Builder{}
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	for _, name := range f.names {
		fmt.Fprintf(w, "%s\t%s\t\n", name, strings.Join(f.values[name], "\t"))
	}
	_ = w.Flush()
	return text.String()
}

// figure is what is measured with one size.
type figure struct {
	*testing.T
	*figureTable
	k    *kube
	c    *controller
	p    *probe
	n    int // of Ingresses
	next int // the number of the next change of an EndpointSlice
}

func measure(t *testing.T, n int, profiled bool, table *figureTable) {
	f := &figure{T: t, figureTable: table, k: newKube(t), n: n}
	f.sizes++
	f.add("Ingresses", "%d", n)
	f.add("load of the machine before", "%s", loadAverage())
	inParallel(t, n, f.create)
	f.start()
	defer f.p.close()
	f.changes()
	if profiled && *figuresProfile != "" {
		f.profile(*figuresProfile)
	}
	f.processors()
	f.fresh()
	f.burst()
	f.add("controller MB at its peak, of all", "%d", peakRSS(f.c.pid())/mb)
	f.c.stop()
}

const figurePorts = 50 // times 200 addresses are 10,000 endpoints

func figureEndpoint(i int) (string, int32) {
	return host(strconv.Itoa(20 + i%200)), backendPort + int32(i/200%figurePorts)
}

func figureName(i int) string { return fmt.Sprintf("n%05d", i) }

// create makes a Service, its EndpointSlice and an Ingress.
func (f *figure) create(ctx context.Context, i int) error {
	name := figureName(i)
	addr, port := figureEndpoint(i)
	if err := f.k.createService(ctx, name, port, addr); err != nil {
		return err
	}
	return f.k.createIngress(ctx, name, site(name+".test", name))
}

// live waits until an Ingress serves.
func (f *figure) live(i int) time.Time {
	f.Helper()
	addr, port := figureEndpoint(i)
	return f.p.arrives(f.T, figureName(i)+".test", endpoint(addr, port))
}

// start starts the controller, and measures until 200 hosts of all serve.
func (f *figure) start() {
	start := time.Now()
	f.c = startController(f.T, options{notReady: true, binary: *figuresBinary, accessLog: "http"})
	f.p = newProbe(f.c.http)
	ready := make(chan time.Duration, 1)
	go func() {
		_ = poll(f.Context(), patience, func() error { _, err := f.c.page("/readyz"); return err })
		ready <- time.Since(start)
	}()
	var last time.Time
	for i := 0; i < f.n; i += max(1, f.n/200) {
		last = f.live(i)
	}
	last = f.live(f.n - 1)
	f.add("start -> ready", "%s", round(<-ready))
	f.add("start -> all live", "%s", round(last.Sub(start)))
	f.add("controller MB at its peak, of the start", "%d", peakRSS(f.c.pid())/mb)
	f.rest(figureRest)
	f.add("controller MB at rest", "%d", rss(f.c.pid())/mb)
	f.add("- of it what is in use", "%d", f.c.heap(f.T, "HeapAlloc")/mb)
	haproxy := int64(0)
	for _, pid := range descendants(f.c.pid()) {
		haproxy += rss(pid)
	}
	f.add("HAProxy MB, master and worker", "%d", haproxy/mb)
}

// rest lets time pass.
func (f *figure) rest(d time.Duration) {
	f.Helper()
	select {
	case <-time.After(d):
	case <-f.Context().Done():
		f.Fatal(f.Context().Err())
	}
}

// written is the end of a write.
type written struct {
	took time.Duration
	err  error
}

// write begins a write and tells of its end.
func (f *figure) write(do func(ctx context.Context) error) (start time.Time, end <-chan written) {
	start = time.Now()
	c := make(chan written, 1)
	go func() {
		err := do(f.Context())
		if err != nil {
			f.Error(err) // whoever waits for its effect does so in vain
		}
		c <- written{time.Since(start), err}
	}()
	return start, c
}

// wrote waits for the end of a write.
func (f *figure) wrote(end <-chan written) time.Duration {
	f.Helper()
	w := <-end
	f.k.must(w.err)
	return w.took
}

// change gives the next EndpointSlice, each of another Ingress, an endpoint that it never
// had. It says which host answers what then.
func (f *figure) change() (host, want string, write func(ctx context.Context) error) {
	i := f.next
	f.next++
	name := figureName(i * 7919 % f.n)
	addr, port := subnet+strconv.Itoa(220+i%30), backendPort+int32(i/30%figurePorts)
	return name + ".test", endpoint(addr, port), func(ctx context.Context) error {
		return f.k.updateEndpoints(ctx, name, port, addr)
	}
}

// changes measures one EndpointSlice at a time.
func (f *figure) changes() {
	pace := time.NewTicker(hold + hold/10)
	defer pace.Stop()
	allocated, objects, mark := f.c.heap(f.T, "TotalAlloc"), f.c.heap(f.T, "Mallocs"), f.c.reloads()
	var took, wrote []time.Duration
	for range figureChanges {
		<-pace.C
		host, want, write := f.change()
		start, end := f.write(write)
		took = append(took, f.p.arrives(f.T, host, want).Sub(start))
		wrote = append(wrote, f.wrote(end))
	}
	f.quantiles("EndpointSlice -> traffic", took)
	f.quantiles("- of it the API server's answer", wrote)
	f.add("- reloads meanwhile", "%d", f.c.reloads()-mark)
	f.add("- KB allocated for each", "%d", (f.c.heap(f.T, "TotalAlloc")-allocated)/figureChanges>>10)
	f.add("- allocations for each", "%d", (f.c.heap(f.T, "Mallocs")-objects)/figureChanges)
}

// processors measures what 10 changes of EndpointSlices a second take.
func (f *figure) processors() {
	own, theirs := ticks(f.T, f.c.pid()), ticks(f.T, descendants(f.c.pid())...)
	pace := time.NewTicker(time.Second / 10)
	defer pace.Stop()
	start, host, want := time.Now(), "", ""
	for time.Since(start) < figureCPU {
		<-pace.C
		var write func(ctx context.Context) error
		host, want, write = f.change()
		f.k.must(write(f.Context()))
	}
	share := func(used time.Duration) string {
		return fmt.Sprintf("%.1f", 100*used.Seconds()/time.Since(start).Seconds())
	}
	f.add("controller's % of a core at 10 changes a second", "%s", share(ticks(f.T, f.c.pid())-own))
	f.add("HAProxy's", "%s", share(ticks(f.T, descendants(f.c.pid())...)-theirs))
	f.p.arrives(f.T, host, want)
}

// fresh measures one new Ingress at a time, with a new Service and EndpointSlice: three
// writes. After a reload it waits as long as the next one would have to.
func (f *figure) fresh() {
	var took, wrote []time.Duration
	mark := f.c.reloads()
	for i, before := 0, mark; i < figureNew; i++ {
		f.rest(hold + hold/10)
		if now := f.c.reloads(); now != before {
			f.rest(minInterval)
			before = now
		}
		start, end := f.write(func(ctx context.Context) error { return f.create(ctx, f.n+i) })
		took = append(took, f.live(f.n+i).Sub(start))
		wrote = append(wrote, f.wrote(end))
	}
	f.quantiles("new Ingress with a new Service -> 200", took)
	f.quantiles("- of it the API server's three answers", wrote)
	f.add("- reloads for all of them", "%d", f.c.reloads()-mark)
}

// burst measures many new Ingresses at once.
func (f *figure) burst() {
	f.rest(minInterval + hold)
	mark := f.c.reloads()
	start, end := f.write(func(ctx context.Context) error {
		return allInParallel(ctx, figureBurst, func(ctx context.Context, i int) error { return f.create(ctx, f.n+figureNew+i) })
	})
	var last time.Time
	for i := range figureBurst {
		last = f.live(f.n + figureNew + i)
	}
	f.add("100 new Ingresses at once -> all 200", "%s", round(last.Sub(start)))
	f.add("- of it the API server's 300 answers", "%s", round(f.wrote(end)))
	f.add("- reloads for them", "%d", f.c.reloads()-mark)
}

// profile keeps profiles of the controller: of the processor's time in 30 s of single
// changes of EndpointSlices, and of the heap before and after them. pprof -base of the
// second over the first tells what they allocated.
func (f *figure) profile(dir string) {
	keep := func(name, page string) {
		text, err := f.c.pageWithin(page, time.Minute)
		f.k.must(err)
		f.k.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	const seconds = 30
	keep("heap", "/debug/pprof/heap?gc=1")
	pace := time.NewTicker(hold + hold/10)
	defer pace.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range int(seconds * time.Second / (hold + hold/10)) {
			<-pace.C
			_, _, write := f.change()
			if err := write(f.Context()); err != nil {
				f.Error(err)
			}
		}
	}()
	keep("cpu", fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
	<-done
	keep("heap-after", "/debug/pprof/heap?gc=1")
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// haproxyVersion is the first line of haproxy -v.
func haproxyVersion(t testing.TB) string {
	out, err := exec.CommandContext(t.Context(), "haproxy", "-v").Output()
	must(t, err)
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
