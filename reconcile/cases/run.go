package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// Input is what a case gives a renderer in place of a cluster.
type Input struct {
	Source   *k8swatch.Static  // the fixtures, for the same watchers as in production
	Previous *dataplane.Config // what is deployed already; nil for nothing
	HTTP     map[string]string // what a fetch gets, by URL
}

// Sync runs watchers of the source until they hold the fixtures, and stops them:
// what they hold stays readable, and nothing is left running.
func (in *Input) Sync(ctx context.Context, watchers *k8swatch.Group) error {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- watchers.Run(ctx) }()
	_, err := watchers.WaitForSync(ctx)
	stop()
	return errors.Join(err, <-done)
}

// HTTPStore is a store that fetches the contents of the case and nothing else.
func (in *Input) HTTPStore() *fetch.Store {
	return &fetch.Store{Client: &http.Client{Transport: caseTransport(in.HTTP)}, Retries: -1}
}

// caseTransport answers with the text of a URL.
type caseTransport map[string]string

func (c caseTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	text, ok := c[req.URL.String()]
	if !ok {
		return nil, errors.New("the case has no http content for this URL")
	}
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
}

// Runner runs cases, each by itself: one that fails, panics or hangs never
// stops another.
type Runner struct {
	// Renderer makes the renderer of one case, as the controller makes its own.
	// It is called again for each order of the fixtures that deterministic tries,
	// and for several cases at once. What it starts must end before it returns;
	// see [Input.Sync]. A [*Templates] gets the previous configuration, and,
	// where it has none, a store with the contents of the case.
	Renderer func(ctx context.Context, in *Input) (reconcile.Renderer, error)

	// Validator is who haproxy_valid asks, one configuration at a time. Without
	// one such assertions fail.
	Validator reconcile.Validator

	Timeout  time.Duration // of one case; zero: 30 s
	Parallel int           // cases at once; zero: one for each processor

	once       sync.Once
	validating chan struct{} // of size 1, full while the validator is asked
}

// ask asks the validator, once all who asked before have their answer.
func (r *Runner) ask(ctx context.Context, cfg *dataplane.Config) error {
	r.once.Do(func() { r.validating = make(chan struct{}, 1) })
	select {
	case r.validating <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.validating }()
	return reconcile.Guard(func() error { return r.Validator.Validate(ctx, cfg) })
}

// abandon is how long a case may still take after its time is over: what keeps
// its context has ended by then.
const abandon = time.Second

// Run runs the cases and returns their results in the same order. Cases that
// have not begun when ctx ends fail with its error.
func (r *Runner) Run(ctx context.Context, cases []Case) Results {
	results := make(Results, len(cases))
	limit := r.Parallel
	if limit <= 0 {
		limit = runtime.GOMAXPROCS(0)
	}
	slots := make(chan struct{}, limit)
	var wg sync.WaitGroup
	for i := range cases {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = r.one(ctx, &cases[i])
		})
	}
	wg.Wait()
	return results
}

// Check runs the cases, such as before a controller deploys for the first time,
// and returns a [*Failed] if any fails.
func (r *Runner) Check(ctx context.Context, cases []Case) error {
	results := r.Run(ctx, cases)
	if results.Passed() {
		return nil
	}
	return &Failed{Results: results}
}

// one runs a case within its time.
func (r *Runner) one(ctx context.Context, c *Case) Result {
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	blank := Result{Name: c.Name, File: c.File, Line: c.Line}
	result := blank
	if err := ctx.Err(); err != nil {
		result.Error = err.Error()
		return result
	}
	done := make(chan Result, 1)
	go func() {
		p := &casePlay{runner: r, c: c, mask: newCaseMask(c), result: blank}
		if err := reconcile.Guard(func() error { return p.run(ctx) }); err != nil {
			p.result.Error = p.mask.text(err.Error())
		}
		done <- p.result
	}()
	select {
	case result = <-done:
	case <-ctx.Done():
		late := time.NewTimer(abandon)
		defer late.Stop()
		select {
		case result = <-done:
		case <-late.C:
			select {
			case result = <-done: // at the same moment, or before
			default:
				result.Error = fmt.Sprintf("it does not end with its context: %v", ctx.Err())
			}
		}
	}
	result.Took = time.Since(start)
	return result
}

// casePlay is a case that runs.
type casePlay struct {
	runner *Runner
	c      *Case
	mask   *caseMask
	result Result

	renderer reconcile.Renderer
	rendered *reconcile.Rendered // nil where the render failed
	err      error               // why
}

func (p *casePlay) run(ctx context.Context) error {
	if p.runner.Renderer == nil {
		return errors.New("Runner.Renderer is missing")
	}
	var err error
	if p.renderer, err = p.prepare(ctx, p.c.Fixtures); err != nil {
		return err
	}
	p.rendered, p.err = renderOnce(ctx, p.renderer)
	for i := range p.c.Assertions {
		a := &p.c.Assertions[i]
		outcome := AssertionResult{Assertion: p.mask.text(a.String()), Description: p.mask.text(a.Description), Line: a.Line}
		if problem := p.problem(ctx, a); problem != "" {
			outcome.Problem = p.mask.text(problem)
		}
		p.result.Assertions = append(p.result.Assertions, outcome)
	}
	return nil
}

