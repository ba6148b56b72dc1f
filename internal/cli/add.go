package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/govern/policy"
)

// addCommand is ken add: it shows what an API or a package asks for, and adds it.
type addCommand struct {
	*environment
	request add.Request
	yes     bool
	dry     bool
}

func newAdd(env *environment) *cobra.Command {
	c := &addCommand{environment: env}
	cmd := &cobra.Command{
		Use: "add openapi:URL|openapi:FILE|PATH|git:URL", Short: "Add an API or an extension package, after showing what it asks for",
		Long: "Add an API: openapi:URL or openapi:FILE names its OpenAPI document. Ken shows its\n" +
			"operations, the hosts they reach, the secrets they need and what your rules say about\n" +
			"them, and asks.\n\n" +
			"Add an extension package: a folder, an archive (.tar, .tar.gz, .zip), or a git\n" +
			"repository. Ken shows its permissions, programs and actions and the steps of its\n" +
			"install plan, asks, runs the steps in the sandbox, and switches it on.\n\n" +
			"What is added is a copy that is pinned by its digest: what changes elsewhere has no\n" +
			"effect until you add it again.",
		Example: "  ken add openapi:https://api.example.com/openapi.json\n  ken add openapi:./openapi.yaml --name shop --yes\n" +
			"  ken add ./my-package\n  ken add git:https://git.example.com/package.git#v1.2",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			run := c.api
			document, isAPI := strings.CutPrefix(given[0], "openapi:")
			switch {
			case isAPI && document != "":
				c.request.From = document
			case isPackage(given[0]) && !isDocument(given[0]):
				run, c.request.From = c.extension, given[0]
			case isDocument(given[0]):
				return usageError{fmt.Errorf("%q looks like a document; write openapi: before it to add an API", given[0])}
			default:
				return usageError{fmt.Errorf("%q is neither openapi: with an address or file, nor a folder or archive that is there, nor git: with an address", given[0])}
			}
			c.serving = true // no server need be started for it
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error { return run(ctx, a) })(cmd, given)
		},
	}
	cmd.Flags().StringVar(&c.request.Name, "name", "", "`name` to keep it under, instead of one made from its title")
	cmd.Flags().StringVar(&c.request.Server, "server", "", "`address` of the API, for a document that names none")
	cmd.Flags().BoolVar(&c.dry, "dry-run", false, "only show what would be added")
	cmd.Flags().BoolVar(&c.yes, "yes", false, "add it without asking; required without a terminal")
	return cmd
}

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

