// Package chat shows a conversation on a terminal. It does not depend on models
// and sessions: it gets a [Talker], sends it what a person types, and shows the
// events that come back.
//
// There are two frontends over one view of events: [Run] is a conversation on
// a terminal, [Print] writes one turn to an output. Both print downwards only:
// what stands in the scrollback is never written again.
//
// Everything in an event came from outside. No byte of it reaches a terminal
// but through the untrusted package.
package chat

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"strings"
	"time"

	"ken/internal/talk/event"
	"ken/internal/talk/slash"
	"ken/llm"
)

// A Talker holds a conversation. One turn or command runs at a time; Reply,
// Complete and Status may be called while it does.
type Talker interface {
	// Turn says text and returns the events that follow. An empty text continues a
	// turn that did not end: one that waits for a person, or that broke off. A
	// line that begins with a slash and that Command did not handle is said
	// too: it runs a capability's command. A blank before the slash, or a second
	// slash, means that it is for the model. The sequence ends soon after ctx
	// does, and is consumed to its end.
	Turn(ctx context.Context, text string) iter.Seq2[event.Event, error]

	// Reply answers what an event asked. The turn that asked goes on by itself,
	// or where it ended with [event.EndWaiting], by Turn with an empty text.
	// Reply does not wait for the turn: the consumer of the turn's events may call
	// it between two of them.
	Reply(ctx context.Context, asked event.Asked, a Answer) error

	// Complete returns what may stand at the cursor, a byte offset.
	Complete(line string, cursor int) []slash.Completion

	// Command runs a slash command of the conversation itself (/rewind,
	// /compact, /mode, …) and reports whether it was one. An unknown command
	// is handled too, with an error: it does not become a turn.
	Command(ctx context.Context, line string) (out Output, handled bool, err error)

	// Status is asked for after every event; it must be cheap.
	Status() Status
}

// An Answer is what a person says to a question.
type Answer struct {
	Yes    bool
	Scope  Scope  // of [event.Consent]
	Covers string // of [event.Consent]: as in [event.Offer]
	Text   string // of [event.Ask]

	// Answers are those to an [event.Inquiry], as in [event.Reply].
	Answers map[string]json.RawMessage
}

// A Scope says for how long an answer counts.
type Scope string

// The scopes of consent, in the words of the desk. A no is for once or for the
// session.
const (
	Once    Scope = "once"
	Session Scope = "session"
	Always  Scope = "always"
)

// Output is what a command says.
type Output struct {
	Text string // Markdown
	Fill string // put into the empty line to be edited: what /rewind took back
	Quit bool   // leave, after Text
	GoOn bool   // continue the open turn, after Text
}

// A Status is what the line under the prompt shows. Empty fields are left out.
type Status struct {
	Model   string
	Mode    string
	Intent  string
	Session string
	Turn    int       // the newest; zero: there is none yet
	Usage   llm.Usage // of the session
	Cost    float64   // of the session, in dollars
	Used    int       // tokens of the window that the next request begins with
	Window  int
}

// Config says how to hold a conversation on a terminal.
type Config struct {
	Talker Talker

	// In and Out are usually the standard ones. Where one is no terminal, or
	// the terminal is dumb, the conversation is line by line, without cursor
	// movement.
	In, Out *os.File

	// Greeting are lines to begin with: how to get help, what is missing.
	Greeting []string

	// First is said before anything is typed; empty: nothing. GoOn continues an
	// open turn instead.
	First string
	GoOn  bool

	// History is the file of what was typed before; empty: none is kept. Lines
	// that begin with a blank are not kept.
	History string

	Getenv func(string) string // nil: os.Getenv; NO_COLOR and TERM are looked at
	Now    func() time.Time    // nil: time.Now
}

func (c Config) filled() Config {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Words are the commands that the view itself knows, for a list of commands. A
// capability's command with one of these names cannot be typed in a chat.
func Words() []slash.Completion {
	return []slash.Completion{
		{Text: "/output", Kind: "command", Description: "show the last folded output whole, then the one before (Ctrl-O)"},
		{Text: "/quit", Kind: "command", Description: "leave; the session is kept (Ctrl-D)"},
		{Text: "/why", Kind: "command", Description: "show what was found for the last message, and why"},
	}
}

// message is what a person typed, without blanks around it. One stays before a
// slash: it says that this is no command.
func message(typed string) string {
	text := strings.TrimSpace(typed)
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(typed, "/") {
		return " " + text
	}
	return text
}

// ownWord returns the view's own command in a line, or "".
func ownWord(line string) string {
	line = strings.TrimRight(line, " \t\n")
	if line == "/exit" {
		return "/quit"
	}
	for _, w := range Words() {
		if w.Text == line {
			return line
		}
	}
	return ""
}
