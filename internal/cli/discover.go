package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/spelling"
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

// discoverCommand is ken discover: it prints what is found for a message.
type discoverCommand struct{ *environment }

func newDiscover(env *environment) *cobra.Command {
	c := &discoverCommand{env}
	call := &discoverCall{}
	cmd := &cobra.Command{
		Use: `discover "MESSAGE"`, Short: "Show what a model would see for a message, and why",
		Example: "  ken discover \"what changed in this repository lately\"\n" +
			"  ken discover --kind skill --available \"write a release note\"",
		Args: something(`missing message; say what you want done: ken discover "search the web"`),
	}
	cmd.RunE = c.withApp(func(ctx context.Context, a *app.App, given []string) error {
		message := strings.Join(given, " ")
		if strings.TrimSpace(message) == "" {
			return usageError{errors.New(`the message is empty; say what you want done: ken discover "search the web"`)}
		}
		c.checkAgent(a, call.query.Scope.Agent)
		q, err := call.of(message, a.View(), cmd.Flags())
		if err != nil {
			return usageError{err}
		}
		a.Vectors.WaitBriefly(ctx)
		found, err := c.find(ctx, a, q, call.prompt && !c.json)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(found)
		case call.prompt:
			if !found.Rollout.Inject {
				fmt.Fprintln(c.err, "ken: nothing goes into a prompt:", output.Line(found.Rollout.Reason))
			}
			if text := found.Prompt(); text != "" {
				c.out.Linef("%s", strings.TrimSuffix(output.Text(text), "\n"))
			}
			return nil
		}
		c.printFound(found)
		return nil
	})
	call.flags(cmd.Flags())
	return cmd
}

// find picks what matters for a message. Only the text of --prompt counts as sent:
// the rest is for a person to look at.
func (c *discoverCommand) find(ctx context.Context, a *app.App, q door.Query, sent bool) (door.Found, error) {
	if sent {
		return a.Door.Find(ctx, a.View(), q)
	}
	found, pending, err := a.Door.Look(ctx, a.View(), q)
	if err == nil {
		found.Degraded = append(found.Degraded, pending.Looked(found)...)
	}
	return found, err
}

func (d *discoverCall) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&d.kinds, "kind", nil, "find only this `kind` (repeatable): "+kindNames())
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

// of returns the query. A flag that was not given overrides nothing.
func (d *discoverCall) of(message string, view door.View, given *pflag.FlagSet) (door.Query, error) {
	if err := d.check(view, given); err != nil {
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
func (d *discoverCall) check(view door.View, given *pflag.FlagSet) error {
	if d.prompt && given.Changed("json") {
		return errors.New("--prompt prints a text and --json a document; give one of them")
	}
	const mostBriefs, mostTokens = 1000, 1_000_000
	for _, f := range []struct {
		name        string
		value, most int
	}{{"top", d.topK, mostBriefs}, {"full", d.fullK, mostBriefs}, {"budget", d.total, mostTokens}} {
		if f.value < 0 || f.value > f.most {
			return fmt.Errorf("--%s is %d; it is within 0 to %d", f.name, f.value, f.most)
		}
	}
	if given.Changed("min-relevance") && !(d.minRelevance >= 0 && d.minRelevance <= 1) {
		return fmt.Errorf("--min-relevance is %v; it is a chance, within 0 to 1", d.minRelevance)
	}
	if err := d.checkFilter(view); err != nil {
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

// checkAgent warns about an agent that has no settings of its own, such as a
// misspelt one.
func (c *environment) checkAgent(a *app.App, name string) {
	if name == "" {
		return
	}
	if _, ok := a.Settings.Discovery.Agents[name]; ok {
		return
	}
	known := slices.Sorted(maps.Keys(a.Settings.Discovery.Agents))
	fmt.Fprintf(c.err, "ken: warning: discovery.agents has no agent %s, so the usual settings apply%s\n", output.Line(name), orMeant(name, known))
}

// checkFilter refuses unknown kinds and categories. It goes through the catalog only
// where one was given.
func (d *discoverCall) checkFilter(view door.View) error {
	if len(d.kinds) == 0 && d.query.Filter.Category == "" {
		return nil
	}
	words := wordsOf(view.All())
	for _, k := range d.kinds {
		if err := checkWord("kind", k, words.kinds); err != nil {
			return err
		}
	}
	return checkWord("category", strings.ToLower(d.query.Filter.Category), words.categories)
}

func orMeant(word string, known []string) string {
	if near := spelling.Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

func capabilityIDs(names []string) []capability.ID {
	var out []capability.ID
	for _, n := range names {
		out = append(out, capability.ID(n))
	}
	return out
}

func (c *discoverCommand) printFound(f door.Found) {
	p := c.out
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
func (c *discoverCommand) printBudget(f door.Found) {
	p, t, budget := c.out, f.Tokens, f.Budget
	took := time.Duration(f.TookUS) * time.Microsecond
	if !p.Terminal {
		p.Linef("tokens: map %d, briefs %d, cards %d, full %d, total %d of %d; %s", t.Document+t.Map, t.Briefs, t.Cards, t.Fulls, t.Total, budget, output.Duration(took))
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
	p.Linef("\n%s %d of %d tokens, %s", b.String(), t.Total, budget, output.Duration(took))
	p.Linef("%s", p.Style(output.Dim, fmt.Sprintf("map %d · briefs %d · cards %d · full %d; the chance that this fits: %.0f%%", t.Document+t.Map, t.Briefs, t.Cards, t.Fulls, 100*f.Fit)))
}
