package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/store"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
	"ken/llm"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		if err := serve(job); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		return
	}
	status := m.Run()
	if status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			status = 1
		}
	}
	os.Exit(status)
}

var (
	ctx = context.Background()
	ann = capability.Principal{ID: "ann", Tenant: "acme"}
	bob = capability.Principal{ID: "bob", Tenant: "acme"}
	eve = capability.Principal{ID: "ann", Tenant: "evil"}
)

// fresh returns sessions on a new store: of SQLite, or of PostgreSQL where a
// server is named.
func fresh(t testing.TB, cfg session.Config) (*session.Store, *store.Store) {
	t.Helper()
	db := storetest.Open(t, storetest.Address(t))
	return session.New(db, cfg), db
}

func begin(t testing.TB, s *session.Store, who capability.Principal) session.Head {
	t.Helper()
	h, err := s.Begin(ctx, session.Head{Tenant: who.Tenant, Principal: who.ID, Title: "a title"})
	if err != nil {
		t.Fatalf("Begin = %v", err)
	}
	return h
}

func lock(t testing.TB, s *session.Store, who capability.Principal, id string) *session.Turn {
	t.Helper()
	turn, err := s.Lock(ctx, who, id)
	if err != nil {
		t.Fatalf("Lock(%s) = %v", id, err)
	}
	return turn
}

func add(t testing.TB, turn *session.Turn, list ...session.Entry) {
	t.Helper()
	if err := turn.Append(ctx, list...); err != nil {
		t.Fatalf("Append = %v", err)
	}
}

func release(t testing.TB, turn *session.Turn) {
	t.Helper()
	if err := turn.Release(ctx); err != nil {
		t.Fatalf("Release = %v", err)
	}
}

func said(text string) session.Entry {
	return session.Entry{Turn: 1, Kind: session.User, Blocks: []llm.Block{{Text: text}}}
}

// wantKind checks a refusal: its kind, and that it is one of the package's.
func wantKind(t testing.TB, op string, err error, kind capability.ErrorKind, is error) {
	t.Helper()
	if capability.KindOf(err) != kind || is != nil && !errors.Is(err, is) || err == nil {
		t.Errorf("%s = %v (%v), want %v, %v", op, err, capability.KindOf(err), kind, is)
	}
}

// TestSession: what is written can be read, by the same principal only.
func TestSession(t *testing.T) {
	s, db := fresh(t, session.Config{})
	h := begin(t, s, ann)
	if len(h.ID) != 26 || strings.ToLower(h.ID) != h.ID || h.Created.IsZero() || h.Last != 0 {
		t.Errorf("Begin = %+v", h)
	}
	turn := lock(t, s, ann, h.ID)
	if len(turn.Entries()) != 0 || turn.Head() != h {
		t.Errorf("a new turn has %v of %+v", turn.Entries(), turn.Head())
	}
	add(t, turn, session.Entry{Kind: session.Prefix, System: "be good"}, said("hello"))
	turn.SetHead(func(h *session.Head) { h.Title, h.Open, h.Last, h.Principal = "hello", true, 99, "eve" })
	add(t, turn, session.Entry{Turn: 1, Kind: session.Assistant, Blocks: []llm.Block{{Text: "hi"}}, Usage: &llm.Usage{Input: 5, Output: 2}, Cost: 0.5})
	add(t, turn)
	turn.SetHead(func(h *session.Head) { h.Open = false })
	want := turn.Head()
	if want.Last != 3 || want.Turns != 1 || want.Usage.Input != 5 || want.Cost != 0.5 || want.Title != "hello" || want.Principal != "ann" {
		t.Errorf("Head = %+v", want)
	}
	entries := turn.Entries()
	release(t, turn)
	release(t, turn) // once more does nothing
	if turn.Context().Err() == nil {
		t.Error("the context of a released turn has not ended")
	}
	wantKind(t, "Append after Release", turn.Append(ctx, said("late")), capability.Conflict, session.ErrLost)

	again := session.New(db, session.Config{})
	head, got, err := again.Read(ctx, ann, h.ID)
	head.Updated, want.Updated = time.Time{}, time.Time{}
	if err != nil || !reflect.DeepEqual(got, entries) || head != want {
		t.Errorf("Read = %+v, %v, %v\nwant %+v, %v", head, got, err, want, entries)
	}
	for i, e := range got {
		if e.Seq != i+1 || e.Time.IsZero() {
			t.Errorf("entry %d has Seq %d, Time %v", i+1, e.Seq, e.Time)
		}
	}
}

