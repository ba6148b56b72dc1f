package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/find/outcome"
)

// statsCommand is ken stats: it prints what was shown and used.
type statsCommand struct{ *environment }

func newStats(env *environment) *cobra.Command {
	c := &statsCommand{env}
	var since time.Duration
	var lift bool
	cmd := &cobra.Command{
		Use: "stats", Short: "Show what was shown, what was used, and what it cost", Args: args(cobra.NoArgs),
		Example: "  ken stats --since 48h",
		RunE: c.withApp(func(_ context.Context, a *app.App, _ []string) error {
			if since <= 0 {
				return usageError{fmt.Errorf("--since is %v; give a time such as 48h", since)}
			}
			if lift {
				if err := a.Door.Lift(a.Principal); err != nil {
					return err
				}
			}
			report := a.Door.Report(time.Now().Add(-since))
			if c.json {
				return c.printJSON(report)
			}
			c.printStats(report, since)
			return nil
		}),
	}
	cmd.Flags().DurationVar(&since, "since", 48*time.Hour, "how far back to look (`duration`)")
	cmd.Flags().BoolVar(&lift, "lift", false, "reset the kill switch first")
	return cmd
}

func (c *statsCommand) printStats(r door.Report, since time.Duration) {
	p := c.out
	p.Linef("%s", p.Style(output.Bold, fmt.Sprintf("The last %v", since)))
	m := r.Metrics
	if m.Requests == 0 {
		p.Linef("Nothing was recorded; messages of a session are: ken discover --session NAME \"…\"")
	} else {
		p.Linef("%s in %s; cards triggered in %.0f%% of them, injected in %.0f%%",
			output.Plural(m.Requests, "message"), output.Plural(m.Sessions, "session"), 100*m.TriggerRate, 100*m.InjectionRate)
		p.Linef("tokens selected: %.0f per message, %.0f of them for cards %s", m.TokensMean, m.CardTokensMean,
			p.Style(output.Dim, "(counted when chosen, even if no model was reached)"))
		p.Linef("time: half within %d µs, 95%% within %d µs, at most %d µs", m.P50US, m.P95US, m.MaxUS)
		if m.Selections > 0 {
			p.Linef("used when chosen: %d of %d (%.0f%%); sent and not used: %d of %d", m.SelectedUsed, m.Selections, 100*m.Accuracy, m.Wasted, m.Shown)
		}
		if t := m.Texts; t.Sent > 0 {
			p.Linef("cards and other texts: %d sent; used %d of %d (%.0f%%) %s", t.Sent, t.Used, t.Judged, 100*t.Rate,
				p.Style(output.Dim, "(used: a tool that it names was called in the same turn, or it was read)"))
			if t.Unjudged > 0 {
				p.Linef("not judged: %d of them, because they name no tool", t.Unjudged)
			}
		}
		p.Linef("searched for: %d, not shown before: %d", m.Searched, m.Misses)
		p.Linef("calls that ran: %d, failed: %d %s", m.Calls, m.FailedCalls,
			p.Style(output.Dim, "(calls that did not start are in ken audit query: denied, invalid, not found)"))
		p.Linef("errors: %d; requests that continued without a part: %d", m.Errors, m.Degraded)
	}
	if r.KillSwitch.Why != "" {
		p.Linef("kill switch: %s", output.Line(r.KillSwitch.Why))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Experiments)) {
		e := r.Experiments[name]
		p.Linef("experiment %s: %s; %s; %s", output.Line(name), output.Line(e.Success.Words), output.Line(e.Tokens.Words), output.Line(e.Misses.Words))
	}
	learned := false
	for _, id := range slices.Sorted(maps.Keys(r.Priors)) {
		if prior := r.Priors[id]; prior.LogOdds != 0 {
			if !learned {
				learned = true
				p.Linef("learned, from %+.2f to %+.2f; it orders what is about equally relevant:", -outcome.MaxLogOdds, outcome.MaxLogOdds)
			}
			p.Linef("%+.2f %s %s", prior.LogOdds, output.Line(string(id)), p.Style(output.Dim, output.Line(prior.Why)))
		}
	}
	if r.Log.Error != "" {
		p.Linef("%s", p.Style(output.Yellow, output.Line("the log: "+r.Log.Error)))
	}
}
