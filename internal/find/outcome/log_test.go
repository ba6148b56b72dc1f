package outcome

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/testkit"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// writerEnv makes the test binary a process that only writes to a log:
// "folder count name".
const writerEnv = "KEN_OUTCOME_WRITER"

func TestMain(m *testing.M) {
	if job := os.Getenv(writerEnv); job != "" {
		if err := writer(strings.Split(job, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func writer(job []string) error {
	n, err := strconv.Atoi(job[1])
	if err != nil {
		return err
	}
	l, err := Open(job[0], small)
	if err != nil {
		return err
	}
	for i := range n {
		if err := l.Append(numbered(job[2], i)); err != nil {
			return err
		}
	}
	return l.Close()
}

// small begins a new file every few dozen lines and removes none of a test's.
var small = Config{MaxBytes: 16 << 10, Keep: 1000}

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func numbered(session string, i int) Event {
	e := selection(session, Item{ID: "card-one", Tier: TierCard, Score: 0.7, Tokens: 100})
	e.Time, e.Turn = noon, strconv.Itoa(i)
	return e
}

// selection is an injected one of the given items.
func selection(session string, items ...Item) Event {
	e := Event{Time: noon, Kind: Selected, Session: session, Mode: Full, Injected: true, Items: items}
	for _, it := range items {
		e.Tokens.Total += it.Tokens
	}
	e.Triggered = e.triggered()
	return e
}

func open(t testing.TB, dir string, cfg Config) *Log {
	t.Helper()
	l := testkit.Must(Open(dir, cfg))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func add(t testing.TB, l *Log, events ...Event) {
	t.Helper()
	for _, e := range events {
		testkit.OK(t, l.Append(e))
	}
}

func collect(l *Log, since time.Time) (events []Event, errs []error) {
	for e, err := range l.Events(since) {
		if err != nil {
			errs = append(errs, err)
		} else {
			events = append(events, e)
		}
	}
	return events, errs
}

// of makes events a stream.
func of(events ...Event) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestLogKeepsEveryField(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "new", "folder"), Config{})
	want := Event{
		Time: noon.Add(time.Microsecond), Kind: Selected, Session: "s1", Turn: "t1", Triggered: 1,
		SessionType: "main", Tags: []string{"billing"}, Mode: Soft, Experiment: "floor", Variant: VariantB,
		QueryHash: l.Hash("what does it cost?"), Injected: true,
		Items: []Item{
			{ID: "tool:a", Tier: TierMap},
			{ID: "tool:a", Tier: TierBrief, Score: 0.9, Tokens: 30},
			{ID: "card-b", Tier: TierCard, Score: 0.7, Seed: 0.35, Tokens: 300},
			{ID: "card-c", Tier: TierCard, Score: 1, Tokens: 40, Forced: true, Held: true},
			{ID: "tool:a", Tier: TierFull, Score: 0.9, Tokens: 500},
		},
		Skipped:       []Skip{{ID: "card-d", Reason: "over budget", Score: 0.61, Seed: 0.2}},
		Tokens:        Tokens{Map: 150, Briefs: 30, Cards: 340, Fulls: 500, Total: 1020},
		AllToolTokens: 40_000, TookUS: 74, EmbedUS: 20, GraphUS: 3, Candidates: 20, Retrieved: 6,
		Degraded: []string{"no embedder"}, Error: "card-e: unreadable",
	}
	used := Event{Time: noon.Add(time.Second), Kind: Used, Session: "s1", Turn: "t1", ID: "tool:a"}
	add(t, l, want, used)
	got, errs := collect(l, time.Time{})
	if len(errs) > 0 {
		t.Fatalf("Events: %v", errs)
	}
	if diff := cmp.Diff([]Event{want, used}, got); diff != "" {
		t.Errorf("Events, -want +got:\n%s", diff)
	}
	if h := l.Health(); h.Written != 2 || h.Lost != 0 || h.Error != "" {
		t.Errorf("Health = %+v, want two written", h)
	}
	info, err := os.Stat(logPath(l.dir, 1))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log file: %v %v, want it for its owner only", info.Mode(), err)
	}
}

// TestLogIsJSONLines shows the names of S1.U11 as other programs read them.
func TestLogIsJSONLines(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	e := selection("s1", Item{ID: "token-economy", Tier: TierCard, Score: 0.85, Tokens: 600})
	e.Tags, e.TookUS = []string{"cost"}, 74
	add(t, l, e)
	line := testkit.Must(os.ReadFile(logPath(l.dir, 1)))(t)
	const want = `{"time":"2026-11-15T12:00:00Z","kind":"selected","session":"s1","triggered":1,"tags":["cost"],"mode":"full","injected":true,` +
		`"items":[{"id":"token-economy","tier":"card","score":0.85,"tokens":600}],"tokens":{"map":0,"briefs":0,"cards":0,"fulls":0,"total":600},"took_us":74}` + "\n"
	if string(line) != want {
		t.Errorf("line = %s\nwant %s", line, want)
	}
}

func TestHashHidesTheMessage(t *testing.T) {
	dir := t.TempDir()
	a, again, other := open(t, dir, Config{}), open(t, dir, Config{}), open(t, t.TempDir(), Config{})
	if got, want := again.Hash("yes"), a.Hash("yes"); got != want {
		t.Errorf("Hash in the same folder = %s, want %s", got, want)
	}
	if a.Hash("yes") == a.Hash("no") || a.Hash("yes") == other.Hash("yes") {
		t.Error("Hash does not depend on the message and the folder's key")
	}
	if n := len(a.Hash(strings.Repeat("x", 1<<20))); n != 16 {
		t.Errorf("Hash of a long message has %d characters, want 16", n)
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "key"), []byte("short"), 0o600))
	mended := open(t, dir, Config{})
	if got, want := open(t, dir, Config{}).Hash("yes"), mended.Hash("yes"); got != want {
		t.Errorf("Hash with a damaged key = %s, then %s: it was not replaced", want, got)
	}
}

