package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/chat"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/talk/consent"
	"ken/internal/talk/engine"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
)

// A conversation is one person's conversation at a terminal.
type conversation struct {
	app      *app.App
	engine   *engine.Engine
	sessions *session.Store
	alone    bool

	mu     sync.Mutex
	head   session.Head
	mode   string
	none   bool // the person chose to have no mode
	call   chatCall
	status chat.Status
}

// noMode is the word for none.
const noMode = "none"

var _ chat.Talker = (*conversation)(nil)

// openConversation begins a conversation, or goes on with one.
func openConversation(ctx context.Context, a *app.App, k chatCall) (*conversation, error) {
	if k.mode != "" && k.mode != noMode && !slices.Contains(a.Rules().ModeNames(), k.mode) {
		return nil, usageError{fmt.Errorf("unknown mode %q; the modes are %s, and none", k.mode, strings.Join(a.Rules().ModeNames(), ", "))}
	}
	e, err := a.Engine()
	if err != nil {
		return nil, err
	}
	sessions, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	t := &conversation{app: a, engine: e, sessions: sessions, call: k}
	if k.resume == "" {
		t.take(session.Head{})
	} else if err := t.resume(ctx, k.resume); err != nil {
		return nil, err
	}
	if k.mode != "" {
		t.choose(k.mode)
	}
	return t, nil
}

// choose takes the mode that a person wants from now on.
func (t *conversation) choose(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.none = name == noMode; t.none {
		name = ""
	}
	t.mode, t.status.Mode = name, name
}

// begin starts a new session, when something is said that has none.
func (t *conversation) begin(ctx context.Context) error {
	if t.session() != "" {
		return nil
	}
	head, err := t.sessions.Begin(ctx, session.Head{
		Tenant: t.app.Principal.Tenant, Principal: t.app.Principal.ID, Folder: t.app.Places.Workspace, Agent: t.call.agent, Mode: t.mode,
	})
	if err != nil {
		return err
	}
	t.take(head)
	return nil
}

// resume goes on with a session by its id, or with the last one of this folder
// that a person began.
func (t *conversation) resume(ctx context.Context, id string) error {
	if id == "last" {
		list, err := t.sessions.ListOnly(ctx, t.app.Principal, 1, func(h session.Head) bool {
			return h.Turns > 0 && h.Folder == t.app.Places.Workspace && h.BegunBy == ""
		})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return &capability.Error{Kind: capability.NotFound, Op: "resume", Target: "the last session", Err: errors.New("folder has no sessions"), Fix: "see ken chat --list"}
		}
		id = list[0].ID
	}
	head, err := t.sessions.Head(ctx, t.app.Principal, id)
	if err != nil {
		return err
	}
	t.take(head)
	return nil
}

func (t *conversation) take(head session.Head) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head, t.mode, t.none = head, head.Mode, false
	row := t.app.Models.Row()
	t.status = chat.Status{Model: t.app.Models.Name(), Mode: t.mode, Session: head.ID, Turn: head.Turns, Usage: head.Usage, Cost: head.Cost, Window: row.Window}
}

// refresh takes from the session what it has cost. What cannot be read is shown
// as it was.
func (t *conversation) refresh(ctx context.Context) {
	id := t.session()
	if id == "" {
		return
	}
	head, err := t.sessions.Head(ctx, t.app.Principal, id)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head = head
	t.status.Turn, t.status.Usage, t.status.Cost = head.Turns, head.Usage, head.Cost
}

// greeting says what a person should know at the beginning.
func (t *conversation) greeting(ctx context.Context) []string {
	lines := []string{"Ken. /help lists commands, Ctrl-C stops an answer, Ctrl-D leaves."}
	if t.app.Models.Name() == "" {
		lines = append(lines, "No model is chosen, so only commands work. Leave with Ctrl-D and run ken model to choose one, or ken demo to see Ken work without one.")
	}
	if t.head.Turns > 0 {
		lines = append(lines, t.where(ctx)...)
	}
	return lines
}

// where says with which session a conversation goes on, and how its last
// exchange was.
func (t *conversation) where(ctx context.Context) []string {
	const most = 300 // characters of a message
	head, entries, err := t.sessions.Read(ctx, t.app.Principal, t.session())
	if err != nil { // awareness only: the turn will say what is wrong
		return []string{"Going on with " + t.session()}
	}
	lines := []string{fmt.Sprintf("Going on with %s: %s", head.ID, titleOf(head, entries))}
	var asked, answered string
	for _, e := range session.Live(entries) {
		switch text := textOf(e); {
		case e.Kind == session.User:
			asked, answered = text, ""
		case e.Kind == session.Assistant && text != "":
			answered = text
		}
	}
	if asked != "" {
		lines = append(lines, "You said: "+firstWords(asked, most))
	}
	if answered != "" {
		lines = append(lines, "The answer: "+firstWords(answered, most))
	}
	return lines
}

// Turn says something, or goes on where the last turn did not end.
func (t *conversation) Turn(ctx context.Context, text string) iter.Seq2[event.Event, error] {
	if err := t.begin(ctx); err != nil {
		return func(yield func(event.Event, error) bool) { yield(nil, err) }
	}
	if rest, ok := strings.CutPrefix(text, "/"); ok && t.app.Commands.All().LooksLike(rest) {
		text = " " + rest // the second slash says that it is for the model, as a blank does
	}
	t.mu.Lock()
	in := event.Input{
		Principal: t.app.Principal, Session: t.head.ID, Text: text, Mode: t.mode, Agent: t.call.agent, Surface: string(policy.SurfaceChat), NoMode: t.none,
		Continue: strings.TrimSpace(text) == "", Alone: t.alone, Delivery: model.DeliveryMode(t.call.delivery), Scope: capability.Scope{SessionType: t.call.kind},
	}
	t.mu.Unlock()
	events := t.engine.Turn(ctx, in)
	return func(yield func(event.Event, error) bool) {
		defer t.refresh(context.WithoutCancel(ctx)) // with what no event tells: a summary
		for ev, err := range events {
			t.note(ev)
			if !yield(ev, err) {
				return
			}
		}
	}
}

// note keeps what the line under the prompt shows.
func (t *conversation) note(ev event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev := ev.(type) {
	case event.Selected:
		t.status.Intent = ""
	case event.Intended:
		t.status.Intent = ev.Intent
	case event.Step:
		t.status.Usage.Add(ev.Usage)
		t.status.Cost += ev.Cost
		t.status.Used = ev.Usage.Input + ev.Usage.Output
	case event.Done:
		t.status.Turn = max(t.status.Turn, ev.Turn)
		t.status.Intent = ""
	}
}

// Reply answers what a turn asked.
func (t *conversation) Reply(ctx context.Context, asked event.Asked, a chat.Answer) error {
	return t.app.Questions.Reply(ctx, t.app.Principal, t.session(), asked, consent.Answer{Yes: a.Yes, Scope: approval.Scope(a.Scope), Covers: approval.Cover(a.Covers), Text: a.Text, Answers: a.Answers})
}

func (t *conversation) session() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.ID
}

// Status is what the line under the prompt shows.
func (t *conversation) Status() chat.Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}
