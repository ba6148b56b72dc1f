package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/door"
)

// A discoverCall is what the flags of ken discover say.
type discoverCall struct {
	query   door.Query
	before  []string
	kinds   []string
	exclude []string
	used    []string
	pinned  []string
	prompt  bool

	topK, fullK, total int
	minRelevance       float64
	noGraph            bool
}

func (c *command) discoverCommand() *cobra.Command {
	call := &discoverCall{}
	cmd := &cobra.Command{
		Use: `discover "MESSAGE"`, Short: "Show what would be shown for a message, and why",
		Example: "  ken discover \"what changed in this repository lately\"\n" +
			"  ken discover --kind skill --available \"write a release note\"",
		Args: args(cobra.MinimumNArgs(1)),
	}
	cmd.RunE = c.with(func(ctx context.Context, a *app.App, given []string) error {
		message := strings.Join(given, " ")
		if strings.TrimSpace(message) == "" {
			return usageError{errors.New(`the message is empty; say what you want done: ken discover "search the web"`)}
		}
		found, err := a.Door.Find(ctx, a.View(), call.of(message, cmd.Flags()))
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(found)
		case call.prompt:
			_, err := fmt.Fprint(c.out, foreignText(found.Prompt()))
			return err
		}
		c.printFound(found, a.Settings.Discovery.TotalTokenBudget)
		return nil
	})
	call.flags(cmd.Flags())
	return cmd
}

func (d *discoverCall) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&d.kinds, "kind", nil, "find only this `kind` (repeatable)")
	f.StringVar(&d.query.Filter.Category, "category", "", "find only this `category`")
	f.BoolVar(&d.query.Filter.OnlyAvailable, "available", false, "find only what can be used here")
	f.StringArrayVar(&d.exclude, "exclude", nil, "do not find this `id` (repeatable)")
	f.IntVar(&d.topK, "top", 0, "at most this `number` of briefs")
	f.IntVar(&d.fullK, "full", 0, "at most this `number` of full texts")
	f.IntVar(&d.total, "budget", 0, "at most this many `tokens` in all")
	f.Float64Var(&d.minRelevance, "min-relevance", 0, "show nothing below this `chance`, 0 to 1, that anything fits")
	f.BoolVar(&d.noGraph, "no-graph", false, "leave out what capabilities have to do with each other")
	f.StringArrayVar(&d.before, "before", nil, "an earlier `message`, oldest first (repeatable)")
	f.StringArrayVar(&d.used, "used", nil, "an `id` that was used in the last turns (repeatable)")
	f.StringArrayVar(&d.pinned, "pin", nil, "an `id` to keep in sight (repeatable)")
	f.StringArrayVar(&d.query.RouterTags, "tag", nil, "a router `tag` for cards (repeatable)")
	f.StringVar(&d.query.Scope.Session, "session", "", "record it as a message of this `session`")
	f.StringVar(&d.query.Scope.SessionType, "session-type", "", "the session's `type`, as in main or isolated")
	f.StringVar(&d.query.Scope.Agent, "agent", "", "the `agent` that asks")
	f.StringVar(&d.query.Scope.UserTier, "user-tier", "", "the user's `tier`, for cards")
	f.StringVar(&d.query.Scope.Environment, "environment", "", "the `environment`, for cards")
	f.BoolVar(&d.prompt, "prompt", false, "print only the text that would go into a prompt")
}

// of gives the query. A flag that was not given overrides nothing.
func (d *discoverCall) of(message string, given *pflag.FlagSet) door.Query {
	q := d.query
	q.Text, q.Now = message, time.Now()
	for _, text := range d.before {
		q.Before = append(q.Before, door.Message{Role: "user", Text: text})
	}
	for _, k := range d.kinds {
		q.Filter.Kinds = append(q.Filter.Kinds, capability.Kind(k))
	}
	q.Filter.Exclude, q.Used, q.Pinned = capabilityIDs(d.exclude), capabilityIDs(d.used), capabilityIDs(d.pinned)
	if given.Changed("top") {
		q.Override.TopK = &d.topK
	}
	if given.Changed("full") {
		q.Override.FullK = &d.fullK
	}
	if given.Changed("budget") {
		q.Override.TotalTokens = &d.total
	}
	if given.Changed("min-relevance") {
		q.Override.MinRelevance = &d.minRelevance
	}
	if d.noGraph {
		off := false
		q.Override.Graph = &off
	}
	return q
}