func TestOneKeyForAll(t *testing.T) {
	dir := t.TempDir()
	hashes := make([]string, 16)
	var wg sync.WaitGroup
	for i := range hashes {
		wg.Go(func() {
			l, err := Open(dir, Config{})
			if err != nil {
				t.Error(err)
			}
			hashes[i] = l.Hash("yes")
			l.Close()
		})
	}
	wg.Wait()
	if n := len(slices.Compact(slices.Sorted(slices.Values(hashes)))); n != 1 {
		t.Errorf("%d keys for one folder", n)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "key-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestEventsSince: what is read begins at a time, across files; lines may be late by
// less than an hour.
func TestEventsSince(t *testing.T) {
	const n = 3000
	for name, late := range map[string]func(i int) time.Duration{
		"in order": func(int) time.Duration { return 0 },
		"in disorder": func(i int) time.Duration {
			if i%7 == 0 {
				return 50 * time.Minute
			}
			return 0
		},
	} {
		l := open(t, t.TempDir(), Config{MaxBytes: 300 << 10, Keep: 100})
		var all []Event
		for i := range n {
			e := numbered("s", i)
			e.Time = noon.Add(time.Duration(i)*time.Minute - late(i))
			l.Add(e)
			all = append(all, e)
		}
		l.Flush()
		if files, _ := logFiles(l.dir); len(files) < 2 {
			t.Fatalf("%d files, want several", len(files))
		}
		for _, from := range []int{0, 1, 59, 1234, 2999, 3000} {
			since := noon.Add(time.Duration(from) * time.Minute)
			var got, want []string
			for e, err := range l.Events(since) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Turn)
			}
			for _, e := range all {
				if !e.Time.Before(since) {
					want = append(want, e.Turn)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: Events(minute %d) = %d events, want %d, in order", name, from, len(got), len(want))
			}
		}
		for range l.Events(time.Time{}) {
			break // and no panic for going on
		}
	}
}

// TestSeveralWritersShareALog: of one process and of several.
func TestSeveralWritersShareALog(t *testing.T) {
	exe := testkit.Must(os.Executable())(t)
	dir := t.TempDir()
	const writers, each = 8, 200
	logs := []*Log{open(t, dir, small), open(t, dir, small), open(t, dir, small)}
	var wg sync.WaitGroup
	for w := range writers {
		name := fmt.Sprint("writer ", w)
		wg.Go(func() {
			if w < 3 {
				cmd := exec.Command(exe)
				cmd.Env = append(os.Environ(), writerEnv+"="+strings.Join([]string{dir, strconv.Itoa(each), name}, "\n"))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", name, err, out)
				}
				return
			}
			for i := range each {
				if err := logs[w%len(logs)].Append(numbered(name, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantNumbered(t, logs[0], writers, each)
}

// wantNumbered wants every line of every writer once, each writer's in order,
// in files that keep their bound.
func wantNumbered(t *testing.T, l *Log, writers, each int) {
	t.Helper()
	events, errs := collect(l, time.Time{})
	if len(errs) > 0 {
		t.Fatalf("Events: %v", errs)
	}
	seen := map[string][]bool{}
	for _, e := range events {
		if seen[e.Session] == nil {
			seen[e.Session] = make([]bool, each)
		}
		i, err := strconv.Atoi(e.Turn)
		if err != nil || seen[e.Session][i] {
			t.Fatalf("%s wrote %s twice (%v)", e.Session, e.Turn, err)
		}
		seen[e.Session][i] = true
	}
	if len(events) != writers*each {
		t.Errorf("%d events, want %d", len(events), writers*each)
	}
	files, _ := logFiles(l.dir)
	if len(files) < 2 {
		t.Errorf("%d files, want several", len(files))
	}
	for _, f := range files {
		// Writers that look at the same time may each add a line.
		if info, err := os.Stat(logPath(l.dir, f)); err != nil || info.Size() > small.MaxBytes+int64(writers)*1024 {
			t.Errorf("file %d: %d bytes, want about %d (%v)", f, info.Size(), small.MaxBytes, err)
		}
	}
}

// TestRotationKeepsItsBound: whether events are written one by one or together.
func TestRotationKeepsItsBound(t *testing.T) {
	for _, together := range []bool{false, true} {
		dir := t.TempDir()
		cfg := Config{MaxBytes: 4 << 10, Keep: 3}
		l := open(t, dir, cfg)
		for i := range 500 {
			if together {
				l.Add(numbered("s", i))
			} else {
				add(t, l, numbered("s", i))
			}
			files, err := logFiles(dir)
			if err != nil || len(files) > cfg.Keep {
				t.Fatalf("after %d events: files %v %v, want at most %d", i+1, files, err, cfg.Keep)
			}
			for _, f := range files {
				if info, err := os.Stat(logPath(dir, f)); err != nil || info.Size() > cfg.MaxBytes {
					t.Fatalf("file %d: %d bytes, want at most %d (%v)", f, info.Size(), cfg.MaxBytes, err)
				}
			}
		}
		events, errs := collect(l, time.Time{})
		if len(errs) > 0 || len(events) < 10 || events[len(events)-1].Turn != "499" {
			t.Fatalf("%d events, %v, want the latest", len(events), errs)
		}
		for i, e := range events {
			if want := strconv.Itoa(500 - len(events) + i); e.Turn != want {
				t.Fatalf("event %d is turn %s, want %s: something between is lost", i, e.Turn, want)
			}
		}
	}
	if l := open(t, t.TempDir(), Config{}); l.cfg.MaxBytes != 8<<20 || l.cfg.Keep != 4 {
		t.Errorf("default bound = %+v, want 8 MB × 4", l.cfg)
	}
}

func TestTornLinesAreSkippedAndCounted(t *testing.T) {
	whole := testkit.Must(encode(nil, numbered("s", 1)))(t)
	tests := []struct {
		name   string
		inside string // between two whole lines
		bad    int
	}{
		{"nothing", "", 0},
		{"empty lines", "\n\n \n", 0},
		{"half a line", string(whole[:40]), 1},
		{"half a line, ended", string(whole[:40]) + "\n", 1},
		{"no JSON", "hello\n[1,2]\n", 2},
		{"no event", "{}\n{\"time\":\"2026-11-15T12:00:00Z\"}\n{\"kind\":\"used\"}\n", 3},
		{"too long", strings.Repeat("x", 3*maxLine) + "\n", 1},
		{"zero bytes of a crash", strings.Repeat("\x00", 100), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			add(t, open(t, dir, Config{}), numbered("s", 0))
			f := testkit.Must(os.OpenFile(logPath(dir, 1), os.O_APPEND|os.O_WRONLY, 0))(t)
			f.WriteString(tt.inside)
			f.Close()
			l := open(t, dir, Config{}) // a restart
			add(t, l, numbered("s", 2))
			events, errs := collect(l, time.Time{})
			if len(events) != 2 || events[1].Turn != "2" || len(errs) != tt.bad {
				t.Errorf("%d events, errors %v; want 2 and %d", len(events), errs, tt.bad)
			}
			for _, err := range errs {
				bad, ok := errors.AsType[*BadLine](err)
				if !ok || bad.Path != logPath(dir, 1) || bad.Offset == 0 || !strings.Contains(err.Error(), "skipped") {
					t.Errorf("error = %v, want a BadLine with file and place", err)
				}
			}
			if m := Summarise(l.Events(time.Time{}), time.Time{}); m.Unreadable != tt.bad || m.Requests != 2 {
				t.Errorf("Summarise = %d unreadable of %d requests, want %d of 2", m.Unreadable, m.Requests, tt.bad)
			}
		})
	}
}

func TestTornLastLineWithoutRestart(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	add(t, l, numbered("s", 0))
	testkit.Must(l.file.Write([]byte(`{"time":"2026-11-15T12:0`)))(t)
	events, errs := collect(l, time.Time{})
	if len(events) != 1 || len(errs) != 1 || !errors.Is(errs[0], errUnfinished) {
		t.Errorf("Events = %d, %v; want one and a half-written one", len(events), errs)
	}
}

func TestUnwritableLogFailsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.WriteFile(dir, nil, 0o600); err != nil { // where the folder should be
			t.Fatal(err)
		}
		l, err := Open(dir, Config{})
		if l == nil || err == nil || capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), dir) {
			t.Fatalf("Open = %v, %v; want a log and an error that names %s", l, err, dir)
		}
		defer l.Close()
		for range 3 {
			if err := l.Append(numbered("s", 0)); err == nil {
				t.Fatal("Append to a folder that is a file: no error")
			}
		}
		if l.Hash("x") == "" {
			t.Error("Hash without a folder = nothing")
		}
		if h := l.Health(); h.Lost != 3 || h.Written != 0 || h.Error == "" || h.ErrorAt.IsZero() {
			t.Errorf("Health = %+v, want three lost and why", h)
		}
		if _, errs := collect(l, time.Time{}); len(errs) != 1 {
			t.Errorf("Events = %v, want one error", errs)
		}
		testkit.OK(t, os.Remove(dir))
		if err := l.Append(numbered("s", 1)); err == nil {
			t.Error("Append right after a failure tried again, want a pause")
		}
		time.Sleep(lookAgain)
		add(t, l, numbered("s", 2))
		if h := l.Health(); h.Lost != 4 || h.Written != 1 || h.Error != "" {
			t.Errorf("Health = %+v, want it fixed", h)
		}
	})
}

