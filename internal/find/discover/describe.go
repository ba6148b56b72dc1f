package discover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/spelling"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

func (f *Finder) describe(ctx context.Context, v *View, args json.RawMessage, cfg Config) (ToolAnswer, error) {
	var in struct {
		ID   string `json:"id"`
		Part string `json:"part"`
		From int    `json:"from"`

		Capability string `json:"capability"` // other words for id
		Name       string `json:"name"`
	}
	if err := readArguments(args, &in); err != nil {
		return refusal("the arguments cannot be read: %v; give id, and if you like part", err), ctx.Err()
	}
	if in.Part == "reference" {
		text, err := f.source.Reference()
		if err != nil {
			return refusal("there is no reference: %v", err), ctx.Err()
		}
		return f.reading(Reading{From: in.From, Text: f.fence("the reference", text, false)}, false), ctx.Err()
	}
	e, err := v.lookup(cmp.Or(in.ID, in.Capability, in.Name))
	if err != nil {
		return refusal("%v", err), ctx.Err()
	}
	if i, _ := v.ordinalOf(e.ID); has(ordinals(v, cfg.Exclude), i) {
		return refusal("%s is not shown: capabilities.exclude names it", untrusted.Line(string(e.ID), 120)), ctx.Err()
	}
	if e.Off != "" {
		return refusal("%s is %s", untrusted.Line(string(e.ID), 120), e.Off), ctx.Err()
	}
	if in.Part == "" || in.Part == "all" {
		return f.describeAll(ctx, e, in.From), ctx.Err()
	}
	return f.describePart(ctx, e, in.Part, in.From), ctx.Err()
}

// describeAll returns the page of a capability.
func (f *Finder) describeAll(ctx context.Context, e *catalog.Entry, from int) ToolAnswer {
	p, err := f.page(ctx, e)
	if err != nil {
		return refusal("%s cannot be read: %v", untrusted.Line(string(e.ID), 120), err)
	}
	text := p.Text()
	if !e.Available {
		text = "Not available here: " + untrusted.Line(e.Missing.String(), 400) + "\n\n" + text
	}
	about := aboutOf(e)
	if detail, err := f.source.Detail(ctx, e); err == nil { // the page reports what could not be read
		about.InputSchema, about.OutputSchema = object(detail.Schema), object(detail.Output)
	}
	about.Annotations = annotations(e.Effects)
	if e.DisplayName != e.Name {
		about.Title = untrusted.Line(e.DisplayName, 120)
	}
	if len(about.Annotations) > 0 {
		text += "\n\nAnnotations, as its source claims: " + hints(about.Annotations)
	}
	if e.Claims != nil {
		text += "\n\nClaimed and not believed, because " + untrusted.Line(e.Claims.Doubt, 200) + ": " + hints(annotations(unbelieved(e.Capability)))
	}
	if about.OutputSchema != nil {
		text += "\n\n## Output Schema\n" + f.fence(string(e.ID), string(about.OutputSchema), false)
	}
	return f.reading(Reading{ID: e.ID, From: from, Text: text, About: &about}, e.Trust >= capability.TrustUser)
}

// object returns a JSON object without insignificant space, or nil.
func object(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil || !bytes.HasPrefix(b.Bytes(), []byte("{")) {
		return nil
	}
	return b.Bytes()
}

// annotations returns a source's hints by their MCP names.
func annotations(e capability.Effects) map[string]bool {
	out := map[string]bool{}
	for name, hint := range map[string]capability.Hint{
		"readOnlyHint": e.ReadOnly, "destructiveHint": e.Destructive, "idempotentHint": e.Idempotent, "openWorldHint": e.OpenWorld,
	} {
		if hint != capability.Unsaid {
			out[name] = hint == capability.Yes
		}
	}
	return out
}

// unbelieved are the hints that a source gives and that do not count.
func unbelieved(c *capability.Capability) capability.Effects {
	said := c.Said()
	for _, h := range []struct{ said, counts *capability.Hint }{
		{&said.ReadOnly, &c.Effects.ReadOnly}, {&said.Destructive, &c.Effects.Destructive},
		{&said.Idempotent, &c.Effects.Idempotent}, {&said.OpenWorld, &c.Effects.OpenWorld},
	} {
		if *h.said == *h.counts {
			*h.said = capability.Unsaid
		}
	}
	return said
}

