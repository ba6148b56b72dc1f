package runner

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// An effect is what is kept of a call with a key: that it runs and where, or
// how it ended.
//
//	effect/KEY    one effect; KEY is a hash of tenant, principal, session and key
//	runner/OWNER  a Runner that is alive; expires after Limits.Lease
type effect struct {
	State   string             `json:"state"` // running, done, unknown
	ID      string             `json:"id"`
	Request string             `json:"request"` // digest of the call, whatever the capability's text
	Target  capability.ID      `json:"target"`
	Owner   string             `json:"owner"`
	Began   time.Time          `json:"began"`
	Result  *capability.Result `json:"result,omitempty"`
	Fault   *fault             `json:"fault,omitempty"`
}

const (
	effectRunning = "running"
	effectDone    = "done"
	effectUnknown = "unknown"
)

// A fault is a capability.Error as it is stored.
type fault struct {
	Kind   capability.ErrorKind `json:"kind"`
	Op     string               `json:"op,omitempty"`
	Target string               `json:"target,omitempty"`
	Rule   string               `json:"rule,omitempty"`
	Fix    string               `json:"fix,omitempty"`
	Text   string               `json:"text,omitempty"`
}

// A claim is the hold that a trip has on its effect. The nil claim holds
// nothing.
type claim struct {
	key     string
	request string
	version int64
	flight  chan struct{} // closed when this call has ended
}

// outcome returns an earlier end, or err.
func (e *effect) outcome(err error) (capability.Result, error) {
	if e == nil || err != nil {
		return capability.Result{}, err
	}
	var res capability.Result
	if e.Result != nil {
		res = *e.Result
	}
	if f := e.Fault; f != nil {
		err = &capability.Error{Kind: f.Kind, Op: f.Op, Target: f.Target, Rule: f.Rule, Fix: f.Fix, Err: errors.New(f.Text)}
	}
	return res, err
}

// identify names the effect. Only a call with a key that may change something
// has one to keep; any other gets a name for its records.
func (r *Runner) identify(ctx context.Context, t *trip) error {
	if t.effectID != "" {
		return nil
	}
	key := ""
	if t.changes() {
		key = r.cfg.Key(ctx, t.call)
	}
	if key == "" {
		t.effectID = r.me + "-" + strconv.FormatUint(t.id, 10)
		return nil
	}
	if r.cfg.Effects == nil {
		return &capability.Error{
			Kind: capability.Unavailable, Op: "keep effect", Target: string(t.call.Target), Rule: "runner.effects",
			Err: errors.New("the call has a key, and nothing here keeps what keyed calls did"), Fix: "call without a key, or give the runner a store",
		}
	}
	// The same call must be known again although the catalog was reloaded.
	bare := t.call
	bare.CapabilityHash, bare.Code = "", ""
	request, err := bare.Digest()
	if err != nil {
		request = t.request.Digest
	}
	scope := effectScope(t.call, key)
	t.effect = &claim{key: store.Key("effect", scope), request: request}
	t.effectID = hashed("ken.effect-id.v1", scope, request)[:32]
	return nil
}

