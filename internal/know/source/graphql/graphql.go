package graphql

import (
	"encoding/json"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/know/source/effects"
	"ken/internal/know/source/format"
)

// The executor makes the request of what is kept in Meta:
//
//	operation  query, mutation or subscription
//	field      the name of the field
//	arguments  JSON object: argument → its type, as in [ID!]!
//	selection  what is asked for where the caller names no fields; none for a scalar
//	auth       JSON list of how secrets are sent, as for OpenAPI

const (
	// Name is [capability.Origin.Format] of the operations of a GraphQL API.
	Name = "graphql"

	maxOperations = 5000
	maxBytes      = 32 << 20 // of all schemas and texts of one API
	maxArguments  = 500      // of one operation
	maxSummary    = 1000     // characters of a description
)

// Options are what a schema does not say.
type Options struct {
	Prefix   string   // of the names of the operations, as in "shop"
	Category string   // of the operations
	Address  string   // of the API; empty: nothing can be called
	Secrets  []string // names, of credentials that the API wants
	Auth     string   // how they are sent, as JSON
}

// NoAddress is why an operation cannot be called whose API has no address.
const NoAddress = "a GraphQL schema names no address; API.yaml has none under server"

// noSubscriptions is why a subscription cannot be called.
const noSubscriptions = "it is a subscription: it sends events for as long as it is open, and a call has one answer. Use a query that reads the same"

// A document is one schema being read.
type document struct {
	u          *format.Unit
	tally      format.Tally
	opt        Options
	types      map[string]*typeDef
	selections map[string]string // by type
	names      map[string]bool
	count      int
	room       int // bytes that may still be kept
	work       int // bytes of schemas that were tried
	cut        int // schemas in which something is cut
}

// Read reads the document in u.Data and adds its operations to u.
func Read(u *format.Unit, opt Options) {
	s, err := parse(u.Data)
	if err != nil {
		u.Fault("bad-graphql", u.Path, 1, clip(err.Error(), 500), "name the answer to introspection as JSON, or a schema in the GraphQL schema language")
		return
	}
	d := &document{
		u: u, tally: format.Tally{Unit: u}, opt: opt, types: map[string]*typeDef{}, selections: map[string]string{}, names: map[string]bool{}, room: maxBytes,
	}
	if n := s.clean(); n > 0 {
		u.Warn("bad-names", u.Path, 0, fmt.Sprintf("types, fields or arguments without a valid name or type, or with one that is used before: %d; they are not read", n), "")
	}
	for _, t := range s.Types {
		d.types[t.Name] = t
	}
	for _, root := range []struct {
		operation string
		of        *named
	}{{"query", s.QueryType}, {"mutation", s.MutationType}, {"subscription", s.SubscriptionType}} {
		if root.of == nil {
			continue
		}
		t := d.types[root.of.Name]
		if t == nil || t.Kind != "OBJECT" {
			u.Fault("bad-graphql", u.Path, 1, "the type of every "+root.operation+" is "+clip(root.of.Name, maxName)+", which is not an object type of the schema", "correct the schema")
			continue
		}
		if !d.all(root.operation, t) {
			break
		}
	}
	if d.cut > 0 {
		u.Warn("schema-cut", u.Path, 0, fmt.Sprintf("input schemas that are too large: %d; nested types are cut in them, and say so", d.cut), "")
	}
	if d.count == 0 {
		u.Warn("no-operations", u.Path, 1, "the schema has no queries and no mutations, so there is nothing to call", "")
	}
	d.tally.Close()
}

// all reads the operations of one kind, and reports whether there is room for more.
func (d *document) all(operation string, t *typeDef) bool {
	for _, f := range t.Fields {
		if d.u.Context.Err() != nil {
			return false
		}
		if strings.HasPrefix(f.Name, "__") || f.Deprecated {
			continue
		}
		if d.count++; d.count > maxOperations {
			d.u.Fault("too-many-operations", d.u.Path, 0, fmt.Sprintf("more than %d operations; the rest is not read", maxOperations), "use a schema with the part that you need")
			return false
		}
		if len(f.Args) > maxArguments {
			d.tally.Fault("bad-operation", 0, fmt.Sprintf("%s %s is not read: it has %d arguments, more than %d", operation, f.Name, len(f.Args), maxArguments), "")
			continue
		}
		if d.operation(operation, f); d.room < 0 {
			d.u.Fault("api-too-large", d.u.Path, 0, "the schemas and texts of this API are too large together; "+f.Name+" and the rest are not read", "use a schema with the part that you need")
			return false
		}
	}
	return true
}

