package cases

import (
	"cmp"
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

	"golang.org/x/sync/errgroup"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/panics"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// Input replaces the cluster for the renderer of a case.
type Input struct {
	Source   *k8swatch.Static  // the fixtures, for the same watchers as in production
	Previous *dataplane.Config // what is deployed already; nil for nothing
	HTTP     map[string]string // what a fetch gets, by URL
}

// Sync runs watchers of the source until they hold the fixtures, and stops them. Their
// objects stay readable, and nothing keeps running.
func (in *Input) Sync(ctx context.Context, watchers *k8swatch.Group) error {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- watchers.Run(ctx) }()
	_, err := watchers.WaitForSync(ctx)
	stop()
	return errors.Join(err, <-done)
}

// HTTPStore returns a store that fetches only the contents of the case.
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

// Runner runs cases independently: one that fails, panics or hangs never stops another.
type Runner struct {
	// Renderer makes the renderer of one case, as the controller makes its own. The Runner
	// calls it again for each order of the fixtures that deterministic tries, and for
	// several cases at once. Everything that Renderer starts must end before it returns; see
	// [Input.Sync]. A [*render.Templates] gets the previous configuration. If it has no
	// store, it gets one with the contents of the case.
	Renderer func(ctx context.Context, in *Input) (reconcile.Renderer, error)

	// Validator checks configurations for haproxy_valid, one at a time. Without a Validator
	// these assertions fail.
	Validator reconcile.Validator

	Timeout  time.Duration // of one case; zero: 30 s
	Parallel int           // cases at once; zero: one for each processor

	once       sync.Once
	validating chan struct{} // of size 1, full while the validator is asked
}

// validate asks the validator, one configuration at a time.
func (r *Runner) validate(ctx context.Context, cfg *dataplane.Config) error {
	r.once.Do(func() { r.validating = make(chan struct{}, 1) })
	select {
	case r.validating <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.validating }()
	return r.Validator.Validate(ctx, cfg)
}

// abandon is how long a case may still take after its time is over. Code that respects its
// context has ended by then.
const abandon = time.Second

// Run runs the cases and returns their results in the same order. Cases that
// have not begun when ctx ends fail with its error.
func (r *Runner) Run(ctx context.Context, cases []Case) Results {
	results := make(Results, len(cases))
	var group errgroup.Group
	group.SetLimit(cmp.Or(max(r.Parallel, 0), runtime.GOMAXPROCS(0)))
	for i := range cases {
		group.Go(func() error {
			results[i] = r.one(ctx, &cases[i])
			return nil
		})
	}
	_ = group.Wait()
	return results
}

// Check runs the cases and returns a [*Failed] if any fails. Call it, for example, before a
// controller deploys for the first time.
func (r *Runner) Check(ctx context.Context, cases []Case) error {
	results := r.Run(ctx, cases)
	if results.Passed() {
		return nil
	}
	return &Failed{Results: results}
}

// one runs a case within its time.
func (r *Runner) one(ctx context.Context, c *Case) Result {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(max(r.Timeout, 0), 30*time.Second))
	defer cancel()
	result := Result{Name: c.Name, File: c.File, Line: c.Line}
	if err := ctx.Err(); err != nil {
		result.Error = err.Error()
		return result
	}
	done := make(chan Result, 1)
	p := &play{runner: r, c: c, mask: maskOf(c), result: result}
	go func() {
		if err := panics.Guard(func() error { return p.run(ctx) }); err != nil {
			p.result.Error = p.mask(err.Error())
		}
		done <- p.result
	}()
	select {
	case result = <-done:
	case <-ctx.Done():
		select {
		case result = <-done:
		case <-time.After(abandon):
			result.Error = fmt.Sprintf("it does not end with its context: %v", ctx.Err())
		}
	}
	result.Took = time.Since(start)
	return result
}

// play is a case under way.
type play struct {
	runner *Runner
	c      *Case
	mask   mask
	result Result

	renderer reconcile.Renderer
	rendered *reconcile.Rendered    // nil if the render failed
	err      error                  // why the render failed
	refused  reconcile.TemplateLine // the line that the validator refused
}

func (p *play) run(ctx context.Context) (err error) {
	if p.runner.Renderer == nil {
		return errors.New("Runner.Renderer is missing")
	}
	if p.renderer, err = p.prepare(ctx, p.c.Fixtures); err != nil {
		return err
	}
	p.rendered, p.err = renderOnce(ctx, p.renderer)
	for i := range p.c.Assertions {
		a := &p.c.Assertions[i]
		p.refused = reconcile.TemplateLine{}
		problem := p.mask(p.problem(ctx, a))
		p.result.Assertions = append(p.result.Assertions, AssertionResult{
			Assertion: p.mask(a.String()), Description: p.mask(a.Description), Line: a.Line, Problem: problem, Template: p.refused})
	}
	return nil
}

// prepare makes a renderer that sees these fixtures.
func (p *play) prepare(ctx context.Context, fixtures []k8swatch.Object) (renderer reconcile.Renderer, err error) {
	objs := make([]kruntime.Object, len(fixtures))
	for i, o := range fixtures {
		objs[i] = o
	}
	source, err := k8swatch.NewStatic(objs...)
	if err != nil {
		return nil, fmt.Errorf("fixtures: %w", err)
	}
	in := &Input{Source: source, Previous: p.c.Previous, HTTP: p.c.HTTP}
	renderer, err = p.runner.Renderer(ctx, in)
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

func renderOnce(ctx context.Context, renderer reconcile.Renderer) (*reconcile.Rendered, error) {
	rendered, err := renderer.Render(ctx)
	if err == nil && (rendered == nil || rendered.Config == nil) {
		err = errors.New("the renderer returned no configuration")
	}
	return rendered, err
}

// problem says why an assertion does not hold; "" if it does. An error is a problem with
// Not, too: the assertion could not be checked.
func (p *play) problem(ctx context.Context, a *Assertion) string {
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

// sameRenders and otherOrders are how often deterministic renders again, with the same order
// and with others.
const sameRenders, otherOrders = 3, 4

// deterministic renders again with the same renderer, and anew with the fixtures
// in other orders.
func (p *play) deterministic(ctx context.Context) (problem string, err error) {
	fixtures := slices.Clone(p.c.Fixtures)
	random := rand.New(rand.NewPCG(0, 0)) // the same each time: a failure can be repeated
	for n := range sameRenders + otherOrders {
		renderer, what := p.renderer, fmt.Sprintf("render %d of the same differs from the first", n+2)
		if n >= sameRenders {
			what = "with the fixtures in another order"
			if n == sameRenders {
				slices.Reverse(fixtures)
			} else {
				random.Shuffle(len(fixtures), func(i, j int) { fixtures[i], fixtures[j] = fixtures[j], fixtures[i] })
			}
			if renderer, err = p.prepare(ctx, fixtures); err != nil {
				return "", err
			}
		}
		again, err := renderOnce(ctx, renderer)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		if d := p.mask.firstDifference(p.rendered.Config, again.Config); d != "" {
			return what + ": " + d, nil
		}
	}
	return "", nil
}

// firstDifference names the first target in which two configurations differ.
func (m mask) firstDifference(a, b *dataplane.Config) string {
	if a.Main() != b.Main() {
		return mainTarget + ": " + m.differing(a.Main(), b.Main())
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
		default:
			return targetOf(f) + ": " + m.differing(string(f.Content), string(g.Content))
		}
	}
	return "there are other files"
}
