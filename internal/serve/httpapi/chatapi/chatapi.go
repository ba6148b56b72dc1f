// Package chatapi serves conversations over HTTP: sessions, their turns and
// events, the questions of turns, and what a turn was shown.
//
// Everything is done for the caller. Data of another principal or tenant does
// not exist for it. An agent sees only those of its principal's sessions that
// agents began.
package chatapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/stream"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/serve/problem"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/talk/slash"
)

// An Engine is what changes sessions besides turns; [ken/internal/talk/engine]
// has one.
type Engine interface {
	// Rewind takes back a turn and all after it, and returns what was said in it.
	Rewind(ctx context.Context, who capability.Principal, id string, turn int) (said string, err error)

	// Compact shortens the history of a session now.
	Compact(ctx context.Context, who capability.Principal, id string) (event.Compacted, error)
}

// Config says what conversations are had with. Hub, Sessions and Engine are
// needed; the Hub runs the turns of that Engine. Its functions may be called from
// any number of goroutines.
type Config struct {
	Hub      *stream.Hub
	Sessions func() (*session.Store, error)
	Engine   func() (Engine, error)

	// Reply answers what a turn asked: consent at the desk, everything else to
	// the engine. Nil: nothing can be answered.
	Reply Reply

	// Commands are what a caller can type, as far as they see it. Nil: nothing.
	Commands func(who auth.Identity) *slash.Index

	// NoCommands says why a principal can type no command at all now, whatever
	// its name; nil where they can. Nil: they always can.
	NoCommands func(who capability.Principal) error

	Folder string          // where sessions are begun
	Modes  func() []string // that there are; nil: none

	// Inspect returns the record of a turn that was kept. Nil: none was.
	Inspect func(ctx context.Context, who capability.Principal, session string, turn int) (record []byte, ok bool, err error)

	// FindAgain finds for a message as a turn of the session would now. Nil: what
	// was not kept cannot be inspected.
	FindAgain func(ctx context.Context, who capability.Principal, head session.Head, text string) (door.Found, error)

	Surface string // a word of the rules; empty: "api"
}

// Answer is what a person said to a question of a turn.
type Answer struct {
	Yes    bool
	Text   string
	Scope  approval.Scope // of consent; empty: once
	Covers approval.Cover // of consent for more than one call

	// Answers are those to an [event.Inquiry], by the question's name.
	Answers map[string]json.RawMessage
}

type api struct{ cfg Config }

// Bodies, in bytes.
const (
	mostSaid    = 16 << 20 // of a message with its pictures
	mostAnswers = 1 << 20
	mostOther   = 16 << 10
)

// compacting is how long a model may take to sum up.
const compacting = 5 * time.Minute

