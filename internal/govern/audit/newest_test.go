package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/testkit"
)

// pages returns all that Newest finds, page by page, and how many pages it took.
func pages(t rapid.TB, ctx context.Context, dir string, s Search, limit int) (all []Entry, problems []error) {
	var before Cursor
	for range 100_000 {
		p, err := Newest(ctx, dir, s, before, limit)
		if err != nil {
			t.Fatalf("Newest(%+v, %q) = %v", s, before, err)
		}
		if len(p.Entries) > limit {
			t.Fatalf("Newest gives %d records, want at most %d", len(p.Entries), limit)
		}
		all, problems = append(all, p.Entries...), append(problems, p.Problems...)
		if p.Older == "" {
			return all, problems
		}
		if p.Older == before {
			t.Fatalf("Newest(%+v) does not go on from %q", s, before)
		}
		before = p.Older
	}
	t.Fatalf("Newest(%+v) never ends", s)
	return nil, nil
}

func ids(list []Entry) []ID {
	var out []ID
	for _, e := range list {
		out = append(out, e.ID)
	}
	return out
}

// reference says what a Search chooses, by the record alone.
func reference(s Search, r Record) bool {
	fault := ""
	if r.Error != nil {
		fault = *r.Error
	}
	lower := strings.ToLower
	return (s.Session == "" || r.SessionID == s.Session) && (s.Extension == "" || r.ExtensionID == s.Extension) &&
		(s.Event == "" || s.Event == string(r.Event) || s.Event == "EXT_RUN_FINISHED" && (r.Event == Executed || r.Event == Failed)) &&
		(s.Since.IsZero() || !r.Timestamp.Before(s.Since.Truncate(time.Millisecond))) && (s.Until.IsZero() || !r.Timestamp.After(s.Until)) &&
		(s.Target == "" || r.Target == s.Target) && (s.User == "" || r.UserID == s.User) && (s.Status == "" || r.Status == s.Status) &&
		(s.Level == "" || r.Level == s.Level) && (s.Decision == "" || r.Decision == s.Decision) &&
		(s.Of == nil || r.UserID == s.Of.ID && r.Tenant == s.Of.Tenant) &&
		(s.Chains || r.Event != Opened && r.Event != Retired) &&
		(s.Mentions == nil || slices.Contains(s.Mentions, `"`+r.EffectID+`"`)) &&
		(s.Text == "" || strings.Contains(lower(r.CommandLine), lower(s.Text)) || strings.Contains(lower(r.Target), lower(s.Text)) || strings.Contains(lower(fault), lower(s.Text)))
}