// TestAddWritesTogether: events of Add are written after a moment, when there are
// many, and before the log is read, closed, or written to by Append.
func TestAddWritesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, t.TempDir(), Config{})
		onDisk := func() int {
			text := testkit.Must(os.ReadFile(logPath(l.dir, 1)))(t)
			return strings.Count(string(text), "\n")
		}
		want := func(when string, n int) {
			t.Helper()
			if got := onDisk(); got != n {
				t.Errorf("%s: %d lines are written, want %d", when, got, n)
			}
		}
		for round := range 2 { // the second one sets the timer again
			l.Add(numbered("s", 0))
			l.Add(numbered("s", 1))
			want("at once", 2*round)
			time.Sleep(addedFor + 1)
			synctest.Wait()
			want("a moment later", 2*round+2)
		}
		for range mostAdded {
			l.Add(numbered("s", 2))
		}
		want("many", mostAdded+4)
		l.Add(numbered("s", 3))
		add(t, l, numbered("s", 4))
		want("before another event", mostAdded+6)
		l.Add(numbered("s", 5))
		if events, errs := collect(l, time.Time{}); len(events) != mostAdded+7 || len(errs) > 0 {
			t.Errorf("%d events and %v are read, want %d", len(events), errs, mostAdded+7)
		}
		l.Add(numbered("s", 6))
		testkit.OK(t, l.Close())
		want("closed", mostAdded+8)
		l.Add(numbered("s", 7))
		if h := l.Health(); h.Written != mostAdded+8 || h.Lost != 1 {
			t.Errorf("Health = %+v, want %d written, and the one after Close lost", h, mostAdded+8)
		}
	})
}

