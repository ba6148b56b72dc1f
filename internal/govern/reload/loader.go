// Package reload reads the configuration files, and replaces the rules and the
// settings in force when one of the files changes.
package reload

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/untrusted"
	"ken/internal/wholefile"
)

// A Snapshot is what the configuration files said at one moment. It never
// changes. A caller that needs several values which belong together takes them
// from one Snapshot.
type Snapshot struct {
	Rules *policy.Rules // nil: the files cannot be used, so nothing is allowed
	Err   error         // why Rules is nil

	// Settings are those in force: keys that apply live as the files have them,
	// all others as they were at the start. While the files cannot be used they
	// stay as they were.
	Settings *config.Config

	read   config.Config     // what the files said when they could last be used
	stamps []wholefile.Stamp // one for each file
	filled []string          // the files of read that were not empty
}

// A Config says what a [Loader] reads and whom it tells.
type Config struct {
	Places dirs.Places
	File   string // read instead of the usual files; may be empty

	// Fresh says why the settings that replicas share may not be current here. Then
	// there are no rules. Nil: nothing is shared.
	Fresh func() error

	// Changed is called after the rules changed, or why there are none. It may be
	// nil.
	Changed func(*policy.Rules, error)
}

// A Loader keeps a [Snapshot] up to date. It looks at the files whenever it is
// asked, so that a permission which was removed is gone at the next call. Its
// methods are safe for concurrent use.
type Loader struct {
	cfg     Config
	start   config.Config
	current atomic.Pointer[Snapshot]
	epoch   time.Time
	checked atomic.Int64 // since epoch, when the files were last unchanged
	looks   atomic.Int64 // how often Latest was asked to look at the files

	mu      sync.Mutex
	model   string            // instead of the setting model
	pending []wholefile.Stamp // files that changed and may still change
	since   time.Time         // when pending was first seen so
}

// New reads the files. It fails if they cannot be used.
func New(cfg Config) (*Loader, error) {
	settings, stamps, err := readFiles(cfg.Places, cfg.File, config.Config{})
	if err != nil {
		return nil, err
	}
	return newLoader(cfg, settings, stamps)
}

// newLoader makes a Loader of settings that were read from files that looked so.
func newLoader(cfg Config, settings config.Config, stamps []wholefile.Stamp) (*Loader, error) {
	rules, err := policy.Compile(ruleSettings(settings))
	if err != nil {
		return nil, err
	}
	l := &Loader{cfg: cfg, start: settings, epoch: time.Now().Add(-time.Hour)}
	l.current.Store(&Snapshot{Rules: rules, Settings: l.effective(settings), read: settings, stamps: stamps, filled: filled(stamps)})
	return l, nil
}

// Start returns the settings that the files had when the Loader was made.
func (l *Loader) Start() config.Config { return l.start }

// Looks returns how often the files were looked at. A call should do so once.
func (l *Loader) Looks() int64 { return l.looks.Load() }

// Rules returns the rules in force after a look at the files, or why there are
// none.
func (l *Loader) Rules() (*policy.Rules, error) {
	s := l.Latest()
	return s.Rules, s.Err
}

// maxAge is how long one look at the files is good for settings other than the
// rules, and for rules that were looked at for the same call, because one call asks
// for them several times, and commits a record in between. Each call looks at the
// files (about 10 µs), so that a removed permission has no effect on the very next
// one. A call that waited longer than this is decided again by another look.
const maxAge = 5 * time.Millisecond

// Fault says in one line why nothing may be called now; empty: calls may be made.
// Only an operator is told what is wrong with which file.
func (l *Loader) Fault(operator bool) string {
	_, err := l.Rules()
	switch {
	case err == nil:
		return ""
	case operator:
		return "Ken denies all calls until this is fixed: " + untrusted.Line(err.Error(), 500)
	}
	return "Ken denies all calls because it cannot read its configuration. Ask the operator to fix it."
}

// ProfileName returns the name of the profile of the rules in force.
func (l *Loader) ProfileName() string {
	if rules, _ := l.Rules(); rules != nil {
		return rules.Settings().Profile.String()
	}
	return "none, because the rule files cannot be read"
}

// Current returns what is in force, as of at most maxAge ago.
func (l *Loader) Current() *Snapshot {
	if now := time.Since(l.epoch); now-time.Duration(l.checked.Load()) < maxAge {
		return l.current.Load()
	}
	return l.Latest()
}

// Since returns what is in force for a call that came in at a moment. A look at the
// files that began later saw all changes that were made before the call. If there was
// none, or it is older than maxAge, it looks again.
func (l *Loader) Since(arrived time.Time) *Snapshot {
	if looked := time.Duration(l.checked.Load()); !arrived.IsZero() && looked >= arrived.Sub(l.epoch) && time.Since(l.epoch)-looked < maxAge {
		if s := l.stale(); s != nil {
			return s
		}
		return l.current.Load()
	}
	return l.Latest()
}

// stale returns what is in force while Config.Fresh has an error: no rules. It
// returns nil if there is none.
func (l *Loader) stale() *Snapshot {
	if l.cfg.Fresh == nil {
		return nil
	}
	err := l.cfg.Fresh()
	if err == nil {
		return nil
	}
	s := *l.current.Load()
	s.Rules, s.Err = nil, err
	return &s
}

