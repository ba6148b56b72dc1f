package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/chat"
	"ken/internal/cli/output"
	"ken/internal/govern/approval"
	"ken/internal/run/runner"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/opener"
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
	kind     string // of session
	list     bool
	quiet    bool
	verbose  bool
	said     bool // -p was given
}

// chatCommand is ken chat: it talks with a model.
type chatCommand struct{ *environment }

func newChat(env *environment) *cobra.Command {
	c := &chatCommand{env}
	var k chatCall
	cmd := &cobra.Command{
		Use: "chat", Short: "Talk with a model that uses your capabilities, under your rules",
		Long: "Talk with a model. It sees the capabilities that fit each message. Its calls pass the same\n" +
			"rules, approvals and sandbox as every other call, and are recorded.\n\n" +
			"  ken model set ollama/qwen3            which model, as PROVIDER/NAME\n" +
			"  ken chat                              a conversation\n" +
			"  ken chat -p \"what changed today?\"     one turn; prints the answer\n" +
			"  ken chat -p - < question.txt          the message from standard input\n" +
			"  git diff | ken chat -p \"review this\"  piped input is added below the message\n" +
			"  ken chat --resume last                continue the last conversation\n\n" +
			"Piped standard input is read to its end; < /dev/null prevents that.\n" +
			"With -p and --json every event is one line. Status of -p: 0 answered, 1 failed, 2 usage,\n" +
			"3 denied, 4 waiting for approval (answer with ken approve, then --resume ID -p \"\").",
		Args: args(func(_ *cobra.Command, given []string) error {
			if len(given) > 0 {
				return fmt.Errorf("ken chat takes no arguments; to send a message: ken chat -p %q", strings.Join(given, " "))
			}
			return nil
		}),
	}
	cmd.Flags().StringVarP(&k.message, "print", "p", "", "send this `message`, print the answer and exit; - reads it from standard input")
	cmd.Flags().StringVar(&k.resume, "resume", "", "continue the session with this `id`, or last")
	cmd.Flags().StringVar(&k.mode, "mode", "", "`mode` of the session (policy.modes), or none")
	cmd.Flags().StringVar(&k.model, "model", "", "use this model, as `PROVIDER/NAME`, instead of the one in ken.yaml")
	cmd.Flags().StringVar(&k.agent, "agent", "", "use the settings of this `agent` (discovery.agents)")
	cmd.Flags().StringVar(&k.kind, "session-type", "", "session `type`, for cards that require one: main, isolated, … (default main)")
	cmd.Flags().StringVar(&k.delivery, "delivery", "", "how found tools become callable in a new session: a `value` of chat.toolDelivery")
	cmd.Flags().BoolVar(&k.list, "list", false, "list the sessions that can be resumed")
	cmd.Flags().BoolVarP(&k.quiet, "quiet", "q", false, "with -p: print only the answer, and no calls, questions and failures")
	cmd.Flags().BoolVar(&k.verbose, "verbose", false, "with -p: print also what was found, and the tokens and time of the turn")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		k.said = cmd.Flags().Changed("print")
		if err := k.check(c.json); err != nil {
			return usageError{err}
		}
		return c.withApp(func(ctx context.Context, a *app.App, _ []string) error { return c.chat(ctx, a, k) })(cmd, given)
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
		return errors.New("--quiet needs -p")
	case k.verbose && (!k.said || k.quiet):
		return errors.New("--verbose needs -p, and not --quiet")
	case k.list && (k.said || k.resume != ""):
		return errors.New("--list cannot be used with -p or --resume")
	case k.delivery != "" && !slices.Contains(deliveries(), k.delivery):
		return fmt.Errorf("--delivery %q: want one of %s", k.delivery, strings.Join(deliveries(), ", "))
	}
	return nil
}

// deliveries are the words of chat.toolDelivery.
func deliveries() []string {
	var out []string
	for _, r := range []model.DeliveryMode{model.Auto, model.Whole, model.Inline, model.Search, model.Bridge, model.Extend, model.PerTurn} {
		out = append(out, string(r))
	}
	return out
}

func (c *chatCommand) chat(ctx context.Context, a *app.App, k chatCall) error {
	if k.list {
		return c.listSessions(ctx, a)
	}
	if k.model != "" {
		a.UseModel(k.model)
	}
	// A reader that goes away must not end this process: the turn would have no
	// end, and the session would stay locked. The signal is caught rather than
	// ignored, because programs that Ken starts would inherit that.
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	defer signal.Stop(gone)
	if err := a.Models.Check(); err != nil && !errors.Is(err, opener.ErrNoModel) {
		return err
	}
	c.checkAgent(a, k.agent)
	t, err := openConversation(ctx, a, k)
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
	c.progress.Hide() // what follows writes to the terminal itself
	out := c.out.File()
	if !ok || out == nil {
		return errors.New("a conversation needs a terminal; ken chat -p takes a message")
	}
	return chat.Run(ctx, chat.Config{
		Talker: t, In: in, Out: out, Greeting: t.greeting(ctx), GoOn: t.head.Open, History: filepath.Join(a.Places.State, "chat-history"),
	})
}