// TestSwitchSeesWhatWasAdded: the kill switch counts events that are not written yet.
func TestSwitchSeesWhatWasAdded(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	s := newSwitch(t, l, SwitchConfig{})
	e := typical()
	e.Time = noon
	l.Add(e)
	if st, _ := check(t, s, noon); st.Sessions != 1 {
		t.Errorf("State = %+v, want one session", st)
	}
}

func TestLogOutlivesItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		l := open(t, dir, Config{})
		add(t, l, numbered("s", 0))
		testkit.OK(t, os.RemoveAll(dir))
		time.Sleep(lookAgain)
		add(t, l, numbered("s", 1))
		if events, errs := collect(l, time.Time{}); len(events) != 1 || len(errs) > 0 {
			t.Errorf("Events after the folder was removed = %d, %v; want the one since", len(events), errs)
		}
	})
}

func TestLogRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	testkit.OK(t, os.Symlink("/dev/null", logPath(dir, 1)))
	l, err := Open(dir, Config{})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Open over a link = %v, want a refusal", err)
	}
	l.Close()
}

func TestCloseEndsWriting(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	add(t, l, numbered("s", 0))
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	if err := l.Append(numbered("s", 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Append after Close = %v, want %v", err, fs.ErrClosed)
	}
	if events, _ := collect(l, time.Time{}); len(events) != 1 {
		t.Errorf("%d events after Close, want 1", len(events))
	}
	none := &Log{dir: filepath.Join(t.TempDir(), "none")}
	if events, errs := collect(none, time.Time{}); len(events)+len(errs) > 0 {
		t.Errorf("Events of no folder = %v, %v; want none", events, errs)
	}
}

// TestLinesKeepTheirBound holds for any event: one line, bounded, readable, and
// the caller's slices are as they were.
func TestLinesKeepTheirBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\nb", "\xff\xfe", strings.Repeat("é", 600)}))
		score := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64}))
		item := rapid.Custom(func(t *rapid.T) Item {
			return Item{
				ID: capability.ID(text.Draw(t, "id")), Tier: rapid.SampledFrom([]Tier{TierMap, TierBrief, TierCard, TierFull}).Draw(t, "tier"),
				Score: score.Draw(t, "score"), Seed: score.Draw(t, "seed"), Forced: rapid.Bool().Draw(t, "forced"),
				Text: rapid.Bool().Draw(t, "text"), Names: rapid.SliceOfN(rapid.Map(text, func(s string) capability.ID { return capability.ID(s) }), 0, 3).Draw(t, "names"),
			}
		})
		skip := rapid.Custom(func(t *rapid.T) Skip {
			return Skip{ID: capability.ID(text.Draw(t, "id")), Reason: text.Draw(t, "reason"), Score: score.Draw(t, "score")}
		})
		e := Event{
			Time: noon, Kind: Selected, Session: rapid.StringN(0, 100, 200).Draw(t, "session"), Error: text.Draw(t, "error"),
			Tenant: text.Draw(t, "tenant"), Rule: text.Draw(t, "rule"), Model: text.Draw(t, "model"), End: text.Draw(t, "end"), Cost: score.Draw(t, "cost"),
			Requests: rapid.Int().Draw(t, "requests"), Shown: rapid.Int().Draw(t, "shown"), Added: rapid.Int().Draw(t, "added"),
			Usage:   Usage{Input: rapid.Int().Draw(t, "input"), CachedRead: rapid.IntRange(0, 1).Draw(t, "read")},
			Tags:    rapid.SliceOfN(text, 0, 50).Draw(t, "tags"),
			Items:   slices.Repeat(rapid.SliceOfN(item, 0, 4).Draw(t, "items"), rapid.SampledFrom([]int{1, 1, 60}).Draw(t, "times")),
			Skipped: slices.Repeat(rapid.SliceOfN(skip, 0, 4).Draw(t, "skipped"), rapid.SampledFrom([]int{1, 1, 60}).Draw(t, "times")),
		}
		before := fmt.Sprint(e)
		line, err := encode(nil, e)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		if after := fmt.Sprint(e); after != before {
			t.Fatalf("encode changed its argument to %s, from %s", after, before)
		}
		if len(line) > maxLine || bytes.Count(line, []byte{'\n'}) != 1 || line[len(line)-1] != '\n' {
			t.Fatalf("encode = %d bytes, %d line ends; want one line of at most %d", len(line), bytes.Count(line, []byte{'\n'}), maxLine)
		}
		var got, head Event
		if err := decode(line[:len(line)-1], &got); err != nil {
			t.Fatalf("decode: %v", err)
		}
		var again bytes.Buffer
		enc := json.NewEncoder(&again)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(got); err != nil || again.String() != strings.ReplaceAll(string(line), `\ufffd`, "\ufffd") {
			t.Fatalf("encode = %s\nencoding/json writes %s, %v", line, &again, err)
		}
		if err := decodeHead(line[:len(line)-1], &head); err != nil || !sameHead(head, got) {
			t.Fatalf("decodeHead = %+v, %v; want %+v", head, err, got)
		}
		sameAsJSON(t, line[:len(line)-1])
		if lost := len(e.Items) + len(e.Skipped) + len(e.Tags) - len(got.Items) - len(got.Skipped) - len(got.Tags); lost != got.Cut {
			t.Fatalf("%d parts are missing, Cut = %d", lost, got.Cut)
		}
		if got.Triggered != e.triggered() {
			t.Fatalf("Triggered = %d, want %d", got.Triggered, e.triggered())
		}
	})
}

