package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/catalogreport"
	"ken/internal/cli/output"
	"ken/internal/door"
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
			view := a.OperatorView()
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
			catalogreport.List(c.out, listing, all)
			if n := listing.Stats.Shadowed; n > 0 && !own && f == (filter{}) {
				fmt.Fprintf(c.err, "ken: %d shadowed not listed; see ken catalog list --state shadowed\n", n)
			}
			if note := a.Door.Starting(a.Principal); note != "" {
				fmt.Fprintln(c.err, "ken:", output.Line(note))
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

func (c *catalogCommand) show() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one capability with its schema and text", Args: args(cobra.ExactArgs(1)),
		ValidArgsFunction: c.completeIDs,
		RunE: c.withTarget(func(ctx context.Context, a *app.App, given []string) error {
			d, err := a.Door.Inspect(ctx, a.OperatorView(), given[0])
			if err != nil {
				return a.Servers.WhyAbsent(a.Principal, given[0], err)
			}
			if c.json {
				return c.printJSON(d)
			}
			catalogreport.Description(c.out, d)
			return nil
		}),
	}
}

func (c *catalogCommand) lint() *cobra.Command {
	return &cobra.Command{
		Use: "lint", Short: "Report problems in the catalog and how to fix them; fails on errors", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
			listing := a.OperatorView().List()
			problems, errors := listing.Problems, listing.Stats.Errors
			if c.json {
				if err := c.printJSON(map[string]any{"problems": problems, "errors": errors, "warnings": len(problems) - errors}); err != nil {
					return err
				}
			} else {
				catalogreport.Problems(c.out, problems, errors)
			}
			if errors > 0 {
				return errSilent
			}
			return nil
		}),
	}
}

func (c *catalogCommand) why() *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use: "why ID", Short: "Explain where a capability comes from, and whether and why it is available", Args: args(cobra.ExactArgs(1)),
		Example:           "  ken catalog why tool:read_file\n  ken catalog why tool:read_file --for \"show me the notes\"     also: would a model see it for this message?",
		ValidArgsFunction: c.completeIDs,
		RunE: c.withTarget(func(ctx context.Context, a *app.App, given []string) error {
			e, err := a.OperatorView().Lookup(given[0])
			if err != nil {
				return whyAbsent(ctx, a, given[0], err)
			}
			why := a.Why(e)
			related, err := a.OperatorView().Related(string(e.ID))
			if err != nil {
				return err
			}
			if message != "" {
				a.Vectors.WaitBriefly(ctx) // as ken discover does
				found, err := a.Door.Preview(ctx, a.OperatorView(), door.Query{Text: message, Now: time.Now()})
				if err != nil {
					return err
				}
				why = append(why, catalogreport.Relevance(found, e.ID))
			}
			if c.json {
				return c.printJSON(map[string]any{"id": e.ID, "state": e.State, "available": e.Available, "why": why, "related": related})
			}
			c.out.Linef("%s", c.out.Style(output.Bold, output.Line(string(e.ID))))
			for _, line := range why {
				c.out.Linef("- %s", output.Line(line))
			}
			for _, r := range related[:min(len(related), mostRelated)] {
				c.out.Linef("- %s %s", catalogreport.Relation(r), output.Line(string(r.ID)))
			}
			if more := len(related) - mostRelated; more > 0 {
				c.out.Linef("- it relates to %d more; --json lists them", more)
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&message, "for", "", "also say whether a model would be shown it for this `message`")
	return cmd
}

const mostRelated = 6 // relations that are printed

// completeIDs offers ids to the shell.
func (c *catalogCommand) completeIDs(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.serving = true // a completion starts no servers
	a, err := c.open(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer a.Close()
	var ids []string
	for _, e := range a.OperatorView().List().Capabilities {
		if strings.HasPrefix(string(e.ID), prefix) {
			ids = append(ids, output.Line(string(e.ID)))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// whyAbsent says why a name is not in the catalog: it may be an MCP server that does
// not work. err is the error of looking it up.
func whyAbsent(ctx context.Context, a *app.App, name string, err error) error {
	for _, def := range a.Servers.Definitions() {
		if def.Name == name {
			a.Servers.List(ctx, name) // starts it, if that has not been tried
			return a.Servers.WhyAbsent(a.Principal, "mcp:"+name, err)
		}
	}
	return a.Servers.WhyAbsent(a.Principal, name, err)
}
