package adding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/internal/add/addplan"
	"ken/internal/cli/output"
)

func (c *addCommand) api(ctx context.Context, a addplan.App) (err error) {
	plan, err := a.ReadAPI(ctx, c.request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()
	if !*c.JSON {
		c.printAPI(plan)
	}
	if c.dry || plan.Same {
		switch {
		case *c.JSON:
			return c.PrintJSON(plan)
		case c.dry:
			c.Out.Linef("Nothing was changed.")
		default:
			c.Out.Linef("Nothing changes: %s has this document already.", output.Line(plan.Name))
		}
		return nil
	}
	if ok, err := c.Agree(ctx, c.yes, "Add it?"); err != nil || !ok {
		return err
	}
	if err := plan.Add(ctx); err != nil {
		return err
	}
	if *c.JSON {
		return c.PrintJSON(plan)
	}
	c.printNext(plan)
	return nil
}

// fact prints one line of what is about to be added.
func (c *addCommand) fact(name, text string) {
	c.Out.Linef("%s  %s", c.Out.Style(output.Bold, fmt.Sprintf("%-11s", name)), text)
}

func (c *addCommand) printAPI(p *addplan.API) {
	c.fact("API", output.Line(p.Name))
	c.fact("from", output.Line(p.From))
	switch {
	case p.Graph:
		c.fact("server", output.Line(p.Server))
	case p.Server != "":
		c.fact("server", output.Line(p.Server)+", where the document names none")
	}
	c.fact("operations", countBy(p.Operations, func(o addplan.Operation) string { return o.Method }))
	c.fact("", output.Line(firstOf(p.Operations)))
	var hosts []string
	for _, h := range p.Hosts {
		text := output.Line(h.Name)
		if h.Tokens {
			text += " (gives tokens)"
		}
		if h.Plain && !h.Private {
			text += " (http: not encrypted, so it gets no secrets)"
		}
		hosts = append(hosts, text)
	}
	c.fact("hosts", strings.Join(hosts, ", "))
	c.fact("permission", "network")
	for _, s := range p.Secrets {
		state := c.Out.Style(output.Yellow, "not set") + ": ken secret set " + output.Line(s.Name)
		if s.Set {
			state = "set"
		}
		c.fact("secret", output.Line(s.Name)+"  "+state)
	}
	if len(p.Secrets) == 0 {
		c.fact("secrets", "none")
	}
	c.fact("rules", decisions(p.Operations))
	for _, h := range p.Blocked {
		c.fact("blocked", output.Line(h)+" is an address of this machine or network: ken config set sandbox.networks '[RANGE]' opens it, as in 127.0.0.0/8")
	}
	c.printDoubts(p)
	c.fact("digest", "sha256:"+p.SHA256)
}

// printDoubts prints what is wrong with a document, and what changes.
func (c *addCommand) printDoubts(p *addplan.API) {
	cannot, held := map[string]int{}, 0
	var reasons []string
	for _, o := range p.Operations {
		if o.Cannot != "" {
			if cannot[o.Cannot]++; cannot[o.Cannot] == 1 {
				reasons = append(reasons, o.Cannot)
			}
		}
		if o.Findings > 0 {
			held++
		}
	}
	for _, why := range reasons {
		c.fact("unavailable", output.Plural(cannot[why], "operation")+": "+output.Line(why))
	}
	if held > 0 {
		c.fact("quarantine", output.Plural(held, "operation")+" with suspicious text; ken catalog lint names them once it is added")
	}
	const some = 5
	for i, text := range p.Problems {
		if i == some {
			c.fact("note", fmt.Sprintf("%d more; ken catalog lint lists them once it is added", len(p.Problems)-some))
			break
		}
		c.fact("note", output.Line(text))
	}
	if p.Changes == nil {
		return
	}
	for _, change := range []struct {
		name string
		list []string
	}{{"added", p.Changes.Added}, {"removed", p.Changes.Removed}, {"changed", p.Changes.Changed}} {
		if len(change.list) > 0 {
			c.fact(change.name, output.Line(fmt.Sprintf("%d: %s", len(change.list), shortened(change.list))))
		}
	}
	if len(p.Changes.Hosts) > 0 {
		c.fact("new hosts", c.Out.Style(output.Yellow, output.Line(strings.Join(p.Changes.Hosts, ", "))))
	}
}

// decisions says how many operations run, ask and are denied for a model.
func decisions(list []addplan.Operation) string {
	words := map[string]string{"allow": "run without asking", "ask": "ask first", "deny": "are denied"}
	var parts []string
	for _, effect := range []string{"allow", "ask", "deny"} {
		var of []addplan.Operation
		var rules []string
		for _, o := range list {
			if o.Decision != effect {
				continue
			}
			of = append(of, o)
			if o.Rule != "" && !slices.Contains(rules, o.Rule) {
				rules = append(rules, o.Rule)
			}
		}
		if len(of) == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s (%s)", len(of), words[effect], countBy(of, func(o addplan.Operation) string { return o.Method }))
		if len(rules) > 0 {
			text += " by rule " + output.Line(strings.Join(rules, ", "))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// countBy counts a list by a word of each, in the order of their first.
func countBy[T any](list []T, word func(T) string) string {
	count := map[string]int{}
	var order []string
	for _, item := range list {
		w := word(item)
		if count[w]++; count[w] == 1 {
			order = append(order, w)
		}
	}
	for i, w := range order {
		order[i] = fmt.Sprintf("%d %s", count[w], w)
	}
	return strings.Join(order, ", ")
}

func firstOf(list []addplan.Operation) string {
	var names []string
	for _, o := range list {
		names = append(names, strings.TrimPrefix(string(o.ID), "tool:"))
	}
	return shortened(names)
}

// shortened joins the first names of a list.
func shortened(names []string) string {
	const some = 8
	if len(names) > some {
		return strings.Join(names[:some], ", ") + fmt.Sprintf(" and %d more", len(names)-some)
	}
	return strings.Join(names, ", ")
}

// printNext says what to do with an API that was added.
func (c *addCommand) printNext(p *addplan.API) {
	c.Out.Linef("%s %s", c.Out.Style(output.Green, "added:"), output.Line(p.Folder))
	for _, s := range p.Secrets {
		if !s.Set {
			c.Out.Linef("next: ken secret set %s", output.Line(s.Name))
		}
	}
	first := slices.IndexFunc(p.Operations, func(o addplan.Operation) bool {
		return o.Cannot == "" && (o.Method == "GET" || o.Method == "query") && !strings.Contains(o.URL, "{")
	})
	if first < 0 {
		first = max(0, slices.IndexFunc(p.Operations, func(o addplan.Operation) bool { return o.Cannot == "" }))
	}
	id := output.Line(string(p.Operations[first].ID))
	c.Out.Linef("next: ken catalog show %s, then ken run %s '{}'", id, id)
}