// sameAsJSON holds reading by hand to what encoding/json reads.
func sameAsJSON(t interface{ Fatalf(string, ...any) }, line []byte) {
	var hand, plain Event
	if !hand.read(line) {
		return
	}
	if err := json.Unmarshal(line, &plain); err != nil {
		t.Fatalf("read takes %s, encoding/json says %v", line, err)
	}
	if diff := cmp.Diff(plain, hand); diff != "" {
		t.Fatalf("read(%s) (-encoding/json +by hand):\n%s", line, diff)
	}
}

// typical is a turn of the default configuration.
func typical() Event {
	e := Event{
		Kind: Selected, Session: "0198c1f2-7d4e-7a61-b8a2-1c64a0d0f5aa", Turn: "17", SessionType: "main", Mode: Full,
		Experiment: "floor", Variant: VariantA, QueryHash: "9f86d081884c7d65", Injected: true,
		Tokens: Tokens{Map: 180, Briefs: 210, Cards: 850, Fulls: 700, Total: 1940}, AllToolTokens: 42_000, TookUS: 74, Candidates: 20, Retrieved: 7,
	}
	for i := range 5 {
		e.Items = append(e.Items, Item{ID: capability.ID(fmt.Sprint("tool:some-capability-", i)), Tier: TierBrief, Score: 0.912345 - float64(i)/10, Tokens: 42})
	}
	e.Items = append(e.Items,
		Item{ID: "token-economy", Tier: TierCard, Score: 0.85, Seed: 0.5983, Tokens: 600},
		Item{ID: "telegram-optimizations", Tier: TierCard, Score: 0.62, Seed: 0.1, Tokens: 250},
		Item{ID: "tool:some-capability-0", Tier: TierFull, Score: 0.9123, Tokens: 700})
	for i := range 3 {
		e.Skipped = append(e.Skipped, Skip{ID: capability.ID(fmt.Sprint("card-", i)), Reason: "relevance 0.412 is below capabilities.confidenceThreshold 0.600", Score: 0.412})
	}
	return e
}