// TestForeign: to others a session is not there, whatever they do.
func TestForeign(t *testing.T) {
	s, _ := fresh(t, session.Config{})
	h := begin(t, s, ann)
	for _, who := range []capability.Principal{bob, eve, {}, {ID: "ann"}, {ID: "meann", Tenant: "ac"}} {
		_, err := s.Head(ctx, who, h.ID)
		wantKind(t, "Head", err, capability.NotFound, session.ErrNone)
		_, _, err = s.Read(ctx, who, h.ID)
		wantKind(t, "Read", err, capability.NotFound, session.ErrNone)
		_, err = s.Lock(ctx, who, h.ID)
		wantKind(t, "Lock", err, capability.NotFound, session.ErrNone)
		wantKind(t, "Delete", s.Delete(ctx, who, h.ID), capability.NotFound, session.ErrNone)
		if list, err := s.List(ctx, who, 0); len(list) != 0 || err != nil {
			t.Errorf("List of %+v = %v, %v", who, list, err)
		}
	}
	_, theirs := s.Head(ctx, bob, h.ID)
	_, nobodys := s.Head(ctx, bob, "0000000000000000")
	if strings.ReplaceAll(theirs.Error(), h.ID, "0000000000000000") != nobodys.Error() {
		t.Errorf("somebody else's session says %q, none says %q", theirs, nobodys)
	}
	if _, err := s.Head(ctx, ann, h.ID); err != nil {
		t.Errorf("Head of the owner = %v", err)
	}
}

func TestBeginRefuses(t *testing.T) {
	s, _ := fresh(t, session.Config{})
	h := begin(t, s, ann)
	for _, tt := range []struct {
		head session.Head
		kind capability.ErrorKind
	}{
		{session.Head{}, capability.Invalid},
		{session.Head{Principal: "ann", ID: "a/b"}, capability.Invalid},
		{session.Head{Principal: "ann", ID: strings.Repeat("a", 65)}, capability.Invalid},
		{session.Head{Principal: "ann", Tenant: "acme", ID: h.ID}, capability.Conflict},
		{session.Head{Principal: "ann", Title: strings.Repeat("a", 1<<20)}, capability.Invalid},
	} {
		_, err := s.Begin(ctx, tt.head)
		wantKind(t, fmt.Sprintf("Begin(%.60v)", tt.head), err, tt.kind, nil)
	}
	if _, err := s.Begin(ctx, session.Head{Principal: "bob", Tenant: "acme", ID: h.ID}); err != nil {
		t.Errorf("Begin of another principal with the same id = %v", err)
	}
}

// TestIDs: an id has 130 random bits and does not reveal when its session
// began. Older ids, which contain the time, remain valid.
func TestIDs(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s, _ := fresh(t, session.Config{Now: func() time.Time { return now }})
	first, letters := map[byte]bool{}, map[byte]bool{}
	for range 60 {
		id := begin(t, s, ann).ID
		if len(id) != 26 {
			t.Fatalf("id %q has %d characters, want 26", id, len(id))
		}
		first[id[0]] = true
		for i := range len(id) {
			letters[id[i]] = true
		}
	}
	if len(first) < 16 || len(letters) != 32 {
		t.Errorf("60 ids begin with %d letters and have %d, want most and all of 32", len(first), len(letters))
	}
	const old = "1rgkq5s0abcdefgh"
	if _, err := s.Begin(ctx, session.Head{Principal: ann.ID, Tenant: ann.Tenant, ID: old}); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Head(ctx, ann, old); err != nil || h.ID != old {
		t.Errorf("Head of an id of before = %v, %v", h.ID, err)
	}
}

// TestList: the session whose turn began last comes first, and a limit counts
// those that are wanted.
func TestList(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s, _ := fresh(t, session.Config{Now: func() time.Time { now = now.Add(time.Second); return now }})
	ids := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		h, err := s.Begin(ctx, session.Head{Tenant: ann.Tenant, Principal: ann.ID, Title: name})
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = h.ID
	}
	begin(t, s, bob)
	check := func(limit int, but, want string) {
		t.Helper()
		list, err := s.ListOnly(ctx, ann, limit, func(h session.Head) bool { return h.Title != but })
		got := ""
		for _, h := range list {
			got += h.Title
		}
		if all, e := s.List(ctx, ann, limit); but == "" && (!reflect.DeepEqual(all, list) || e != nil) || err != nil || got != want {
			t.Errorf("ListOnly(%d, not %s) = %s, %v, want %s; List = %v, %v", limit, but, got, err, want, all, e)
		}
	}
	check(0, "", "edcba")
	check(2, "", "ed")
	check(2, "d", "ec")
	check(4, "d", "ecba")
	turn := lock(t, s, ann, ids["b"])
	add(t, turn, said("one"))
	add(t, turn, said("two"))
	release(t, turn)
	check(0, "", "bedca")
	if err := s.Delete(ctx, ann, ids["e"]); err != nil {
		t.Fatal(err)
	}
	check(0, "", "bdca")
}

