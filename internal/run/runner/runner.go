package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/envelope"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/run/result"
	"ken/internal/store"
)

// A Resolved is what a call's target turned out to be. Resolve fails with
// [capability.NotFound] for what does not exist and, in the same words, for
// what the principal may not see.
type Resolved struct {
	Capability *capability.Capability

	// Extension is the package that it belongs to, which queues and records
	// go by. Empty means the source that brought it.
	Extension string

	// Schema returns the JSON Schema of the arguments. It is asked for once for
	// each Capability.Hash. Nil, or an empty schema, leaves it to the executor
	// (see [Schemer]) and then to Capability.Parameters.
	Schema func(context.Context) (json.RawMessage, error)

	// Disabled, when not empty, says why it is switched off, and Fix what to
	// do.
	Disabled, Fix string
}

// A Log is the audit trail; *[audit.Log] is one.
type Log interface {
	Append(ctx context.Context, records ...audit.Record) (audit.ID, error)
	Announce(ctx context.Context, records ...audit.Record) (audit.ID, error)
	Digest(data []byte) string
}

// A Desk knows what people agreed to; *[approval.Desk] is one.
type Desk interface {
	Grants(ctx context.Context, q *policy.Request) ([]policy.Grant, error)
	Ask(ctx context.Context, q approval.Question) (approval.Ticket, error)
	Consume(ctx context.Context, grant string) (approval.Grant, error)
	Known(q *policy.Request) ([]policy.Grant, bool)
	Spend(grant string) (*approval.Spending, bool)
	Shares(s *store.Store) bool
}

// Effects keeps effect ids; *[store.Store] does.
type Effects interface {
	Get(ctx context.Context, key string) (store.Item, bool, error)
	Apply(ctx context.Context, b *store.Batch) (int64, error)
}

// Results keeps long outputs; *[result.Store] does.
type Results interface {
	Keep(scope result.Scope, about result.About, text []byte, failed bool, meta map[string]string) (result.Entry, error)
	KeepWith(with *result.With, scope result.Scope, about result.About, text []byte, failed bool, meta map[string]string) (result.Entry, error)
}

// Config is what a Runner is made of. Resolve, Executors and Log are required.
type Config struct {
	Resolve   func(context.Context, capability.Call) (Resolved, error)
	Executors Executors
	Log       Log

	// Rules returns the rules in force. It is asked at each decision and again
	// when a call leaves the queue. Nil, or nil rules, refuse everything.
	Rules func() *policy.Rules

	// RulesFor returns the rules for the first decision on a call. They may have been
	// read at any time since the call came in. Nil stands for Rules.
	RulesFor func(arrived time.Time) *policy.Rules

	// RecentRules returns the rules in force a few milliseconds ago at most. It is
	// asked when a call leaves the queue, just after Limits, which may be a look at
	// the same files. Nil stands for Rules.
	RecentRules func() *policy.Rules

	// Desk may be nil: then every question is a refusal.
	Desk Desk

	// Key returns the caller's own name for one call, the same when the call is
	// made again and never for two calls: a turn and the number of the call in
	// it, or a header of a request. An empty key makes a call a new one. Nil
	// takes Call.Key. Where there are keys, Effects is required: a call that
	// has one and may change something is refused without.
	Key     func(context.Context, capability.Call) string
	Effects Effects

	// Process tells this process from all others that ever were, and Dead says
	// of such a word that its process is gone for certain. Without them a call
	// of a process that died counts as running for a while.
	Process string
	Dead    func(process string) bool

	// Results may be nil: then long outputs are cut and say so.
	Results Results

	// Surface says where a call came in. Nil takes Call.Surface.
	Surface func(context.Context, capability.Call) policy.Surface

	Plugins  []Plugin        // run in this order, and backwards for results
	Redactor *audit.Redactor // for command lines in records; nil knows forms only

	// Limits are asked for when the Runner is made, which fixes Grace, Drain, Record
	// and Lease, when a call begins, which keeps those for all that it does alone,
	// and when it comes to the queue or leaves its place. They must not call the
	// Runner. Nil gives the defaults.
	Limits func() Limits

	// Places, when not nil, returns what divides Limits.PerExtension, PerPrincipal or
	// PerTenant among all processes that have the same ones. It is asked once for
	// each kind: extension, principal and tenant.
	Places func(kind string) Places

	// Observe, when not nil, is told of every change of state, in order for
	// each call, by the goroutine that makes it. It must not block.
	Observe func(Transition)

	Now func() time.Time // nil is time.Now
}

// A Runner carries out calls. It is safe for any number of goroutines, and any
// number of Runners, in one process or several, may share the same effects. It
// must be closed.
type Runner struct {
	cfg    Config
	limits Limits // of the start; see bounds

	calls     *calls // that have not ended
	limiter   *limiter
	schemas   schemas
	consented consented
	checks    chan struct{} // holds one for each check that runs
	effects   *effects
	records   *recorder
	results   outputs
	secrets   secrets
	isolation lastText
	joint     bool // effects and grants are in one store, and can be written together
}

var _ capability.Invoker = (*Runner)(nil)

