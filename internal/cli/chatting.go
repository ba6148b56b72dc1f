package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/chat"
	"ken/internal/govern/approval"
	"ken/internal/talk/engine"
	"ken/internal/talk/session"
)

// A chatCall is what the flags of ken chat say.
type chatCall struct {
	message  string
	resume   string
	mode     string
	model    string
	agent    string
	delivery string
	list     bool
	quiet    bool
	said     bool // -p was given
}

const mostInput = 64 << 20 // bytes of a message from standard input

func (c *command) chatCommand() *cobra.Command {
	var k chatCall
	cmd := &cobra.Command{
		Use: "chat", Short: "Talk with a model that uses your capabilities, under your rules",
		Long: "Talk with a model. It is shown what fits each message, and what it calls passes the same\n" +
			"rules, consent, sandbox and record as everything else.\n\n" +
			"  ken config set model ollama/qwen3     which model, as PROVIDER/NAME\n" +
			"  ken chat                              a conversation\n" +
			"  ken chat -p \"what changed today?\"     one turn: the answer on standard output\n" +
			"  ken chat -p - < question.txt          the message from standard input\n" +
			"  ken chat --resume last                go on with the last conversation\n\n" +
			"With -p and --json every event is one line. Status of -p: 0 answered, 1 failed, 2 usage,\n" +
			"3 refused, 4 waiting for approval (answer with ken approve, then --resume ID -p \"\").",
		Args: args(cobra.NoArgs),
	}
	cmd.Flags().StringVarP(&k.message, "print", "p", "", "say this `message`, print the answer and end; - reads it from standard input")
	cmd.Flags().StringVar(&k.resume, "resume", "", "go on with the session of this `id`, or last")
	cmd.Flags().StringVar(&k.mode, "mode", "", "the `mode` to talk in (policy.modes)")
	cmd.Flags().StringVar(&k.model, "model", "", "the model to talk to, as `PROVIDER/NAME`, instead of that of ken.yaml")
	cmd.Flags().StringVar(&k.agent, "agent", "", "the `name` of the agent whose settings hold (discovery.agents)")
	cmd.Flags().StringVar(&k.delivery, "delivery", "", "how found tools become callable in a new session (chat.toolDelivery)")
	cmd.Flags().BoolVar(&k.list, "list", false, "list the sessions that can be resumed")
	cmd.Flags().BoolVarP(&k.quiet, "quiet", "q", false, "with -p: the answer and nothing else")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		k.said = cmd.Flags().Changed("print")
		if err := k.check(c.json); err != nil {
			return usageError{err}
		}
		return c.with(func(ctx context.Context, a *app.App, _ []string) error { return c.chat(ctx, a, k) })(cmd, given)
	}
	return cmd
}

func (k chatCall) check(json bool) error {
	switch {
	case k.said && strings.TrimSpace(k.message) == "" && k.resume == "":
		return errors.New("-p has no message; write one, or - to read it from standard input")
	case json && !k.said && !k.list:
		return errors.New("--json needs -p, or --list")
	case k.quiet && !k.said:
		return errors.New("--quiet belongs to -p")
	case k.list && (k.said || k.resume != ""):
		return errors.New("--list stands alone")
	}
	return nil
}

func (c *command) chat(ctx context.Context, a *app.App, k chatCall) error {
	if k.list {
		return c.listSessions(ctx, a)
	}
	if k.model != "" {
		a.Settings.Model = k.model
	}
	if err := a.CheckModel(); err != nil && !errors.Is(err, app.ErrNoModel) {
		return err
	}
	t, err := openTalk(ctx, a, k)
	if err != nil {
		return err
	}
	if k.said {
		return c.say(ctx, t, k)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = a.Watch(ctx) // what cannot be watched is told by ken doctor
	}()
	defer func() { stop(); <-watched }()
	in, ok := c.in.(*os.File)
	out, isFile := c.out.w.(*os.File)
	if !ok || !isFile {
		return errors.New("a conversation needs a terminal; ken chat -p takes a message")
	}
	return chat.Run(ctx, chat.Config{
		Talker: t, In: in, Out: out, Greeting: t.greeting(), GoOn: t.head.Open, History: filepath.Join(a.Places.State, "chat-history"),
	})
}

// say makes one turn and prints it.
func (c *command) say(ctx context.Context, t *talk, k chatCall) error {
	text := k.message
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(c.in, mostInput+1))
		if err != nil {
			return fmt.Errorf("read the message: %w", err)
		}
		if len(b) > mostInput {
			return fmt.Errorf("read the message: it has more than %d bytes; put it into a file of the workspace and name that", mostInput)
		}
		text = string(b)
	}
	t.alone = !c.interactive()
	o := chat.Options{JSON: c.json, Quiet: k.quiet, Err: c.err}
	if c.out.terminal {
		o.Width, o.Colour = c.out.width, c.out.colour
	}
	var last heard
	events, is := t.own(ctx, text)
	if !is {
		events = c.answering(ctx, t, t.Turn(ctx, text), &last)
	}
	done, err := chat.Print(c.out, events, o)
	if err != nil {
		if c.json {
			return silently(err)
		}
		return err
	}
	if done.Reason == engine.EndWaiting && !c.json && !k.quiet {
		fmt.Fprintln(c.err, last.next(done.Session))
	}
	return turnStatus(done, last.kind, c.json || !k.quiet)
}