// TestKept: an entry that JSON would rewrite is in the turn what it is for
// those who read it later, so that it is sent again in the same bytes.
func TestKept(t *testing.T) {
	s, _ := fresh(t, session.Config{})
	h := begin(t, s, ann)
	turn := lock(t, s, ann, h.ID)
	schema := json.RawMessage("{ \"a\" : \"<&>\" ,\n\"b\":1.0 }")
	add(t, turn,
		session.Entry{Kind: session.Prefix, System: "<b> & \xff\xfe \u2028", Tools: []llm.Tool{{Name: "x", Schema: schema}}},
		session.Entry{Turn: 1, Kind: session.Assistant, Time: time.Now(), Blocks: []llm.Block{
			{Call: &llm.ToolCall{ID: "1", Name: "x", Arguments: []byte("{not json \xff"), Opaque: schema}},
			{Reasoning: &llm.Reasoning{Text: "hm", Wire: "anthropic", Opaque: schema}},
			{Image: &llm.Image{MIME: "image/png", Data: []byte{0, 1, 255}}},
		}},
		session.Entry{Turn: 1, Kind: session.Results, Shown: map[capability.ID]string{"tool:a": "h"}, Offers: []session.Offer{{Tool: "a", ID: "tool:a"}},
			Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "1", Name: "x", Failed: true, Blocks: []llm.Block{{Text: "no"}, {Tools: []llm.Tool{{Name: "y", Schema: schema}}}}}}}})
	entries := turn.Entries()
	release(t, turn)
	_, got, err := s.Read(ctx, ann, h.ID)
	if err != nil || !reflect.DeepEqual(got, entries) {
		t.Errorf("Read = %+v, %v\nwant %+v", got, err, entries)
	}
	if args := got[1].Blocks[0].Call.Arguments; string(args) != "{not json \xff" {
		t.Errorf("arguments came back as %q", args)
	}
	if got, want := string(got[0].Tools[0].Schema), `{"a":"<&>","b":1.0}`; got != want {
		t.Errorf("a schema came back as %s, want %s", got, want)
	}
	turn = lock(t, s, ann, h.ID)
	defer turn.Release(ctx)
	if !reflect.DeepEqual(turn.Entries(), entries) {
		t.Error("the next turn has other entries")
	}
}

// TestUnreadable: what a newer version wrote, or what is broken, is named by
// its key and its version; nothing is written, and other sessions are listed.
func TestUnreadable(t *testing.T) {
	for name, tt := range map[string]struct {
		key, value string
		kind       capability.ErrorKind
		is         error
		says       string
	}{
		"newer entry":   {"entry/0000000002", `{"v":7,"seq":2,"shape":{}}`, capability.Unavailable, session.ErrNewer, "version is 7"},
		"newer head":    {"head", `{"v":2,"head":[]}`, capability.Unavailable, session.ErrNewer, "version is 2"},
		"unknown field": {"entry/0000000002", `{"v":1,"seq":2,"turn":1,"time":"2030-01-01T00:00:00Z","kind":"user","mood":"glad"}`, capability.Internal, nil, "mood"},
		"no JSON":       {"entry/0000000002", `{`, capability.Internal, nil, "0000000002"},
		"two":           {"entry/0000000002", `{"v":1,"seq":2,"turn":1,"time":"2030-01-01T00:00:00Z","kind":"user"} {}`, capability.Internal, nil, "follows"},
		"another seq":   {"entry/0000000002", `{"v":1,"seq":9,"turn":1,"time":"2030-01-01T00:00:00Z","kind":"user"}`, capability.Internal, nil, "number 9"},
		"no version":    {"entry/0000000002", `{"seq":2,"turn":1,"time":"2030-01-01T00:00:00Z","kind":"user"}`, capability.Internal, nil, "version is 0"},
		"gap":           {"entry/0000000002", "", capability.Internal, nil, "want 2"},
		"lost parts":    {"entry/0000000002", "#3 9000000", capability.Internal, nil, "part 1 of 3"},
		"broken head":   {"head", `{"v":1}{`, capability.Internal, nil, "head"},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := fresh(t, session.Config{})
			other, h := begin(t, s, ann), begin(t, s, ann)
			turn := lock(t, s, ann, h.ID)
			add(t, turn, said("one"), said("two"), said("three"))
			release(t, turn)
			var b store.Batch
			for item, err := range db.Scan(ctx, "session/", store.Range{}) {
				switch {
				case err != nil:
					t.Fatal(err)
				case !strings.Contains(item.Key, h.ID):
				case !strings.HasSuffix(item.Key, tt.key):
					if strings.HasSuffix(item.Key, "/head") {
						b.Put(item.Key, item.Value) // as every writer of an entry does
					}
				case tt.value == "":
					b.Delete(item.Key)
				default:
					b.Put(item.Key, []byte(tt.value))
				}
			}
			at, err := db.Apply(ctx, &b)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = s.Read(ctx, ann, h.ID)
			wantKind(t, "Read", err, tt.kind, tt.is)
			if !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), h.ID) {
				t.Errorf("Read says %q, want %q and the id", err, tt.says)
			}
			_, err = s.Lock(ctx, ann, h.ID)
			wantKind(t, "Lock", err, tt.kind, tt.is)
			list, err := s.List(ctx, ann, 0)
			if !slices.ContainsFunc(list, func(h session.Head) bool { return h.ID == other.ID }) || (err != nil) != (tt.key == "head") {
				t.Errorf("List = %v, %v", list, err)
			}
			b = store.Batch{}
			b.Put("mark", []byte("x"))
			if now, err := db.Apply(ctx, &b); err != nil || now != at+1 {
				t.Errorf("something was written: version %d, want %d, %v", now, at+1, err)
			}
		})
	}
}

