package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/untrusted"
)

// catalogCommand is ken catalog: it lists, explains and checks the catalog.
type catalogCommand struct{ *environment }

func newCatalog(env *environment) *cobra.Command {
	c := &catalogCommand{env}
	return group("catalog", "List, show, check and explain capabilities",
		c.list(), c.show(), c.lint(), c.why())
}

// A filter narrows a listing; empty fields do not.
type filter struct {
	kind, category, state, trust, source string
	available                            bool
}

// check refuses words that no capability could have.
func (f filter) check() error {
	for _, w := range []struct {
		flag, value string
		known       []string
	}{
		{"state", f.state, []string{"active", "quarantined", "shadowed"}},
		{"trust", f.trust, []string{"builtin", "user", "workspace", "remote"}},
	} {
		if w.value != "" && !slices.Contains(w.known, w.value) {
			return usageError{fmt.Errorf("--%s %s: want one of %s", w.flag, w.value, strings.Join(w.known, ", "))}
		}
	}
	return nil
}

// checkKnown refuses a kind, category or source that neither Ken nor a capability
// has.
func (f filter) checkKnown(list []*door.Entry) error {
	words := wordsOf(slices.Values(list))
	return cmp.Or(
		checkWord("kind", f.kind, words.kinds),
		checkWord("category", strings.ToLower(f.category), words.categories),
		checkWord("source", f.source, words.sources),
	)
}

// String returns the filter as it was typed.
func (f filter) String() string {
	var out []string
	for _, w := range [][2]string{{"kind", f.kind}, {"category", f.category}, {"state", f.state}, {"trust", f.trust}, {"source", f.source}} {
		if w[1] != "" {
			out = append(out, "--"+w[0]+" "+output.Line(w[1]))
		}
	}
	if f.available {
		out = append(out, "--available")
	}
	return strings.Join(out, " ")
}

func (f filter) keeps(e *door.Entry) bool {
	return (f.kind == "" || string(e.Kind) == f.kind) &&
		(f.category == "" || strings.EqualFold(e.Category, f.category)) &&
		(string(e.State) == f.state || f.state == "" && e.State != "shadowed") &&
		(f.trust == "" || e.Trust.String() == f.trust) &&
		(f.source == "" || e.Origin.Source == f.source) &&
		(!f.available || e.Ready())
}

// sourceAmong returns the source as the catalog names it: a source may be typed
// as a path from the current folder.
func (f filter) sourceAmong(view door.View) string {
	path, err := filepath.Abs(f.source)
	if f.source == "" || err != nil {
		return f.source
	}
	for e := range view.All() {
		switch e.Origin.Source {
		case f.source:
			return f.source
		case path:
			return path
		}
	}
	return f.source
}

func (c *catalogCommand) list() *cobra.Command {
	var f filter
	var own bool
	cmd := &cobra.Command{
		Use: "list", Short: "List every capability; shadowed ones only with --state shadowed", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			view := a.Oversee()
			f.source = f.sourceAmong(view)
			listing := view.List()
			if own {
				listing.Capabilities = slices.Collect(view.Own())
			}
			if err := f.checkKnown(listing.Capabilities); err != nil {
				return err
			}
			all := len(listing.Capabilities)
			if !own && f.state != "shadowed" { // the number that all of Ken gives
				all = listing.Stats.Capabilities
			}
			listing.Capabilities = slices.DeleteFunc(listing.Capabilities, func(e *door.Entry) bool { return !f.keeps(e) })
			if c.json {
				return c.printJSON(listing)
			}
			c.printList(listing, all)
			if n := listing.Stats.Shadowed; n > 0 && !own && f == (filter{}) {
				fmt.Fprintf(c.err, "ken: %d shadowed not listed; see ken catalog list --state shadowed\n", n)
			}
			if len(listing.Capabilities) == 0 && all > 0 {
				fmt.Fprintf(c.err, "ken: none of %s fits %s\n", output.Plural(all, "capability"), f)
			}
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "only this `kind`: "+kindNames())
	flags.StringVar(&f.category, "category", "", "only this `category`")
	flags.StringVar(&f.state, "state", "", "only this `state`: active, quarantined, shadowed")
	flags.StringVar(&f.trust, "trust", "", "only this `level`: builtin, user, workspace, remote")
	flags.StringVar(&f.source, "source", "", "only from this `source`")
	flags.BoolVar(&own, "own", false, "list only the tools that are part of Ken")
	flags.BoolVar(&f.available, "available", false, "only available capabilities")
	return cmd
}

