package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/asking"
	"ken/internal/cli/output"
	"ken/internal/govern/approval"
)

// approveCommand is ken approve: it answers approval requests.
type approveCommand struct{ *environment }

func newApprove(env *environment) *cobra.Command {
	c := &approveCommand{env}
	cmd := group("approve", "List, grant and deny approval requests", c.list(), c.grant(), c.deny(), c.revoke())
	unknown := cmd.Args
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 {
			return nil
		}
		return unknown(cmd, given)
	}
	cmd.RunE = c.withApp(c.overview)
	return cmd
}

// overview prints one line for each request that waits, and how to answer.
func (c *approveCommand) overview(ctx context.Context, a *app.App, _ []string) error {
	desk, err := a.Desk()
	if err != nil {
		return err
	}
	tickets, err := desk.List(ctx, approval.Filter{Tenant: a.Principal.Tenant, States: []approval.State{approval.Pending}})
	if c.json {
		return errors.Join(c.printJSON(map[string]any{"tickets": listOf(tickets)}), err)
	}
	var rows [][]string
	for _, t := range tickets {
		rows = append(rows, []string{t.ID, t.Brief(), t.Question.Why, output.Ago(time.Since(t.Asked))})
	}
	c.out.Table([]output.Column{{Style: output.Bold}, {Grow: true}, {Style: output.Dim}, {Style: output.Dim}}, rows)
	if len(rows) == 0 {
		if err == nil {
			fmt.Fprintln(c.err, "ken: nothing waits for an answer")
		}
		return err
	}
	if c.interactive() && err == nil {
		return c.askAll(ctx, a, desk, tickets)
	}
	c.out.Linef("%s", c.out.Style(output.Dim, "ken approve list shows all about them; ken approve grant ID or ken approve deny ID answers one."))
	return err
}

// askAll asks the person at the terminal about each request in turn.
func (c *approveCommand) askAll(ctx context.Context, a *app.App, desk *approval.Desk, tickets []approval.Ticket) error {
	prompt := c.asks()
	prompt.Later = true
	for _, t := range tickets {
		if !desk.MaySettle(a.Principal, &t) {
			continue
		}
		// One answer can settle several requests, and another person can answer.
		if now, err := desk.Get(ctx, t.ID); err != nil || now.State != approval.Pending {
			continue
		}
		c.out.Linef("")
		prompt.Show(t, a.Questions.Lines(t))
		answer, err := prompt.Decide(ctx, t)
		if errors.Is(err, asking.ErrLater) {
			continue
		}
		if err != nil {
			return err
		}
		answer.By = a.Principal
		if err := c.settle(ctx, a, t.ID, answer); err != nil {
			fmt.Fprintf(c.err, "ken: %s\n", output.Line(err.Error()))
		}
	}
	return nil
}