// TestLarge: an entry larger than a value of the store is kept in parts, in one
// commit; what is larger than a batch is refused, and nothing is written.
func TestLarge(t *testing.T) {
	testkit.CI(t, "writes megabytes")
	s, _ := fresh(t, session.Config{})
	h := begin(t, s, ann)
	turn := lock(t, s, ann, h.ID)
	sizes := []int{100, 10 << 20, 4 << 20, 100}
	for _, n := range sizes {
		add(t, turn, said(strings.Repeat("x", n)))
	}
	err := turn.Append(ctx, said(strings.Repeat("x", 17<<20)))
	wantKind(t, "Append of 17 MB", err, capability.Invalid, session.ErrTooLarge)
	err = turn.Append(ctx, said(strings.Repeat("x", 9<<20)), said(strings.Repeat("x", 9<<20)))
	wantKind(t, "Append of 2 × 9 MB", err, capability.Invalid, session.ErrTooLarge)
	add(t, turn, said("the end"))
	release(t, turn)
	_, got, err := s.Read(ctx, ann, h.ID)
	if err != nil || len(got) != len(sizes)+1 {
		t.Fatalf("Read = %d entries, %v", len(got), err)
	}
	for i, n := range sizes {
		if len(got[i].Blocks[0].Text) != n {
			t.Errorf("entry %d has %d bytes, want %d", i+1, len(got[i].Blocks[0].Text), n)
		}
	}
	// A turn that comes upon a large entry in the middle reads on behind it.
	turn = lock(t, s, ann, h.ID)
	add(t, turn, said("more"))
	release(t, turn)
	if err := s.Delete(ctx, ann, h.ID); err != nil {
		t.Errorf("Delete = %v", err)
	}
}

func TestHidesEarlier(t *testing.T) {
	s, _ := fresh(t, session.Config{})
	turn := lock(t, s, ann, begin(t, s, ann).ID)
	defer turn.Release(ctx)
	add(t, turn, said("one"))
	for _, e := range []session.Entry{{Kind: session.Rewound, From: 2, To: 2}, {Kind: session.Marker, From: 1, To: 9}, {Kind: session.Marker, From: -1, To: 1}} {
		wantKind(t, fmt.Sprintf("Append(%d-%d)", e.From, e.To), turn.Append(ctx, e), capability.Invalid, nil)
	}
	if len(turn.Entries()) != 1 {
		t.Errorf("%d entries, want 1", len(turn.Entries()))
	}
}

// TestDelete: all of a session goes, also of a long one, and only of that one.
func TestDelete(t *testing.T) {
	s, db := fresh(t, session.Config{})
	kept, h := begin(t, s, ann), begin(t, s, ann)
	turn := lock(t, s, ann, h.ID)
	for range 3 {
		add(t, turn, slices.Repeat([]session.Entry{said("x")}, 400)...)
	}
	wantKind(t, "Delete while a turn runs", s.Delete(ctx, ann, h.ID), capability.Unavailable, session.ErrBusy)
	release(t, turn)
	if err := s.Delete(ctx, ann, h.ID); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "Delete again", s.Delete(ctx, ann, h.ID), capability.NotFound, session.ErrNone)
	for item, err := range db.Scan(ctx, "", store.Range{}) {
		if err != nil || strings.Contains(item.Key, h.ID) {
			t.Errorf("%s is left, %v", item.Key, err)
		}
	}
	if _, err := s.Head(ctx, ann, kept.ID); err != nil {
		t.Error(err)
	}
}

