package app

import (
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ken/internal/config"
	"ken/internal/govern/policy"
	"ken/internal/run/runner"
)

// A ruling is the rules as some files said them.
type ruling struct {
	rules *policy.Rules // nil: the files cannot be followed, so nothing may happen
	err   error         // why
	marks []mark
}

// A mark is how a file looked; one that was not there has no info.
type mark struct {
	path string
	info os.FileInfo
}

func look(path string) mark {
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	return mark{path, info}
}

func (m mark) same(now mark) bool {
	if m.info == nil || now.info == nil {
		return m.info == now.info
	}
	return os.SameFile(m.info, now.info) && m.info.Size() == now.info.Size() && m.info.ModTime().Equal(now.info.ModTime())
}

// holds reports whether every file still looks as it did.
func (r *ruling) holds() bool {
	for _, m := range r.marks {
		if !m.same(look(m.path)) {
			return false
		}
	}
	return true
}

// lawbook keeps the rules as their files say, from one decision to the next:
// what was taken away is gone at the next call.
type lawbook struct {
	places   config.Places
	explicit string
	now      atomic.Pointer[ruling]
	began    time.Time
	looked   atomic.Int64 // since began, when the files last looked as they did
	mu       sync.Mutex
	changed  func(*policy.Rules, error)
}

func newLawbook(places config.Places, explicit string, settings config.Config) (*lawbook, error) {
	b := &lawbook{places: places, explicit: explicit, began: time.Now().Add(-time.Hour)}
	marks := b.look(settings)
	rules, err := compile(settings)
	if err != nil {
		return nil, err
	}
	b.now.Store(&ruling{rules: rules, marks: marks})
	return b, nil
}

func (b *lawbook) look(settings config.Config) []mark {
	var out []mark
	for _, path := range b.places.RuleFiles(b.explicit, settings) {
		out = append(out, look(path))
	}
	return out
}

// rulesFresh is how long a look at the files counts.
const rulesFresh = 100 * time.Microsecond

// rules gives the rules in force. Where a file was changed it is read again; one
// that cannot be followed leaves no rules, which refuses everything.
func (b *lawbook) rules() (*policy.Rules, error) {
	r := b.now.Load()
	// One call asks several times; between two of those nobody has read what
	// was written.
	if now := time.Since(b.began); now-time.Duration(b.looked.Load()) < rulesFresh {
		return r.rules, r.err
	}
	if looking := time.Since(b.began); r.holds() {
		b.looked.Store(int64(looking))
		return r.rules, r.err
	}
	r, changed := b.again()
	if changed && b.changed != nil {
		b.changed(r.rules, r.err)
	}
	return r.rules, r.err
}

// again reads the files, unless another has done so meanwhile.
func (b *lawbook) again() (*ruling, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.now.Load(); r.holds() {
		return r, false
	}
	r := b.read()
	b.now.Store(r)
	return r, true
}

func (b *lawbook) read() *ruling {
	// The looks come first: what is written meanwhile is seen the next time.
	marks := b.look(config.Config{})
	settings, err := config.Load(b.places, b.explicit)
	if err != nil {
		return &ruling{err: err, marks: marks}
	}
	for _, f := range settings.Policy.Cedar {
		marks = append(marks, look(f.Name))
	}
	rules, err := compile(settings)
	return &ruling{rules: rules, err: err, marks: marks}
}

// compile makes rules of what the files say.
func compile(settings config.Config) (*policy.Rules, error) {
	said := settings.Policy
	said.Rules = append(slices.Clip(said.Rules), skillsOff(settings)...)
	return policy.Compile(said)
}

// Rules gives the rules in force, or nil where their files cannot be followed.
func (a *App) Rules() *policy.Rules {
	rules, _ := a.laws.rules()
	return rules
}

// rulesEvery is how often the rules are looked at while calls run.
const rulesEvery = time.Second

// enforce stops the calls that new rules no longer allow.
func (a *App) enforce(rules *policy.Rules, err error) {
	if err != nil {
		a.log.Warn("the rules cannot be followed, so nothing runs", "error", err)
	}
	r, made := a.runner.there()
	if !made {
		return
	}
	n := r.Stop(errors.New("the rules no longer allow it"), func(run runner.Running) bool {
		e, err := a.Oversee().Lookup(string(run.Target))
		if err != nil {
			return true
		}
		c := policy.Of(e.Capability)
		return !rules.Visible(&policy.Viewer{Principal: run.Principal, Mode: run.Mode, Origin: run.Origin, Surface: policy.Surface(run.Surface)}, &c)
	})
	if n > 0 {
		a.log.Warn("calls were stopped that the rules no longer allow", "calls", n)
	}
}

// watchRules looks at the rules again and again while calls run.
func (a *App) watchRules(r *runner.Runner, every time.Duration) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if r.Load().Running > 0 {
					a.Rules()
				}
			}
		}
	}()
	a.closeLater(func() error {
		close(stop)
		<-done
		return nil
	})
}
