package runner

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/run/result"
	"ken/internal/store"
)

// ErrStillRunning says that a call was not made, because the process that makes it
// under the same key is alive, or was a moment ago.
var ErrStillRunning = errors.New("the same call is still running")

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

// effects keeps what calls with a key came to, so that each has its effect once,
// in all processes that share a store.
type effects struct {
	store  Effects // nil: calls may have no keys
	owner  string  // this Runner among all that share the store
	keyOf  func(context.Context, capability.Call) string
	lease  lease
	within time.Duration // that a write may take, once a call has ended

	mu       sync.Mutex
	inFlight map[string]chan struct{} // effects that run here, by their key
	unused   map[string]bool          // keys that this Runner claimed, perhaps, for calls that did not run

	settling  sync.WaitGroup // results that are being kept
	unsettled atomic.Int64   // and could not
}

func newEffects(cfg Config, limits Limits) *effects {
	id := make([]byte, 12)
	rand.Read(id)
	owner := hex.EncodeToString(id)
	return &effects{
		store: cfg.Effects, owner: owner, keyOf: cfg.Key, within: limits.Record, inFlight: map[string]chan struct{}{}, unused: map[string]bool{},
		lease: lease{store: cfg.Effects, owner: owner, process: cfg.Process, dead: cfg.Dead, lasts: limits.Lease, within: limits.Record},
	}
}

// A claim is the hold that a call has on its effect. The nil claim holds nothing.
type claim struct {
	effect
	key      string
	session  string
	remember time.Duration      // how long the end is kept
	mayRerun bool               // although it is unknown whether it had its effect
	notes    *notes             // of the call
	spend    *approval.Spending // of the grant that the call is made with; nil: none, or used already

	with     result.With   // what is written together with the end
	version  int64         // of what is stored; 0: nothing of this call
	done     chan struct{} // closed when this call has ended
	repeated bool          // the result is an earlier one
	lost     bool          // whether it had its effect is not known
}

func (c *claim) isRepeated() bool { return c != nil && c.repeated }

func (c *claim) isLost() bool { return c != nil && c.lost }

// fail is the error of a call that did not run because the store failed.
func (c *claim) fail(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: "keep effect", Target: string(c.Target), Err: err,
		Fix: "the call did not run, because Ken could not make sure that it runs only once; fix the store and call again",
	}
}

// identify names the effect of a call. Only a call with a key that may change
// something has one to keep; any other gets a name for its records.
func (e *effects) identify(ctx context.Context, inv *invocation) (id string, c *claim, err error) {
	key := ""
	if inv.plan.changes() {
		key = e.keyOf(ctx, inv.call)
	}
	if key == "" {
		return e.owner + "-" + strconv.FormatUint(inv.live.asked.Call, 10), nil, nil
	}
	if e.store == nil {
		return "", nil, &capability.Error{
			Kind: capability.Unavailable, Op: "keep effect", Target: string(inv.call.Target), Rule: "runner.effects",
			Err: errors.New("the call has a key, but the runner has no store for keyed calls"), Fix: "call without a key, or give the runner a store",
		}
	}
	// The same call must be known again although the catalog was reloaded.
	bare := inv.call
	bare.CapabilityHash, bare.Code = "", ""
	request, err := bare.Digest()
	if err != nil {
		request = inv.plan.request.Digest
	}
	scope := effectScope(inv.call, key)
	id = hashed("ken.effect-id.v1", scope, request)[:32]
	return id, &claim{
		effect: effect{State: effectRunning, ID: id, Request: request, Target: inv.call.Target, Owner: e.owner, Began: inv.began},
		key:    store.Key("effect", scope), session: inv.call.Session, remember: inv.limits.Remember,
		mayRerun: mayRerun(inv.target.Capability, inv.call, id), notes: &inv.notes,
	}, nil
}

// effectScope names what is kept of a call by its key.
func effectScope(call capability.Call, key string) string {
	return hashed("ken.effect.v1", call.Principal.Tenant, call.Principal.ID, call.Session, key)
}

