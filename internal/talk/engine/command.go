package engine

import (
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// saidOf is how much of a command's result the model is told later, in
// characters.
const saidOf = 4000

// command carries out a slash command, which a person makes under their own
// authority and without a model. It is false where the text is none.
func (t *turn) command() (ending, bool, error) {
	if t.typed != "" {
		t.in.Text = t.typed
	}
	if t.e.cfg.Command == nil || !strings.HasPrefix(strings.TrimSpace(t.in.Text), "/") {
		return ending{}, false, nil
	}
	cmd, ok, err := t.e.cfg.Command(t.ctx, t.in)
	if err != nil {
		return ending{event.EndFailed, err.Error()}, true, nil
	}
	if !ok {
		return ending{}, false, nil
	}
	if cmd.Say != "" {
		t.title, t.in.Text = t.in.Text, cmd.Say
		return ending{}, false, nil
	}
	if t.typed != "" {
		return t.runCommand(cmd.Call)
	}
	t.announce()
	entries := t.answerRest(userWentOn)
	entries = append(entries, session.Entry{Kind: session.User, Blocks: []llm.Block{{Text: untrusted.Line(t.in.Text, saidOf)}}}, session.Command{Line: t.in.Text}.Entry())
	if err := t.append(entries...); err != nil {
		return ending{}, true, err
	}
	if cmd.Call.Target == "" {
		t.text = cmd.Text
		t.emit(event.Delta{Text: cmd.Text})
		return ending{reason: event.EndCommand}, true, nil
	}
	return t.runCommand(cmd.Call)
}

func (t *turn) runCommand(call capability.Call) (ending, bool, error) {
	call.Origin, call.Session, call.Intent = capability.ByPerson, t.in.Session, ""
	call.Mode = t.in.Mode
	call.Key = fmt.Sprintf("%s/%d/1", t.in.Session, t.number)
	id := fmt.Sprintf("command_%d", t.number)
	j := &job{
		asked: &llm.ToolCall{ID: id, Name: string(call.Target), Arguments: call.Arguments}, number: 1, call: call,
		shown: event.Call{ID: id, Target: call.Target, Action: call.Action, Arguments: call.Arguments},
	}
	t.calls = 1
	t.make([]*job{j})
	if j.waits {
		t.opened = true
		return ending{event.EndWaiting, j.why}, true, nil
	}
	t.text = textOf(t.told(j))
	result := session.CommandResult{ID: id, Failed: j.err != nil || j.res.Failed, Kind: refusalKind(j.err)}
	status := "It gave:"
	if result.Failed {
		status = "It did not work:"
	}
	output := untrusted.Block(t.text, untrusted.BlockConfig{Origin: "the command that the user ran themselves. " + status, Max: saidOf})
	if err := t.append(result.Entry(), session.Entry{Kind: session.Added, Blocks: []llm.Block{{Text: output}}}); err != nil {
		return ending{}, true, err
	}
	if err := t.ctx.Err(); err != nil {
		return ending{}, true, err
	}
	why := ""
	if j.err != nil {
		why = j.err.Error()
	}
	return ending{event.EndCommand, why}, true, nil
}