func (c *approveCommand) list() *cobra.Command {
	var all, grants, verbose bool
	cmd := &cobra.Command{
		Use: "list", Short: "List open approval requests", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
			desk, err := a.Desk()
			if err != nil {
				return err
			}
			if grants {
				return c.listGrants(ctx, a, desk)
			}
			f := approval.Filter{Tenant: a.Principal.Tenant}
			if !all {
				f.States = []approval.State{approval.Pending}
			}
			tickets, err := desk.List(ctx, f)
			if c.json {
				return errors.Join(c.printJSON(map[string]any{"tickets": listOf(tickets)}), err)
			}
			for _, t := range tickets {
				c.printTicket(a, t, all || verbose)
			}
			if len(tickets) == 0 && err == nil {
				fmt.Fprintln(c.err, "ken: nothing waits for an answer")
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "include requests that were answered or have expired")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print every fact of a request, such as its digest and hash")
	cmd.Flags().BoolVar(&grants, "grants", false, "list the grants in force instead")
	return cmd
}

// printTicket prints a request: what would run, why it waits and what can be
// answered. With whole, it prints every fact.
func (c *approveCommand) printTicket(a *app.App, t approval.Ticket, whole bool) {
	p := c.out
	p.Linef("%s  %s", p.Style(output.Bold, t.ID), p.Style(output.Yellow, string(t.State)))
	for _, line := range a.Questions.Lines(t) {
		if !whole && slices.Contains(asking.Beside(), line.Name) {
			continue
		}
		p.Linef("  %s  %s", p.Style(output.Dim, fmt.Sprintf("%-12s", output.Line(line.Name))), strings.ReplaceAll(asking.Text(p, line), "\n", "\n"+strings.Repeat(" ", 16)))
	}
}

func (c *approveCommand) listGrants(ctx context.Context, a *app.App, desk *approval.Desk) error {
	held, err := desk.Held(ctx, approval.Filter{Tenant: a.Principal.Tenant})
	if c.json {
		return errors.Join(c.printJSON(map[string]any{"grants": listOf(held)}), err)
	}
	rows := [][]string{}
	for _, g := range held {
		until := ""
		if !g.Until.IsZero() {
			until = "until " + g.Until.Local().Format("2006-01-02 15:04")
		}
		covers := g.Text()
		if list := g.Examples(); len(list) > 0 {
			covers += ", as: " + strings.Join(list, " · ")
		}
		rows = append(rows, []string{g.ID, string(g.Scope), string(g.Capability), g.Action, until, "by " + g.By, covers})
	}
	c.out.Table([]output.Column{{Style: output.Bold}, {Style: output.Yellow}, {}, {}, {Style: output.Dim}, {Style: output.Dim}, {}}, rows)
	return err
}

func (c *approveCommand) grant() *cobra.Command {
	var scope, covers, note string
	var until string
	cmd := &cobra.Command{
		Use: "grant ID", Short: "Approve a waiting call", Args: args(cobra.ExactArgs(1)),
		Example: "  ken approve grant 7f3a…\n  ken approve grant 7f3a… --for session\n  ken approve grant 7f3a… --for always --covers prefix\n  ken approve grant 7f3a… --until 8h",
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			if !slices.Contains([]string{"once", "session", "always"}, scope) {
				return usageError{fmt.Errorf("--for is %q; write once, session or always, or give --until", scope)}
			}
			if !slices.Contains([]string{"", "call", "prefix", "tool"}, covers) {
				return usageError{fmt.Errorf("--covers is %q; write call, prefix or tool", covers)}
			}
			answer := approval.Answer{By: a.Principal, Effect: approval.Yes, Scope: approval.Scope(scope), Covers: approval.Cover(covers), Note: note}
			if until != "" {
				end, err := ahead(until, time.Now())
				if err != nil {
					return err
				}
				answer.Scope, answer.Until = approval.Until, end
			}
			return c.settle(ctx, a, given[0], answer)
		}),
	}
	cmd.Flags().StringVar(&scope, "for", string(approval.Once), "how long the grant lasts (`duration`): once, session, or always (every session, for approval.alwaysFor)")
	cmd.Flags().StringVar(&covers, "covers", "", "`what` a grant for longer than once covers: call (this exact call), prefix (commands with the same beginning) or tool (any arguments); default: call, or tool with --for session")
	cmd.Flags().StringVar(&until, "until", "", "grant for every session until this `time`: a duration such as 8h, or 2026-01-31T12:00:00Z")
	cmd.Flags().StringVar(&note, "note", "", "`reason` for the audit log")
	return cmd
}

// ahead reads a time that is to come.
func ahead(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	t, err := parseMoment("--until", text, now)
	if err != nil {
		return t, usageError{fmt.Errorf("--until is %q; write a duration, as in 8h, or a time, as in 2026-01-31T12:00:00Z", text)}
	}
	if !t.After(now) {
		err = usageError{fmt.Errorf("--until is %q, which is in the past; write a future time, as in 8h", text)}
	}
	return t, err
}

