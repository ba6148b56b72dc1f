package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/govern/policy"
	"ken/internal/run/runner"
)

// A ruling is what some files said: the rules, and everything else. It is never
// changed.
type ruling struct {
	rules *policy.Rules // nil: the files cannot be followed, so nothing may happen
	err   error         // why
	marks []mark        // one for each file
	files config.Config // what they say; where they cannot be followed: what they said before
	said  *standing     // made of that
	full  []string      // of the files that said it, those with something in them
}

// A mark is how a file looked; one that was not there has no info.
type mark struct {
	path  string
	info  os.FileInfo
	loose bool // it may have changed since and look the same
}

// settled is how old the last change of a file is when the next one shows: file
// systems count time in ticks, of which two changes may share one.
const settled = 20 * time.Millisecond

func look(path string) mark {
	info, err := os.Stat(path)
	if err != nil {
		return mark{path: path}
	}
	return mark{path, info, time.Since(info.ModTime()).Abs() < settled}
}

// lookAll looks at every file that can change what the configuration says, as
// some settings name them.
func lookAll(places config.Places, explicit string, settings config.Config) []mark {
	names := places.RuleFiles(explicit, settings)
	if path := settings.Experiment.Config; path != "" {
		names = append(names, path)
	}
	var out []mark
	for _, path := range names {
		if !marked(out, path) {
			out = append(out, look(path))
		}
	}
	return out
}

func marked(marks []mark, path string) bool {
	return slices.ContainsFunc(marks, func(m mark) bool { return m.path == path })
}

// readFiles reads the configuration, and says how its files looked before that:
// what is written meanwhile is seen the next time. The files that were named
// before are among them, for where one of those is what cannot be followed,
// mending it alone must be seen.
func readFiles(places config.Places, explicit string, was config.Config) (config.Config, []mark, error) {
	marks := lookAll(places, explicit, was)
	settings, err := config.Load(places, explicit)
	if err != nil {
		return settings, marks, err
	}
	for _, m := range lookAll(places, explicit, settings) {
		if !marked(marks, m.path) { // it was read before it was looked at
			m.loose = true
			marks = append(marks, m)
		}
	}
	return settings, marks, nil
}

// same reports whether the file is certain to be what it was.
func (m mark) same(now mark) bool {
	return !m.loose && m.looks(now)
}

// looks reports whether the file looks as it did.
func (m mark) looks(now mark) bool {
	if m.info == nil || now.info == nil {
		return m.info == now.info
	}
	return os.SameFile(m.info, now.info) && m.info.Size() == now.info.Size() && m.info.ModTime().Equal(now.info.ModTime())
}

// holds reports whether every file still looks as it did. Of files that cannot be
// followed nobody knows what else they name, so that does not hold.
func (r *ruling) holds() bool {
	if r.err != nil {
		return false
	}
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
	fresh    []mark    // how files look that changed and are not still yet
	since    time.Time // when they were first seen so
	changed  func(*policy.Rules, error)
	stand    func(config.Config) *standing
}

// newLawbook makes the book of settings that were just read, from files that
// looked so. stand makes what counts of what the files say, once for each time
// that they change.
func newLawbook(places config.Places, explicit string, settings config.Config, marks []mark, stand func(config.Config) *standing) (*lawbook, error) {
	b := &lawbook{places: places, explicit: explicit, began: time.Now().Add(-time.Hour), stand: stand}
	rules, err := policy.Compile(ruled(settings))
	if err != nil {
		return nil, err
	}
	b.now.Store(&ruling{rules: rules, marks: marks, files: settings, said: stand(settings), full: full(marks)})
	return b, nil
}

// settingsFresh is how long one check of the files is valid for settings other
// than the rules, because one call asks for them several times. The rules are
// checked every time (about 10 µs), so that a removed permission has no effect
// on the very next call.
const settingsFresh = 100 * time.Microsecond

// rules returns the rules in force, after a look at their files.
func (b *lawbook) rules() (*policy.Rules, error) {
	r := b.looking()
	return r.rules, r.err
}

// current returns what is in force, as of at most settingsFresh ago.
func (b *lawbook) current() *ruling {
	if now := time.Since(b.began); now-time.Duration(b.looked.Load()) < settingsFresh {
		return b.now.Load()
	}
	return b.looking()
}

// still is how long a changed file must look the same before it counts. Until
// then whoever asks waits: a file that is being written, or that is put in the
// place of another, may be whole and say less than it will.
const still = 250 * time.Millisecond

// restless is how often that is waited for.
const restless = 8