// operation makes a tool of a field.
func (d *document) operation(operation string, f *fieldDef) {
	c := &capability.Capability{
		Kind: capability.KindTool, Name: d.name(operation, f), Category: d.opt.Category, Permissions: []string{"network"},
		Effects:         capability.Effects{ReadOnly: capability.No, OpenWorld: capability.Yes},
		RequiredSecrets: d.opt.Secrets,
		Run:             &capability.Recipe{Runner: "api.graphql", Method: "POST", URL: d.opt.Address},
	}
	if operation != "mutation" {
		c.Effects.ReadOnly, c.Effects.Idempotent = capability.Yes, capability.Yes
	}
	if operation == "mutation" && destroys(f.Name) {
		c.Effects.Destructive = capability.Yes
	}
	types := map[string]string{}
	for _, a := range f.Args {
		types[a.Name] = a.Type.String()
	}
	raw, _ := json.Marshal(types) // texts cannot fail
	c.Meta = map[string]string{"operation": operation, "field": f.Name, "arguments": string(raw)}
	if d.opt.Auth != "" {
		c.Meta["auth"] = d.opt.Auth
	}
	own := []ownArgument{{free(f, "select"), `{"type":"array","items":{"type":"string"},"description":"Keep these parts of the answer, as [\"/items/name\"]"}`}}
	detail := capability.Detail{}
	about := clip(f.Description, maxSummary)
	if of := d.types[f.Type.base()]; of != nil && composite(of) {
		c.Meta["selection"] = d.selection(of.Name)
		own = append(own, ownArgument{free(f, "fields"), `{"type":"array","items":{"type":"string"},"description":"Ask for these fields of the answer, as [\"id\", \"owner/name\"]"}`})
		detail.Usage = "Answers " + f.Type.String() + ". Fields: " + d.outline(of) + ".\n\nWithout the argument " + free(f, "fields") + " Ken asks for: " + c.Meta["selection"]
	}
	if about == "" {
		about = fmt.Sprintf("%s %s: %s", operation, f.Name, f.Type)
	}
	c.Description = about
	if long := strings.TrimSpace(f.Description); strings.HasSuffix(about, "…") && len(long) <= 16<<10 {
		detail.Usage = strings.TrimSpace(long + "\n\n" + detail.Usage)
	}
	var cut bool
	if detail.Schema, cut = d.inputSchema(f, own, operation == "mutation"); cut {
		d.cut++
	}
	if why := effects.Changes(f.Name, detail.Schema); why != "" && c.Effects.ReadOnly == capability.Yes {
		c.Claims = &capability.Claims{Effects: c.Effects, Doubt: why}
		c.Effects = c.Effects.Careful()
	}
	switch {
	case operation == "subscription":
		c.Unavailable = noSubscriptions
	case d.opt.Address == "":
		c.Unavailable = NoAddress
	}
	c.Origin.Pointer = "/" + operation + "/" + f.Name
	if d.room -= len(detail.Schema) + len(detail.Usage) + len(c.Meta["selection"]); d.room >= 0 {
		d.u.Add(c, detail, d.u.Path, 0)
	}
}

// free returns the name of an argument of Ken's: another one where the operation
// has it itself.
func free(f *fieldDef, name string) string {
	for _, a := range f.Args {
		if a.Name == name {
			return "ken_" + name
		}
	}
	return name
}

// name returns the name of an operation. Names of GraphQL fields are short and
// general, as in user, so that of the API stands before it. A mutation may have the
// name of a query.
func (d *document) name(operation string, f *fieldDef) string {
	n := f.Name
	if d.opt.Prefix != "" {
		n = d.opt.Prefix + "_" + n
	}
	for d.names[n] {
		n += "_" + operation
	}
	d.names[n] = true
	return n
}

// destroys reports whether the name of a mutation says that it deletes something.
func destroys(name string) bool {
	name = strings.ToLower(name)
	for _, verb := range []string{"delete", "remove", "destroy", "drop", "purge", "wipe", "erase", "truncate"} {
		if strings.HasPrefix(name, verb) || strings.HasSuffix(name, verb) {
			return true
		}
	}
	return false
}