func hashed(fields ...string) string {
	h := sha256.New()
	for _, f := range fields {
		fmt.Fprintf(h, "%d:%s", len(f), f)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// recall looks for an earlier end of the call without claiming anything.
func (r *Runner) recall(ctx context.Context, t *trip) (*effect, error) {
	if err := r.identify(ctx, t); err != nil || t.effect == nil {
		return nil, err
	}
	if err := r.takeOff(ctx, t.effect); err != nil {
		return nil, err
	}
	defer r.land(t.effect)
	item, ok, err := r.cfg.Effects.Get(ctx, t.effect.key)
	if err != nil {
		return nil, effectError(t, err)
	}
	if !ok {
		return nil, nil
	}
	e, _, err := r.meet(ctx, t, item)
	return e, err
}

// claim takes the effect for this call, or gives its earlier end.
func (r *Runner) claim(ctx context.Context, t *trip) (*effect, error) {
	if err := r.beginLease(ctx); err != nil {
		return nil, effectError(t, err)
	}
	if err := r.takeOff(ctx, t.effect); err != nil {
		return nil, err
	}
	earlier, err := r.take(ctx, t)
	if err != nil || earlier != nil {
		r.land(t.effect)
	}
	return earlier, err
}

func (r *Runner) take(ctx context.Context, t *trip) (*effect, error) {
	value, err := json.Marshal(effect{
		State: effectRunning, ID: t.effectID, Request: t.effect.request, Target: t.call.Target, Owner: r.me, Began: t.began,
	})
	if err != nil {
		return nil, effectError(t, err)
	}
	at := int64(0) // absent
	for range 8 {
		var b store.Batch
		b.At(t.effect.key, at)
		// Longer than a result is kept: an unknown outcome must not be
		// forgotten before it was asked for.
		b.PutFor(t.effect.key, value, 7*t.limits.Remember)
		version, err := r.cfg.Effects.Apply(ctx, &b)
		if err == nil {
			t.effect.version = version
			return nil, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return nil, effectError(t, err)
		}
		item, ok, err := r.cfg.Effects.Get(ctx, t.effect.key)
		if err != nil {
			return nil, effectError(t, err)
		}
		at = 0
		if !ok {
			continue
		}
		earlier, again, err := r.meet(ctx, t, item)
		if !again {
			return earlier, err
		}
		t.note("run_again", "the outcome of an earlier try is unknown")
		at = item.Version
	}
	return nil, effectError(t, errors.New("too many conflicting writes"))
}

// meet judges an effect that is there already: it gives its end, or says that
// the call may run again, or why neither.
func (r *Runner) meet(ctx context.Context, t *trip, item store.Item) (end *effect, again bool, err error) {
	var e effect
	if err := json.Unmarshal(item.Value, &e); err != nil {
		return nil, false, effectError(t, errors.New("record cannot be read"))
	}
	if e.Request != t.effect.request {
		return nil, false, &capability.Error{
			Kind: capability.Conflict, Op: "call", Target: string(t.call.Target),
			Err: errors.New("key was used for another call"), Fix: "use a key of its own for each call",
		}
	}
	switch e.State {
	case effectDone:
		t.again = true
		return &e, false, nil
	case effectRunning:
		alive, err := r.alive(ctx, e.Owner)
		if err != nil {
			return nil, false, effectError(t, err)
		}
		if alive {
			return nil, false, &capability.Error{
				Kind: capability.Unavailable, Op: "call", Target: string(t.call.Target),
				Err: errors.New("the same call is still running"), Fix: "make it again when it has ended, for its result",
			}
		}
	}
	if t.mayRunAgain() {
		return nil, true, nil
	}
	t.lost = true
	how := "was interrupted"
	if e.State == effectRunning {
		how = "was running when its process ended"
	}
	q := &Question{
		Name: AnswerAgain, Effect: t.effectID,
		Text: fmt.Sprintf("this call %s (started %s), and it is unknown whether it took effect; %s", how, e.Began.UTC().Format(time.RFC3339), lookFor(t.effectID, t.call.Session)),
	}
	return nil, false, &capability.Error{
		Kind: capability.InputNeeded, Op: "call", Target: string(t.call.Target), Rule: "effect.unknown", Err: q,
		Fix: "look whether it happened; a person may then have it run again",
	}
}

// mayRunAgain reports whether a second effect does no harm, as a source that is
// believed declares, or a person wants it.
func (t *trip) mayRunAgain() bool {
	c := t.target.Capability
	if c.Trust >= capability.TrustUser && c.Effects.Idempotent == capability.Yes {
		return true
	}
	var id string
	return json.Unmarshal(t.call.Answers[AnswerAgain], &id) == nil && id == t.effectID
}

// release takes a claim back whose call did not run.
func (r *Runner) release(ctx context.Context, t *trip) {
	c := t.effect
	if c == nil || c.version == 0 {
		return
	}
	var b store.Batch
	b.At(c.key, c.version)
	b.Delete(c.key)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limits.Record)
	defer cancel()
	if err := r.persist(late, c, &b, nil); err != nil {
		t.note("claim", "it did not run, and its claim could not be taken back: "+err.Error())
	}
	c.version = 0
	r.land(c)
}

// settle keeps how a call ended. Only the same call waits for it, made
// again, and [Runner.Close]: if the process dies first, or it does not work,
// the effect is unknown and is not repeated either.
func (r *Runner) settle(ctx context.Context, t *trip, res capability.Result, err error) {
	c := t.effect
	if c == nil || c.version == 0 {
		return
	}
	if err != nil && nothingHappened(err) {
		r.release(ctx, t)
		return
	}
	e := effect{State: effectDone, ID: t.effectID, Request: c.request, Target: t.call.Target, Owner: r.me, Began: t.began}
	switch {
	case err != nil && capability.KindOf(err) != capability.Timeout:
		e.State = effectUnknown
		t.note("effect", "whether it happened is not known")
	case err != nil:
		f := asError(err, t.call.Target)
		e.Fault = &fault{Kind: f.Kind, Op: f.Op, Target: f.Target, Rule: f.Rule, Fix: f.Fix}
		if f.Err != nil {
			e.Fault.Text = f.Err.Error()
		}
	}
	e.Result = &res
	value, bad := json.Marshal(e)
	if bad != nil || len(value) > store.MaxValue/2 {
		e.Result = &capability.Result{
			Failed: res.Failed, Handle: res.Handle,
			Parts: []capability.Part{{Text: "This call was made before; its result was too large to keep."}},
		}
		value, _ = json.Marshal(e)
	}
	var b store.Batch
	b.At(c.key, c.version)
	keep := t.limits.Remember
	if e.State == effectUnknown {
		keep *= 7
	}
	b.PutFor(c.key, value, keep)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limits.Record)
	r.settling.Go(func() {
		defer cancel()
		if err := r.persist(late, c, &b, value); err != nil {
			r.unsettled.Add(1)
		}
		r.land(c)
	})
}

// persist applies what a claim became, and tries again while the store cannot
// be reached. Where contact was lost in the middle, the key tells whether the
// batch is there: it then holds value, or with nil nothing.
func (r *Runner) persist(ctx context.Context, c *claim, b *store.Batch, value []byte) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		_, err := r.cfg.Effects.Apply(ctx, b)
		switch {
		case errors.Is(err, store.ErrUncertain):
			item, there, unread := r.cfg.Effects.Get(ctx, c.key)
			if unread == nil && there == (value != nil) && bytes.Equal(item.Value, value) {
				return nil
			}
			if unread == nil && (!there || item.Version != c.version) {
				return err // it belongs to another call by now
			}
		case !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBusy):
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// nothingHappened reports whether an executor's error says so: see [Executor].
func nothingHappened(err error) bool {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok {
		return false
	}
	switch e.Kind {
	case capability.Internal, capability.Timeout, capability.Upstream:
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

func effectError(t *trip, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: "keep effect", Target: string(t.call.Target), Err: err,
		Fix: "nothing ran, because that it runs once could not be made sure; fix the store and call again",
	}
}
