package session

import (
	"time"

	"ken/capability"
	"ken/llm"
)

// A Kind says what an entry is.
type Kind string

const (
	// Prefix holds what stands before all messages: System and Tools. The
	// newest one that is live counts; more than one means that the prefix was
	// broken, and Note says why.
	Prefix Kind = "prefix"

	User      Kind = "user"      // what the person said
	Added     Kind = "added"     // what Ken put beside it: found capabilities, tools, news of the catalog
	Assistant Kind = "assistant" // what the model answered, whole
	Results   Kind = "results"   // what its calls came to

	Summary Kind = "summary" // stands for what it hides: condensed by a model
	Marker  Kind = "marker"  // stands for what it hides: cut
	Rewound Kind = "rewound" // hides what came after a point, and stands for nothing

	Note Kind = "note" // is not sent: an intent, a mode, a model, usage, an end
)

// An Entry is one thing that happened in a session. It is written once and
// never changed. What is sent of it is sent in the same bytes every time.
type Entry struct {
	Seq  int       `json:"seq"`  // from 1, without gaps
	Turn int       `json:"turn"` // from 1; zero before the first
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`

	Blocks []llm.Block `json:"blocks,omitempty"`
	Tokens int         `json:"tokens,omitempty"` // of Blocks, as they were counted

	System string     `json:"system,omitempty"` // of Prefix
	About  int        `json:"about,omitempty"`  // of Prefix: tokens of System about capabilities
	Tools  []llm.Tool `json:"tools,omitempty"`  // of Prefix

	// Offers say which capability each tool is that this entry gave.
	Offers []Offer `json:"offers,omitempty"`

	// Shown are the capabilities whose texts this entry shows, with the hash of
	// each: what is live in the history is not shown again.
	Shown map[capability.ID]string `json:"shown,omitempty"`

	// From and To are the first and last entry that this one hides; it hides
	// none where To is zero.
	From int `json:"from,omitempty"`
	To   int `json:"to,omitempty"`

	// Name and Text are what a note says, in the words of the engine.
	Name  string     `json:"name,omitempty"`
	Text  string     `json:"text,omitempty"`
	Usage *llm.Usage `json:"usage,omitempty"`
	Cost  float64    `json:"cost,omitempty"` // in dollars
}

// An Offer is a capability as a tool of the model's.
type Offer struct {
	Tool   string        `json:"tool"` // the name that the model calls
	ID     capability.ID `json:"id"`
	Action string        `json:"action,omitempty"`
}

// A Head is what is known of a session without reading it.
type Head struct {
	ID        string    `json:"id"`
	Tenant    string    `json:"tenant,omitempty"`
	Principal string    `json:"principal"`
	Title     string    `json:"title"`
	Folder    string    `json:"folder,omitempty"` // where it was begun
	Agent     string    `json:"agent,omitempty"`
	Mode      string    `json:"mode,omitempty"`
	BegunBy   string    `json:"begunBy,omitempty"` // the agent that began it, by the name it goes by; empty: a person did
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Last      int       `json:"last"` // the newest entry
	Turns     int       `json:"turns"`
	Usage     llm.Usage `json:"usage"`
	Cost      float64   `json:"cost,omitempty"`

	// Open means that the last turn did not end: it crashed, or it waits for a
	// person.
	Open bool `json:"open,omitempty"`
}