func (c *catalogCommand) printList(l door.Listing, all int) {
	rows := make([][]string, 0, len(l.Capabilities))
	for _, e := range l.Capabilities {
		text := e.Description
		if e.State == "shadowed" && len(e.Reasons) > 0 { // the reason it is shadowed matters more
			text = strings.Join(e.Reasons, "; ")
		}
		rows = append(rows, []string{standing(e), string(e.ID), string(e.Kind), e.Category, text})
	}
	if c.out.Terminal { // what can be used first
		slices.SortStableFunc(rows, func(a, b []string) int { return cmp.Compare(rank(a[0]), rank(b[0])) })
	}
	c.out.Table([]output.Column{{Styles: standingStyles}, {Style: output.Bold}, {Style: output.Cyan}, {Style: output.Dim}, {Grow: true}}, rows)
	if !c.out.Terminal {
		return
	}
	s := l.Stats
	shown := output.Plural(all, "capability")
	if len(rows) != all {
		shown = fmt.Sprintf("%d of %s", len(rows), shown)
	}
	c.out.Linef("\n%s · %d can be used here · %d quarantined · %s (ken catalog lint)",
		shown, s.Available, s.Quarantined, output.Plural(len(l.Problems), "problem"))
}

// standing returns an entry's state in one word.
func standing(e *door.Entry) string {
	switch {
	case e.State != "active":
		return string(e.State)
	case e.Ready():
		return "ready"
	}
	return "unavailable"
}

var standingStyles = map[string]string{"ready": output.Green, "unavailable": output.Yellow, "quarantined": output.Red, "shadowed": output.Dim}

// rank orders standings for people.
func rank(standing string) int {
	return slices.Index([]string{"ready", "unavailable", "quarantined", "shadowed"}, standing)
}

func (c *catalogCommand) show() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one capability with its schema and text", Args: args(cobra.ExactArgs(1)),
		ValidArgsFunction: c.completeIDs,
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			d, err := a.Door.Inspect(ctx, a.Oversee(), given[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(d)
			}
			c.printDescription(d)
			return nil
		}),
	}
}

func (c *catalogCommand) printDescription(d door.Description) {
	p := c.out
	p.Linef("%s  %s", p.Style(output.Bold, output.Line(d.Title())), p.Style(output.Dim, output.Line(string(d.ID))))
	p.Linef("%s", output.Line(d.Description))
	p.Linef("")
	field := func(name string, value string) {
		if value != "" {
			p.Linef("%s %s", p.Style(output.Dim, fmt.Sprintf("%-11s", name)), output.Line(value))
		}
	}
	field("kind", string(d.Kind))
	field("category", d.Category)
	field("tags", strings.Join(d.Tags, ", "))
	field("version", d.Version)
	if d.Kind == capability.KindCard {
		field("priority", strconv.Itoa(d.Priority))
		field("shows", fmt.Sprintf("at most %d characters", d.MaxChars))
	}
	field("state", string(d.State))
	field("available", yesNo(d.Available, d.Missing))
	field("requires", strings.Join(d.RequiredTools, ", "))
	field("permissions", strings.Join(d.Permissions, ", "))
	if d.Run != nil {
		field("runs", strings.TrimSpace(d.Run.Runner+" "+strings.Join(d.Run.Argv, " ")))
	}
	if t := d.Triggers; t != nil {
		field("triggers", strings.Join(t.Keywords, ", "))
		field("sessions", strings.Join(t.SessionTypes, ", "))
		field("threshold", strconv.FormatFloat(t.ConfidenceThreshold, 'g', -1, 64))
	}
	for _, m := range d.Migrations {
		field("migration", fmt.Sprintf("%s to %s: %s", m.From, m.To, m.Note))
	}
	field("origin", fmt.Sprintf("%s (%s)", d.Origin, d.Origin.Format))
	field("trust", d.Trust.String())
	field("hash", d.Hash)
	for _, r := range d.Reasons {
		field("noticed", r)
	}
	if len(d.Detail.Schema) > 0 {
		p.Linef("\n%s", p.Style(output.Bold, "Input schema"))
		p.Linef("%s", untrusted.Terminal(indented(d.Detail.Schema)))
	}
	for _, part := range []struct{ title, text string }{{"Text", d.Detail.Body}, {"Usage", d.Detail.Usage}} {
		if part.text != "" {
			p.Linef("\n%s", p.Style(output.Bold, part.title))
			p.Linef("%s", untrusted.Terminal(part.text))
		}
	}
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func yesNo(yes bool, missing []string) string {
	if yes {
		return "yes"
	}
	return "no: " + strings.Join(missing, "; ")
}

func (c *catalogCommand) lint() *cobra.Command {
	return &cobra.Command{
		Use: "lint", Short: "Report problems in the catalog and how to fix them; fails on errors", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
			listing := a.Oversee().List()
			problems, errors := listing.Problems, listing.Stats.Errors
			if c.json {
				if err := c.printJSON(map[string]any{"problems": problems, "errors": errors, "warnings": len(problems) - errors}); err != nil {
					return err
				}
			} else {
				c.printProblems(problems, errors)
			}
			if errors > 0 {
				return errSilent
			}
			return nil
		}),
	}
}

