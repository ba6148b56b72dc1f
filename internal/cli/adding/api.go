package adding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/cli/output"
	"ken/internal/govern/policy"
)

// An apiPlan is what ken add shows of an API.
type apiPlan struct {
	Kind       string         `json:"kind"`
	Name       string         `json:"name"`
	From       string         `json:"from"`
	SHA256     string         `json:"sha256"`
	Server     string         `json:"server,omitempty"`
	Operations []apiOperation `json:"operations"`
	Hosts      []add.Host     `json:"hosts"`
	Secrets    []apiSecret    `json:"secrets"`
	Blocked    []string       `json:"blocked"`  // hosts that sandbox.networks keeps calls from
	Problems   []string       `json:"problems"` // of the document
	Changes    *apiChanges    `json:"changes,omitempty"`
	Added      bool           `json:"added"`
	Folder     string         `json:"folder"`
}

type apiOperation struct {
	ID       capability.ID `json:"id"`
	Method   string        `json:"method"`
	URL      string        `json:"url"`
	Decision string        `json:"decision"`         // allow, ask or deny
	Rule     string        `json:"rule,omitempty"`   // that denies it
	Cannot   string        `json:"cannot,omitempty"` // why it cannot be called
	Findings int           `json:"findings,omitempty"`
}

type apiSecret struct {
	Name string `json:"name"`
	Set  bool   `json:"set"`
}

// apiChanges are what differs from the API of the same name that is there.
type apiChanges struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	Hosts   []string `json:"hosts"` // that are new
}

func (c *addCommand) api(ctx context.Context, a App) (err error) {
	x, err := add.ReadAPI(ctx, a.Places, c.request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := free(a, x); err != nil {
		return err
	}
	plan := planOf(a, x)
	if !*c.JSON {
		c.printAPI(plan)
	}
	if c.dry || x.Same {
		switch {
		case *c.JSON:
			return c.PrintJSON(plan)
		case c.dry:
			c.Out.Linef("Nothing was changed.")
		default:
			c.Out.Linef("Nothing changes: %s has this document already.", output.Line(x.Name))
		}
		return nil
	}
	if ok, err := c.Agree(ctx, c.yes, "Add it?"); err != nil || !ok {
		return err
	}
	notes := map[string]string{"from": x.From, "operations": fmt.Sprint(len(x.Operations)), "folder": x.Folder()}
	if err := a.Record(ctx, "add", "api", x.Name, "sha256:"+x.SHA256, notes); err != nil {
		return fmt.Errorf("add API %s: not added, because the audit log could not be written: %w", x.Name, err)
	}
	if err := x.Add(); err != nil {
		return err
	}
	plan.Added = true
	if *c.JSON {
		return c.PrintJSON(plan)
	}
	c.printNext(plan)
	return nil
}

// free returns an error if an operation has the id of a capability that is not
// part of the starter catalog or of this API. It would silently take its place.
func free(a App, x *add.API) error {
	var taken []string
	for _, op := range x.Operations {
		if e, ok := a.Catalog.Snapshot().Get(op.ID); ok && !x.Mine(e.Capability) && e.Origin.Source != "starter" {
			taken = append(taken, fmt.Sprintf("%s (%s)", op.ID, e.Origin))
		}
	}
	if len(taken) == 0 {
		return nil
	}
	const some = 5
	more := ""
	if len(taken) > some {
		more = fmt.Sprintf(" and %d more", len(taken)-some)
		taken = taken[:some]
	}
	return &capability.Error{
		Kind: capability.Conflict, Op: "add API", Target: x.Name, Err: fmt.Errorf("other capabilities have the ids %s%s", strings.Join(taken, ", "), more),
		Fix: "remove those, or add a copy of the document in which these operations have another operationId",
	}
}

func planOf(a App, x *add.API) *apiPlan {
	p := &apiPlan{
		Kind: "api", Name: x.Name, From: x.From, SHA256: x.SHA256, Server: x.Server, Hosts: listOf(x.Hosts), Secrets: []apiSecret{},
		Blocked: listOf(x.Needs(a.Networks)), Problems: []string{}, Folder: x.Folder(),
	}
	for _, op := range x.Operations {
		d := a.Standing(op, add.HostsOf(op))
		o := apiOperation{ID: op.ID, Method: op.Run.Method, URL: op.Run.URL, Decision: d.Effect.String(), Cannot: op.Unavailable}
		if d.Effect == policy.Deny {
			o.Rule = d.Reason.Rule
		}
		for _, f := range op.Findings {
			if f.Severity == capability.Grave {
				o.Findings++
			}
		}
		p.Operations = append(p.Operations, o)
	}
	for _, name := range x.Secrets {
		p.Secrets = append(p.Secrets, apiSecret{name, a.HasSecret(name)})
	}
	for _, problem := range x.Problems {
		p.Problems = append(p.Problems, problem.Message)
	}
	if x.Exists {
		p.Changes = &apiChanges{Added: listOf(x.Added), Removed: listOf(x.Removed), Changed: listOf(x.Changed), Hosts: listOf(x.NewHosts)}
	}
	return p
}

// fact prints one line of what is about to be added.
func (c *addCommand) fact(name, text string) {
	c.Out.Linef("%s  %s", c.Out.Style(output.Bold, fmt.Sprintf("%-11s", name)), text)
}

func (c *addCommand) printAPI(p *apiPlan) {
	c.fact("API", output.Line(p.Name))
	c.fact("from", output.Line(p.From))
	if p.Server != "" {
		c.fact("server", output.Line(p.Server)+", where the document names none")
	}
	c.fact("operations", countBy(p.Operations, func(o apiOperation) string { return o.Method }))
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
func (c *addCommand) printDoubts(p *apiPlan) {
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
func decisions(list []apiOperation) string {
	words := map[string]string{"allow": "run without asking", "ask": "ask first", "deny": "are denied"}
	var parts []string
	for _, effect := range []string{"allow", "ask", "deny"} {
		var of []apiOperation
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
		text := fmt.Sprintf("%d %s (%s)", len(of), words[effect], countBy(of, func(o apiOperation) string { return o.Method }))
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

func firstOf(list []apiOperation) string {
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
func (c *addCommand) printNext(p *apiPlan) {
	c.Out.Linef("%s %s", c.Out.Style(output.Green, "added:"), output.Line(p.Folder))
	for _, s := range p.Secrets {
		if !s.Set {
			c.Out.Linef("next: ken secret set %s", output.Line(s.Name))
		}
	}
	first := slices.IndexFunc(p.Operations, func(o apiOperation) bool { return o.Cannot == "" && o.Method == "GET" && !strings.Contains(o.URL, "{") })
	if first < 0 {
		first = max(0, slices.IndexFunc(p.Operations, func(o apiOperation) bool { return o.Cannot == "" }))
	}
	id := output.Line(string(p.Operations[first].ID))
	c.Out.Linef("next: ken catalog show %s, then ken run %s '{}'", id, id)
}