// Routes returns the routes of conversations.
func Routes(cfg Config) []wire.Route {
	if cfg.Surface == "" {
		cfg.Surface = "api"
	}
	a := &api{cfg}
	const one = "/api/v1/sessions/{id}"
	routes := []wire.Route{
		{
			Method: "GET", Path: "/api/v1/sessions", Name: "listSessions", Summary: "All sessions, the most recently used first",
			Query:  []wire.Param{{Name: "limit", Type: wire.Whole, About: "maximum number, up to 200; default: 50"}},
			Answer: SessionList{}, Serve: a.list,
		},
		{
			Method: "POST", Path: "/api/v1/sessions", Name: "beginSession", Summary: "Start a session",
			Body: NewSession{}, Answer: SessionHead{}, Status: http.StatusCreated, Limit: mostOther, Serve: a.begin,
		},
		{
			Method: "GET", Path: one, Name: "readSession", Summary: "The turns of a session, and the position from which to follow its events",
			Query: []wire.Param{
				{Name: "limit", Type: wire.Whole, About: "maximum number of turns (the newest), up to 1000; default: 200"},
				{Name: "before", Type: wire.Whole, About: "only turns before this one"},
			},
			Answer: Session{}, Serve: a.show,
		},
		{Method: "DELETE", Path: one, Name: "deleteSession", Summary: "Delete a session permanently", Decision: "open the page", Serve: a.remove},
		{
			Method: "POST", Path: one + "/turns", Name: "say", Summary: "Send a message; with Accept: text/event-stream the response streams the events of the turn",
			Query: []wire.Param{{Name: "wait", Type: wire.Yes, About: "respond when the turn is over, with status 200 and how it ended"}},
			Body:  Said{}, Answer: Accepted{}, Status: http.StatusAccepted, Others: map[int]any{http.StatusOK: Ended{}}, Limit: mostSaid, Stream: a.say,
		},
		{
			Method: "GET", Path: one + "/turns/{turn}", Name: "inspectTurn", Summary: "What happened in a turn: what was shown, why, and what it cost",
			Answer: Inspection{}, Serve: a.inspect,
		},
		{
			Method: "GET", Path: one + "/events", Name: "followSession", Summary: "Stream the events of a session; Last-Event-ID resumes",
			Query:  []wire.Param{{Name: "after", About: "the id of the last event you saw; empty: from the beginning of the running turn"}},
			Stream: a.events,
		},
		{Method: "POST", Path: one + "/abort", Name: "abortTurn", Summary: "End the running turn", Body: Nothing{}, Limit: mostOther, Answer: Aborted{}, Serve: a.abort},
		{Method: "POST", Path: one + "/answers/{asked}", Name: "answerTurn", Summary: "Answer a question of a turn", Body: Answering{}, Limit: mostAnswers, Decision: "open the page, or run ken approve", Serve: a.answer},
		{Method: "POST", Path: one + "/rewind", Name: "rewindSession", Summary: "Remove a turn and all later turns", Body: Rewind{}, Answer: Rewound{}, Limit: mostOther, Decision: "open the page", Serve: a.rewind},
		{Method: "POST", Path: one + "/retry", Name: "retryTurn", Summary: "Remove the last turn and send its message again", Body: Retry{}, Limit: mostOther, Answer: Accepted{}, Status: http.StatusAccepted, Serve: a.retry},
		{Method: "POST", Path: one + "/compact", Name: "compactSession", Summary: "Summarise the conversation to free space", Body: Nothing{}, Limit: mostOther, Answer: event.Compacted{}, Patience: compacting, Serve: a.compact},
		{
			Method: "GET", Path: "/api/v1/complete", Name: "complete", Summary: "Completions for a line that begins with a slash",
			Query: []wire.Param{
				{Name: "line", About: "the line typed so far"},
				{Name: "cursor", Type: wire.Whole, About: "the cursor as a byte offset in line; default: its end"},
			},
			Answer: Completions{}, Serve: a.complete,
		},
	}
	for i := range routes {
		routes[i].Group = "sessions"
	}
	return routes
}

// head returns the store and the head of the session that a request is about.
func (a *api) head(r *wire.Request) (*session.Store, session.Head, error) {
	sessions, err := a.cfg.Sessions()
	if err != nil {
		return nil, session.Head{}, err
	}
	head, err := sessions.Head(r.Context(), r.Who.Principal, r.PathValue("id"))
	if err != nil {
		return nil, session.Head{}, missing(err, r)
	}
	return sessions, head, closed(r.Who, head)
}

// missing says the same of a session that does not exist as of another principal's.
func missing(err error, r *wire.Request) error {
	if errors.Is(err, session.ErrNone) {
		return wire.Missing("there is no session " + fmt.Sprintf("%.80q", r.PathValue("id")) + "; GET /api/v1/sessions lists those there are")
	}
	return busy(err)
}

// busy is what a session says of which a turn runs in another process.
func busy(err error) error {
	if errors.Is(err, session.ErrBusy) {
		p, _ := problem.Of(err)
		return &wire.Problem{Status: http.StatusConflict, Code: "conflict", Detail: p.Detail, More: p.More}
	}
	return err
}

