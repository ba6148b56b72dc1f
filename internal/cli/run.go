package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
	"ken/internal/run/runner"
	"ken/internal/talk/commands"
	"ken/internal/talk/slash"
	"ken/internal/untrusted"
)

// A runCall is what the flags of ken run say.
type runCall struct {
	session, key, mode string
	again              bool
}

// runCommand is ken run: it runs one call.
type runCommand struct{ *environment }

func newRun(env *environment) *cobra.Command {
	c := &runCommand{env}
	var r runCall
	cmd := &cobra.Command{
		Use: `run "/command action arguments"`, Short: "Run one command or capability, checked, sandboxed and recorded",
		Long: "Run one slash command, or one capability by its id with its arguments as JSON:\n" +
			"  ken run \"/list-files --path docs\"\n" +
			"  ken run tool:read_file '{\"path\":\"README.md\"}'\n\n" +
			"If the call needs approval, Ken asks on a terminal. Without one, the status is 4;\n" +
			"answer with ken approve. Status: 0 done, 1 failed, 2 usage, 3 denied, 4 waiting for\n" +
			"approval, 124 timeout.",
		Args: something(`nothing to run; write a command, as in ken run "/list-files", or an id with its arguments, as in ken run tool:read_file '{"path":"README.md"}'`),
		RunE: func(cmd *cobra.Command, given []string) error {
			c.oneCall = true
			return c.withTarget(func(ctx context.Context, a *app.App, given []string) error { return c.run(ctx, a, r, given) })(cmd, given)
		},
	}
	// What follows the command is its own, dashes too.
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&r.session, "session", "", "`name` of the session for approvals and results (default: this terminal)")
	cmd.Flags().StringVar(&r.key, "key", "", "`name` for this call; a repeated call with the same name does not run twice")
	cmd.Flags().BoolVar(&r.again, "again", false, "with --key: run again even if it is unknown whether an earlier attempt took effect")
	cmd.Flags().StringVar(&r.mode, "mode", "", "`mode` to run in (policy.modes)")
	return cmd
}

// something requires at least one argument; usage is the error text without one.
func something(usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 {
			return usageError{errors.New(usage + "; see " + cmd.CommandPath() + " --help")}
		}
		return nil
	}
}

func (c *runCommand) run(ctx context.Context, a *app.App, r runCall, given []string) error {
	// A reader that goes away must not end this process: the call would have no
	// closing record.
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE) // taken rather than ignored, which programs that are run would inherit
	defer signal.Stop(gone)
	call, err := c.callOf(ctx, a, given)
	if err != nil {
		return err
	}
	call.Session, call.Mode = r.session, r.mode
	if call.Session == "" {
		call.Session = terminalSession()
	}
	if call.Key = r.key; call.Key == "" {
		call.Key = rand.Text()
	}
	view := a.Door.ViewFor(door.Viewer{Principal: a.Principal, Mode: r.mode, Origin: capability.ByPerson, Surface: policy.SurfaceRun})
	var live *output.Live
	if !c.json {
		live = &output.Live{W: c.out, Clean: c.out.Terminal, Err: &output.Live{W: c.err, Clean: output.Screen(c.err) != nil, Begun: c.progress.Hide}, Begun: c.progress.Hide}
		call.Live = live
	}
	end := c.progress.Begin(output.Screen(c.err))
	res, err := a.Door.Invoke(ctx, view, call)
	end()
	for range 3 { // a question may follow another
		again, asked := consentPrompt{c.environment}.answer(ctx, a, r, &call, err)
		if asked != nil {
			return asked
		}
		if !again {
			break
		}
		end := c.progress.Begin(output.Screen(c.err))
		res, err = a.Door.Invoke(ctx, view, call)
		end()
	}
	return c.printResult(call, res, err, live)
}

// callOf reads what to run: a line, its words, or an id with JSON.
func (c *runCommand) callOf(ctx context.Context, a *app.App, given []string) (capability.Call, error) {
	if strings.HasPrefix(given[0], "/") {
		line := given[0]
		for _, word := range given[1:] { // the shell has taken the line apart
			line += " " + quoteWord(word)
		}
		call, err := a.Commands.Route(ctx, commands.Caller{Principal: a.Principal}, line)
		fault, isFault := errors.AsType[*slash.Fault](err)
		if err != nil && capability.KindOf(err) == capability.NotFound {
			name, rest, _ := strings.Cut(line[1:], " ")
			e, lost := a.OperatorView().Lookup(name)
			if lost == nil && e.RunBy() == "" && !(isFault && suggestsJoined(fault, name, rest)) {
				return capability.Call{Target: e.ID, Origin: capability.ByPerson}, nil // the runner says what it is instead
			}
		}
		if isFault && capability.KindOf(err) == capability.Invalid {
			err = usageError{err}
		}
		return call, err
	}
	if given[0] == "" {
		return capability.Call{}, usageError{errors.New("nothing to run; write a command, as in \"/git-log\", or an id")}
	}
	call := capability.Call{Target: capability.ID(given[0]), Origin: capability.ByPerson}
	switch {
	case len(given) > 2:
		return call, usageError{fmt.Errorf("%s takes its arguments as one JSON object; put them in quotes, or begin a command with a slash", output.Line(given[0]))}
	case len(given) == 2:
		call.Arguments = json.RawMessage(given[1])
		if !json.Valid(call.Arguments) {
			return call, usageError{fmt.Errorf("the arguments of %s are not JSON; write them as '{\"name\": \"value\"}'", output.Line(given[0]))}
		}
	}
	return call, nil
}

