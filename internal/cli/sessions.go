package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
)

const mostSessions = 20 // of a list within a conversation

// A listedSession is one as lists show it.
type listedSession struct {
	session.Head
	state  string // why its last turn is open, where it waits
	folder string // where it is not this one
}

// listed returns the sessions in which something was said, the newest first.
func listed(ctx context.Context, a *app.App, most int) ([]listedSession, error) {
	sessions, err := a.Sessions()
	if err != nil {
		return nil, err
	}
	list, err := sessions.List(ctx, a.Principal, most)
	if err != nil {
		return nil, err
	}
	var out []listedSession
	for _, h := range list {
		if h.Turns == 0 {
			continue
		}
		s := listedSession{Head: h}
		if h.Folder != a.Places.Workspace {
			s.folder = h.Folder
		}
		if h.Open || h.Title == "" { // the head does not say enough
			_, entries, err := sessions.Read(ctx, a.Principal, h.ID)
			if err != nil {
				continue // it was deleted just now, or cannot be gone on with
			}
			if h.Open {
				s.state = openState(entries)
			}
			s.Title = titleOf(h, entries)
		}
		s.Title = titleOf(s.Head, nil)
		out = append(out, s)
	}
	return out, nil
}

// about is a session on one line, after its id.
func (s listedSession) about() string {
	line := s.Updated.Local().Format("2006-01-02 15:04") + "  " + s.Title
	if s.state != "" {
		line += "  (" + s.state + ")"
	}
	if s.BegunBy != "" {
		line += "  begun by the agent " + output.Line(s.BegunBy)
	}
	if s.folder != "" {
		line += "  in " + output.Line(s.folder)
	}
	return line
}

// openState says for what an open turn waits: for a person, or after it was
// killed, to be gone on with. One that failed waits for nothing.
func openState(entries []session.Entry) string {
	last := session.Entry{}
	for _, e := range entries {
		if _, ended := session.ReadNote(&e).(session.Ended); ended || e.Kind != session.Note {
			last = e
		}
	}
	switch end, ended := session.ReadNote(&last).(session.Ended); {
	case !ended:
		return "broke off; waits to go on"
	case end.Reason == string(event.EndWaiting):
		return "waits for you"
	}
	return ""
}

// titleOf returns the first words of a session.
func titleOf(h session.Head, entries []session.Entry) string {
	const most = 80
	title, _, cut := strings.Cut(h.Title, "…⟨+") // as it was cut when it was kept
	if cut {
		title += "…"
	}
	for _, e := range entries {
		if title == "" && e.Kind == session.User {
			title = textOf(e)
		}
	}
	if title = firstWords(title, most); title == "" {
		return "(without words)"
	}
	return title
}

// textOf returns the words of an entry.
func textOf(e session.Entry) string {
	var parts []string
	for _, b := range e.Blocks {
		if text := strings.TrimSpace(b.Text); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

// firstWords returns the beginning of a text from outside, on one line of so many
// characters.
func firstWords(s string, most int) string {
	s = strings.Join(strings.Fields(output.Line(s)), " ")
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	s = string(runes[:most-1])
	if at := strings.LastIndexByte(s, ' '); at > most/2 {
		s = s[:at]
	}
	return s + "…"
}

// A saidTurn is one that can be taken back.
type saidTurn struct {
	number int
	said   string
}

// turns returns those of the session that can be taken back, oldest first.
func (t *conversation) turns(ctx context.Context) ([]saidTurn, error) {
	id := t.session()
	if id == "" {
		return nil, nil
	}
	_, entries, err := t.sessions.Read(ctx, t.app.Principal, id)
	if err != nil {
		return nil, err
	}
	// What was summed up is there, what was taken back is not.
	entries = slices.DeleteFunc(slices.Clone(entries), func(e session.Entry) bool {
		return e.Kind == session.Summary || e.Kind == session.Marker
	})
	var out []saidTurn
	for _, e := range session.Live(entries) {
		if e.Kind == session.User && (len(out) == 0 || out[len(out)-1].number != e.Turn) {
			out = append(out, saidTurn{e.Turn, textOf(e)})
		}
	}
	return out, nil
}

// numbers names turns: 1 to 4, 6.
func numbers(turns []saidTurn) string {
	var parts []string
	for i := 0; i < len(turns); {
		j := i
		for j+1 < len(turns) && turns[j+1].number == turns[j].number+1 {
			j++
		}
		part := fmt.Sprint(turns[i].number)
		if j > i {
			part += fmt.Sprintf(" to %d", turns[j].number)
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ", ")
}
