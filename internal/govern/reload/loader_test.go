package reload

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/testkit"
)

// tick is longer than the time in which a file system gives two changes the same
// time.
const tick = 20 * time.Millisecond

// home makes a home folder; file is its ken.yaml.
func home(t *testing.T) (places dirs.Places, file string) {
	t.Helper()
	dir := t.TempDir()
	places = testkit.Must(dirs.New(func(name string) string {
		if name == "HOME" {
			return dir
		}
		return ""
	}, t.TempDir()))(t)
	return places, filepath.Join(dir, ".ken", "ken.yaml")
}

// put writes a file that was changed at a time.
func put(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	write(t, path, text)
	testkit.OK(t, os.Chtimes(path, at, at))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	testkit.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

// TestOtherSettingsKeepTheRules: what the files say beside the rules makes no new
// ones, and of every file one stamp is kept, however often it was read.
func TestOtherSettingsKeepTheRules(t *testing.T) {
	places, file := home(t)
	cedar := "policy: {cedar: [" + file + ".cedar]}\n"
	write(t, file+".cedar", "permit (principal, action, resource);\n")
	write(t, file, cedar)
	l := testkit.Must(New(Config{Places: places}))(t)
	rules, n := l.Latest().Rules, len(l.current.Load().stamps)
	for _, steps := range []string{"9", "10"} {
		write(t, file, cedar+"chat: {steps: "+steps+"}\n")
		r := l.Latest()
		if r.Rules != rules {
			t.Errorf("with chat.steps %s there are other rules", steps)
		}
		if len(r.stamps) != n {
			t.Errorf("with chat.steps %s there are %d stamps, want %d", steps, len(r.stamps), n)
		}
	}
	write(t, file, cedar+"skills: {off: [shell]}\n")
	if r := l.Latest(); r.Rules == nil || r.Rules == rules {
		t.Errorf("with skills.off the rules are %p, want others than %p", r.Rules, rules)
	}
}

// TestEveryChangeIsSeen: a change between the reading of the files and the Loader
// of them, one of a file that was only just named, and one that leaves a file of
// the same size and time.
func TestEveryChangeIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, file := home(t)
		cedar := file + ".cedar"
		old := time.Now().Add(-time.Hour)
		put(t, file, "chat: {steps: 5}\n", old)
		settings, stamps, err := readFiles(places, "", config.Config{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, file, "chat: {steps: 16}\n", old)
		l := testkit.Must(newLoader(Config{Places: places}, settings, stamps))(t)
		if n := l.Latest().Settings.Chat.Steps; n != 16 {
			t.Errorf("changed before the Loader was made, there are %d steps, want 16", n)
		}

		put(t, cedar, "permit (principal, action, resource);\n", old)
		put(t, file, "policy: {cedar: ["+cedar+"]}\n", old)
		if r := l.Latest(); r.Err != nil || r.upToDate() {
			t.Errorf("a file was read before it was looked at, and that holds (%v)", r.Err)
		}
		if r := l.Latest(); !r.upToDate() {
			t.Error("the second reading does not hold")
		}

		put(t, file, "chat: {steps: 17}\n", time.Now())
		l.Latest()
		put(t, file, "chat: {steps: 18}\n", time.Now())
		if n := l.Latest().Settings.Chat.Steps; n != 18 {
			t.Errorf("changed within a tick, there are %d steps, want 18", n)
		}
		time.Sleep(tick)
		if r := l.Latest(); !r.upToDate() {
			t.Error("a file that was not changed for a while does not hold")
		}
	})
}

// TestRulesOfAFileThatIsBeingWritten: a file that is away for a moment, or cut so
// that it can be read, loosens nothing; one that stays so counts.
func TestRulesOfAFileThatIsBeingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, file := home(t)
		const text = "model: lab/any\npolicy:\n  rules: [{effect: deny, capabilities: [\"tool:list_files\"]}]\n"
		put(t, file, text, time.Now())
		l := testkit.Must(New(Config{Places: places}))(t)
		time.Sleep(time.Second)
		rules := l.Latest().Rules
		for _, way := range []struct {
			name  string
			steps []string // what the file says, one after another; "-": it is away
		}{
			{"renamed away", []string{"-", text}},
			{"removed, and written in pieces", []string{"-", "", "model: lab/any\n", text[:24], text}},
			{"cut after a line", []string{"model: lab/any\n", text}},
			{"emptied", []string{"", text}},
			{"a newline", []string{"\n", text}},
		} {
			for _, step := range way.steps {
				if step != "-" {
					put(t, file, step, time.Now())
				} else if err := os.Rename(file, file+".old"); err != nil {
					t.Fatal(err)
				}
				asked := make(chan *policy.Rules, 1)
				go func() { asked <- l.Latest().Rules }()
				time.Sleep(settleTime / 3)
				select {
				case got := <-asked:
					if got != rules && got != nil {
						t.Errorf("%s: while the file says %q there are other rules", way.name, step)
					}
				default: // it waits
					defer func() {
						if got := <-asked; got != rules && got != nil {
							t.Errorf("%s: who asked while the file said %q got other rules", way.name, step)
						}
					}()
				}
			}
			time.Sleep(2 * settleTime)
			if got := l.Latest().Rules; got != rules {
				t.Errorf("%s: in the end there are other rules", way.name)
			}
		}
		testkit.OK(t, os.Remove(file))
		if got := l.Latest().Rules; got == nil || got == rules {
			t.Errorf("a file that stays away: the rules are %p, want others than %p", got, rules)
		}
	})
}

// TestSince: one look at the files is good for the call that asked for it, and for no
// call that came in later.
func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, file := home(t)
		say := func(rule string, ago time.Duration) {
			put(t, file, "policy:\n  rules: [{effect: "+rule+", capabilities: [\"tool:list_files\"]}]\n", time.Now().Add(-ago))
		}
		say("allow", 2*time.Hour)
		var outdated error // what replicas share may not be current
		l := testkit.Must(New(Config{Places: places, Fresh: func() error { return outdated }}))(t)
		first := time.Now()
		allowed := l.Latest().Rules
		say("deny", time.Hour)
		if got := l.Since(first).Rules; got != allowed {
			t.Error("a call that had its look looked again")
		}
		outdated = errors.New("the store is away")
		if got := l.Since(first); got.Rules != nil || got.Err == nil {
			t.Error("a call that had its look has rules although those of the replicas may be outdated")
		}
		outdated = nil
		time.Sleep(time.Microsecond)
		denied := l.Since(time.Now()).Rules
		if denied == allowed {
			t.Error("a call that came in after the change was decided by the rules before it")
		}
		say("allow", 30*time.Minute)
		if got := l.Since(time.Time{}).Rules; got == denied {
			t.Error("a call of which it is not known when it came in did not look")
		}
		say("deny", 20*time.Minute)
		before := l.current.Load().Rules
		time.Sleep(maxAge)
		if got := l.Since(first).Rules; got == before {
			t.Error("a call that took long did not look again")
		}
	})
}