// TestBegunBy: who began a session stays in its head, whatever is written to it.
// A head without it, as older versions wrote them, is that of a person's.
func TestBegunBy(t *testing.T) {
	s, db := fresh(t, session.Config{})
	old := begin(t, s, ann)
	for item, err := range db.Scan(ctx, "session/", store.Range{}) {
		if err != nil || strings.Contains(string(item.Value), "begunBy") {
			t.Errorf("a person's session is stored as %s, %v", item.Value, err)
		}
	}
	h, err := s.Begin(ctx, session.Head{Tenant: ann.Tenant, Principal: ann.ID, BegunBy: "tidy"})
	if err != nil || h.BegunBy != "tidy" {
		t.Fatalf("Begin = %+v, %v", h, err)
	}
	for id, want := range map[string]string{old.ID: "", h.ID: "tidy"} {
		turn := lock(t, s, ann, id)
		turn.SetHead(func(h *session.Head) { h.BegunBy, h.Title = "other", "another title" })
		add(t, turn, said("hello"))
		release(t, turn)
		got, err := session.New(db, session.Config{}).Head(ctx, ann, id)
		if err != nil || got.BegunBy != want || got.Title != "another title" {
			t.Errorf("after a turn the head is %+v, %v, want begun by %q", got, err, want)
		}
	}
}

// TestNoteValues: each note is written as sessions have it, and read back. The texts
// are those of sessions that exist, so they never change.
func TestNoteValues(t *testing.T) {
	for _, c := range []struct {
		note       session.NoteValue
		name, text string
		blocks     []llm.Block
	}{
		{session.Ended{Reason: "answer"}, "end", "answer", nil},
		{session.Ended{Reason: "failed", Why: "no key"}, "end", "failed", []llm.Block{{Text: "no key"}}},
		{session.Intended{Intent: "edit"}, "intent", "edit", nil},
		{session.Intended{Intent: "edit", Justification: "the: file"}, "intent", "edit: the: file", nil},
		{session.OpenQuestion{Text: "Which?"}, "question", "Which?", nil},
		{session.Waiting{Call: 2, Ticket: "t", Question: "consent", Begun: []int{3}}, "ticket", `{"call":2,"ticket":"t","what":"consent","begun":[3]}`, nil},
		{session.Resumed{}, "resumed", "", nil},
		{session.Replied{Ask: "1.1.1.ask", Reply: []byte(`{"yes":true}`), Used: true}, "reply", `{"ask":"1.1.1.ask","reply":{"yes":true},"used":true}`, nil},
		{session.DeliveryRefused{Mode: "inline", Model: "a model"}, "rung", "inline a model", nil},
		{session.Command{Line: "/greet you"}, "command", "/greet you", nil},
		{session.CommandResult{ID: "command_1", Failed: true, Kind: "denied"}, "commandResult", `{"id":"command_1","failed":true,"kind":"denied"}`, nil},
		{session.CallRefused{ID: "c1", Kind: "denied"}, "refused", "c1 denied", nil},
		{session.Unanswered{}, "step", "", nil},
		{session.SessionType{Type: "main"}, "sessionType", "main", nil},
	} {
		e := session.Entry{Kind: session.Note, Name: c.name, Text: c.text, Blocks: c.blocks}
		if got := c.note.Entry(); !reflect.DeepEqual(got, e) {
			t.Errorf("%#v is written as %+v, want %+v", c.note, got, e)
		}
		if got := session.ReadNote(&e); !reflect.DeepEqual(got, c.note) {
			t.Errorf("note %s %q is read as %#v, want %#v", c.name, c.text, got, c.note)
		}
	}
	for _, e := range []session.Entry{
		{Kind: session.User, Name: "end"}, {Kind: session.Note, Name: "of tomorrow"},
		{Kind: session.Note, Name: "ticket", Text: "{"}, {Kind: session.Note, Name: "reply", Text: `{"ask":1}`}, {Kind: session.Note, Name: "commandResult", Text: "-"},
	} {
		if got := session.ReadNote(&e); got != nil {
			t.Errorf("%+v is read as %#v, want nothing", e, got)
		}
	}
}
