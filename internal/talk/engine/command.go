package engine

import (
	"context"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// maxCommandOutput is how much of a command's result the model is told later, in
// characters.
const maxCommandOutput = 4000

// MetaJob is the metadata of a result that names the job which makes the call
// later.
const MetaJob = "job"

// A command is what was typed, once it was read: a call that the person makes, a
// text to show them, or a text for the model.
type command struct {
	is      bool // a call, or a text to show
	resumed bool // it was written down before
	line    string
	call    capability.Call // no Target: there is none
	later   func(context.Context, capability.Call) (capability.Result, error)
	show    string

	text  string // for the model
	title string // of the session, if it is not the text
}

// runs reports whether the command is one that runs without a model.
func (c command) runs() bool { return c.is }

// readCommand reads what was typed. A text that is no command is for the model.
func (e *Engine) readCommand(ctx context.Context, t turn) (command, error) {
	c := command{text: t.in.Text}
	if t.in.Continue {
		if line := typedIn(t.log.entries(), t.log.number); line != "" {
			c.text, c.resumed = line, true
		}
	}
	if e.cfg.Command == nil || !strings.HasPrefix(strings.TrimSpace(c.text), "/") {
		return c, nil
	}
	in := t.in
	in.Text = c.text
	read, ok, err := e.cfg.Command(ctx, in)
	switch {
	case err != nil:
		return c, err
	case !ok:
		return c, nil
	case read.Say != "":
		c.title, c.text = c.text, read.Say
		return c, nil
	}
	c.is, c.line, c.call, c.later, c.show = true, c.text, read.Call, read.Later, read.Text
	return c, nil
}

// typedIn returns the slash command of a turn, or "" if there is none.
func typedIn(entries []session.Entry, number int) (line string) {
	for i := range entries {
		if n, ok := session.ReadNote(&entries[i]).(session.Command); ok && entries[i].Turn == number {
			line = n.Line
		}
	}
	return line
}

// runCommand carries out a command under the person's own authority and without
// a model.
func (e *Engine) runCommand(ctx context.Context, t turn, p progress, c command) (progress, ending, error) {
	t.in.Text = c.line
	if !c.resumed {
		t.log.announce(t.setup)
		entries := append(e.closeOpenCalls(ctx, t, userWentOn),
			session.Entry{Kind: session.User, Blocks: []llm.Block{{Text: untrusted.Line(c.line, maxCommandOutput)}}}, session.Command{Line: c.line}.Entry())
		if err := t.log.append(entries...); err != nil {
			return p, ending{}, err
		}
		if c.call.Target == "" {
			p.text = c.show
			t.out.emit(event.Delta{Text: c.show})
			return p, ending{reason: event.EndCommand}, nil
		}
	}
	call := c.call
	call.Origin, call.Session, call.Intent, call.Mode = capability.ByPerson, t.in.Session, "", t.in.Mode
	call.Key = callKey(t.in.Session, t.log.number, 1)
	id := fmt.Sprintf("command_%d", t.log.number)
	j := &pendingCall{
		asked: &llm.ToolCall{ID: id, Name: string(call.Target), Arguments: call.Arguments}, number: 1, call: call,
		shown: event.Call{ID: id, Target: call.Target, Action: call.Action, Arguments: call.Arguments},
	}
	if c.later != nil {
		t.out.emit(event.Started{Call: j.shown})
		call.Principal, call.Key = t.in.Principal, ""
		if j.res, j.err = c.later(ctx, call); j.err != nil {
			j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: j.err.Error()}}}
		}
		t.finished(j)
	} else {
		p.calls = 1
		p = e.runGroup(ctx, t, p, []*pendingCall{j})
	}
	if j.waits {
		t.log.opened = true
		return p, ending{event.EndWaiting, j.why}, nil
	}
	p.text = textOf(e.resultBlocks(ctx, t, j, nil))
	result := session.CommandResult{ID: id, Failed: j.err != nil || j.res.Failed, Kind: refusalKind(j.err), Job: j.res.Meta[MetaJob]}
	status := "It gave:"
	if result.Failed {
		status = "It did not work:"
	}
	output := untrusted.Block(p.text, untrusted.BlockConfig{Origin: "the command that the user ran themselves. " + status, Max: maxCommandOutput})
	if err := t.log.append(result.Entry(), session.Entry{Kind: session.Added, Blocks: []llm.Block{{Text: output}}}); err != nil {
		return p, ending{}, err
	}
	if err := ctx.Err(); err != nil {
		return p, ending{}, err
	}
	end := ending{reason: event.EndCommand}
	if j.err != nil {
		end.why = j.err.Error()
	}
	return p, end, nil
}