// TestNewestIsQueryFromItsEnd: whatever was written by however many processes,
// Query gives what its filter chooses, by time; the pages of any size together are
// that, turned around, and each record is found by its id.
func TestNewestIsQueryFromItsEnd(t *testing.T) {
	testkit.CI(t, "searches a hundred trails")
	base := t.TempDir()
	key := testKey(t)
	rapid.Check(t, func(t *rapid.T) {
		dir := testkit.Must(os.MkdirTemp(base, "trail"))(t)
		now := seedClock()
		cfg := Config{
			Dir: dir + "/a", CheckpointDir: dir + "/c", Key: key, SegmentBytes: rapid.Int64Range(300, 200_000).Draw(t, "segment"),
			now: func() time.Time { return now },
			createSegment: func(p string) (segmentFile, error) {
				f, err := createSegment(p)
				return unsynced{f}, err
			},
		}
		word := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		var logs []*Log
		for range rapid.IntRange(1, 4).Draw(t, "chains") {
			l := testkit.Must(Open(cfg))(t)
			defer l.Close()
			logs = append(logs, l)
			for range rapid.IntRange(0, 40).Draw(t, "records") {
				now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "ms")) * time.Millisecond)
				r := Record{
					Event: Event(word("event", string(Started), string(Executed), string(Failed))), SessionID: word("session", "s1", "s2", "s"), ExtensionID: word("extension", "", "x1", "x12"),
					Target: word("target", "tool:a", "tool:b"), UserID: word("user", "ann", "bob", "an"), Tenant: word("tenant", "", "x"),
					Decision: word("decision", "", "allow"), Status: Status(word("status", "", "FAILED")), EffectID: word("effect", "e1", "e2", ""),
					CommandLine: word("line", "", "Grep ÄÖ \"x\"", "make all"),
				}
				if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
					r.Error = new("Broken: " + strings.Repeat("no ", 9000))
				}
				testkit.Must(rapid.SampledFrom(logs).Draw(t, "log").Append(context.Background(), r))(t)
			}
		}
		maybe := func(name string, from ...string) string { return word(name, append(from, "", "")...) }
		s := Search{
			Filter: Filter{Event: maybe("event", string(Executed), "EXT_RUN_FINISHED"), Session: maybe("session", "s1"), Extension: maybe("extension", "x1")},
			Target: maybe("target", "tool:a"), User: maybe("user", "ann"), Status: Status(maybe("status", "FAILED")), Level: maybe("level", "ERROR"),
			Decision: maybe("decision", "allow"), Text: maybe("text", "gREP", "äö", `"x"`, "TOOL:B", "broken"), Chains: rapid.Bool().Draw(t, "chains"),
		}
		if rapid.IntRange(0, 3).Draw(t, "own") == 0 {
			s.Of = &capability.Principal{ID: "an", Tenant: maybe("tenant", "x")}
		}
		if rapid.IntRange(0, 3).Draw(t, "mentions") == 0 {
			s.Mentions = []string{`"e1"`, `"e3"`}
		}
		if rapid.Bool().Draw(t, "since") {
			s.Since = seedClock().Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "sinceMS")) * time.Millisecond)
		}
		if rapid.Bool().Draw(t, "until") {
			s.Until = seedClock().Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "untilMS")) * time.Millisecond)
		}
		if s.Text == "äö" {
			s.Text = "ÄÖ" // only ASCII letters are the same in both cases
		}
		var want, chosen []ID
		var last time.Time
		for e, err := range Query(cfg.Dir, Filter{}) {
			if err != nil || e.Record.Timestamp.Before(last) {
				t.Fatalf("Query gives %s after %v: %v", e.ID, last, err)
			}
			last = e.Record.Timestamp
			if reference(Search{Filter: s.Filter, Chains: true}, e.Record) {
				chosen = append(chosen, e.ID)
			}
			if reference(s, e.Record) {
				want = append(want, e.ID)
			}
			if found, err := Find(cfg.Dir, e.ID); err != nil || found.ID != e.ID || found.Offset != e.Offset || found.File != e.File || string(found.Line) != string(e.Line) {
				t.Fatalf("Find(%s) = %+v, %v; want it", e.ID, found, err)
			}
		}
		if got := ids(collect(t, cfg.Dir, s.Filter)); !slices.Equal(got, chosen) {
			t.Fatalf("Query(%+v) = %v, want %v", s.Filter, got, chosen)
		}
		slices.Reverse(want)
		ctx := context.Background()
		if rapid.Bool().Draw(t, "hurried") {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			ctx = ended
		}
		got, problems := pages(t, ctx, cfg.Dir, s, rapid.IntRange(1, 50).Draw(t, "limit"))
		if !slices.Equal(ids(got), want) || problems != nil {
			t.Fatalf("Newest(%+v) = %d %v, %v\nwant %d %v", s, len(got), ids(got), problems, len(want), want)
		}
	})
}

// TestNewestHurried: a search that has no time goes on where it stopped, over
// more lines than it looks at before it looks at the clock.
func TestNewestHurried(t *testing.T) {
	cfg, l := smallLog(t, 0)
	var records []Record
	for i := range 3000 {
		records = append(records, Record{Event: Executed, EffectID: fmt.Sprint("e", i%1000)})
	}
	testAppend(t, l, records...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := Newest(ctx, cfg.Dir, Search{Mentions: []string{`"e0"`}}, "", 10)
	if err != nil || len(p.Entries) != 0 || p.Older == "" {
		t.Fatalf("Newest without time = %v, %v; want nothing yet and where to go on", p, err)
	}
	if got, _ := pages(t, ctx, cfg.Dir, Search{Mentions: []string{`"e0"`}}, 10); len(got) != 3 {
		t.Errorf("Newest in steps gives %v, want 3 records", ids(got))
	}
}

// TestBadLines: a line that is none, and one that is too long, are told and
// hide nothing else; neither is told twice.
func TestBadLines(t *testing.T) {
	cfg := testConfig(t)
	l := testOpen(t, cfg)
	testAppend(t, l, Record{Event: Executed}, Record{Event: Failed})
	testClose(t, l)
	segments, _ := files(t, cfg)
	lines := strings.SplitAfter(string(mustRead(t, segments[0])), "\n")
	mustWrite(t, segments[0], []byte(lines[0]+"not a record\n"+lines[1]+strings.Repeat("x", 3*maxLine)+"\n"+lines[2]+`{"half":`))
	check := func(way string, records int, problems []error) { // the newest first
		t.Helper()
		if records != 3 || len(problems) != 2 || !strings.Contains(problems[0].Error(), "longer than") || !strings.Contains(problems[1].Error(), fmt.Sprint("byte ", len(lines[0]))) {
			t.Errorf("%s: %d records and problems %v; want 3, and both places", way, records, problems)
		}
	}
	for _, limit := range []int{1, 10} {
		got, problems := pages(t, t.Context(), cfg.Dir, Search{Chains: true}, limit)
		check(fmt.Sprint("Newest ", limit), len(got), problems)
	}
	var problems []error
	records := 0
	for _, err := range Query(cfg.Dir, Filter{}) {
		if err != nil {
			problems = slices.Insert(problems, 0, err)
		} else {
			records++
		}
	}
	check("Query", records, problems)
	if got := collect(t, cfg.Dir+"/nowhere", Filter{}); got != nil {
		t.Errorf("Query of no directory = %v", got)
	}
	if p, err := Newest(t.Context(), cfg.Dir+"/nowhere", Search{}, "", 5); err != nil || p.Entries != nil || p.Older != "" {
		t.Errorf("Newest of no directory = %+v, %v", p, err)
	}
	for _, bad := range []Cursor{"x", "2026-01-30T10:30:45.123Z/", "2026-01-30T10:30:45.123Z/../../etc:1", Cursor("2026-01-30T10:30:45.123Z/" + l.Chain() + ":x")} {
		if _, err := Newest(t.Context(), cfg.Dir, Search{}, bad, 5); capability.KindOf(err) != capability.Invalid {
			t.Errorf("Newest(%q) = %v, want Invalid", bad, err)
		}
	}
}

// TestFindNothing: what is not there is not found, whatever is wrong with its id.
func TestFindNothing(t *testing.T) {
	cfg, l := smallLog(t, 3)
	for _, id := range []ID{"", "x", makeID(l.Chain(), 99), "../../etc/passwd:0", ID(strings.Replace(l.Chain(), l.Chain()[20:], "1-0123456789abcdef", 1) + ":0"), ID(l.Chain() + ":-1")} {
		if _, err := Find(cfg.Dir, id); capability.KindOf(err) != capability.NotFound {
			t.Errorf("Find(%q) = %v, want NotFound", id, err)
		}
	}
	if _, err := Find(cfg.Dir, makeID(l.Chain(), 1)); err != nil {
		t.Errorf("Find of what is there = %v", err)
	}
	if _, err := Find("\x00", makeID(l.Chain(), 1)); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("Find in a folder that cannot be read = %v, want the reason", err)
	}
}