func capabilityIDs(names []string) []capability.ID {
	var out []capability.ID
	for _, n := range names {
		out = append(out, capability.ID(n))
	}
	return out
}

func (c *command) printFound(f door.Found, budget int) {
	p := c.out
	if len(f.Briefs) == 0 && len(f.Cards) == 0 {
		p.linef("Nothing fits this message%s.", nearest(f))
	}
	for _, b := range f.Briefs {
		indent := ""
		if b.Attached != "" {
			indent = "  "
		}
		p.linef("%s%s %s %s", indent, bar(p, b.Score), p.style(bold, fmt.Sprintf("%.2f", b.Score)), foreign(b.Text))
		p.linef("    %s%s", indent, p.style(dim, foreign(fmt.Sprintf("%s, %s: %s", b.ID, plural(b.Tokens, "token"), strings.Join(b.Why, "; ")))))
	}
	for _, b := range f.Cards {
		p.linef("%s %s %s", bar(p, b.Score), p.style(bold, fmt.Sprintf("%.2f", b.Score)), foreign("card "+string(b.ID)))
		p.linef("    %s", p.style(dim, foreign(fmt.Sprintf("%s: %s", plural(b.Tokens, "token"), strings.Join(b.Why, "; ")))))
	}
	for _, b := range f.Fulls {
		note := ""
		if b.Truncated {
			note = ", an excerpt"
		}
		p.linef("%s %s", p.style(cyan, "full"), foreign(fmt.Sprintf("%s, %s%s", b.ID, plural(b.Tokens, "token"), note)))
	}
	c.printBudget(f, budget)
	for _, d := range f.Degraded {
		p.linef("%s", p.style(yellow, foreign("degraded: "+d)))
	}
	if !f.Rollout.Inject {
		p.linef("%s", p.style(yellow, foreign("not injected: "+f.Rollout.Reason)))
	}
	if len(f.Skipped) > 0 && p.terminal {
		p.linef("%s", p.style(dim, fmt.Sprintf("%d more were left out; --json says why", len(f.Skipped))))
	}
}

func nearest(f door.Found) string {
	if len(f.Nearest) == 0 {
		return ""
	}
	var names []string
	for _, n := range f.Nearest {
		names = append(names, foreign(string(n.ID)))
	}
	return "; the nearest are " + strings.Join(names, ", ")
}

// printBudget draws how much of the budget each tier takes.
func (c *command) printBudget(f door.Found, budget int) {
	p, t := c.out, f.Tokens
	if !p.terminal {
		p.linef("tokens: map %d, briefs %d, cards %d, full %d, total %d of %d; %d µs", t.Map, t.Briefs, t.Cards, t.Fulls, t.Total, budget, f.TookUS)
		return
	}
	const width = 40
	var b strings.Builder
	used := 0
	for _, tier := range []struct {
		tokens int
		style  string
	}{{t.Map, cyan}, {t.Briefs, green}, {t.Cards, yellow}, {t.Fulls, bold}} {
		n := 0
		if budget > 0 {
			n = min((tier.tokens*width+budget/2)/budget, width-used)
		}
		b.WriteString(p.style(tier.style, strings.Repeat("█", n)))
		used += n
	}
	b.WriteString(p.style(dim, strings.Repeat("░", width-used)))
	p.linef("\n%s %d of %d tokens, %d µs", b.String(), t.Total, budget, f.TookUS)
	p.linef("%s", p.style(dim, fmt.Sprintf("map %d · briefs %d · cards %d · full %d; the chance that this fits: %.0f%%", t.Map, t.Briefs, t.Cards, t.Fulls, 100*f.Fit)))
}

// bar draws a score on a terminal.
func bar(p *printer, score float64) string {
	if !p.terminal {
		return "-"
	}
	const width = 10
	full := min(width, int(score*width+0.5))
	return p.style(green, strings.Repeat("█", full)) + p.style(dim, strings.Repeat("░", width-full))
}
