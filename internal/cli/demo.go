package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/chat"
	"ken/internal/cli/output"
	"ken/internal/govern/audit"
	"ken/internal/talk/demo"
	"ken/internal/talk/event"
)

// demoCommand is ken demo: a scripted model uses real tools under real rules.
type demoCommand struct {
	chatCommand
	yes bool
}

// demoPace is the pause after each word of the model at a terminal.
const demoPace = 30 * time.Millisecond

func newDemo(env *environment) *cobra.Command {
	c := &demoCommand{chatCommand: chatCommand{env}}
	cmd := &cobra.Command{
		Use: "demo", Short: "See Ken work in a minute: nothing has to be set up", Args: args(cobra.NoArgs),
		Long: "Play three requests with a scripted model. One runs at once, one asks you first, and one is\n" +
			"denied by a rule. The rules, the approval, the tools and the audit log are real. The demo has\n" +
			"its own home and practice folder, which are removed at the end. It reads none of your settings,\n" +
			"keys or files, and needs no network.",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&c.yes, "yes", false, "approve the call that asks, instead of asking; for scripts")
	return cmd
}

func (c *demoCommand) run(ctx context.Context) (err error) {
	if !c.yes && !c.interactive() {
		return usageError{errors.New("ken demo asks you to approve a call and needs a terminal; ken demo --yes approves it")}
	}
	cfg := app.DemoConfig{Observe: c.progress.Observe}
	if c.out.Terminal && !c.yes {
		cfg.Pace = demoPace
	}
	a, err := app.OpenDemo(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	t, err := openConversation(ctx, a, chatCall{})
	if err != nil {
		return err
	}
	if !c.json {
		c.out.Linef("%s", c.out.Style(output.Yellow, demo.Notice))
	}
	turns := []demoTurn{}
	for _, r := range demo.Requests() {
		done, err := c.play(ctx, t, r)
		if err != nil {
			return err
		}
		turns = append(turns, demoTurn{Request: r, Answer: done.Text, Reason: string(done.Reason), Calls: done.Calls})
	}
	return c.showAudit(ctx, a, turns)
}

// A demoTurn is a request of the demo and what came of it.
type demoTurn struct {
	demo.Request
	Answer string `json:"answer"`
	Reason string `json:"reason"`
	Calls  int    `json:"calls"`
}

// play has the model answer a request.
func (c *demoCommand) play(ctx context.Context, t *conversation, r demo.Request) (event.Done, error) {
	var last heard
	events := t.Turn(ctx, r.Text)
	if c.yes {
		events = c.approving(ctx, t, events)
	} else {
		events = c.answering(ctx, t, events, &last)
	}
	if c.json {
		return chat.Print(io.Discard, events, chat.Options{})
	}
	c.out.Linef("\n%s %s  %s", c.out.Style(output.Bold, ">"), c.out.Style(output.Bold, r.Text), c.out.Style(output.Dim, "("+r.Shows+")"))
	o := chat.Options{Err: c.out, Verbose: true}
	if c.out.Terminal {
		o.Width, o.Colour = c.out.Width, c.out.Colour
	}
	return chat.Print(c.out, events, o)
}

// approving passes events on, and approves what is asked, once.
func (c *demoCommand) approving(ctx context.Context, t *conversation, events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for ev, err := range events {
			if !yield(ev, err) {
				return
			}
			asked, ok := ev.(event.Asked)
			if !ok {
				continue
			}
			if !c.json {
				c.out.Linef("%s", c.out.Style(output.Yellow, "Allow it? yes, by --yes"))
			}
			if err := t.Reply(ctx, asked, chat.Answer{Yes: asked.What == event.Consent}); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// showAudit prints what the demo recorded, whether it is intact, and what to do
// next.
func (c *demoCommand) showAudit(ctx context.Context, a *app.App, turns []demoTurn) error {
	report, err := a.Archive.Verify(ctx)
	if err != nil {
		return err
	}
	records := []audit.Record{}
	rows := [][]string{}
	for e, err := range audit.Query(a.Archive.Dir, audit.Filter{}) {
		if err != nil {
			return err
		}
		r := e.Record
		records = append(records, r)
		if r.Target != "" {
			rows = append(rows, []string{r.Timestamp.Local().Format(time.TimeOnly), "user " + r.UserID, string(r.Event), r.Target, cmp.Or(r.Decision, string(r.Status)), r.Rule})
		}
	}
	if c.json {
		return c.printJSON(map[string]any{"demo": demo.Notice, "turns": turns, "records": records, "intact": report.OK()})
	}
	c.out.Linef("\n%s", c.out.Style(output.Bold, "What the demo recorded in its audit log:"))
	c.out.Table([]output.Column{{Style: output.Dim}, {Style: output.Dim}, {}, {Style: output.Bold}, {}, {Style: output.Dim, Grow: true}}, rows)
	if report.OK() {
		opened := ""
		if len(records) > len(rows) {
			opened = ", and the one that opened the log,"
		}
		c.out.Linef("These %s%s are intact: ken audit verify checks it for your own log.", output.Plural(len(rows), "record"), opened)
	} else {
		c.out.Linef("%s", c.out.Style(output.Red, "The audit log of the demo is not intact."))
	}
	c.out.Linef("%s", c.out.Style(output.Dim, "This was the demo; its files are removed. Nothing of yours was read or changed."))
	steps := slices.DeleteFunc(c.nextSteps(ctx), func(s string) bool { return s == demoStep })
	c.out.Linef("\nNext: %s", strings.Join(steps, "\n      "))
	return nil
}
