package chatapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/stream"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
)

const (
	mostSessions = 200
	mostTurns    = 1000
	mostAnswer   = 8 << 20 // bytes of turns in one answer, about
	mostTitle    = 80      // characters
)

func (a *api) list(r *wire.Request) (any, error) {
	limit := r.Whole("limit", 50)
	if limit < 1 || limit > mostSessions {
		return nil, wire.Bad(fmt.Sprintf("limit is %d; it is 1 to %d", limit, mostSessions))
	}
	sessions, err := a.cfg.Sessions()
	if err != nil {
		return nil, err
	}
	heads, err := sessions.ListOnly(r.Context(), r.Who.Principal, limit+1, func(h session.Head) bool { return Opens(r.Who, h) })
	if err != nil && (len(heads) == 0 || r.Context().Err() != nil) {
		return nil, err
	}
	out := SessionList{Sessions: []SessionHead{}, Cut: len(heads) > limit, Problems: r.Partly(err)}
	for _, h := range heads[:min(len(heads), limit)] {
		if h.Title == "" && h.Turns > 0 { // it was begun with a picture, or by an older version
			if _, entries, err := sessions.Read(r.Context(), r.Who.Principal, h.ID); err == nil {
				h.Title = firstSaid(entries)
			}
		}
		out.Sessions = append(out.Sessions, a.shown(r.Who, h))
	}
	if a.cfg.Hub.Shared() {
		if err := markRunning(r, sessions, out.Sessions); err != nil {
			out.Problems = append(out.Problems, r.Partly(err)...)
		}
	}
	return out, nil
}

// markRunning marks the sessions that have a turn on another replica.
func markRunning(r *wire.Request, sessions *session.Store, list []SessionHead) error {
	var ids []string
	for _, h := range list {
		if !h.Running {
			ids = append(ids, h.ID)
		}
	}
	running, err := sessions.RunningOf(r.Context(), r.Who.Principal, ids)
	for i := range list {
		list[i].Running = list[i].Running || running[list[i].ID]
	}
	return err
}

// firstSaid is what a session without a title begins with.
func firstSaid(entries []session.Entry) string {
	for _, t := range turnsOf(session.Readable(entries)) {
		if t.Said != "" {
			return untrusted.Line(t.Said, mostTitle)
		}
	}
	return ""
}

// shown is a head as others see it.
func (a *api) shown(who auth.Identity, h session.Head) SessionHead {
	title, _, cut := strings.Cut(h.Title, "…⟨+") // as it was cut when it was kept
	if cut {
		title += "…"
	}
	if !who.Operator {
		h.Folder = "" // of the server's disk
	}
	return SessionHead{
		ID: h.ID, Title: title, Folder: h.Folder, Agent: h.Agent, Mode: h.Mode, BegunBy: h.BegunBy, Created: h.Created, Updated: h.Updated,
		Turns: h.Turns, Usage: h.Usage, Cost: h.Cost, Open: h.Open, Running: a.cfg.Hub.Running(who.Principal, h.ID),
	}
}

func (a *api) begin(r *wire.Request) (any, error) {
	var in NewSession
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if err := a.mode(in.Mode); err != nil {
		return nil, err
	}
	for name, word := range map[string]string{"agent": in.Agent, "sessionType": in.SessionType} {
		if len(word) > 200 || word != untrusted.Line(word, 200) {
			return nil, wire.Bad(name + " is a word of at most 200 bytes")
		}
	}
	sessions, err := a.cfg.Sessions()
	if err != nil {
		return nil, err
	}
	who := r.Who.Principal
	head, err := sessions.Begin(r.Context(), session.Head{
		Tenant: who.Tenant, Principal: who.ID, Folder: a.cfg.Folder, Agent: in.Agent, Mode: in.Mode, BegunBy: beginner(r, in.Agent),
	})
	if err != nil {
		return nil, err
	}
	if in.SessionType != "" {
		log, err := sessions.Prepare(r.Context(), who, head.ID)
		if err != nil {
			return nil, err
		}
		log.Closing()
		if err := errors.Join(log.Append(r.Context(), session.SessionType{Type: in.SessionType}.Entry()), log.Release(r.Context())); err != nil {
			return nil, err
		}
	}
	return wire.Answered{Header: http.Header{"Location": {"/api/v1/sessions/" + head.ID}}, Value: a.shown(r.Who, head)}, nil
}

// typeOf is the type of a session.
func typeOf(entries []session.Entry) string {
	for i := range entries {
		if n, ok := session.ReadNote(&entries[i]).(session.SessionType); ok {
			return n.Type
		}
	}
	return ""
}