// oddLines are lines that encoding/json has to read, or that nobody can.
func oddLines() []string {
	const head = `{"time":"2026-11-15T12:00:00Z","kind":"used","injected":`
	return []string{
		head + `false,"dump":01}`, head + `false,"dump":1.5}`, head + `false,"dump":-}`, head + `false,"cost":1.}`, head + `false,"cost":.5}`, head + `maybe}`,
		head + `false,"cost":0.5e1}`, head + `false,"dump":1,"dump":2}`, head + `false} `, head + `false,"items":[{"id":"a"}]}`, head + `false,"tags":[,"a"]}`,
		head + `false,"dump":99999999999999999999}`, head + `false,"error":"a\u003cb"}`, head + "false,\"error\":\"\xff\"}", head + `false,"new":1}`,
		`{"time":"2026-11-15T12:00:00Z","kind":"used","session":"a\"b","injected":false}`, `{"kind":"used","time":"2026-11-15T12:00:00Z","session":"s"}`,
		`{ "time": "2026-11-15T12:00:00Z", "kind": "used" }`, `{"time":"2026-11-15T12:00:00Z","kind":"used","session":"s","triggered":1}`,
		`{"time":"2026-11-15T12:00:00Z","kind":"used","triggered":"1","injected":true}`, `{"time":"today","kind":"used"}`,
		`{"time":"2026-11-15T12:00:00Z","kind":""}`, `{"time":"2026-11-15T12:00:00Z","kind":"used","session":"s`, `}`,
	}
}