// heard is what of a turn's events is needed at its end.
type heard struct {
	kind  string // of the last call's error
	asked engine.Asked
}

// next says how a turn that waits goes on.
func (h heard) next(session string) string {
	if h.asked.What == engine.Consent && h.asked.Ticket != "" {
		return fmt.Sprintf("To go on: ken approve grant %s (or deny), then ken chat --resume %s -p \"\"", foreign(h.asked.Ticket), foreign(session))
	}
	return fmt.Sprintf("To go on: answer it at a terminal with ken chat --resume %s", foreign(session))
}

// turnStatus turns the end of a turn into a status. told means that the output
// has said it.
func turnStatus(done engine.Done, kind string, told bool) error {
	var err error
	switch done.Reason {
	case engine.EndAnswer:
		return nil
	case engine.EndCommand:
		if kind == "" {
			return nil
		}
		err = &capability.Error{Kind: kindNamed(kind), Op: "run", Target: "the command", Err: errors.New("see above")}
		return silently(err)
	case engine.EndWaiting:
		err = &capability.Error{Kind: capability.Unapproved, Op: "answer", Target: "in session " + done.Session, Err: errors.New(done.Why)}
	default:
		err = &capability.Error{Kind: capability.Unavailable, Op: "answer", Target: "in session " + done.Session, Err: fmt.Errorf("the turn ended: %s: %s", done.Reason, done.Why)}
	}
	if told {
		return silently(err)
	}
	return err
}

// answering passes events on; on a terminal it puts to the person what a turn
// asks.
func (c *command) answering(ctx context.Context, t *talk, events iter.Seq2[engine.Event, error], last *heard) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		for ev, err := range events {
			if f, ok := ev.(engine.Finished); ok {
				last.kind = f.Kind
			}
			if !yield(ev, err) {
				return
			}
			asked, ok := ev.(engine.Asked)
			if ok {
				last.asked = asked
			}
			if !ok || t.alone {
				continue
			}
			if err := c.ask(ctx, t, asked); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// ask puts a question to the person at the terminal.
func (c *command) ask(ctx context.Context, t *talk, asked engine.Asked) error {
	if asked.What == engine.Consent && asked.Ticket != "" {
		desk, err := t.app.Desk()
		if err != nil {
			return err
		}
		ticket, err := desk.Get(ctx, asked.Ticket)
		if err != nil {
			return err
		}
		answer, err := c.decide(ctx, ticket)
		if err != nil {
			return err
		}
		return t.Reply(ctx, asked, chat.Answer{Yes: answer.Effect == approval.Yes, Scope: chat.Scope(answer.Scope)})
	}
	how := "[y/N]"
	if asked.What == engine.Ask {
		how = strings.Join(asked.Choice, " / ")
	}
	fmt.Fprintf(c.out, "%s %s: ", c.out.style(yellow, foreign(asked.Text)), foreign(how))
	line, err := readLine(ctx, c.in)
	if err != nil {
		return err
	}
	line = strings.TrimSpace(line)
	yes := strings.HasPrefix(strings.ToLower(line), "y")
	if asked.What == engine.Ask {
		yes = line != ""
	}
	return t.Reply(ctx, asked, chat.Answer{Yes: yes, Text: line})
}

// listSessions prints what can be resumed, the newest first.
func (c *command) listSessions(ctx context.Context, a *app.App) error {
	sessions, err := a.Sessions()
	if err != nil {
		return err
	}
	list, err := sessions.List(ctx, a.Principal, 50)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(h session.Head) bool { return h.Turns == 0 })
	if c.json {
		return c.printJSON(map[string]any{"sessions": list})
	}
	if len(list) == 0 {
		c.out.linef("There are no sessions yet; ken chat begins one.")
		return nil
	}
	for _, h := range list {
		state := ""
		if h.Open {
			state = "  (waits)"
		}
		c.out.linef("%s  %s  %s%s", foreign(h.ID), h.Updated.Local().Format("2006-01-02 15:04"), foreign(h.Title), state)
	}
	return nil
}

// kindNamed gives the kind of error that an event names.
func kindNamed(name string) capability.ErrorKind {
	for k := capability.Internal; k <= capability.Conflict; k++ {
		if k.String() == name {
			return k
		}
	}
	return capability.Internal
}