func (c *addCommand) api(ctx context.Context, a *app.App) (err error) {
	x, err := add.ReadAPI(ctx, a.AddPlaces(), c.request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := free(a, x); err != nil {
		return err
	}
	plan := planOf(a, x)
	if !c.json {
		c.printAPI(plan)
	}
	if c.dry || x.Same {
		switch {
		case c.json:
			return c.printJSON(plan)
		case c.dry:
			c.out.Linef("Nothing was changed.")
		default:
			c.out.Linef("Nothing changes: %s has this document already.", output.Line(x.Name))
		}
		return nil
	}
	if ok, err := c.agree(ctx, c.yes, "Add it?"); err != nil || !ok {
		return err
	}
	notes := map[string]string{"from": x.From, "operations": fmt.Sprint(len(x.Operations)), "folder": x.Folder()}
	if err := a.RecordAdded(ctx, "add", "api", x.Name, "sha256:"+x.SHA256, notes); err != nil {
		return fmt.Errorf("add API %s: not added, because the audit log could not be written: %w", x.Name, err)
	}
	if err := x.Add(); err != nil {
		return err
	}
	plan.Added = true
	if c.json {
		return c.printJSON(plan)
	}
	c.printNext(plan)
	return nil
}

// free returns an error if an operation has the id of a capability that is not
// part of the starter catalog or of this API. It would silently take its place.
func free(a *app.App, x *add.API) error {
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

func planOf(a *app.App, x *add.API) *apiPlan {
	p := &apiPlan{
		Kind: "api", Name: x.Name, From: x.From, SHA256: x.SHA256, Server: x.Server, Hosts: listOf(x.Hosts), Secrets: []apiSecret{},
		Blocked: listOf(x.Needs(a.Settings.Sandbox.Prefixes())), Problems: []string{}, Folder: x.Folder(),
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
		p.Secrets = append(p.Secrets, apiSecret{name, os.Getenv(name) != "" || a.Secrets.Has(name)})
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
	c.out.Linef("%s  %s", c.out.Style(output.Bold, fmt.Sprintf("%-11s", name)), text)
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
		state := c.out.Style(output.Yellow, "not set") + ": ken secret set " + output.Line(s.Name)
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
		c.fact("new hosts", c.out.Style(output.Yellow, output.Line(strings.Join(p.Changes.Hosts, ", "))))
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
	c.out.Linef("%s %s", c.out.Style(output.Green, "added:"), output.Line(p.Folder))
	for _, s := range p.Secrets {
		if !s.Set {
			c.out.Linef("next: ken secret set %s", output.Line(s.Name))
		}
	}
	first := slices.IndexFunc(p.Operations, func(o apiOperation) bool { return o.Cannot == "" && o.Method == "GET" && !strings.Contains(o.URL, "{") })
	if first < 0 {
		first = max(0, slices.IndexFunc(p.Operations, func(o apiOperation) bool { return o.Cannot == "" }))
	}
	id := output.Line(string(p.Operations[first].ID))
	c.out.Linef("next: ken catalog show %s, then ken run %s '{}'", id, id)
}

// newRemove returns ken remove.
func newRemove(env *environment) *cobra.Command {
	return &cobra.Command{
		Use: "remove [NAME]", Short: "Remove what ken add added; without a name, list it", Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			env.serving = true
			return env.withApp(func(ctx context.Context, a *app.App, given []string) error {
				if len(given) == 0 {
					return env.printAdded(a)
				}
				return env.remove(ctx, a, given[0])
			})(cmd, given)
		},
	}
}

func (c *environment) printAdded(a *app.App) error {
	list, err := add.List(a.AddPlaces())
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"added": listOf(list)})
	}
	var rows [][]string
	for _, x := range list {
		rows = append(rows, []string{x.Kind, x.Name, x.From})
	}
	c.out.Table([]output.Column{{Style: output.Cyan}, {Style: output.Bold}, {Style: output.Dim, Grow: true}}, rows)
	if len(rows) == 0 {
		fmt.Fprintln(c.err, "ken: nothing was added with ken add")
	}
	return nil
}

func (c *environment) remove(ctx context.Context, a *app.App, name string) error {
	places := a.AddPlaces()
	folder, ok := add.FindAPI(places, name)
	if !ok {
		return c.removePackage(ctx, a, name)
	}
	secrets := secretsBelow(a, folder)
	if err := add.RemoveAPI(places, name); err != nil {
		return err
	}
	if err := a.RecordAdded(ctx, "remove", "api", name, "", map[string]string{"folder": folder}); err != nil {
		return fmt.Errorf("remove API %s: removed, but the audit log could not be written: %w", name, err)
	}
	if c.json {
		return c.printJSON(map[string]any{"removed": name, "kind": "api", "folder": folder, "secrets": listOf(secrets)})
	}
	c.out.Linef("%s is removed", output.Line(name))
	for _, s := range secrets {
		c.out.Linef("the secret %s stays; ken secret rm %s removes it", output.Line(s), output.Line(s))
	}
	return nil
}

// secretsBelow returns the secrets that are set and that only the capabilities of
// a folder need.
func secretsBelow(a *app.App, folder string) []string {
	var out []string
	others := map[string]bool{}
	for e := range a.Catalog.Snapshot().All() {
		rel, err := filepath.Rel(folder, e.Origin.Path)
		inside := err == nil && filepath.IsLocal(rel)
		for _, s := range e.RequiredSecrets {
			switch {
			case !inside:
				others[s] = true
			case a.Secrets.Has(s) && !slices.Contains(out, s):
				out = append(out, s)
			}
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return others[s] })
}
