// Package discovering has the command ken discover.
package discovering

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/duration"
	"ken/internal/find/vectors"
)

// A Config is what the command needs of the program.
type Config struct {
	Out       *output.Printer
	Err       io.Writer
	JSON      *bool // the flag --json, read when the command runs
	PrintJSON func(any) error
	Usage     func(error) error // marks a mistake in how the command was called

	// Kinds names the kinds of capabilities, for the help.
	Kinds string

	// CheckFilter refuses kinds and a category that neither Ken nor a capability
	// has. The empty category is none.
	CheckFilter func(view door.View, kinds []string, category string) error

	// With runs a function with the program open.
	With func(cmd *cobra.Command, run func(context.Context, App) error) error
}

// An App is the open program, as far as the command needs it.
type App struct {
	Door    *door.Door
	Vectors *vectors.Keeper
	View    func() door.View // the catalog, as it is now

	// CheckAgent warns about an agent that has no settings of its own.
	CheckAgent func(name string)
}

// A request is what the flags of ken discover say.
type request struct {
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

// New returns ken discover, which prints what is found for a message.
func New(c Config) *cobra.Command {
	call := &request{}
	cmd := &cobra.Command{
		Use: `discover "MESSAGE"`, Short: "Show what a model would see for a message, and why",
		Example: "  ken discover \"what changed in this repository lately\"\n" +
			"  ken discover --kind skill --available \"write a release note\"",
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				return c.Usage(fmt.Errorf(`missing message; say what you want done: ken discover "search the web"; see %s --help`, cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.With(cmd, func(ctx context.Context, a App) error {
				return c.discover(ctx, a, call, strings.Join(given, " "), cmd.Flags())
			})
		},
	}
	call.flags(cmd.Flags(), c.Kinds)
	return cmd
}

func (c Config) discover(ctx context.Context, a App, call *request, message string, given *pflag.FlagSet) error {
	if strings.TrimSpace(message) == "" {
		return c.Usage(errors.New(`the message is empty; say what you want done: ken discover "search the web"`))
	}
	a.CheckAgent(call.query.Scope.Agent)
	q, err := c.read(call, message, a.View(), given)
	if err != nil {
		return c.Usage(err)
	}
	a.Vectors.WaitBriefly(ctx)
	found, err := find(ctx, a, q, call.prompt && !*c.JSON)
	switch {
	case err != nil:
		return err
	case *c.JSON:
		return c.PrintJSON(found)
	case call.prompt:
		if !found.Rollout.Inject {
			fmt.Fprintln(c.Err, "ken: nothing goes into a prompt:", output.Line(found.Rollout.Reason))
		}
		if text := found.Prompt(); text != "" {
			c.Out.Linef("%s", strings.TrimSuffix(output.Text(text), "\n"))
		}
		return nil
	}
	c.printFound(found)
	return nil
}

// find picks what matters for a message. Only the text of --prompt counts as sent:
// the rest is for a person to look at.
func find(ctx context.Context, a App, q door.Query, sent bool) (door.Found, error) {
	if sent {
		return a.Door.Find(ctx, a.View(), q)
	}
	found, pending, err := a.Door.Look(ctx, a.View(), q)
	if err == nil {
		found.Degraded = append(found.Degraded, pending.Looked(found)...)
	}
	return found, err
}

func (d *request) flags(f *pflag.FlagSet, kinds string) {
	f.StringArrayVar(&d.kinds, "kind", nil, "find only this `kind` (repeatable): "+kinds)
	f.StringVar(&d.query.Filter.Category, "category", "", "find only this `category`")
	f.BoolVar(&d.query.Filter.OnlyAvailable, "available", false, "find only available capabilities")
	f.StringArrayVar(&d.exclude, "exclude", nil, "leave out this `id` (repeatable)")
	f.IntVar(&d.topK, "top", 0, "at most this `number` of briefs")
	f.IntVar(&d.fullK, "full", 0, "at most this `number` of full texts")
	f.IntVar(&d.total, "budget", 0, "at most this many `tokens` in total")
	f.Float64Var(&d.minRelevance, "min-relevance", 0, "show nothing if the `probability` that anything fits, 0 to 1, is lower")
	f.BoolVar(&d.noGraph, "no-graph", false, "ignore relations between capabilities")
	f.StringArrayVar(&d.before, "before", nil, "an earlier `message`, oldest first (repeatable)")
	f.StringArrayVar(&d.used, "used", nil, "`id` that was used in the last turns (repeatable)")
	f.StringArrayVar(&d.pinned, "pin", nil, "`id` to keep visible (repeatable)")
	f.StringArrayVar(&d.query.RouterTags, "tag", nil, "a router `tag` for cards (repeatable)")
	f.StringVar(&d.query.Scope.Session, "session", "", "record the message in this `session`; with --prompt, its text counts as sent to a model")
	f.StringVar(&d.query.Scope.SessionType, "session-type", "", "session `type`, such as main or isolated")
	f.StringVar(&d.query.Scope.Agent, "agent", "", "use the settings of this `agent` (discovery.agents)")
	f.StringVar(&d.query.Scope.UserTier, "user-tier", "", "the user's `tier`, for cards")
	f.StringVar(&d.query.Scope.Environment, "environment", "", "the `environment`, for cards")
	f.BoolVar(&d.prompt, "prompt", false, "print only the text that would go into a prompt")
}

// read returns the query. A flag that was not given overrides nothing.
func (c Config) read(d *request, message string, view door.View, given *pflag.FlagSet) (door.Query, error) {
	if err := c.check(d, view, given); err != nil {
		return door.Query{}, err
	}
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
	return q, nil
}

// check refuses what could only be a mistake.
func (c Config) check(d *request, view door.View, given *pflag.FlagSet) error {
	if d.prompt && given.Changed("json") {
		return errors.New("--prompt and --json exclude each other; use one of them")
	}
	const mostBriefs, mostTokens = 1000, 1_000_000
	for _, f := range []struct {
		name        string
		value, most int
	}{{"top", d.topK, mostBriefs}, {"full", d.fullK, mostBriefs}, {"budget", d.total, mostTokens}} {
		if f.value < 0 || f.value > f.most {
			return fmt.Errorf("--%s is %d; use a number from 0 to %d", f.name, f.value, f.most)
		}
	}
	if given.Changed("min-relevance") && !(d.minRelevance >= 0 && d.minRelevance <= 1) {
		return fmt.Errorf("--min-relevance is %v; use a number from 0 to 1", d.minRelevance)
	}
	if err := c.CheckFilter(view, d.kinds, d.query.Filter.Category); err != nil {
		return err
	}
	for flag, names := range map[string][]string{"exclude": d.exclude, "used": d.used, "pin": d.pinned} {
		for _, name := range names {
			if _, err := view.Lookup(name); capability.KindOf(err) == capability.NotFound && err != nil {
				return fmt.Errorf("--%s: %w", flag, err)
			}
		}
	}
	return nil
}

func capabilityIDs(names []string) []capability.ID {
	var out []capability.ID
	for _, n := range names {
		out = append(out, capability.ID(n))
	}
	return out
}

func (c Config) printFound(f door.Found) {
	p := c.Out
	switch {
	case f.Abilities && len(f.Briefs) == 0:
		p.Linef("%s", output.Text(f.Map))
	case len(f.Briefs)+len(f.Cards)+len(unaffordable(f)) > 0:
	case f.Found > 0 && len(f.Nearest) == 0:
		p.Linef("%s found, and nothing of it is shown: %s", output.Plural(f.Found, "capability"), output.Line(firstReason(f)))
	default:
		p.Linef("Nothing fits this message%s%s.", nearest(f), filtered(f))
	}
	for _, b := range f.Briefs {
		indent := ""
		if b.Attached != "" {
			indent = "  "
		}
		p.Linef("%s%s %s %s", indent, p.Bar(b.Score), p.Style(output.Bold, fmt.Sprintf("%.2f", b.Score)), output.Line(b.Text))
		p.Linef("    %s%s", indent, p.Style(output.Dim, output.Line(fmt.Sprintf("%s, %s: %s", b.ID, output.Plural(b.Tokens, "token"), strings.Join(b.Why, "; ")))))
	}
	for _, b := range f.Cards {
		p.Linef("%s %s %s", p.Bar(b.Score), p.Style(output.Bold, fmt.Sprintf("%.2f", b.Score)), output.Line("card "+string(b.ID)))
		p.Linef("    %s", p.Style(output.Dim, output.Line(fmt.Sprintf("%s: %s", output.Plural(b.Tokens, "token"), strings.Join(b.Why, "; ")))))
	}
	for _, s := range unaffordable(f) {
		p.Linef("%s", p.Style(output.Yellow, output.Line(fmt.Sprintf("left out card %s: %s", s.ID, s.Reason))))
	}
	for _, b := range f.Fulls {
		note := ""
		if b.Truncated {
			note = ", an excerpt"
		}
		p.Linef("%s %s", p.Style(output.Cyan, "full"), output.Line(fmt.Sprintf("%s, %s%s", b.ID, output.Plural(b.Tokens, "token"), note)))
	}
	c.printBudget(f)
	for _, d := range f.Degraded {
		p.Linef("%s", p.Style(output.Yellow, output.Line("degraded: "+d)))
	}
	switch {
	case !f.Rollout.Inject:
		p.Linef("%s", p.Style(output.Yellow, output.Line("not injected: "+f.Rollout.Reason)))
	case !f.Rollout.Cards && len(f.Cards) > 0:
		p.Linef("%s", p.Style(output.Yellow, output.Line("cards are not injected: "+f.Rollout.CardsReason)))
	}
	if len(f.Skipped) > 0 && p.Terminal {
		p.Linef("%s", p.Style(output.Dim, fmt.Sprintf("%d more were left out; --json says why", len(f.Skipped))))
	}
}

// unaffordable returns the cards that fit the message and not the budget.
func unaffordable(f door.Found) (out []door.Skip) {
	for _, s := range f.Skipped {
		if s.Tier == "cards" && s.Wanted > 0 {
			out = append(out, s)
		}
	}
	return out
}

// firstReason says why the best of what was found is not shown.
func firstReason(f door.Found) string {
	for _, s := range f.Skipped {
		if s.ID != "" {
			return string(s.ID) + ": " + s.Reason
		}
	}
	return "--json says more"
}

// filtered says that it was the query's own filter.
func filtered(f door.Found) string {
	for _, s := range f.Skipped {
		if s.ID == "" && s.Tier == "briefs" {
			return "; " + s.Reason
		}
	}
	return ""
}

func nearest(f door.Found) string {
	if len(f.Nearest) == 0 {
		return ""
	}
	var names []string
	for _, n := range f.Nearest {
		names = append(names, output.Line(string(n.ID)))
	}
	return "; closest: " + strings.Join(names, ", ")
}

// printBudget draws how much of the budget each tier takes.
func (c Config) printBudget(f door.Found) {
	p, t, budget := c.Out, f.Tokens, f.Budget
	took := time.Duration(f.TookUS) * time.Microsecond
	if !p.Terminal {
		p.Linef("tokens: map %d, briefs %d, cards %d, full %d, total %d of %d; %s", t.Document+t.Map, t.Briefs, t.Cards, t.Fulls, t.Total, budget, duration.Text(took))
		return
	}
	const width = 40
	var b strings.Builder
	used := 0
	for _, tier := range []struct {
		tokens int
		style  string
	}{{t.Document + t.Map, output.Cyan}, {t.Briefs, output.Green}, {t.Cards, output.Yellow}, {t.Fulls, output.Bold}} {
		n := 0
		if budget > 0 {
			n = min((tier.tokens*width+budget/2)/budget, width-used)
		}
		b.WriteString(p.Style(tier.style, strings.Repeat("█", n)))
		used += n
	}
	b.WriteString(p.Style(output.Dim, strings.Repeat("░", width-used)))
	p.Linef("\n%s %d of %d tokens, %s", b.String(), t.Total, budget, duration.Text(took))
	p.Linef("%s", p.Style(output.Dim, fmt.Sprintf("map %d · briefs %d · cards %d · full %d; the chance that this fits: %.0f%%", t.Document+t.Map, t.Briefs, t.Cards, t.Fulls, 100*f.Fit)))
}
