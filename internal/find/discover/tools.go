package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
	"ken/internal/spelling"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
	"ken/llm"
)

// The names of the tools by which a model looks further itself.
const (
	ToolDiscover = capability.ToolDiscover
	ToolList     = capability.ToolList // the same by another name, and the whole list
	ToolDescribe = capability.ToolDescribe
)

const (
	answerTokens   = 600     // what an answer to a search may take
	describeTokens = 6000    // what one reading may take
	listTokens     = 2000    // what the whole list may take
	longest        = 1 << 20 // characters of a text; it is read in pieces
	fenceTokens    = 120     // what the fence and the note around a piece take
	unbounded      = 1 << 30 // tokens
	kindAny        = "any"   // no kind in particular
)

// Tools returns the tools to offer to a model. They are the same for everybody
// and never change, so that a prompt's beginning stays what it was.
func Tools() []llm.Tool {
	return []llm.Tool{
		{
			Name: ToolDiscover, Description: "Find capabilities for a task",
			Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"kind":{"enum":["tool","skill","extension","channel","any"]},"category":{"type":"string"}},"required":["query"]}`),
		},
		{
			Name: ToolDescribe, Description: "Read a capability: its schema, its text, or the instance's reference",
			Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"part":{"enum":["all","schema","body","reference"]},"from":{"type":"integer"}},"required":["id"]}`),
		},
	}
}

// A ToolAnswer is what a tool says: text for the model, and the same as data.
// Failed means that it could not do what was asked; the text says why.
type ToolAnswer struct {
	Text   string
	Data   any
	Failed bool
}

// Capabilities is the data of an answer to a search, or of a list.
type Capabilities struct {
	Searched bool `json:"-"` // it answers a query, and is not a list

	Capabilities []Listed  `json:"capabilities"`
	TotalIndexed int       `json:"totalIndexed"`
	Nearest      []Nearest `json:"nearest,omitempty"` // where nothing fits
	Map          string    `json:"map,omitempty"`     // the map by category, if the query asked for it
	Degraded     []string  `json:"degraded,omitempty"`
}

// Listed is one capability of it.
type Listed struct {
	ID          capability.ID   `json:"id"`
	Name        string          `json:"name"`
	Kind        capability.Kind `json:"kind"`
	Description string          `json:"description"`
	Category    string          `json:"category"`
	Relevance   float64         `json:"relevance"` // 0–1, two decimals
	Available   bool            `json:"available"`
	Missing     []string        `json:"missing,omitempty"`

	// Loadable means that it comes with an extension that a person can turn
	// on; ExtensionID names it.
	Loadable    bool   `json:"loadable,omitempty"`
	ExtensionID string `json:"extensionId,omitempty"`
}

// A Reading is the data of an answer to describe_capability: a piece of a text
// and, for the page of a capability, what the catalog knows about it.
type Reading struct {
	ID    capability.ID `json:"id,omitempty"` // empty for the reference of the instance
	Text  string        `json:"text"`
	From  int           `json:"from"`           // in bytes
	Bytes int           `json:"bytes"`          // of the whole text
	Next  int           `json:"next,omitempty"` // where the rest begins; zero: there is none

	*About
}

// About holds what the catalog knows about a capability in addition to its
// text.
type About struct {
	Name        string          `json:"name"`
	Kind        capability.Kind `json:"kind"`
	Description string          `json:"description"`
	Category    string          `json:"category"`
	Available   bool            `json:"available"`
	Missing     []string        `json:"missing,omitempty"`
	Loadable    bool            `json:"loadable,omitempty"`
	ExtensionID string          `json:"extensionId,omitempty"`

	Title        string          `json:"title,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  map[string]bool `json:"annotations,omitempty"` // the source's hints by their MCP names
}

// OutputSchema returns the JSON Schema of the data of a tool's answers, or nil.
func OutputSchema(tool string) json.RawMessage {
	const about = `"name":{"type":"string"},"kind":{"type":"string"},"description":{"type":"string"},"category":{"type":"string"},` +
		`"available":{"type":"boolean"},"missing":{"type":"array","items":{"type":"string"}},"loadable":{"type":"boolean"},"extensionId":{"type":"string"}`
	switch tool {
	case ToolDiscover, ToolList:
		return json.RawMessage(`{"type":"object","properties":{"capabilities":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},` +
			`"relevance":{"type":"number"},` + about + `},"required":["id","name","kind","description","category","relevance","available"]}},` +
			`"totalIndexed":{"type":"integer"},"nearest":{"type":"array","items":{"type":"object"}},"degraded":{"type":"array","items":{"type":"string"}},` +
			`"map":{"type":"string"}},"required":["capabilities","totalIndexed"]}`)
	case ToolDescribe:
		return json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"text":{"type":"string"},"from":{"type":"integer"},"bytes":{"type":"integer"},` +
			`"next":{"type":"integer"},` + about + `,"title":{"type":"string"},"inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"type":"object"}},` +
			`"required":["text","from","bytes"]}`)
	}
	return nil
}

