package addplan

import (
	"context"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/govern/policy"
)

// An API is an API that was read and is not added yet.
type API struct {
	Kind       string      `json:"kind"` // api
	Name       string      `json:"name"`
	From       string      `json:"from"`
	SHA256     string      `json:"sha256"`
	Server     string      `json:"server,omitempty"`
	Operations []Operation `json:"operations"`
	Hosts      []add.Host  `json:"hosts"`
	Secrets    []Secret    `json:"secrets"`
	Blocked    []string    `json:"blocked"`  // hosts that sandbox.networks keeps calls from
	Problems   []string    `json:"problems"` // of the document
	Changes    *APIChanges `json:"changes,omitempty"`
	Added      bool        `json:"added"`
	Folder     string      `json:"folder"`

	Same  bool `json:"-"` // the API is there with this document
	Graph bool `json:"-"` // it is a GraphQL API

	app  App
	read *add.API
}

// An Operation is one of an API.
type Operation struct {
	ID       capability.ID `json:"id"`
	Method   string        `json:"method"`
	URL      string        `json:"url"`
	Decision string        `json:"decision"`         // allow, ask or deny
	Rule     string        `json:"rule,omitempty"`   // that denies it
	Cannot   string        `json:"cannot,omitempty"` // why it cannot be called
	Findings int           `json:"findings,omitempty"`
}

// A Secret is one that an API needs.
type Secret struct {
	Name string `json:"name"`
	Set  bool   `json:"set"`
}

// APIChanges are what differs from the API of the same name that is there.
type APIChanges struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	Hosts   []string `json:"hosts"` // that are new
}

// ReadAPI reads the document of an API. The caller closes the plan.
func (a App) ReadAPI(ctx context.Context, q add.Request) (*API, error) {
	q.Secret = a.Secret
	x, err := add.ReadAPI(ctx, a.Places, q)
	if err != nil {
		return nil, err
	}
	if err := a.free(x); err != nil {
		_ = x.Close() // what was staged is removed at the next start too
		return nil, err
	}
	return a.planOf(x), nil
}

// Add copies the document to where the catalog reads it.
func (p *API) Add(ctx context.Context) error {
	x := p.read
	notes := map[string]string{"from": x.From, "operations": fmt.Sprint(len(x.Operations)), "folder": x.Folder()}
	if err := p.app.Record(ctx, "add", "api", x.Name, "sha256:"+x.SHA256, notes); err != nil {
		return fmt.Errorf("add API %s: not added, because the audit log could not be written: %w", x.Name, err)
	}
	if err := x.Add(); err != nil {
		return err
	}
	p.Added = true
	return nil
}

// Close removes what was fetched, unless the API was added.
func (p *API) Close() error { return p.read.Close() }

// free returns an error if an operation has the id of a capability that is not
// part of the starter catalog or of this API. It would silently take its place.
func (a App) free(x *add.API) error {
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
	fix := "remove those, or add a copy of the document in which these operations have another operationId"
	if x.Operations[0].Origin.Format == "graphql" {
		fix = "choose another name with --name; it begins the names of the operations"
	}
	return &capability.Error{
		Kind: capability.Conflict, Op: "add API", Target: x.Name, Err: fmt.Errorf("other capabilities have the ids %s%s", strings.Join(taken, ", "), more),
		Fix: fix,
	}
}

func (a App) planOf(x *add.API) *API {
	p := &API{
		Kind: "api", Name: x.Name, From: x.From, SHA256: x.SHA256, Server: x.Server, Hosts: listOf(x.Hosts), Secrets: []Secret{},
		Blocked: listOf(x.Needs(a.Networks)), Problems: []string{}, Folder: x.Folder(), Same: x.Same,
		Graph: x.Operations[0].Origin.Format == "graphql", app: a, read: x,
	}
	for _, op := range x.Operations {
		d := a.Standing(op, add.HostsOf(op))
		o := Operation{ID: op.ID, Method: methodOf(op), URL: op.Run.URL, Decision: d.Effect.String(), Cannot: op.Unavailable}
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
		p.Secrets = append(p.Secrets, Secret{name, a.HasSecret(name)})
	}
	for _, problem := range x.Problems {
		p.Problems = append(p.Problems, problem.Message)
	}
	if x.Exists {
		p.Changes = &APIChanges{Added: listOf(x.Added), Removed: listOf(x.Removed), Changed: listOf(x.Changed), Hosts: listOf(x.NewHosts)}
	}
	return p
}

// methodOf returns the method of an operation: of HTTP, or query, mutation or
// subscription.
func methodOf(op *capability.Capability) string {
	if op.Origin.Format == "graphql" {
		return op.Meta["operation"]
	}
	return op.Run.Method
}