// hints writes annotations sorted by name.
func hints(m map[string]bool) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s: %v", name, m[name]))
	}
	return strings.Join(parts, ", ")
}

// describePart returns the schema or the body of a capability as it is written.
func (f *Finder) describePart(ctx context.Context, e *catalog.Entry, part string, from int) ToolAnswer {
	id := untrusted.Line(string(e.ID), 120)
	detail, err := f.source.Detail(ctx, e)
	if err != nil {
		return refusal("%s cannot be read: %v", id, err)
	}
	switch part {
	case "schema":
		if len(detail.Schema) == 0 {
			return refusal("%s has no schema; part body or all may have something", id)
		}
		text := f.fence(string(e.ID), string(detail.Schema), false)
		if output := object(detail.Output); output != nil {
			text += "\n\n## Output Schema\n" + f.fence(string(e.ID), string(output), false)
		}
		return f.reading(Reading{ID: e.ID, From: from, Text: text}, false)
	case "body":
		body := strings.TrimSpace(detail.Body + "\n\n" + detail.Usage)
		switch {
		case body == "" && e.Withheld != "":
			return refusal("%s may not be shown: %s", id, e.Withheld)
		case body == "":
			return refusal("%s has no text; part schema or all may have something", id)
		}
		own := e.Trust >= capability.TrustUser
		return f.reading(Reading{ID: e.ID, From: from, Text: f.fence(string(e.ID), body, own)}, own)
	}
	return refusal("part is %s; it is all, schema, body or reference", untrusted.Line(part, 40))
}

// fence renders a text for a model; own says that the person who runs Ken put
// it there.
func (f *Finder) fence(origin, text string, own bool) string {
	return untrusted.Block(text, untrusted.BlockConfig{Key: f.key, Origin: origin, Max: longest, Trusted: own})
}

// reading returns as much of a text as one answer may hold, from a byte on. A
// piece of it has a fence of its own: that of the text opens in one piece and
// closes in another.
func (f *Finder) reading(r Reading, own bool) ToolAnswer {
	text, from := r.Text, r.From
	r.Bytes = len(text)
	switch {
	case from < 0 || from > len(text):
		return refusal("from is %d; the text has %d bytes", from, len(text))
	case from < len(text) && !utf8.RuneStart(text[from]):
		return refusal("from is %d, which is within a character; take the number that the answer before gave", from)
	case from == 0 && tokenizer.Cut(text, describeTokens) == text:
		return ToolAnswer{Text: text, Data: r}
	}
	r.Text = tokenizer.Cut(text[from:], describeTokens-fenceTokens)
	end := from + len(r.Text)
	origin := cmp.Or(untrusted.Line(string(r.ID), 80), "the reference")
	said := f.fence(fmt.Sprintf("%s, bytes %d to %d", origin, from, end), r.Text, own)
	if end < len(text) {
		r.Next = end
		said += fmt.Sprintf("\n[cut here: %d of %d bytes read; ask again with \"from\": %d]", end, len(text), end)
	}
	return ToolAnswer{Text: said, Data: r}
}

// lookup finds a visible entry by its id or a name that means only one. What
// is hidden is as what does not exist.
func (v *View) lookup(name string) (*catalog.Entry, error) {
	if i, ok := v.ordinalOf(capability.ID(name)); ok {
		return v.snapshot.Entries()[i], nil
	}
	var names []string
	var best []*catalog.Entry // of the name, the most trusted
	for e := range v.but(nil) {
		names = append(names, string(e.ID), e.Name)
		switch {
		case !strings.EqualFold(e.Name, name) && !strings.EqualFold(e.Title(), name) || len(best) > 0 && e.Trust < best[0].Trust:
		case len(best) > 0 && e.Trust > best[0].Trust:
			best = append(best[:0], e)
		default:
			best = append(best, e)
		}
	}
	shown := untrusted.Line(name, 80)
	switch {
	case len(best) == 1:
		return best[0], nil
	case len(best) > 1:
		return nil, fmt.Errorf("%d capabilities are called %s; take an id, as in %s or %s",
			len(best), shown, untrusted.Line(string(best[0].ID), 120), untrusted.Line(string(best[1].ID), 120))
	}
	if near := spelling.NearestID(name, names); near != "" {
		return nil, fmt.Errorf("there is no capability %s; did you mean %s?", shown, untrusted.Line(near, 120))
	}
	return nil, fmt.Errorf("there is no capability %s; %s finds what there is", shown, ToolDiscover)
}