// RulesFor returns the rules for a call that came in at a moment, or nil if there are none.
func (l *Loader) RulesFor(arrived time.Time) *policy.Rules { return l.Since(arrived).Rules }

// Settings returns the settings in force. The pointer is another one as soon as
// a setting changes.
func (l *Loader) Settings() *config.Config { return l.Current().Settings }

const (
	// settleTime is how long a changed file must look the same before it is read.
	// Until then callers wait: a file that is being written, or that replaces
	// another, may be complete and say less than it will.
	settleTime = 250 * time.Millisecond

	// maxSettleTries is how often a caller waits for that.
	maxSettleTries = 8
)

// Latest returns what is in force after a look at the files. If one was changed,
// all are read again once they have settled. Files that cannot be used leave no
// rules, which denies everything, and all settings as they were.
func (l *Loader) Latest() *Snapshot {
	if s := l.stale(); s != nil {
		return s
	}
	l.looks.Add(1)
	for range maxSettleTries {
		began := time.Since(l.epoch)
		if s := l.current.Load(); s.upToDate() {
			l.checked.Store(int64(began))
			return s
		}
		was, s, wait := l.readAgain(began)
		if wait > 0 {
			time.Sleep(wait)
			continue
		}
		if l.cfg.Changed != nil && (was.Rules != s.Rules || fmt.Sprint(was.Err) != fmt.Sprint(s.Err)) {
			l.cfg.Changed(s.Rules, s.Err)
		}
		return s
	}
	s := *l.current.Load()
	s.Rules, s.Err = nil, &capability.Error{
		Kind: capability.Unavailable, Op: "read", Target: "settings and rule files",
		Err: errors.New("the files keep changing"), Fix: "wait until the program that writes them has finished",
	}
	return &s
}

// upToDate reports whether every file is as it was. If the files cannot be used
// that is never certain: one of them may name others.
func (s *Snapshot) upToDate() bool {
	if s.Err != nil {
		return false
	}
	return !slices.ContainsFunc(s.stamps, func(stamp wholefile.Stamp) bool { return !stamp.Unchanged() })
}

// readAgain reads the files, unless another goroutine has done so since began.
// It returns what was in force before and what is now, or how long to wait until
// the files have settled.
func (l *Loader) readAgain(began time.Duration) (was, now *Snapshot, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = l.current.Load()
	if time.Duration(l.checked.Load()) > began || was.upToDate() {
		return was, was, 0
	}
	began = time.Since(l.epoch)
	now = l.read(was)
	if wait = l.settleDelay(was.stamps, now.stamps); wait > 0 {
		return was, was, wait
	}
	l.current.Store(now)
	l.checked.Store(int64(began))
	return was, now, 0
}

// settleDelay returns for how long files that changed may still change. A file's
// own time is believed if it lies in the past. A file that was removed has none,
// and clocks may differ, so the time since the change was seen counts too.
func (l *Loader) settleDelay(was, now []wholefile.Stamp) (wait time.Duration) {
	same := func(list []wholefile.Stamp, s wholefile.Stamp) bool {
		return slices.ContainsFunc(list, func(o wholefile.Stamp) bool { return o.Path == s.Path && o.Looks(s) })
	}
	if len(l.pending) != len(now) || slices.ContainsFunc(now, func(s wholefile.Stamp) bool { return !same(l.pending, s) }) {
		l.pending, l.since = now, time.Now()
	}
	seen := time.Since(l.since)
	for _, s := range now {
		if same(was, s) || s.Info == nil && !contains(was, s.Path) || s.Path == config.SharedFile(l.cfg.Places) { // that one is replaced whole
			continue
		}
		age := seen
		if s.Info != nil {
			age = max(age, time.Since(s.Info.ModTime()))
		}
		wait = max(wait, settleTime-age)
	}
	return wait
}

// read reads the files, after was. Rules that say the same stay the same value,
// so that a change of another setting does not look like a change of rules.
func (l *Loader) read(was *Snapshot) *Snapshot {
	settings, stamps, err := readFiles(l.cfg.Places, l.cfg.File, was.read)
	if err == nil {
		err = emptied(was.filled, stamps)
	}
	rules := was.Rules
	if said := ruleSettings(settings); err == nil && (rules == nil || !reflect.DeepEqual(said, ruleSettings(was.read))) {
		rules, err = policy.Compile(said)
	}
	if err != nil {
		return &Snapshot{Err: err, stamps: stamps, read: was.read, Settings: was.Settings, filled: was.filled}
	}
	return &Snapshot{Rules: rules, stamps: stamps, read: settings, Settings: l.effective(settings), filled: filled(stamps)}
}

// UseModel puts a model in force instead of the one that the files name.
func (l *Loader) UseModel(ref string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.model = ref
	s := *l.current.Load()
	s.Settings = l.effective(s.read)
	l.current.Store(&s)
}

// effective returns the settings in force for what the files say. l.mu is held,
// or l is not in use yet.
func (l *Loader) effective(read config.Config) *config.Config {
	out := l.start.Adopt(read, AppliesLive)
	if l.model != "" {
		out.Model = l.model
	}
	return &out
}

// ruleSettings returns what rules are compiled from.
func ruleSettings(settings config.Config) policy.Settings {
	out := settings.Policy
	out.Rules = append(slices.Clip(out.Rules), skillRules(settings)...)
	return out
}
