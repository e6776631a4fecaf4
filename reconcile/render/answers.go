package render

import "github.com/hapticsdk/haptic/k8swatch/derive"

// dependency is a question of a template to the host.
type dependency struct {
	of  source
	key any
}

type source byte

const (
	ofInput source = iota // by Input.Reads
	ofCurrent
	ofHTTP
	sources // how many there are
)

// outdated stands for an answer of the input that would be another one now.
var outdated = new(int) // constant in effect

// begin says which text the questions to the host are noted for.
func (t *texts) begin(asks *run, at *derive.Reads) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asks, t.at, t.got = asks, at, nil
}

// note notes an answer of the host. A template that hung in an earlier render may still ask.
func (t *texts) note(r *run, q dependency, answer any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil || t.asks != r {
		return
	}
	asked := t.asked[q.of]
	if known, ok := asked.Get(nil, q.key); !ok || known == outdated {
		asked.Set(q.key, answer)
	}
	if asked.Get(t.at, q.key); q.of == ofInput {
		t.got = append(t.got, answer)
	}
}

// ask asks the questions of all texts again. Those to the input can be thousands: if it knows
// which of them may have another answer than in the last render, ask asks these alone.
func (t *texts) ask(r *run) {
	t.askAll(r, ofCurrent)
	t.askAll(r, ofHTTP)
	keys, known := r.in.Reads.changed(t.state)
	if asked := t.asked[ofInput]; known && asked.Len() <= 2*t.needed {
		for _, key := range keys {
			if was, ok := asked.Get(nil, key); ok {
				t.askOne(r, dependency{ofInput, key}, was)
			}
		}
	} else { // this also drops those that no text asks any more
		t.askAll(r, ofInput)
		t.needed = asked.Len()
	}
	t.state = nil
	if r.in.Reads != nil {
		t.state = r.in.Reads.State
	}
}

func (t *texts) askAll(r *run, of source) {
	for key, was := range t.asked[of].All() {
		t.askOne(r, dependency{of, key}, was)
	}
}

func (t *texts) askOne(r *run, q dependency, was any) {
	if asked := t.asked[q.of]; asked.HasReaders(q.key) {
		asked.Set(q.key, r.answer(q, was))
	} else {
		asked.Delete(q.key)
	}
}

// answer returns the current answer to a question that had another one before, or the same.
func (r *run) answer(q dependency, was any) any {
	switch {
	case q.of == ofCurrent:
		return r.current.answer(q.key)
	case q.of == ofHTTP:
		return r.HTTP.Revision(r.http, q.key)
	case was != any(outdated) && r.in.Reads != nil && r.in.Reads.Same(q.key, was):
		return was
	}
	return outdated
}