// say makes one turn and prints it.
func (c *chatCommand) say(ctx context.Context, t *conversation, k chatCall) error {
	text, err := c.message(ctx, k.message)
	if err != nil {
		return err
	}
	t.alone = !c.interactive()
	o := chat.Options{JSON: c.json, Quiet: k.quiet, Verbose: k.verbose, Err: c.err, Result: func(r capability.Result) { c.printParts(r, nil) }}
	if c.out.Terminal {
		o.Width, o.Colour = c.out.Width, c.out.Colour
	}
	var last heard
	events, is := t.own(ctx, text)
	if !is {
		events = c.answering(ctx, t, t.Turn(ctx, text), &last)
	}
	done, err := chat.Print(c.out, events, o)
	if err != nil {
		if c.json || errors.Is(err, syscall.EPIPE) {
			return silently(err)
		}
		return err
	}
	if done.Reason == event.EndWaiting && !c.json && !k.quiet {
		fmt.Fprintln(c.err, last.next(done.Session))
	}
	return turnStatus(done, last, c.json || !k.quiet)
}

// heard is what of a turn's events is needed at its end.
type heard struct {
	kind   string // of the last call's error
	failed bool   // it was made, and says so itself
	late   bool   // it was stopped because it took too long
	asked  event.Asked
}

// next says how a turn that waits goes on.
func (h heard) next(session string) string {
	if h.asked.What == event.Consent && h.asked.Ticket != "" {
		return fmt.Sprintf("To go on: ken approve grant %s (or deny), then ken chat --resume %s -p \"\"", output.Line(h.asked.Ticket), output.Line(session))
	}
	return fmt.Sprintf("To go on: answer it at a terminal with ken chat --resume %s", output.Line(session))
}

// turnStatus turns the end of a turn into a status. told means that the output
// has said it.
func turnStatus(done event.Done, last heard, told bool) error {
	var err error
	switch done.Reason {
	case event.EndAnswer:
		return nil
	case event.EndCommand:
		switch {
		case last.late:
			return silently(&capability.Error{Kind: capability.Timeout, Op: "run", Target: "the command"})
		case last.failed && last.kind == "":
			return errSilent
		case last.kind == "":
			return nil
		}
		err = &capability.Error{Kind: kindNamed(last.kind), Op: "run", Target: "the command", Err: errors.New(done.Why)}
	case event.EndWaiting:
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
func (c *chatCommand) answering(ctx context.Context, t *conversation, events iter.Seq2[event.Event, error], last *heard) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for ev, err := range events {
			if f, ok := ev.(event.Finished); ok {
				last.kind, last.failed = f.Kind, f.Result.Failed
				last.late = f.Result.Meta[runner.MetaState] == runner.TimedOut.String()
			}
			if !yield(ev, err) {
				return
			}
			asked, ok := ev.(event.Asked)
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
func (c *chatCommand) ask(ctx context.Context, t *conversation, asked event.Asked) error {
	if asked.What == event.Consent && asked.Ticket != "" {
		desk, err := t.app.Desk()
		if err != nil {
			return err
		}
		ticket, err := desk.Get(ctx, asked.Ticket)
		if err != nil {
			return err
		}
		answer, err := consentPrompt{c.environment}.decide(ctx, ticket)
		if err != nil {
			return err
		}
		return t.Reply(ctx, asked, chat.Answer{Yes: answer.Effect == approval.Yes, Scope: chat.Scope(answer.Scope), Covers: string(answer.Covers)})
	}
	if f, ok := c.in.(*os.File); ok {
		chat.Flush(f)
	}
	how := "[y/N]"
	if asked.What == event.Ask {
		how = strings.Join(asked.Choice, " / ")
	}
	fmt.Fprintf(c.out, "%s %s: ", c.out.Style(output.Yellow, output.Line(asked.Text)), output.Line(how))
	line, err := readLine(ctx, c.in)
	if err != nil {
		return err
	}
	line = strings.TrimSpace(line)
	yes := strings.HasPrefix(strings.ToLower(line), "y")
	if asked.What == event.Ask {
		yes = line != ""
	}
	return t.Reply(ctx, asked, chat.Answer{Yes: yes, Text: line})
}

// listSessions prints what can be resumed, the newest first.
func (c *chatCommand) listSessions(ctx context.Context, a *app.App) error {
	list, err := listed(ctx, a, 50)
	if err != nil {
		return err
	}
	if c.json {
		heads := make([]session.Head, len(list))
		for i, s := range list {
			heads[i] = s.Head
		}
		return c.printJSON(map[string]any{"sessions": heads})
	}
	if len(list) == 0 {
		c.out.Linef("There are no sessions yet; ken chat begins one.")
		return nil
	}
	for _, s := range list {
		c.out.Linef("%s  %s", output.Line(s.ID), s.about())
	}
	return nil
}

// kindNamed returns the kind of error that an event names.
func kindNamed(name string) capability.ErrorKind {
	for k := capability.Internal; k <= capability.Upstream; k++ {
		if k.String() == name {
			return k
		}
	}
	return capability.Internal
}
