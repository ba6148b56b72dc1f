package capability

import (
	"encoding/json"
	"fmt"
	"strings"
)

// An ID names one capability in a catalog, usually "kind:name", as in
// "tool:web-search". A source may bring ids of its own making. Ids in a catalog
// are in Unicode normalization form C, and Ken compares them byte for byte.
type ID string

// MakeID returns the conventional id of a capability that has none of its own.
func MakeID(kind Kind, name string) ID { return ID(string(kind) + ":" + name) }

// A Kind says what sort of thing a capability is. Sources may bring kinds that
// are not listed here; they are kept as they are.
type Kind string

const (
	KindTool         Kind = "tool"          // a callable with a schema
	KindSkill        Kind = "skill"         // instructions, and perhaps tools
	KindCard         Kind = "card"          // a short text shown when its triggers match
	KindExtension    Kind = "extension"     // a package of commands
	KindChannel      Kind = "channel"       // a place where people are reached
	KindCommand      Kind = "command"       // something a person calls by "/name"
	KindVoice        Kind = "voice"         // speech in or out
	KindProductivity Kind = "productivity"  // calendars, tasks and the like
	KindEmergentTool Kind = "emergent-tool" // made at run time
)

// Kinds lists the kinds that Ken itself knows, in the order people expect.
func Kinds() []Kind {
	return []Kind{
		KindTool, KindSkill, KindCard, KindCommand, KindExtension,
		KindChannel, KindVoice, KindProductivity, KindEmergentTool,
	}
}

// A Capability describes one thing an agent can do. It is plain data: what is
// large (the schema, the body) stays at the source and is read on demand
// through [Detailer], so a catalog of thousands stays small.
//
// Every string in it came from outside and is untrusted, whatever Trust says;
// only package untrusted makes it fit for a prompt or a terminal.
type Capability struct {
	ID          ID     `json:"id"`
	Kind        Kind   `json:"kind"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description"`
	Category    string `json:"category"`

	Tags       []string    `json:"tags,omitempty"`
	Aliases    []string    `json:"aliases,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`

	// RequiredTools names capabilities (by id or by name) that this one
	// cannot do without. RequiredSecrets and RequiredBins decide whether it
	// is available on this machine; RequiredPlatforms, when not empty, lists
	// the values of runtime.GOOS it works on.
	RequiredTools     []string `json:"requiredTools,omitempty"`
	RequiredSecrets   []string `json:"requiredSecrets,omitempty"`
	RequiredBins      []string `json:"requiredBins,omitempty"`
	RequiredPlatforms []string `json:"requiredPlatforms,omitempty"`

	// Permissions are what the capability asks for ("exec", "network", …).
	// Asking is not having: none declared means none granted.
	Permissions []string `json:"permissions,omitempty"`

	// Unavailable is the source's own word that the capability cannot be used
	// now, with the reason; empty means the source does not say so.
	Unavailable string `json:"unavailable,omitempty"`

	Effects  Effects   `json:"effects,omitzero"`
	Claims   *Claims   `json:"claims,omitempty"`
	Triggers *Triggers `json:"triggers,omitempty"`
	Run      *Recipe   `json:"run,omitempty"`

	// Priority orders cards, higher first, 0–100. TokenBudget and MaxChars
	// cap what may be shown of the body; zero means the reader's default.
	Priority    int `json:"priority,omitempty"`
	TokenBudget int `json:"tokenBudget,omitempty"`
	MaxChars    int `json:"maxChars,omitempty"`

	Version    string      `json:"version,omitempty"`
	Migrations []Migration `json:"migrations,omitempty"`

	// Meta keeps what the source said and Ken has no field for, by its
	// original key, so that nothing is lost on the way in.
	Meta map[string]string `json:"meta,omitempty"`

	Origin Origin `json:"origin"`
	Trust  Trust  `json:"trust"`

	// Hash identifies all that a model may see of the capability: name,
	// description, schema and body among it. Two capabilities with one hash
	// read the same.
	Hash string `json:"hash,omitempty"`

	// Findings are what the text scan had to say about any of that.
	Findings []Finding `json:"findings,omitempty"`
}