func (c *catalogCommand) printProblems(problems []capability.Problem, errors int) {
	p := c.out
	for _, pr := range problems {
		mark := p.Style(output.Red, "error")
		if pr.Severity == capability.Warning {
			mark = p.Style(output.Yellow, "warning")
		}
		p.Linef("%s: %s [%s] %s", output.Line(pr.Origin.String()), mark, pr.Code, output.Line(pr.Message))
		if pr.Fix != "" {
			p.Linef("    %s", p.Style(output.Dim, output.Line(pr.Fix)))
		}
	}
	if len(problems) == 0 {
		p.Linef("%s", p.Style(output.Green, "nothing is wrong"))
		return
	}
	p.Linef("%s, %s: %s", output.Plural(errors, "error"), output.Plural(len(problems)-errors, "warning"), tally(problems))
}

// tally counts problems by their code, most first.
func tally(problems []capability.Problem) string {
	counts := map[string]int{}
	for _, pr := range problems {
		counts[pr.Code]++
	}
	codes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, code := range codes {
		codes[i] = fmt.Sprintf("%d %s", counts[code], code)
	}
	return strings.Join(codes, ", ")
}

func (c *catalogCommand) why() *cobra.Command {
	return &cobra.Command{
		Use: "why ID", Short: "Explain where a capability comes from, and whether and why it is available", Args: args(cobra.ExactArgs(1)),
		ValidArgsFunction: c.completeIDs,
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			e, err := a.Oversee().Lookup(given[0])
			if err != nil {
				return a.Servers.WhyAbsent(a.Principal, given[0], err)
			}
			why := a.Why(e)
			related, err := a.Oversee().Related(string(e.ID))
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"id": e.ID, "state": e.State, "available": e.Available, "why": why, "related": related})
			}
			c.out.Linef("%s", c.out.Style(output.Bold, output.Line(string(e.ID))))
			for _, line := range why {
				c.out.Linef("- %s", output.Line(line))
			}
			for _, r := range related[:min(len(related), mostRelated)] {
				c.out.Linef("- %s %s", relationWord(r), output.Line(string(r.ID)))
			}
			if more := len(related) - mostRelated; more > 0 {
				c.out.Linef("- it relates to %d more; --json lists them", more)
			}
			return nil
		}),
	}
}

const mostRelated = 6 // relations that are printed

func relationWord(r door.Relation) string {
	switch {
	case r.Type == "DEPENDS_ON" && r.Needs:
		return "it needs"
	case r.Type == "DEPENDS_ON":
		return "it is needed by"
	case r.Type == "COMPOSED_WITH":
		return "it is used together with"
	case r.Type == "TAGGED_WITH":
		return "it shares tags with"
	}
	return "it is of one category with"
}

// completeIDs offers ids to the shell.
func (c *catalogCommand) completeIDs(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a, err := c.open(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer a.Close()
	var ids []string
	for _, e := range a.Oversee().List().Capabilities {
		if strings.HasPrefix(string(e.ID), prefix) {
			ids = append(ids, output.Line(string(e.ID)))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