// read reads a session together with where its events stand: what is in the one
// is not in the other.
func (a *api) read(r *wire.Request) (session.Head, []session.Entry, stream.Mark, error) {
	sessions, err := a.cfg.Sessions()
	if err != nil {
		return session.Head{}, nil, stream.Mark{}, err
	}
	who, id := r.Who.Principal, r.PathValue("id")
	for range 16 {
		mark := a.cfg.Hub.Mark(who, id)
		head, entries, err := sessions.Read(r.Context(), who, id)
		if err != nil {
			return head, nil, mark, missing(err, r)
		}
		if err := closed(r.Who, head); err != nil {
			return head, nil, mark, err
		}
		if !mark.Running { // here; another replica may run one
			if err := a.locate(r, sessions, head); err != nil {
				return head, nil, mark, err
			}
		}
		if a.cfg.Hub.Mark(who, id).Gen != mark.Gen {
			continue // a turn began or ended meanwhile
		}
		if mark.Base >= 0 {
			entries = entries[:min(mark.Base, len(entries))]
		}
		return head, entries, mark, nil
	}
	return session.Head{}, nil, stream.Mark{}, &capability.Error{
		Kind: capability.Unavailable, Op: "read", Target: id, Err: errors.New("changes faster than it can be read"), Fix: "ask again",
	}
}

func (a *api) show(r *wire.Request) (any, error) {
	limit := r.Whole("limit", 200)
	if limit < 1 || limit > mostTurns {
		return nil, wire.Bad(fmt.Sprintf("limit is %d; it is 1 to %d", limit, mostTurns))
	}
	head, entries, mark, err := a.read(r)
	if err != nil {
		return nil, err
	}
	turns := turnsOf(session.Readable(entries))
	if before := r.Whole("before", 0); before > 0 {
		turns = slices.DeleteFunc(turns, func(t *Turn) bool { return t.Turn >= before })
	}
	out := Session{Head: a.shown(r.Who, head), Running: mark.Running, Asked: told(r.Who, mark.Asked), After: mark.After, Turns: []*Turn{}}
	out.Head.Running = mark.Running
	from := newest(turns, limit)
	if from > 0 {
		out.Older = turns[from].Turn
	}
	for _, t := range turns[from:] {
		t.Inspectable = !t.Command
		out.Turns = append(out.Turns, t)
	}
	return out, nil
}

// told returns what the caller may know of what is asked.
func told(who auth.Identity, asked []event.Asked) []event.Asked {
	if who.Decides {
		return asked
	}
	var out []event.Asked
	for _, one := range asked {
		out = append(out, one.Told())
	}
	return out
}

// newest returns where the newest turns begin that one answer has room for: at
// least one.
func newest(turns []*Turn, limit int) int {
	size, from := 0, len(turns)
	for from > 0 && len(turns)-from < limit {
		size += turns[from-1].size()
		if size > mostAnswer && from < len(turns) {
			break
		}
		from--
	}
	return from
}

func (t *Turn) size() int {
	n := len(t.Said) + 200
	for _, i := range t.Items {
		n += len(i.Text) + len(i.Arguments) + 100
		if i.Result != nil {
			n += len(i.Result.Text)
		}
	}
	return n
}

func (a *api) inspect(r *wire.Request) (any, error) {
	turn, err := strconv.Atoi(r.PathValue("turn"))
	if err != nil || turn < 1 {
		return nil, wire.Bad(fmt.Sprintf("%.40q is not the number of a turn", r.PathValue("turn")))
	}
	sessions, err := a.cfg.Sessions()
	if err != nil {
		return nil, err
	}
	who, id := r.Who.Principal, r.PathValue("id")
	head, entries, err := sessions.Read(r.Context(), who, id)
	if err != nil {
		return nil, missing(err, r)
	}
	if err := closed(r.Who, head); err != nil {
		return nil, err
	}
	if record, ok := a.cfg.Hub.Record(who, id, turn); ok {
		return Inspection{Turn: turn, Events: record}, nil
	}
	turns := turnsOf(session.Readable(entries))
	i := slices.IndexFunc(turns, func(t *Turn) bool { return t.Turn == turn })
	if i < 0 {
		return nil, wire.Missing(fmt.Sprintf("there is no turn %d, or it was taken back", turn))
	}
	if a.cfg.Inspect != nil {
		record, ok, err := a.cfg.Inspect(r.Context(), who, id, turn)
		if err != nil {
			return nil, err
		}
		if ok && json.Valid(record) {
			return Inspection{Turn: turn, Events: record}, nil
		}
	}
	if a.cfg.FindAgain == nil || turns[i].Command {
		return nil, &wire.Problem{Status: http.StatusNotFound, Code: "not-kept", Detail: fmt.Sprintf("what happened in turn %d was not kept, and there is nothing to find again", turn)}
	}
	found, err := a.cfg.FindAgain(r.Context(), who, head, turns[i].Said)
	if err != nil {
		return nil, err
	}
	events, err := json.Marshal([]event.Event{event.Selected{Found: found, Added: []capability.ID{}, Why: "found again: what was shown then was not kept"}})
	if err != nil {
		return nil, err
	}
	return Inspection{Turn: turn, Now: true, Events: events}, nil
}
