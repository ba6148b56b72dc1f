package trailapi

import (
	"context"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/serve/httpapi/wire"
)

// A story is all that is known of one call.
type story struct {
	Records  []record `json:"records"` // oldest first
	Ticket   *ticket  `json:"ticket,omitempty"`
	Result   *kept    `json:"result,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// kept is a result that is, or was, kept.
type kept struct {
	Handle  string `json:"handle"`
	Session string `json:"session,omitempty"`
	Text    string `json:"text,omitempty"` // its beginning, where it is there, the asker's own and of a session that is open to them
	More    bool   `json:"more,omitempty"` // than Text holds
}

const (
	storyRecords = 200  // in one story
	beginning    = 4000 // characters of a kept result
)

func (a *api) story(r *wire.Request) (any, error) {
	first, err := a.find(r)
	if err != nil {
		return nil, err
	}
	desk, err := a.Desk()
	if err != nil {
		return nil, err
	}
	t := &storyBuilder{api: a, r: r, desk: desk, have: map[audit.ID]audit.Entry{first.ID: first}, effects: map[string]bool{}}
	t.learn(&first.Record)
	if err := t.gather(); err != nil {
		return nil, err
	}
	return t.build(), nil
}

// A storyBuilder is a story on its way.
type storyBuilder struct {
	*api
	r        *wire.Request
	desk     *approval.Desk
	have     map[audit.ID]audit.Entry
	effects  map[string]bool
	ticket   string
	asked    approval.Ticket // the ticket, where it is there and may be seen
	once     bool            // its answer let one call run
	problems []string
}

// learn takes from a record which others belong to it.
func (t *storyBuilder) learn(rec *audit.Record) {
	if rec.EffectID != "" {
		t.effects[rec.EffectID] = true
	}
	if t.ticket != "" {
		return
	}
	id := ticketOf(rec)
	if id == "" && rec.Event == audit.Asked && rec.Error != nil {
		id = t.named(rec)
	}
	if id == "" {
		return
	}
	t.ticket = id
	got, err := t.desk.Get(t.r.Context(), id)
	if err != nil {
		return // it is no longer kept
	}
	t.once = got.Answer != nil && got.Answer.Scope == approval.Once
	if t.desk.MaySettle(t.r.Who.Principal, &got) {
		t.asked = got
	}
}

// ticketOf returns the ticket that a record notes: of an answer, or of the consent
// that a call ran under.
func ticketOf(rec *audit.Record) string {
	notes := rec.Metadata.Notes
	for _, name := range []string{"ticket", "grant"} {
		if id, _, _ := strings.Cut(notes[name], "."); id != "" && !strings.Contains(id, " ") {
			return id
		}
	}
	return ""
}

// named looks for the ticket that the text of a question names. A word is one
// only if the desk has it, for the same call.
func (t *storyBuilder) named(rec *audit.Record) string {
	for _, word := range strings.FieldsFunc(*rec.Error, func(c rune) bool { return !('a' <= c && c <= 'z' || '2' <= c && c <= '7') }) {
		if len(word) != 12 {
			continue
		}
		got, err := t.desk.Get(t.r.Context(), word)
		c := &got.Question.Call
		if err == nil && rec.IsOf(c.Principal) && string(c.Target) == rec.Target && c.Session == rec.SessionID {
			return word
		}
	}
	return ""
}

// gather reads the records that belong together. Each may lead to others.
func (t *storyBuilder) gather() error {
	ctx, cancel := context.WithTimeout(t.r.Context(), t.searchFor)
	defer cancel()
	dir, _ := t.dir(ctx) // what is missing is not part of the story
	for known, ticket := -1, ""; known != len(t.effects) || ticket != t.ticket; {
		known, ticket = len(t.effects), t.ticket
		var mentions []string
		for id := range t.effects {
			mentions = append(mentions, id)
		}
		if t.ticket != "" {
			mentions = append(mentions, t.ticket)
		}
		if mentions == nil {
			return nil
		}
		page, err := audit.Newest(ctx, dir, audit.Search{Mentions: mentions}, "", 5*storyRecords)
		if err != nil {
			return err
		}
		if page.Older != "" {
			t.problems = []string{"the audit log has more records of this call than were read; GET /api/v1/audit reads the rest"}
		}
		for _, e := range page.Entries {
			if t.belongs(&e.Record) {
				t.have[e.ID] = e
				t.learn(&e.Record)
			}
		}
	}
	return nil
}

// belongs reports whether a record is part of the story, and for the caller.
func (t *storyBuilder) belongs(rec *audit.Record) bool {
	ofTicket := t.ticket != "" && ticketOf(rec) == t.ticket
	if !sees(t.r.Who, rec) {
		// An answer that another gave to the asker's own question is his to know.
		who := t.r.Who.Principal
		return ofTicket && rec.Event == audit.Approval && rec.Tenant == who.Tenant && t.asked.ID != "" && t.asked.Question.Call.Principal.ID == who.ID
	}
	switch {
	case t.effects[rec.EffectID]:
		return true
	case rec.Event == audit.Approval:
		return ofTicket
	case rec.Event == audit.Asked:
		return t.ticket != "" && rec.Error != nil && strings.Contains(*rec.Error, t.ticket)
	}
	return t.ranOnce(rec)
}

// ranOnce reports whether a record is of the one call that the ticket let run.
func (t *storyBuilder) ranOnce(rec *audit.Record) bool {
	return t.once && rec.Event != audit.Approval && ticketOf(rec) == t.ticket
}

func (t *storyBuilder) build() story {
	var list []audit.Entry
	for _, e := range t.have {
		list = append(list, e)
	}
	slices.SortFunc(list, audit.Entry.Compare)
	if n := len(list) - storyRecords; n > 0 {
		list = list[n:]
		t.problems = append(t.problems, "only the newest 200 records of it are here; GET /api/v1/audit has all")
	}
	out := story{Records: []record{}}
	for i := range list {
		out.Records = append(out.Records, recordOf(&list[i]))
		if rec := &list[i].Record; rec.ResultHandle != "" {
			out.Result = t.beginning(rec)
		}
	}
	if t.asked.ID != "" {
		shown := t.ticketOf(t.asked, t.r)
		out.Ticket = &shown
	}
	out.Problems = t.problems
	return out
}

// beginning returns the first of a kept result to whom it belongs, and to agents
// only in sessions that are open to them.
func (t *storyBuilder) beginning(rec *audit.Record) *kept {
	out := &kept{Handle: rec.ResultHandle, Session: rec.SessionID}
	if !rec.IsOf(t.r.Who.Principal) || !t.isOpen(t.r, rec.SessionID) {
		return out
	}
	p, err := t.Read(t.r.Context(), t.r.Who.Principal, rec.SessionID, rec.ResultHandle, 1)
	if err != nil {
		if capability.KindOf(err) != capability.NotFound {
			t.problems = append(t.problems, "the kept result could not be read")
		}
		return out
	}
	out.Text, out.More = firstOf(p.Text, beginning)
	out.More = out.More || p.Next != 0
	return out
}

// firstOf returns the first characters of a text, and whether there are more.
func firstOf(s string, n int) (string, bool) {
	for i := range s {
		if n--; n < 0 {
			return s[:i], true
		}
	}
	return s, false
}