func hashed(fields ...string) string {
	h := sha256.New()
	for _, f := range fields {
		fmt.Fprintf(h, "%d:%s", len(f), f)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// mayRerun reports whether a second effect does no harm, as a source that is
// believed declares, or a person wants it.
func mayRerun(c *capability.Capability, call capability.Call, effectID string) bool {
	if c.Trust >= capability.TrustUser && c.Effects.Idempotent == capability.Yes {
		return true
	}
	var id string
	return json.Unmarshal(call.Answers[AnswerAgain], &id) == nil && id == effectID
}

// recall looks for an earlier end of a call without claiming anything.
func (e *effects) recall(ctx context.Context, c *claim) (*effect, error) {
	if c == nil {
		return nil, nil
	}
	if err := e.begin(ctx, c); err != nil {
		return nil, err
	}
	defer e.end(c)
	item, ok, err := e.store.Get(ctx, c.key)
	if err != nil {
		return nil, c.fail(err)
	}
	if !ok {
		return nil, nil
	}
	earlier, _, err := e.meet(ctx, c, item)
	return earlier, err
}

// claim takes the effect for a call, or returns its earlier end.
func (e *effects) claim(ctx context.Context, c *claim) (*effect, error) {
	if err := e.lease.begin(ctx); err != nil {
		return nil, c.fail(err)
	}
	if err := e.begin(ctx, c); err != nil {
		return nil, err
	}
	earlier, err := e.take(ctx, c)
	if err != nil || earlier != nil {
		e.end(c)
	}
	return earlier, err
}

func (e *effects) take(ctx context.Context, c *claim) (*effect, error) {
	value, err := json.Marshal(c.effect)
	if err != nil {
		return nil, c.fail(err)
	}
	at := int64(0) // absent
	for range 8 {
		var b store.Batch
		b.At(c.key, at)
		// Longer than a result is kept: an unknown outcome must not be
		// forgotten before it was asked for.
		b.PutFor(c.key, value, 7*c.remember)
		if c.spend != nil {
			if err := c.spend.Add(&b); err != nil {
				return nil, c.fail(err)
			}
		}
		version, err := e.store.Apply(ctx, &b)
		if err == nil {
			e.setUnused(c.key, false)
			c.version = version
			if c.spend != nil {
				c.spend.Done(version)
			}
			return nil, nil
		}
		if conflict, ok := errors.AsType[*store.Conflict](err); ok && c.spend != nil && c.spend.Failed(conflict) {
			c.spend = nil
			return nil, errGrantGone
		}
		if !errors.Is(err, store.ErrConflict) {
			if errors.Is(err, store.ErrUncertain) { // it may be claimed, and the call does not run
				e.setUnused(c.key, true)
			}
			return nil, c.fail(err)
		}
		item, ok, err := e.store.Get(ctx, c.key)
		if err != nil {
			return nil, c.fail(err)
		}
		at = 0
		if !ok {
			continue
		}
		earlier, again, err := e.meet(ctx, c, item)
		if !again {
			return earlier, err
		}
		if e.isUnused(c.key) {
			c.notes.add("run_again", "an earlier attempt did not run")
		} else {
			c.notes.add("run_again", "the outcome of an earlier attempt is unknown")
		}
		at = item.Version
	}
	return nil, c.fail(errors.New("too many conflicting writes"))
}

// meet judges an effect that is there already: it returns its end, or says that
// the call may run again, or why neither.
func (e *effects) meet(ctx context.Context, c *claim, item store.Item) (end *effect, again bool, err error) {
	var met effect
	if err := json.Unmarshal(item.Value, &met); err != nil {
		return nil, false, c.fail(errors.New("the record cannot be read"))
	}
	if met.Request != c.Request {
		return nil, false, &capability.Error{
			Kind: capability.Conflict, Op: "call", Target: string(c.Target),
			Err: errors.New("the key was already used for another call"), Fix: "use a different key for each call",
		}
	}
	switch met.State {
	case effectDone:
		c.repeated = true
		return &met, false, nil
	case effectRunning:
		alive, err := e.lease.alive(ctx, met.Owner)
		if err != nil {
			return nil, false, c.fail(err)
		}
		if alive {
			return nil, false, &capability.Error{
				Kind: capability.Unavailable, Op: "call", Target: string(c.Target),
				Err: ErrStillRunning, Fix: "when it has ended, make the call again to get its result",
			}
		}
	}
	if c.mayRerun || met.State == effectRunning && met.Owner == e.owner && e.isUnused(c.key) {
		return nil, true, nil
	}
	c.lost = true
	how := "was interrupted"
	if met.State == effectRunning {
		how = "was running when its process ended"
	}
	q := &Question{
		Name: AnswerAgain, Effect: c.ID,
		Text: fmt.Sprintf("this call %s (started %s) and may or may not have taken effect; %s", how, met.Began.UTC().Format(time.RFC3339), lookFor(c.ID, c.session)),
	}
	return nil, false, &capability.Error{
		Kind: capability.InputNeeded, Op: "call", Target: string(c.Target), Rule: "effect.unknown", Err: q,
		Fix: "check whether it took effect; a person can then run it again",
	}
}

// lookFor says how a person finds a call in the audit log.
func lookFor(effectID, session string) string {
	return fmt.Sprintf("the audit log has it as effect %s: ken audit query --session %s", effectID, session)
}

// release takes a claim back whose call did not run.
func (e *effects) release(ctx context.Context, c *claim) {
	if c == nil || c.version == 0 {
		return
	}
	b := c.with.Batch
	b.At(c.key, c.version)
	b.Delete(c.key)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.within)
	defer cancel()
	if err := e.persist(late, c, &b, nil); err != nil {
		c.notes.add("claim", "the call did not run, and its claim could not be removed: "+err.Error())
		e.setUnused(c.key, true)
	}
	c.version = 0
	e.end(c)
}

// mostUnused is how many keys of calls that did not run are remembered.
const mostUnused = 10_000

// setUnused remembers whether a claim of this Runner, if the store has one, was never used.
func (e *effects) setUnused(key string, unused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if delete(e.unused, key); unused && len(e.unused) < mostUnused {
		e.unused[key] = true
	}
}

func (e *effects) isUnused(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unused[key]
}

// settle keeps how a call ended, with its output if that is kept in the same store.
// Only the same call waits for it, made again, [Runner.Close], and a call with
// output: if the process dies first, or it does not work,
// the effect is unknown and is not repeated either.
func (e *effects) settle(ctx context.Context, c *claim, res capability.Result, err error) {
	if c == nil || c.version == 0 {
		return
	}
	if err != nil && nothingHappened(err) {
		e.release(ctx, c)
		return
	}
	ended := c.effect
	ended.State = effectDone
	switch {
	case err != nil && capability.KindOf(err) != capability.Timeout:
		ended.State = effectUnknown
		c.notes.add("effect", "the call may or may not have taken effect")
	case err != nil:
		f := asError(err, c.Target)
		ended.Fault = &fault{Kind: f.Kind, Op: f.Op, Target: f.Target, Rule: f.Rule, Fix: f.Fix}
		if f.Err != nil {
			ended.Fault.Text = f.Err.Error()
		}
	}
	ended.Result = &res
	value, bad := json.Marshal(ended)
	if bad != nil || len(value) > store.MaxValue/2 {
		ended.Result = &capability.Result{
			Failed: res.Failed, Handle: res.Handle,
			Parts: []capability.Part{{Text: "This call was made before; its result was too large to keep."}},
		}
		value, _ = json.Marshal(ended)
	}
	b := c.with.Batch
	output := !b.Empty()
	b.At(c.key, c.version)
	keep := c.remember
	if ended.State == effectUnknown {
		keep *= 7
	}
	b.PutFor(c.key, value, keep)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.within)
	kept := make(chan error, 1)
	e.settling.Go(func() {
		defer cancel()
		err := e.persist(late, c, &b, value)
		if err != nil {
			e.unsettled.Add(1)
		}
		e.end(c)
		kept <- err
	})
	if output { // other replicas can read it when the caller has its handle
		if err := <-kept; err != nil {
			c.notes.add("unkept", "other replicas cannot read the output: "+err.Error())
		}
	}
}

// persist applies what a claim became, and tries again while the store cannot
// be reached. Where contact was lost in the middle, the key tells whether the
// batch is there: it then holds value, or with nil nothing.
func (e *effects) persist(ctx context.Context, c *claim, b *store.Batch, value []byte) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		_, err := e.store.Apply(ctx, b)
		switch {
		case errors.Is(err, store.ErrUncertain):
			item, there, unread := e.store.Get(ctx, c.key)
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

// begin waits until no other call of this Runner has the effect, and then
// has it: a call that is made again while it runs gets the first one's result.
func (e *effects) begin(ctx context.Context, c *claim) error {
	for {
		e.mu.Lock()
		other, busy := e.inFlight[c.key]
		if !busy {
			c.done = make(chan struct{})
			e.inFlight[c.key] = c.done
			e.mu.Unlock()
			return nil
		}
		e.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return gaveUp(ctx)
		}
	}
}

// end lets others have the effect.
func (e *effects) end(c *claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.done != nil {
		delete(e.inFlight, c.key)
		close(c.done)
		c.done = nil
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
