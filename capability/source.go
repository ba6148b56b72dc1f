package capability

import (
	"context"
	"encoding/json"
	"iter"
)

// A Source is a place that capabilities come from: a folder of cards, a file,
// an address, a table.
type Source interface {
	// Name identifies the source among all sources of one catalog. A later
	// batch replaces the earlier one of the same name and nothing else.
	Name() string

	// Load reads the source as it stands. What is wrong with single
	// capabilities is reported in the batch and hides only those; the error
	// is for a source that could not be read at all, and then the batch is
	// not used. Load may be called again, from one goroutine at a time.
	Load(ctx context.Context) (Batch, error)
}

// A Watcher is a source that knows when it changes.
type Watcher interface {
	Source

	// Watch yields a whole new batch after each change, once things have
	// been quiet for the debounce time, until ctx ends or the caller stops.
	// Capabilities that did not change are the same pointers as before.
	// An error says that a change could not be read; the last batch still
	// stands and watching goes on. Load must have been called before.
	Watch(ctx context.Context) iter.Seq2[Batch, error]
}

// A Detailer is a source that keeps large parts out of memory until asked.
type Detailer interface {
	// Detail reads the schema and the body of a capability that this source
	// brought. It fails with [NotFound] when they are gone, and with
	// [Conflict] when they are no longer what the capability's Hash covers,
	// so that a text which was not scanned is never shown.
	Detail(ctx context.Context, c *Capability) (Detail, error)
}

// A Detail is what a capability holds beyond its description.
type Detail struct {
	Schema json.RawMessage `json:"schema,omitempty"` // JSON Schema of the input
	Body   string          `json:"body,omitempty"`   // Markdown, without frontmatter
	Usage  string          `json:"usage,omitempty"`  // usage documentation

	// Output is the JSON Schema of the structured part of a result, where its
	// source says one.
	Output json.RawMessage `json:"output,omitempty"`

	// Extra is a JSON object with the members of an MCP tool that Ken does not
	// use and passes on to clients: "icons", "_meta", and of "annotations" all but
	// the hints.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// A Batch is all that one source holds at one time. Neither the batch nor what
// it points to may be changed once it was returned.
type Batch struct {
	Capabilities []*Capability
	Presets      []Preset
	Documents    []Document
	Problems     []Problem
}

// A Preset names capabilities that are used together.
type Preset struct {
	Name    string   `json:"name"`
	Members []string `json:"members"` // ids or names
	Origin  Origin   `json:"origin"`
}

// A Document is a text about the whole instance rather than one capability.
type Document struct {
	Role   DocumentRole `json:"role"`
	Text   string       `json:"text,omitempty"` // empty for [Reference], which is read on demand
	Origin Origin       `json:"origin"`
	Trust  Trust        `json:"trust"`
	Hash   string       `json:"hash,omitempty"`
}

// A DocumentRole says how a document is used.
type DocumentRole string

const (
	Map       DocumentRole = "map"       // always shown; AGENTS.md, at most 500 characters
	Reference DocumentRole = "reference" // shown only when a tool asks; SYSTEM_ARCHITECTURE.md
)

// Principal is who is asking. The zero value stands for no principal, which may do
// nothing.
type Principal struct {
	ID     string   `json:"id"`
	Tenant string   `json:"tenant,omitempty"`
	Roles  []string `json:"roles,omitempty"`

	// Agent names the program that works for the principal: the client that
	// "ken connect" connected, or the name of the agent's token. Rules with
	// agents depend on it, and records and limits. Grants and the digest of a
	// call do not.
	Agent string `json:"agent,omitempty"`
}

// A Scope says where a message comes from: everything besides its words that
// decides what may be shown for it. Empty fields do not match a trigger that
// asks for a value.
type Scope struct {
	Session     string `json:"session,omitempty"`
	SessionType string `json:"sessionType,omitempty"` // "main", "isolated"; empty counts as main
	Mode        string `json:"mode,omitempty"`
	Agent       string `json:"agent,omitempty"`
	User        string `json:"user,omitempty"`
	UserTier    string `json:"userTier,omitempty"`
	Environment string `json:"environment,omitempty"` // "production", "staging", …
}