// hold keeps the session of a request from turns, for a change of it.
func (a *api) hold(r *wire.Request) (*session.Store, *stream.Hold, error) {
	sessions, head, err := a.head(r)
	if err != nil {
		return nil, nil, err
	}
	hold, err := a.cfg.Hub.Hold(r.Who.Principal, head.ID)
	if err != nil || !a.cfg.Hub.Shared() {
		return sessions, hold, err
	}
	running, err := sessions.Running(r.Context(), r.Who.Principal, head.ID)
	if err == nil && running {
		err = &capability.Error{Kind: capability.Conflict, Op: "begin a turn of", Target: head.ID, Err: errors.New("another turn of this session runs"), Fix: "wait until it ends, or abort it"}
	}
	if err != nil {
		hold.Release(false)
		return nil, nil, err
	}
	hold.Settle(r.Context())
	return sessions, hold, nil
}

// locate finds the replica on which a turn of a session runs, if the store says that one
// does and this process does not know of it.
func (a *api) locate(r *wire.Request, sessions *session.Store, head session.Head) error {
	hub, who := a.cfg.Hub, r.Who.Principal
	if !hub.Shared() || hub.Running(who, head.ID) {
		return nil
	}
	running, err := sessions.Running(r.Context(), who, head.ID)
	if err == nil && running {
		hub.Locate(r.Context(), who, head.ID)
	}
	return err
}

// mode checks a requested mode.
func (a *api) mode(name string) error {
	if name == "" {
		return nil
	}
	var names []string
	if a.cfg.Modes != nil {
		names = a.cfg.Modes()
	}
	if slices.Contains(names, name) {
		return nil
	}
	all := "there are none"
	if len(names) > 0 {
		all = "there are " + strings.Join(names, ", ")
	}
	return wire.Bad(fmt.Sprintf("there is no mode %.60q; %s (policy.modes)", name, all))
}

func (a *api) abort(r *wire.Request) (any, error) {
	if err := r.Decode(&Nothing{}); err != nil {
		return nil, err
	}
	sessions, head, err := a.head(r)
	if err != nil {
		return nil, err
	}
	if a.cfg.Hub.Abort(r.Who.Principal, head.ID, func(ctx context.Context, left []event.Asked) {
		Deny(ctx, a.cfg.Reply, r.Who.Principal, head.ID, left)
	}) {
		return Aborted{true}, nil
	}
	if err := a.locate(r, sessions, head); err != nil {
		return nil, err
	}
	aborted, err := a.cfg.Hub.AbortElsewhere(r.Context(), r.Who.Principal, head.ID)
	return Aborted{aborted}, err
}

// Reply answers what a turn asked: see [Config.Reply].
type Reply func(ctx context.Context, who capability.Principal, session string, asked event.Asked, a Answer) error

// Deny denies the open approval requests of a turn that was stopped. So a person does
// not find them at the desk and approve them later. What cannot be refused expires.
func Deny(ctx context.Context, reply Reply, who capability.Principal, id string, left []event.Asked) {
	if reply == nil {
		return
	}
	for _, asked := range left {
		if asked.What == event.Consent {
			_ = reply(ctx, who, id, asked, Answer{Text: "the turn was stopped", Scope: approval.Once})
		}
	}
}

func (a *api) rewind(r *wire.Request) (any, error) {
	var in Rewind
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Turn <= 0 {
		return nil, wire.Bad("turn says which turn is taken back, with all after it; it is 1 or more")
	}
	said := ""
	err := a.change(r, func(e Engine) (changed bool, err error) {
		said, err = e.Rewind(r.Context(), r.Who.Principal, r.PathValue("id"), in.Turn)
		return err == nil, err
	})
	return Rewound{said}, err
}

func (a *api) compact(r *wire.Request) (any, error) {
	if err := r.Decode(&Nothing{}); err != nil {
		return nil, err
	}
	var done event.Compacted
	err := a.change(r, func(e Engine) (changed bool, err error) {
		done, err = e.Compact(r.Context(), r.Who.Principal, r.PathValue("id"))
		return err == nil && done.How != "", err
	})
	return done, err
}