// A Parameter is one input of a capability, as search and summaries need it.
// The whole schema is in the capability's [Detail].
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Triggers say when a card asks to be shown. An empty list does not restrict.
type Triggers struct {
	Keywords        []string `json:"keywords,omitempty"`
	SessionTypes    []string `json:"sessionTypes,omitempty"`
	RouterTags      []string `json:"routerTags,omitempty"`
	TimeOfDay       []string `json:"timeOfDay,omitempty"`
	UserTier        []string `json:"userTier,omitempty"`
	EnvironmentType []string `json:"environmentType,omitempty"`

	// ConfidenceThreshold is the least relevance, 0–1, at which the card is
	// shown.
	ConfidenceThreshold float64 `json:"confidenceThreshold"`
}

// A Recipe says what running a capability means. Only the runner follows it,
// after it has decided that the call may happen.
type Recipe struct {
	// Runner chooses the executor by prefix: "exec.git",
	// "analyze.response".
	Runner string `json:"runner"`

	// Argv is the command, one element per argument. "{name}" stands for a
	// parameter, alone or inside an element, and never makes more than the
	// one element it stands in; "{name...}" stands alone, takes a list and
	// becomes one element per item. "{name}" alone of a boolean with a flag in
	// the schema ("x-ken-flag") is that flag or nothing. No shell reads it.
	Argv []string `json:"argv,omitempty"`

	// Action is the action's name within its command, and the first argument
	// of the tool where Argv is empty.
	Action string `json:"action,omitempty"`

	TimeoutSec    int      `json:"timeoutSec,omitempty"`
	MaxOutputSize int      `json:"maxOutputSize,omitempty"`
	Env           []string `json:"env,omitempty"` // names of variables to pass on

	// EnvValues are variables with a value of their own, as "TZ=UTC".
	EnvValues []string `json:"envValues,omitempty"`

	// Workspace asks for the files of the folder that Ken works in: "read" or
	// "write". Hosts are what the program must reach besides those that its
	// arguments name, as "api.example.com" or "*.example.com:8443". Asking is
	// not having.
	Workspace string   `json:"workspace,omitempty"`
	Hosts     []string `json:"hosts,omitempty"`

	// OKStatus are the exit statuses that mean success; none means 0 alone.
	OKStatus []int `json:"okStatus,omitempty"`

	// A value that begins with a dash could be read as an option that was not
	// meant to be offered, and is refused. EndOfOptions puts "--" before the
	// positional arguments, and Passthrough lets such values through.
	EndOfOptions bool `json:"endOfOptions,omitempty"`
	Passthrough  bool `json:"passthrough,omitempty"`

	// ProgramSHA256, when not empty, identifies the only bytes that may be run.
	ProgramSHA256 string `json:"programSha256,omitempty"`

	// Program, when not empty, is the path of a program in the package's own
	// folder, as "bin/greet" or "handlers.py", and PackageSHA256 identifies all
	// files of that folder. With any other files nothing is run.
	Program       string `json:"program,omitempty"`
	PackageSHA256 string `json:"packageSha256,omitempty"`

	// Input is "json" for a program that reads the call from its standard input:
	// {"action": …, "arguments": {…}}.
	Input string `json:"input,omitempty"`

	// Ask is set for what a model is asked ("llm.ask").
	Ask *Ask `json:"ask,omitempty"`

	// Method and URL are set for HTTP operations.
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
}

// An Ask is a question to a model. "{name}" in Prompt stands for an argument. The
// model is told that the argument is data and not an instruction.
type Ask struct {
	Model  string `json:"model,omitempty"` // PROVIDER/NAME; empty: the one of ken.yaml
	System string `json:"system,omitempty"`
	Prompt string `json:"prompt"`

	// Instructions are the arguments that are not data: what they say is for the
	// model to do.
	Instructions []string `json:"instructions,omitempty"`

	// Answer, when not empty, is the JSON Schema that the answer must fit.
	Answer json.RawMessage `json:"answer,omitempty"`

	MaxTokens int     `json:"maxTokens,omitempty"` // of the answer; zero: the executor's default
	MaxPrice  float64 `json:"maxPrice,omitempty"`  // of a call, in US dollars; zero: no limit but that of tokens
}