// suggestsJoined reports whether a fault suggests the command that joins a name
// and the word after it: /git-log for "/git log".
func suggestsJoined(f *slash.Fault, name, rest string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return word != "" && slices.ContainsFunc(f.Suggestions, func(s string) bool {
		return strings.HasPrefix(strings.TrimPrefix(s, "/"), name+"-"+word)
	})
}

// quoteWord keeps flags what they are: only what a line would read otherwise is
// quoted.
func quoteWord(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\n'\"\\", r) }) {
		return word
	}
	return slash.Quote(word)
}

// runReport is what ken run --json prints.
type runReport struct {
	Target  capability.ID     `json:"target"`
	Action  string            `json:"action,omitempty"`
	Session string            `json:"session"`
	Result  capability.Result `json:"result"`
	Error   *runError         `json:"error,omitempty"`
	Ticket  string            `json:"ticket,omitempty"`
}

type runError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

// printResult prints what a call gave back and turns it into a status.
func (c *runCommand) printResult(call capability.Call, res capability.Result, err error, live *output.Live) error {
	end := err
	switch {
	case err != nil && capability.KindOf(err) == capability.Invalid: // missing or wrong arguments
		end = usageError{err}
	case err != nil:
	case res.Meta[runner.MetaState] == runner.TimedOut.String():
		end = &capability.Error{Kind: capability.Timeout, Op: "run", Target: string(call.Target), Err: errors.New("the call took too long and was stopped"), Fix: "raise what " + stoppedBy(res) + " says, or ask for less at once"}
	case res.Failed:
		end = errSilent
	}
	if c.json {
		report := runReport{Target: call.Target, Action: call.Action, Session: call.Session, Result: res, Ticket: res.Meta[runner.MetaTicket]}
		if end != nil && !errors.Is(end, errSilent) {
			report.Error = &runError{capability.KindOf(end).String(), end.Error(), status(end)}
			fmt.Fprintln(c.err, "ken:", untrusted.Terminal(end.Error()))
		}
		return errors.Join(c.printJSON(report), silently(end))
	}
	if err != nil {
		return end // the result says the same
	}
	c.printParts(res, live)
	return end
}

// stoppedBy names the setting whose time was over.
func stoppedBy(res capability.Result) string {
	if res.Meta["tool"] == "shell" {
		return "tools.shell.timeoutMs of tool-access.json, or timeoutMs of the call,"
	}
	return "limits.timeout of ken.yaml, or timeout_sec of its manifest,"
}

// silently ends with the status of an error that was told already.
func silently(err error) error {
	if err == nil {
		return nil
	}
	return printedError{err}
}

// A printedError was printed.
type printedError struct{ error }

func (e printedError) Unwrap() error { return e.error }

// printParts prints what was not passed on as it came. What is about a program,
// rather than from it, goes to standard error.
func (c *environment) printParts(res capability.Result, live *output.Live) {
	_, program := res.Meta[runner.MetaExitCode]
	told := slices.ContainsFunc(res.Parts, func(p capability.Part) bool { return p.Text != "" })
	shown := live.Shown()
	if live.Unfinished() {
		c.out.Linef("")
	}
	for _, p := range res.Parts {
		stream := p.MIME == executor.MIMEStdout || p.MIME == executor.MIMEStderr || p.MIME == executor.MIMEBytes
		switch {
		case shown && (stream || res.Meta[runner.MetaTruncated] == "true"):
		case p.Text != "" && (program || res.Failed) && (!stream || p.MIME == executor.MIMEStderr):
			fmt.Fprintln(c.err, "ken:", output.Text(strings.TrimSuffix(p.Text, "\n")))
		case p.Text != "":
			io.WriteString(c.out, ended(c.text(p.Text)))
		case p.JSON != nil && told: // what a model needs beside the text; --json has it
		case p.JSON != nil:
			io.WriteString(c.out, ended(c.text(string(p.JSON))))
		case p.Link != "":
			c.out.Linef("%s", output.Line(p.Link))
		case p.Data != nil && !c.out.Terminal && p.MIME == executor.MIMEBytes:
			c.out.Write(p.Data)
		case p.Data != nil:
			c.out.Linef("[%d bytes of %s]", len(p.Data), output.Line(p.MIME))
		}
	}
	if res.Handle != "" && !shown && res.Meta[runner.MetaTruncated] == "true" {
		fmt.Fprintf(c.err, "ken: the whole result is kept as %s; ken run tool:read_result '{\"handle\":%q,\"op\":\"tail\"}' reads it\n", res.Handle, res.Handle)
	}
}

// text makes foreign text fit for a terminal; into a file or a pipe it goes as
// it is.
func (c *environment) text(s string) string {
	if c.out.Terminal {
		return output.Text(s)
	}
	return s
}

func ended(s string) string {
	if s != "" && !strings.HasSuffix(s, "\n") {
		return s + "\n"
	}
	return s
}