// change does something to a session while no turn of it runs.
func (a *api) change(r *wire.Request, do func(Engine) (changed bool, err error)) error {
	_, hold, err := a.hold(r)
	if err != nil {
		return err
	}
	changed := false
	defer func() { hold.Release(changed) }()
	e, err := a.cfg.Engine()
	if err != nil {
		return err
	}
	changed, err = do(e)
	return missing(err, r)
}

func (a *api) remove(r *wire.Request) (any, error) {
	sessions, head, err := a.head(r)
	if err != nil {
		return nil, err
	}
	hold, err := a.cfg.Hub.Seize(r.Who.Principal, head.ID)
	if err != nil {
		return nil, err
	}
	gone := false
	defer func() { hold.Release(gone) }()
	err = sessions.Delete(r.Context(), r.Who.Principal, r.PathValue("id"))
	gone = err == nil
	return nil, missing(err, r)
}

func (a *api) answer(r *wire.Request) (any, error) {
	var in Answering
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	scope := approval.Scope(in.Scope)
	switch scope {
	case "", approval.Once, approval.Session, approval.Always:
	default:
		return nil, wire.Bad(fmt.Sprintf("scope is %.40q; it is once, session or always", in.Scope))
	}
	covers := approval.Cover(in.Covers)
	switch covers {
	case "", approval.CoverCall, approval.CoverPrefix, approval.CoverTool:
	default:
		return nil, wire.Bad(fmt.Sprintf("covers is %.40q; it is call, prefix or tool", in.Covers))
	}
	sessions, head, err := a.head(r)
	if err != nil {
		return nil, err
	}
	if err := a.locate(r, sessions, head); err != nil {
		return nil, err
	}
	said := Answer{Yes: in.Yes, Text: in.Text, Scope: scope, Covers: covers, Answers: in.Answers}
	if elsewhere, err := a.cfg.Hub.AnswerElsewhere(r.Context(), r.Who.Principal, head.ID, r.PathValue("asked"), said); elsewhere {
		return nil, err
	}
	asked, settle, err := a.cfg.Hub.Claim(r.Who.Principal, head.ID, r.PathValue("asked"))
	if err != nil {
		return nil, err
	}
	taken := false
	defer func() { settle(taken) }()
	err = said.give(r.Context(), a.cfg.Reply, r.Who.Principal, head.ID, asked)
	taken = err == nil
	return nil, busy(err)
}

// give answers a question.
func (said Answer) give(ctx context.Context, reply Reply, who capability.Principal, id string, asked event.Asked) error {
	if (said.Scope != "" || said.Covers != "") && asked.What != event.Consent {
		return wire.Bad("scope and covers answer an approval request; this question asks for something else: " + string(asked.What))
	}
	if reply == nil {
		return errors.New("this server cannot answer the questions of turns")
	}
	return reply(ctx, who, id, asked, said)
}

// Relayed answers a question of a turn that runs here for a caller of another replica.
func Relayed(reply Reply) func(ctx context.Context, who capability.Principal, id string, asked event.Asked, answer json.RawMessage) error {
	return func(ctx context.Context, who capability.Principal, id string, asked event.Asked, answer json.RawMessage) error {
		var said Answer
		if err := json.Unmarshal(answer, &said); err != nil {
			return err
		}
		return busy(said.give(ctx, reply, who, id, asked))
	}
}

func (a *api) complete(r *wire.Request) (any, error) {
	const most = 16 << 10
	line := r.Text("line")
	if len(line) > most {
		return nil, wire.Bad(fmt.Sprintf("line has %d bytes, the limit is %d", len(line), most))
	}
	out := Completions{Completions: []slash.Completion{}}
	out.Completions = append(out.Completions, a.commands(r.Who).Complete(line, min(r.Whole("cursor", len(line)), len(line)))...)
	return out, nil
}