// FuzzNewest: whatever is in the files, a page ends, pages come to an end, and
// what is given is in them.
func FuzzNewest(f *testing.F) {
	cfg, l := smallLog(f, 5)
	testClose(f, l)
	segments, _ := files(f, cfg)
	data := mustRead(f, segments[0])
	lines := strings.SplitAfter(string(data), "\n")
	f.Add(data, data, 2, true)
	f.Add([]byte(lines[2]+lines[1]+lines[3]+lines[3]+"x\n"+lines[0]), []byte("\n\n{}\n"), 1, false)
	f.Add([]byte(strings.Replace(string(data), `"seq":`, `"seq":-`, 3)), []byte(strings.ReplaceAll(string(data), "2026-", "2031-")), 1, true)
	f.Fuzz(func(t *testing.T, one, two []byte, limit int, hurried bool) {
		dir := t.TempDir()
		mustWrite(t, dir+"/20260130T103045123Z-1-0123456789abcdef.000001.jsonl", one)
		mustWrite(t, dir+"/20260130T103045123Z-1-0123456789abcdef.000002.jsonl", two)
		mustWrite(t, dir+"/20260130T103045999Z-1-1123456789abcdef.000001.jsonl", one)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if hurried {
			cancel()
		}
		got, _ := pages(t, ctx, dir, Search{Chains: true}, 1+limit&7)
		for _, e := range got {
			if data := mustRead(t, e.File); string(data[e.Offset:][:len(e.Line)]) != string(e.Line) {
				t.Errorf("%s is not at %s:%d", e.ID, e.File, e.Offset)
			}
			_, _ = Find(dir, e.ID)
		}
	})
}

// TestFollow: what is written between Follow and the iteration is given, and
// nothing from before.
func TestFollow(t *testing.T) {
	cfg := testConfig(t)
	cfg.SegmentBytes = 900
	l := testOpen(t, cfg)
	testAppend(t, l, Record{Event: Executed, EffectID: "before"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	trail := testkit.Must(Follow(ctx, cfg.Dir, Filter{Event: string(Executed)}))(t)
	other := testOpen(t, cfg) // a chain that begins meanwhile
	for i := range 5 {
		testAppend(t, l, Record{Event: Executed, EffectID: fmt.Sprint("a", i)})
		testAppend(t, other, Record{Event: Executed, EffectID: fmt.Sprint("b", i)})
	}
	var got []string
	for e, err := range trail {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Record.EffectID); len(got) == 10 {
			testAppend(t, l, Record{Event: Executed, EffectID: "last"})
		}
		if len(got) == 11 {
			break
		}
	}
	slices.Sort(got)
	if want := "a0 a1 a2 a3 a4 b0 b1 b2 b3 b4 last"; strings.Join(got, " ") != want {
		t.Errorf("Follow gives %v, want %s", got, want)
	}
	if _, err := Follow(ctx, "\x00", Filter{}); err == nil {
		t.Error("Follow of a folder that cannot be = nil error")
	}
}
