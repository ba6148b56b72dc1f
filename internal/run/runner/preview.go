package runner

import (
	"context"
	"fmt"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/programs"
	"ken/internal/run/executor"
)

// Preview asks an executor what a call would do, where it can tell.
func Preview(ctx context.Context, x Executor, call capability.Call, c *capability.Capability) ([]executor.Shown, error) {
	if p, ok := x.(executor.Previewer); ok {
		return p.Preview(ctx, call, c)
	}
	return nil, nil
}

// mostShown is how many bytes of what a call would do are kept with its question.
// The arguments are there in any case.
const mostShown = 64 << 10

// shown returns what a call would do, for the person who is asked about it. It is
// empty where nothing is known besides the arguments.
func (inv *invocation) shown(ctx context.Context) []approval.Line {
	list, err := guard("preview", inv.notes.panicked, func() ([]executor.Shown, error) {
		return Preview(ctx, inv.target.executor, inv.call, inv.target.Capability)
	})
	if err != nil {
		inv.notes.add("preview", err.Error())
		return nil
	}
	if argv := inv.plan.facts.Argv; len(list) == 0 && len(argv) > 0 {
		list = []executor.Shown{commandOf(argv)}
	}
	var out []approval.Line
	room := mostShown
	for _, s := range list {
		if room -= len(s.Text); room < 0 {
			out = append(out, approval.Line{Name: s.Name, Text: fmt.Sprintf("%d bytes, too long to show here; see the arguments", len(s.Text))})
			continue
		}
		l := approval.Line{Name: s.Name, Text: s.Text}
		for _, m := range s.Marks {
			l.Marks = append(l.Marks, approval.Mark(m))
		}
		out = append(out, l)
	}
	return out
}

// commandOf returns a command with the words marked that a person should look at.
func commandOf(argv []string) executor.Shown {
	out := executor.Shown{Name: "command", Text: approval.CommandLine(argv)}
	why := map[int]string{}
	for _, c := range programs.Concerns(argv) {
		why[c.Arg] = c.Why
	}
	at := 0
	for i, arg := range argv {
		size := len(approval.CommandLine([]string{arg}))
		if why[i] != "" {
			out.Marks = append(out.Marks, executor.Mark{From: at, To: at + size, Why: why[i]})
		}
		at += size + 1
	}
	return out
}