// prepare makes a renderer that sees these fixtures.
func (p *casePlay) prepare(ctx context.Context, fixtures []k8swatch.Object) (renderer reconcile.Renderer, err error) {
	objs := make([]kruntime.Object, len(fixtures))
	for i, o := range fixtures {
		objs[i] = o
	}
	source, err := k8swatch.NewStatic(objs...)
	if err != nil {
		return nil, fmt.Errorf("fixtures: %w", err)
	}
	in := &Input{Source: source, Previous: p.c.Previous, HTTP: p.c.HTTP}
	err = reconcile.Guard(func() error {
		renderer, err = p.runner.Renderer(ctx, in)
		return err
	})
	if err == nil && renderer == nil {
		err = errors.New("Runner.Renderer returned none")
	}
	if err != nil {
		return nil, fmt.Errorf("renderer: %w", err)
	}
	if t, ok := renderer.(*render.Templates); ok && t != nil {
		t.SetPrevious(p.c.Previous)
		if t.HTTP == nil {
			t.HTTP = in.HTTPStore()
		}
	}
	return renderer, nil
}

// renderOnce renders; a panic is an error.
func renderOnce(ctx context.Context, renderer reconcile.Renderer) (rendered *reconcile.Rendered, err error) {
	err = reconcile.Guard(func() (err error) {
		rendered, err = renderer.Render(ctx)
		return err
	})
	if err == nil && (rendered == nil || rendered.Config == nil) {
		err = errors.New("the renderer returned no configuration")
	}
	if err != nil {
		rendered = nil
	}
	return rendered, err
}

// problem says why an assertion does not hold; "" if it does.
func (p *casePlay) problem(ctx context.Context, a *Assertion) string {
	var problem string
	err := reconcile.Guard(func() error {
		problem = p.judge(ctx, a)
		return nil
	})
	if err != nil {
		problem = err.Error()
	}
	return problem
}

// judge applies Not. That nothing could be looked at is never what it asks for.
func (p *casePlay) judge(ctx context.Context, a *Assertion) string {
	if p.err != nil && a.Target != errorTarget {
		return "the render failed: " + p.err.Error()
	}
	problem, err := p.holds(ctx, a)
	switch {
	case err != nil:
		return err.Error()
	case a.Not && problem == "":
		return "it holds, and must not"
	case a.Not:
		return ""
	}
	return problem
}

// sameRenders and otherOrders are how often deterministic renders again.
const sameRenders, otherOrders = 3, 4

// deterministic renders again with the same renderer, and anew with the fixtures
// in other orders.
func (p *casePlay) deterministic(ctx context.Context) (problem string, err error) {
	for n := range sameRenders {
		again, err := renderOnce(ctx, p.renderer)
		if err != nil {
			return "", fmt.Errorf("render %d failed: %w", n+2, err)
		}
		if d := p.firstDifference(p.rendered.Config, again.Config); d != "" {
			return fmt.Sprintf("render %d of the same differs from the first: %s", n+2, d), nil
		}
	}
	fixtures := slices.Clone(p.c.Fixtures)
	for n := range otherOrders {
		if n == 0 {
			slices.Reverse(fixtures)
		} else {
			random := rand.New(rand.NewPCG(uint64(n), 0)) // the same each time: a failure can be repeated
			random.Shuffle(len(fixtures), func(i, j int) { fixtures[i], fixtures[j] = fixtures[j], fixtures[i] })
		}
		renderer, err := p.prepare(ctx, fixtures)
		if err != nil {
			return "", err
		}
		again, err := renderOnce(ctx, renderer)
		if err != nil {
			return "", fmt.Errorf("with the fixtures in another order: %w", err)
		}
		if d := p.firstDifference(p.rendered.Config, again.Config); d != "" {
			return "with the fixtures in another order: " + d, nil
		}
	}
	return "", nil
}

// firstDifference names the first target in which two configurations differ.
func (p *casePlay) firstDifference(a, b *dataplane.Config) string {
	if a.Main() != b.Main() {
		return render.MainEntry + ": " + p.mask.differing(a.Main(), b.Main())
	}
	if a.Hash() == b.Hash() {
		return ""
	}
	for _, f := range a.Files() {
		g, ok := b.File(f.Kind, f.Name)
		switch {
		case !ok:
			return "there is no " + targetOf(f)
		case string(f.Content) == string(g.Content):
		case f.Kind == dataplane.Certificate:
			return targetOf(f) + " differs"
		default:
			return targetOf(f) + ": " + p.mask.differing(string(f.Content), string(g.Content))
		}
	}
	return "there are other files"
}