// TestReadByHand: whatever is read by hand, a whole line or its head, is read as
// encoding/json reads it, and an error is one for both.
func TestReadByHand(t *testing.T) {
	full := typical()
	full.Time, full.Tenant, full.Tags, full.Degraded, full.Error = noon, "acme", []string{"a", "é"}, []string{"x"}, "broke"
	end := Event{Time: noon, Kind: Ended, Session: "s", Turn: "3", End: "answer", Model: "p/m", Requests: 2, Shown: 3, Added: 1, AllToolTokens: 9, Cost: 0.25, Usage: Usage{Input: 5}}
	lines := oddLines()
	for _, e := range []Event{full, end, {Time: noon, Kind: Used, Session: "s", ID: "tool:a", TookUS: 5}, {Time: noon, Kind: Refused, Rule: "a.b"}} {
		line := testkit.Must(encode(nil, e))(t)
		lines = append(lines, string(line[:len(line)-1]))
	}
	for _, line := range lines {
		sameAsJSON(t, []byte(line))
		var head, whole Event
		if err := decode([]byte(line), &whole); err == nil && (decodeHead([]byte(line), &head) != nil || !sameHead(head, whole)) {
			t.Errorf("decodeHead(%s) = %+v, want %+v", line, head, whole)
		}
	}
	for _, line := range oddLines()[len(oddLines())-5:] {
		if err := decodeHead([]byte(line), new(Event)); err == nil {
			t.Errorf("decodeHead(%s) = nil, want an error", line)
		}
	}
}

func sameHead(a, b Event) bool {
	return a.Time.Equal(b.Time) && a.Kind == b.Kind && a.Session == b.Session && a.Turn == b.Turn && a.ID == b.ID && a.Triggered == b.Triggered
}

func TestHugeIdsAreAnError(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	if err := l.Append(Event{Kind: Used, Session: strings.Repeat("x", 2*maxLine)}); err == nil || !strings.Contains(err.Error(), "shorten") {
		t.Errorf("Append = %v, want what to do", err)
	}
	add(t, l, Event{Kind: Used, Session: "s", ID: "tool:a"})
	if events, _ := collect(l, time.Time{}); len(events) != 1 || events[0].Time.IsZero() {
		t.Errorf("events = %v, want one with the time filled in", events)
	}
}

// FuzzEvents reads any bytes as a log.
func FuzzEvents(f *testing.F) {
	line, _ := encode(nil, numbered("s", 1))
	f.Add(line, int64(0))
	f.Add(append(line[:len(line):len(line)], line[:20]...), int64(1))
	f.Add(bytes.Repeat(line, 600), noon.Unix())
	f.Add([]byte("{\"time\":\"x\"}\n\x00\n"), int64(-1))
	f.Add([]byte(strings.Join(oddLines(), "\n")), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, since int64) {
		dir := t.TempDir()
		testkit.OK(t, os.WriteFile(logPath(dir, 1), data, 0o600))
		l := &Log{dir: dir}
		events, _ := collect(l, time.Time{})
		if most := bytes.Count(data, []byte{'\n'}); len(events) > most {
			t.Errorf("%d events of %d lines", len(events), most)
		}
		for line := range bytes.Lines(data) {
			sameAsJSON(t, bytes.TrimSpace(line))
		}
		for _, e := range events {
			if _, err := json.Marshal(e); err != nil {
				t.Errorf("event cannot be written again: %v", err)
			}
			Text(e, LevelDetailed)
		}
		later, _ := collect(l, time.Unix(since, 0))
		if len(later) > len(events) {
			t.Errorf("%d events since a time, %d in all", len(later), len(events))
		}
		Summarise(of(events...), time.Time{})
		for id, p := range Priors(of(events...), noon) {
			if math.Abs(p.LogOdds) > MaxLogOdds || math.IsNaN(p.LogOdds) {
				t.Errorf("prior of %q = %v", id, p)
			}
		}
		Compare(of(events...), "")
		Insights(of(events...), InsightsConfig{Price: dear})
		PriorsByTenant(of(events...), noon)
		s := testkit.Must(NewSwitch(l, SwitchConfig{}))(t)
		if st, _, err := s.Check(noon); err != nil || st.Turns > bytes.Count(data, []byte{'\n'}) {
			t.Errorf("Check = %+v, %v", st, err)
		}
	})
}