// looking returns what is in force after a look at the files. Where one was changed
// they are read again once they are still; one that cannot be followed leaves no
// rules, which refuses everything, and all else as it was.
func (b *lawbook) looking() *ruling {
	for range restless {
		began := time.Since(b.began)
		if r := b.now.Load(); r.holds() {
			b.looked.Store(int64(began))
			return r
		}
		was, r, wait := b.again(began)
		if wait > 0 {
			time.Sleep(wait)
			continue
		}
		if b.changed != nil && (was.rules != r.rules || fmt.Sprint(was.err) != fmt.Sprint(r.err)) {
			b.changed(r.rules, r.err)
		}
		return r
	}
	r := *b.now.Load()
	r.rules, r.err = nil, &capability.Error{
		Kind: capability.Unavailable, Op: "read", Target: "the files of settings and rules",
		Err: errors.New("they change again and again"), Fix: "wait until whatever writes them is done",
	}
	return &r
}

// again reads the files, unless another has done so since began. It gives what
// was in force before, and what is; or how long to wait for files that are not
// still.
func (b *lawbook) again(began time.Duration) (was, now *ruling, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was = b.now.Load()
	if time.Duration(b.looked.Load()) > began || was.holds() {
		return was, was, 0
	}
	began = time.Since(b.began)
	now = b.read(was)
	if wait = b.unrest(was.marks, now.marks); wait > 0 {
		return was, was, wait
	}
	b.now.Store(now)
	b.looked.Store(int64(began))
	return was, now, 0
}

// unrest says for how long files that look other than before may still change.
// Their own times are believed where they lie in the past; a file that is gone
// has none, and clocks may differ, so what was seen here counts as well.
func (b *lawbook) unrest(was, now []mark) (wait time.Duration) {
	same := func(list []mark, m mark) bool {
		return slices.ContainsFunc(list, func(o mark) bool { return o.path == m.path && o.looks(m) })
	}
	if len(b.fresh) != len(now) || slices.ContainsFunc(now, func(m mark) bool { return !same(b.fresh, m) }) {
		b.fresh, b.since = now, time.Now()
	}
	seen := time.Since(b.since)
	for _, m := range now {
		if same(was, m) || m.info == nil && !marked(was, m.path) {
			continue
		}
		age := seen
		if m.info != nil {
			age = max(age, time.Since(m.info.ModTime()))
		}
		wait = max(wait, still-age)
	}
	return wait
}

// anew has what counts made again of what the files said last, after a change
// of something else that it is made of.
func (b *lawbook) anew(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	r := *b.now.Load()
	r.said = b.stand(r.files)
	b.now.Store(&r)
}

// read reads the files, which said was before. Rules that say the same stay the
// same, so that nobody takes another setting for other rules.
func (b *lawbook) read(was *ruling) *ruling {
	settings, marks, err := readFiles(b.places, b.explicit, was.files)
	if err == nil {
		err = emptied(was.full, marks)
	}
	rules := was.rules
	if said := ruled(settings); err == nil && (rules == nil || !reflect.DeepEqual(said, ruled(was.files))) {
		rules, err = policy.Compile(said)
	}
	if err != nil {
		return &ruling{err: err, marks: marks, files: was.files, said: was.said, full: was.full}
	}
	return &ruling{rules: rules, marks: marks, files: settings, said: b.stand(settings), full: full(marks)}
}

// full returns the files that have something in them.
func full(marks []mark) []string {
	var out []string
	for _, m := range marks {
		if m.info != nil && m.info.Size() > 0 {
			out = append(out, m.path)
		}
	}
	return out
}

// emptied refuses a file that had something in it and has nothing now. Many
// programs that write a file leave it so for a moment, and then its rules must
// not be gone.
func emptied(full []string, marks []mark) error {
	for _, m := range marks {
		if m.info != nil && m.info.Size() == 0 && slices.Contains(full, m.path) {
			return &capability.Error{Kind: capability.Invalid, Op: "read", Target: m.path, Err: errors.New("it is empty, and was not before"), Fix: "write it, or remove it"}
		}
	}
	return nil
}

// ruled returns what rules are made of.
func ruled(settings config.Config) policy.Settings {
	said := settings.Policy
	said.Rules = append(slices.Clip(said.Rules), skillsOff(settings)...)
	return said
}

// Rules returns the rules in force, or nil where their files cannot be followed.
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
	r, made := a.runner.Peek()
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

// watchRules checks the rules and the disabled extensions repeatedly while
// calls run.
func (a *App) watchRules(r *runner.Runner, every time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
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
					a.stopDisabled(ctx)
				}
			}
		}
	}()
	a.closeLater(func() error {
		cancel()
		close(stop)
		<-done
		return nil
	})
}
