package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/run/queue"
	"ken/internal/talk/commands"
	"ken/internal/talk/engine"
	"ken/internal/talk/event"
)

// readCommand reads a command of a turn. One after /later is added as a job, in
// the session of the turn, unless the catalog has a command of that name.
func readCommand(ctx context.Context, a *App, in event.Input) (event.Command, bool, error) {
	if !a.Commands.For(commands.Caller{Principal: in.Principal}).IsLater(in.Text) {
		return a.Commands.Read(ctx, in)
	}
	_, rest, _ := strings.Cut(in.Text, " ")
	var j queue.Job
	line, err := readLater(&j, rest, time.Now())
	if err != nil {
		return event.Command{}, true, refuseLater(err)
	}
	in.Text = line
	cmd, is, err := a.Commands.Read(ctx, in)
	switch {
	case err != nil:
		return event.Command{}, true, err
	case !is || cmd.Call.Target == "":
		return event.Command{}, true, refuseLater(fmt.Errorf("%.200q is not a command that runs", line))
	}
	cmd.Later = func(ctx context.Context, call capability.Call) (capability.Result, error) {
		j.Call, j.Surface = call, in.Surface
		added, err := a.AddJob(ctx, j)
		if err != nil {
			return capability.Result{}, err
		}
		when := "runs as soon as there is room"
		switch {
		case added.Schedule != "":
			when = fmt.Sprintf("runs %s, first at %s", added.Schedule, added.At.Local().Format(time.DateTime))
		case added.State == queue.Scheduled:
			when = "runs at " + added.At.Local().Format(time.DateTime)
		}
		text := fmt.Sprintf("Job %s %s. ken jobs show %s says what came of it.", added.ID, when, added.ID)
		return capability.Result{Parts: []capability.Part{{Text: text}}, Meta: map[string]string{engine.MetaJob: added.ID}}, nil
	}
	return cmd, true, nil
}

func refuseLater(err error) error {
	return &capability.Error{
		Kind: capability.Invalid, Op: "add job", Err: err,
		Fix: `write a command after /later, as in /later --at 22:30 /disk-usage . (also --at 2h, --every 1h, --cron "0 3 * * 1-5", --priority 5)`,
	}
}

// readLater reads when a job is to run, and returns the command that follows.
func readLater(j *queue.Job, text string, now time.Time) (line string, err error) {
	flags := map[string]string{}
	for {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "/") {
			break
		}
		name, rest, _ := strings.Cut(text, " ")
		switch name {
		case "":
			return "", errors.New("there is no command to run")
		case "--at", "--every", "--cron", "--priority":
		default:
			return "", fmt.Errorf("%.60q is neither a command nor one of --at, --every, --cron and --priority", name)
		}
		if flags[name], text, err = laterValue(strings.TrimSpace(rest)); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if p, ok := flags["--priority"]; ok {
		if j.Priority, err = strconv.Atoi(p); err != nil {
			return "", fmt.Errorf("--priority is %.20q, which is not a number", p)
		}
	}
	return text, j.When(flags["--at"], flags["--every"], flags["--cron"], now)
}

// laterValue takes the value of a flag: a word, or a text in quotes.
func laterValue(text string) (value, rest string, err error) {
	if text == "" {
		return "", "", errors.New("a value is missing")
	}
	if q := text[:1]; q == `"` || q == "'" {
		value, rest, closed := strings.Cut(text[1:], q)
		if !closed {
			return "", "", errors.New("the quote is not closed")
		}
		return value, rest, nil
	}
	value, rest, _ = strings.Cut(text, " ")
	return value, rest, nil
}