// New makes a Runner.
func New(cfg Config) (*Runner, error) {
	switch {
	case cfg.Resolve == nil || cfg.Log == nil || cfg.Executors == nil:
		return nil, errors.New("make runner: Resolve, Executors and Log are required")
	case cfg.Key != nil && cfg.Effects == nil:
		return nil, errors.New("make runner: calls may have keys, but there is no store for effects; set Effects")
	}
	if err := cfg.Executors.check(); err != nil {
		return nil, fmt.Errorf("make runner: %w", err)
	}
	if cfg.Limits == nil {
		cfg.Limits = Limits{}.Always
	}
	limits, err := cfg.Limits().filled()
	if err != nil {
		return nil, fmt.Errorf("make runner: %w", err)
	}
	if cfg.RecentRules == nil {
		cfg.RecentRules = cfg.Rules
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Key == nil {
		cfg.Key = func(_ context.Context, call capability.Call) string { return call.Key }
	}
	if cfg.Surface == nil {
		cfg.Surface = func(_ context.Context, call capability.Call) policy.Surface { return policy.Surface(call.Surface) }
	}
	r := &Runner{
		cfg: cfg, limits: limits, calls: newCalls(), checks: make(chan struct{}, checksAtOnce), effects: newEffects(cfg, limits),
		records: &recorder{log: cfg.Log, now: cfg.Now, within: limits.Record, unwritten: unwritten{turn: make(chan struct{}, 1)}},
		results: outputs{cfg.Results}, secrets: secrets{cfg.Redactor},
	}
	if s, ok := cfg.Effects.(*store.Store); ok && cfg.Desk != nil {
		r.joint = cfg.Desk.Shares(s)
	}
	r.limiter = newLimiter(r.bounds, cfg.Places)
	return r, nil
}

// Invoke carries out one call. The result is never empty: where the error is
// not nil it says the same to a model. Errors are *[capability.Error].
func (r *Runner) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	real, malformed := envelope.Unwrap(call)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	inv := &invocation{runner: r, call: real, began: r.cfg.Now(), limits: r.bounds()}
	inv.live.stop = stop
	inv.live.asked = Running{
		Call: r.calls.number.Add(1), Target: real.Target, Session: real.Session, Began: inv.began,
		Principal: real.Principal, Mode: real.Mode, Origin: real.Origin, Surface: string(r.cfg.Surface(ctx, real)),
	}
	if err := r.calls.enter(&inv.live); err != nil {
		return refusal(err), err
	}
	defer func() { r.calls.leave(&inv.live, inv.end.abandoned) }()
	inv.enter(Created)
	res, err := guard("call", inv.notes.panicked, func() (capability.Result, error) {
		if malformed != nil {
			return capability.Result{}, malformed
		}
		inv.enter(Validating)
		return r.plugins(ctx, inv)
	})
	return r.record(ctx, inv, res, err)
}

// perform takes a call that the plugins let through from its target to its result:
// resolve, validate, decide and, where a person must agree, consent. Nothing may be
// put behind decide that changes the call.
func (r *Runner) perform(ctx context.Context, inv *invocation) (res capability.Result, err error) {
	if inv.call, inv.target, err = r.resolve(ctx, inv.call); err != nil {
		return res, err
	}
	if inv.call.Origin == capability.ByApp {
		inv.notes.add("app", policy.AppOf(inv.target.Capability))
	}
	if inv.args, err = r.validate(ctx, inv.call, inv.target, inv.limits, &inv.notes); err != nil {
		return res, err
	}
	if inv.call, inv.plan, err = r.plan(ctx, inv.call, inv.target, &inv.notes); err != nil {
		return res, err
	}
	inv.plan.decide(r.rulesFor(inv.call.Arrived))
	switch inv.plan.decision.Effect {
	case policy.Allow:
		return r.performAllowed(ctx, inv)
	case policy.Ask:
		if end := r.consent(ctx, inv); end != nil {
			return end.res, end.err
		}
		res, err := r.performAllowed(ctx, inv)
		if errors.Is(err, errGrantGone) { // another call used the grant at the same moment
			inv.alone, inv.plan.request.Grants = true, nil
			if inv.plan.decide(r.rules()); inv.plan.decision.Effect == policy.Deny {
				return inv.plan.decision.Result(), inv.plan.decision.Err(inv.call.Target)
			}
			if end := r.consent(ctx, inv); end != nil {
				return end.res, end.err
			}
			res, err = r.performAllowed(ctx, inv)
		}
		r.consented.remember(inv.plan.request.Digest, err, r.cfg.Now())
		return res, err
	}
	return inv.plan.decision.Result(), inv.plan.decision.Err(inv.call.Target)
}

// performAllowed takes a call that nobody has to be asked about any more from the
// record of what is about to happen to its result: limit and execute.
func (r *Runner) performAllowed(ctx context.Context, inv *invocation) (capability.Result, error) {
	if earlier, err := r.begin(ctx, inv); err != nil || earlier != nil {
		return earlier.outcome(err)
	}
	err := r.wait(ctx, inv)
	if err == nil {
		defer func() { r.limiter.leaveAfter(inv.end.abandoned, inv.target.extension(), whoseCall(inv.call)) }()
		err = r.recheck(ctx, inv)
	}
	if err != nil {
		r.effects.release(ctx, inv.effect)
		return capability.Result{}, err
	}
	return r.execute(ctx, inv)
}

// Err returns why the last attempt to write outstanding closing records failed,
// or nil. No call starts meanwhile. See [Runner.Ready], which tries again.
func (r *Runner) Err() error {
	if e := r.records.unwritten.why(); e != nil {
		return e
	}
	return nil
}