// A Migration tells the users of version From what to do about To.
type Migration struct {
	From string `json:"from"`
	To   string `json:"to"`
	Note string `json:"note"`
}

// Effects are a source's own words about what a call does. They are hints: an
// untrusted source can make Ken more careful with them, never less. Of an MCP
// server's hints they are those that count; see [Claims].
type Effects struct {
	ReadOnly    Hint `json:"readOnly,omitzero"`
	Destructive Hint `json:"destructive,omitzero"`
	Idempotent  Hint `json:"idempotent,omitzero"`
	OpenWorld   Hint `json:"openWorld,omitzero"`
}

// Careful returns the effects without the hints that would make Ken less
// careful, as if nothing had been said of them.
func (e Effects) Careful() Effects {
	without := func(h *Hint, lowers Hint) {
		if *h == lowers {
			*h = Unsaid
		}
	}
	without(&e.ReadOnly, Yes)
	without(&e.Destructive, No)
	without(&e.Idempotent, Yes)
	without(&e.OpenWorld, No)
	return e
}

// Claims are all the hints that an MCP server gives of a tool, where some of
// them do not count. Doubt says why.
type Claims struct {
	Effects
	Doubt string `json:"doubt"`
}

// Said returns all that the source says of the effects, whether it counts or
// not.
func (c *Capability) Said() Effects {
	if c.Claims != nil {
		return c.Claims.Effects
	}
	return c.Effects
}

// A Hint is yes, no, or, when zero, nothing said.
type Hint uint8

const (
	Unsaid Hint = iota
	No
	Yes
)

// HintOf turns a plain answer into a Hint.
func HintOf(b bool) Hint {
	if b {
		return Yes
	}
	return No
}

// MarshalJSON writes true, false or null.
func (h Hint) MarshalJSON() ([]byte, error) {
	switch h {
	case Yes:
		return []byte("true"), nil
	case No:
		return []byte("false"), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads true, false or null.
func (h *Hint) UnmarshalJSON(b []byte) error {
	var v *bool
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("effect hint: %w", err)
	}
	*h = Unsaid
	if v != nil {
		*h = HintOf(*v)
	}
	return nil
}

// RunBy names what a call of the capability runs: the runner of its recipe, or
// else its id. It is empty for texts, which do not run, and for packages, whose
// actions are separate capabilities.
func (c *Capability) RunBy() string {
	switch {
	case c.Run != nil && c.Run.Runner != "":
		return c.Run.Runner
	case c.Run == nil && (c.Kind == KindSkill || c.Kind == KindCard || c.Kind == KindCommand || c.Kind == KindExtension):
		return ""
	}
	return string(c.ID)
}

// HasSideEffects reports whether a call must be assumed to change something.
// Only an explicit word to the contrary makes it false.
func (c *Capability) HasSideEffects() bool { return c.Effects.ReadOnly != Yes }

// FormatExtension is [Origin.Format] of what an extension package brought.
const FormatExtension = "extension"

// Extension returns the name of the package that a capability is or belongs to,
// as in "tools.git". Only what the reader of packages made belongs to one:
// whatever else says that it needs an extension does not.
func (c *Capability) Extension() (name string, ok bool) {
	if c.Origin.Format != FormatExtension {
		return "", false
	}
	const prefix = string(KindExtension) + ":"
	if c.Kind == KindExtension {
		return strings.TrimPrefix(string(c.ID), prefix), true
	}
	for _, id := range c.RequiredTools {
		if name, ok := strings.CutPrefix(id, prefix); ok {
			return name, true
		}
	}
	return "", false
}

// Title returns the name to show a person: DisplayName, or one made from Name by
// capitalising its segments ("web-search" becomes "Web Search").
func (c *Capability) Title() string {
	if c.DisplayName != "" {
		return c.DisplayName
	}
	return DisplayName(c.Name)
}

// DisplayName capitalises the segments of a name.
func DisplayName(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	for i, w := range words {
		r := []rune(w)
		words[i] = strings.ToUpper(string(r[:1])) + string(r[1:])
	}
	return strings.Join(words, " ")
}
