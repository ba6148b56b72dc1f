package runner

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

	// Disabled, when not empty, says why it is switched off, and Mend what to
	// do.
	Disabled, Mend string
}

// A Log is the audit trail; *[audit.Log] is one.
type Log interface {
	Append(ctx context.Context, records ...audit.Record) (audit.ID, error)
	Digest(data []byte) string
}

// A Desk knows what people agreed to; *[approval.Desk] is one.
type Desk interface {
	Grants(ctx context.Context, q *policy.Request) ([]policy.Grant, error)
	Ask(ctx context.Context, q approval.Question) (approval.Ticket, error)
	Consume(ctx context.Context, grant string) (approval.Grant, error)
}

// Effects keeps effect ids; *[store.Store] does.
type Effects interface {
	Get(ctx context.Context, key string) (store.Item, bool, error)
	Apply(ctx context.Context, b *store.Batch) (int64, error)
}

// Results keeps long outputs; *[result.Store] does.
type Results interface {
	Keep(scope result.Scope, about result.About, text []byte, failed bool, meta map[string]string) (result.Entry, error)
}

// Config is what a Runner is made of. Resolve, Executors and Log are required.
type Config struct {
	Resolve   func(context.Context, capability.Call) (Resolved, error)
	Executors Executors
	Log       Log

	// Rules returns the rules in force. It is asked at each decision and again
	// when a call leaves the queue. Nil, or nil rules, refuse everything.
	Rules func() *policy.Rules

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

	// Observe, when not nil, is told of every change of state, in order for
	// each call, by the goroutine that makes it. It must not block.
	Observe func(Transition)

	Now func() time.Time // nil is time.Now
}

// A Runner carries out calls. It is safe for any number of goroutines, and any
// number of Runners, in one process or several, may share the same effects. It
// must be closed.
type Runner struct {
	cfg     Config
	limits  Limits
	first   step
	gate    *gate
	schemas schemas
	me      string // this Runner among all that share the effects

	calls   atomic.Uint64
	mu      sync.Mutex
	live    map[uint64]*trip
	left    map[uint64]Running       // calls that ended although their executor did not return
	flights map[string]chan struct{} // effects that run here, by their key

	consented consented
	checks    chan struct{} // holds one for each check that runs

	closed bool
	idle   chan struct{} // closed when closed and nothing is live

	settling  sync.WaitGroup // results that are being kept
	unsettled atomic.Int64   // and could not

	lease     lease
	unwritten unwritten
}

var _ capability.Invoker = (*Runner)(nil)

// New makes a Runner.
func New(cfg Config) (*Runner, error) {
	switch {
	case cfg.Resolve == nil || cfg.Log == nil || cfg.Executors == nil:
		return nil, errors.New("make runner: Resolve, Executors and Log are required")
	case cfg.Key != nil && cfg.Effects == nil:
		return nil, errors.New("make runner: calls have keys and there is no place to keep effects; set Effects")
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
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Key == nil {
		cfg.Key = func(_ context.Context, call capability.Call) string { return call.Key }
	}
	if cfg.Surface == nil {
		cfg.Surface = func(_ context.Context, call capability.Call) policy.Surface { return policy.Surface(call.Surface) }
	}
	id := make([]byte, 12)
	rand.Read(id)
	r := &Runner{
		cfg: cfg, limits: limits, me: hex.EncodeToString(id),
		live: map[uint64]*trip{}, left: map[uint64]Running{}, flights: map[string]chan struct{}{}, idle: make(chan struct{}),
		checks: make(chan struct{}, checksAtOnce), unwritten: unwritten{turn: make(chan struct{}, 1)},
	}
	r.gate = newGate(r.bounds)
	r.first = chain(r.stages(), r.execute)
	return r, nil
}

// A step carries a call on; a stage wraps the next.
type (
	step  func(ctx context.Context, t *trip) (capability.Result, error)
	stage struct {
		name string
		wrap func(next step) step
	}
)

// stages are those around execute, outermost first. Nothing may be put between
// decide and execute that changes a call.
func (r *Runner) stages() []stage {
	return []stage{
		{"record", r.record},
		{"plugins", r.plugins},
		{"resolve", r.resolve},
		{"validate", r.validate},
		{"decide", r.decide},
		{"consent", r.consent},
		{"limit", r.limit},
	}
}

func chain(stages []stage, last step) step {
	for i := len(stages) - 1; i >= 0; i-- {
		last = stages[i].wrap(last)
	}
	return last
}

// Invoke carries out one call. The result is never empty: where the error is
// not nil it says the same to a model. Errors are *[capability.Error].
func (r *Runner) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	real, err := envelope.Unwrap(call)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t := &trip{runner: r, id: r.calls.Add(1), call: real, malformed: err, began: r.cfg.Now(), stop: stop, limits: r.bounds()}
	t.asked = Running{
		Call: t.id, Target: real.Target, Session: real.Session, Began: t.began,
		Principal: real.Principal, Mode: real.Mode, Origin: real.Origin, Surface: string(r.cfg.Surface(ctx, real)),
	}
	if err := r.enter(t); err != nil {
		return refusal(err), err
	}
	defer r.leave(t)
	t.enter(Created)
	return r.first(ctx, t)
}

// Err returns why the last attempt to write outstanding closing records failed,
// or nil. No call starts meanwhile. See [Runner.Ready], which tries again.
func (r *Runner) Err() error {
	if e := r.unwritten.why(); e != nil {
		return e
	}
	return nil
}