// Call runs one of the tools for a model. A mistake of the model's is an
// answer, not an error; the error is ctx's.
func (f *Finder) Call(ctx context.Context, v *View, name string, args json.RawMessage, cfg Config) (ToolAnswer, error) {
	if v == nil {
		return refusal("the catalog is not there yet; ask again"), ctx.Err()
	}
	switch name {
	case ToolDiscover:
		return f.discover(ctx, v, args, cfg, true)
	case ToolList:
		return f.discover(ctx, v, args, cfg, false)
	case ToolDescribe:
		return f.describe(ctx, v, args, cfg)
	}
	return refusal("there is no tool %s; there are %s, %s and %s", untrusted.Line(name, 60), ToolDiscover, ToolList, ToolDescribe), ctx.Err()
}

func refusal(format string, args ...any) ToolAnswer {
	text := fmt.Sprintf(format, args...)
	return ToolAnswer{Text: text, Data: map[string]any{"error": text}, Failed: true}
}

// readArguments reads what a model wrote; unknown keys are its mistake too.
func readArguments(args json.RawMessage, into any) error {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	d := json.NewDecoder(strings.NewReader(string(args)))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (f *Finder) discover(ctx context.Context, v *View, args json.RawMessage, cfg Config, needQuery bool) (ToolAnswer, error) {
	var in struct {
		Query    string `json:"query"`
		Kind     string `json:"kind"`
		Category string `json:"category"`
		Detail   string `json:"detail"`
	}
	if err := readArguments(args, &in); err != nil {
		return refusal("the arguments cannot be read: %v; give query, and if you like kind and category", err), ctx.Err()
	}
	if strings.TrimSpace(in.Query) == "" {
		if needQuery {
			return refusal("query is empty; say what you want to do"), ctx.Err()
		}
		return f.list(v, in.Detail, in.Kind, in.Category, ordinals(v, cfg.Exclude)), ctx.Err()
	}
	if AsksAbilities(in.Query) && in.Category == "" && (in.Kind == "" || in.Kind == kindAny) {
		a := f.list(v, "", "", "", ordinals(v, cfg.Exclude))
		a.Data = Capabilities{Searched: true, Capabilities: []Listed{}, TotalIndexed: v.shown, Map: a.Text}
		return a, ctx.Err()
	}
	q := Query{Text: in.Query, Filter: Filter{Category: in.Category}, AmongCards: true}
	if in.Kind != "" && in.Kind != kindAny {
		q.Filter.Kinds = []capability.Kind{capability.Kind(in.Kind)}
	}
	// What a prompt may hold does not bound an answer that was asked for.
	cfg.ForceInclude, cfg.Cards, cfg.FullK = nil, false, 0
	cfg.Budget = show.Budget{Briefs: unbounded, Total: unbounded}
	cfg.LowConfidence = 0 // a model that searches reads several and chooses itself
	if cfg.TopK <= 0 {
		cfg.TopK = Defaults().TopK
	}
	sel, err := f.Find(ctx, v, q, cfg)
	if err != nil {
		return ToolAnswer{}, err
	}
	return f.found(v, sel, in.Kind, in.Category), nil
}

// found tells what a search found.
func (f *Finder) found(v *View, sel Selection, kind, category string) ToolAnswer {
	data := Capabilities{Searched: true, Capabilities: []Listed{}, TotalIndexed: sel.Indexed, Nearest: sel.Nearest, Degraded: sel.Degraded}
	var b strings.Builder
	if len(sel.Briefs) == 0 {
		b.WriteString(nothing(v, sel, kind, category))
		return ToolAnswer{Text: answerOf(b.String()), Data: data}
	}
	left, real := answerTokens, 0
	for i, brief := range sel.Briefs {
		e, _ := v.snapshot.Get(brief.ID) // it was just found
		data.Capabilities = append(data.Capabilities, entryOf(e, brief.Score))
		line := f.lines.fit(v.snapshot, e, (left)/(len(sel.Briefs)-i), f.count)
		left -= line.tokens
		real += line.real
		b.WriteString(line.text)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if real+len(sel.Briefs) > answerTokens { // two lines together may take a token more than apart
		text = answerOf(text)
	}
	return ToolAnswer{Text: text, Data: data}
}

// A line is a text with what it takes.
type line struct {
	text   string
	tokens int // as they are counted here
	real   int // as o200k has them
}

// lines keeps how entries are written, in each of their lengths, for as long as
// their snapshot is the latest that was asked about: most searches show what
// others have shown.
type lines struct {
	mu sync.Mutex
	of *catalog.Snapshot
	by map[capability.ID]*[len(lengths)]line
}

// fit returns the longest form of an entry that takes no more than tokens.
func (l *lines) fit(s *catalog.Snapshot, e *catalog.Entry, tokens int, count tokenizer.Counter) line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != s {
		l.of, l.by = s, map[capability.ID]*[len(lengths)]line{}
	}
	forms := l.by[e.ID]
	if forms == nil {
		forms = &[len(lengths)]line{}
		l.by[e.ID] = forms
	}
	for i, size := range lengths {
		if forms[i].text == "" {
			text := signature(e, size.text, size.params)
			forms[i] = line{text, count(text), tokenizer.Count(text)}
		}
		if forms[i].tokens <= tokens {
			return forms[i]
		}
	}
	text := least(e, tokens, count)
	return line{text, count(text), tokenizer.Count(text)}
}

// answerOf holds a text to what an answer may take, whatever names are in it.
func answerOf(text string) string {
	if tokenizer.Count(text) <= answerTokens {
		return text
	}
	return tokenizer.Cut(text, answerTokens-4) + " …"
}

func entryOf(e *catalog.Entry, score float64) Listed {
	a := aboutOf(e)
	return Listed{
		ID: e.ID, Name: a.Name, Kind: a.Kind, Description: a.Description, Category: a.Category, Relevance: math.Round(score*100) / 100,
		Available: a.Available, Missing: a.Missing, Loadable: a.Loadable, ExtensionID: a.ExtensionID,
	}
}

// aboutOf returns what the catalog knows about an entry. Its texts are made
// safe like any other, because a client may show them to a model.
func aboutOf(e *catalog.Entry) About {
	a := About{
		Name: untrusted.Line(e.Name, 120), Kind: e.Kind, Description: untrusted.Line(e.Description, longestLine), Category: untrusted.Line(e.Category, 80),
		Available: e.Available,
	}
	for _, why := range e.Missing {
		a.Missing = append(a.Missing, untrusted.Line(why.String(), 400))
	}
	if e.Off != "" {
		a.Description, a.Available, a.Missing = "", false, []string{e.Off}
	}
	if e.Kind == capability.KindExtension {
		a.Loadable, a.ExtensionID = !a.Available, e.Name
	} else if id, ok := e.Extension(); ok {
		a.Loadable, a.ExtensionID = !e.Available, id
	}
	return a
}

const longestLine = 1000 // maximum characters of a description in data

// nothing says that nothing fits, why, and what comes nearest.
func nothing(v *View, sel Selection, kind, category string) string {
	there := func(is func(*catalog.Entry) bool) bool {
		for e := range v.but(nil) {
			if is(e) {
				return true
			}
		}
		return false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Nothing of %d capabilities fits.", v.shown)
	if len(sel.Nearest) > 0 {
		b.WriteString(" The nearest are ")
		for i, n := range sel.Nearest {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(untrusted.Line(string(n.ID), 80))
		}
		b.WriteString(".")
	}
	if kind != "" && kind != kindAny {
		fmt.Fprintf(&b, " Only kind %s was searched", untrusted.Line(kind, 40))
		if !there(func(e *catalog.Entry) bool { return string(e.Kind) == kind }) {
			b.WriteString(", of which there is none")
		}
		b.WriteString(".")
	}
	if category != "" {
		fmt.Fprintf(&b, " Only category %s was searched", untrusted.Line(category, 40))
		if !there(func(e *catalog.Entry) bool { return strings.EqualFold(e.Category, category) }) {
			b.WriteString(", which does not exist")
			var names []string
			for e := range v.but(nil) {
				if !slices.Contains(names, e.Category) && len(names) < 200 {
					names = append(names, e.Category)
				}
			}
			if near := spelling.Nearest(category, names); near != "" {
				b.WriteString("; did you mean " + untrusted.Line(near, 40))
			}
		}
		b.WriteString(".")
	}
	return b.String()
}

// lengths are those in which an entry is written, the longest first: characters
// of its description, and parameters.
var lengths = [...]struct{ text, params int }{{200, 8}, {120, 8}, {120, 4}, {80, 3}, {40, 0}, {0, 0}}

// least names an entry in as little as there is room for.
func least(e *catalog.Entry, tokens int, count tokenizer.Counter) string {
	id := untrusted.Line(string(e.ID), 40)
	if count(id+"\n") > tokens {
		id = tokenizer.Cut(id, max(tokens-3, 0)) + "…"
	}
	return id + "\n"
}

// signature writes "id name(a: string, b?) description".
func signature(e *catalog.Entry, text, params int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s(", untrusted.Line(string(e.ID), 120), untrusted.Line(e.Name, 80))
	for i, p := range e.Parameters {
		if i == params {
			fmt.Fprintf(&b, ", +%d", len(e.Parameters)-params)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(untrusted.Line(p.Name, 40))
		if !p.Required {
			b.WriteString("?")
		}
		if p.Type != "" {
			b.WriteString(": " + untrusted.Line(p.Type, 20))
		}
	}
	b.WriteString(")")
	switch {
	case e.Off != "":
		b.WriteString(" " + e.Off)
	case text > 0 && e.Description != "":
		b.WriteString(" " + untrusted.Line(e.Description, text))
	}
	if !e.Available && len(e.Missing) > 0 {
		b.WriteString(" [not available: " + untrusted.Line(e.Missing[0].String(), 80) + "]")
	}
	b.WriteString("\n")
	return b.String()
}

// list tells everything there is: by category, or by name with detail "full",
// and where only one kind or category is asked for.
func (f *Finder) list(v *View, detail, kind, category string, excluded []int) ToolAnswer {
	data := Capabilities{Capabilities: []Listed{}, TotalIndexed: v.shown}
	narrow := kind != "" && kind != kindAny || category != ""
	switch detail {
	case "", "summary":
		if narrow {
			break
		}
		return ToolAnswer{Text: v.outline(excluded), Data: data}
	case "full":
	default:
		return refusal("detail is %s; it is summary or full", untrusted.Line(detail, 40))
	}
	var b strings.Builder
	left, told, all := listTokens-20, 0, 0
	for e := range v.but(excluded) {
		if kind != "" && kind != kindAny && string(e.Kind) != kind || category != "" && !strings.EqualFold(e.Category, category) {
			continue
		}
		all++
		if told < all-1 {
			continue
		}
		line := "- " + untrusted.Line(string(e.ID), 120) + "\n"
		n := f.count(line)
		if n > left {
			continue
		}
		left -= n
		told++
		data.Capabilities = append(data.Capabilities, entryOf(e, 0))
		b.WriteString(line)
	}
	switch {
	case all == 0:
		return ToolAnswer{Text: answerOf(nothing(v, Selection{}, kind, category)), Data: data}
	case told < all:
		fmt.Fprintf(&b, "(+%d more; search them by a query)\n", all-told)
	}
	return ToolAnswer{Text: strings.TrimSuffix(b.String(), "\n"), Data: data}
}