func (c *approveCommand) deny() *cobra.Command {
	var session, all bool
	var note string
	cmd := &cobra.Command{
		Use: "deny ID", Short: "Deny a waiting call", Example: "  ken approve deny 7f3a…\n  ken approve deny --all",
		Args: func(cmd *cobra.Command, given []string) error {
			if all {
				return args(cobra.NoArgs)(cmd, given)
			}
			return args(cobra.ExactArgs(1))(cmd, given)
		},
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			answer := approval.Answer{By: a.Principal, Effect: approval.No, Scope: approval.Once, Note: note}
			if session {
				answer.Scope = approval.Session
			}
			if all {
				return c.denyAll(ctx, a, answer)
			}
			return c.settle(ctx, a, given[0], answer)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "deny every call that waits")
	cmd.Flags().BoolVar(&session, "session", false, "do not ask again in this session")
	cmd.Flags().StringVar(&note, "note", "", "`reason` for the audit log")
	return cmd
}

// denyAll denies every request that waits and that the user may answer.
func (c *approveCommand) denyAll(ctx context.Context, a *app.App, answer approval.Answer) error {
	desk, err := a.Desk()
	if err != nil {
		return err
	}
	tickets, err := desk.List(ctx, approval.Filter{Tenant: a.Principal.Tenant, States: []approval.State{approval.Pending}})
	denied := []string{}
	for _, t := range tickets {
		if !desk.MaySettle(a.Principal, &t) {
			continue
		}
		_, failed := a.Approvals.Settle(ctx, t.ID, answer)
		switch {
		case failed == nil:
			denied = append(denied, t.ID)
		case !errors.Is(failed, approval.ErrSettled): // with --session one answer settles others
			err = errors.Join(err, failed)
		}
	}
	if c.json {
		return errors.Join(c.printJSON(map[string]any{"denied": denied}), err)
	}
	c.out.Linef("%s denied", output.Plural(len(denied), "request"))
	return err
}

func (c *approveCommand) settle(ctx context.Context, a *app.App, id string, answer approval.Answer) error {
	t, err := a.Approvals.Settle(ctx, id, answer)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"ticket": t})
	}
	c.out.Linef("%s %s: %s", t.ID, t.State, output.Line(string(t.Question.Call.Target)))
	if t.State == approval.Granted {
		c.printCovered(ctx, a, t)
		again := "Make the call again, and it runs."
		if t.Answer != nil && (t.Answer.Scope == approval.Once || t.Answer.Scope == approval.Session) && t.Question.Call.Session != "" {
			again = "Make the call again in the same session, and it runs."
		}
		c.out.Linef("%s", again)
	}
	return nil
}

// printCovered prints what a grant for more than one call covers.
func (c *approveCommand) printCovered(ctx context.Context, a *app.App, t approval.Ticket) {
	desk, err := a.Desk()
	if err != nil || t.Answer == nil || t.Answer.Scope == approval.Once {
		return
	}
	held, _ := desk.Held(ctx, approval.Filter{Tenant: a.Principal.Tenant, Capability: t.Question.Call.Target})
	for _, g := range held {
		if g.ID != t.Grant {
			continue
		}
		where := "in every session"
		if t.Answer.Scope == approval.Session {
			where = "in this session"
		}
		c.out.Linef("It covers %s, %s, until %s.", output.Line(g.Text()), where, g.Until.Local().Format("2006-01-02 15:04"))
		for _, one := range g.Examples() {
			c.out.Linef("  for example: %s", output.Line(one))
		}
	}
}

func (c *approveCommand) revoke() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a grant", Args: args(cobra.ExactArgs(1)),
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			if err := a.Approvals.Revoke(ctx, given[0], a.Principal, why); err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"revoked": given[0]})
			}
			c.out.Linef("%s no longer holds", output.Line(given[0]))
			return nil
		}),
	}
	cmd.Flags().StringVar(&why, "why", "", "`reason` for the audit log")
	return cmd
}
