// Package offers reads the capabilities of a view as tools that a model could be
// given. It is the part of delivery that reads; package deliver decides, and is
// pure.
package offers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// maxWhole is the maximum number of tools, and of other entries, for a complete
// list.
const maxWhole = 200

// maxSchemaBytes is how much of a schema a text shows.
const maxSchemaBytes = 6000

// A Reader reads the tools of one view.
type Reader struct {
	Door  *door.Door
	View  door.View
	Scope capability.Scope // of the message

	// Cache remembers definitions for [Reader.Changed].
	Cache *Cache

	// Degraded is told what could not be read. The turn goes on without it.
	Degraded func(text string)
}

// Callable reports whether a capability can be a tool of a model.
func Callable(e *door.Entry) bool {
	if e.State != "active" || !e.Available || e.Run == nil {
		return false
	}
	switch e.Kind {
	case capability.KindSkill, capability.KindCard, capability.KindCommand, capability.KindExtension, capability.KindChannel:
		return false
	}
	return true
}

// Core returns the tools that are part of the program, which every prefix has.
// read_result is not one of them: it is among Ken's own tools.
func (r Reader) Core(ctx context.Context, live deliver.Live) []deliver.Offer {
	var entries []*door.Entry
	for e := range r.View.Own() {
		if Callable(e) && !capability.IsOwnTool(e.Name) {
			entries = append(entries, e)
		}
	}
	return r.offers(ctx, entries, live.Taken())
}

// Appeared returns the tools of the program that the model does not know yet,
// because another mode shows more of them, and the text that tells about them.
// The prefix stays as it is: the model calls them by their names or through
// invoke_capability.
func (r Reader) Appeared(ctx context.Context, delivery model.DeliveryMode, live deliver.Live) (text string, offers []deliver.Offer) {
	known := map[capability.ID]bool{}
	for _, o := range live.Tools {
		known[o.ID] = true
	}
	var entries []*door.Entry
	for e := range r.View.Own() {
		if Callable(e) && !capability.IsOwnTool(e.Name) && !known[e.ID] && live.Shown[e.ID] == "" {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 || delivery == model.PerTurn { // which shows all of them in every turn
		return "", nil
	}
	offers = r.offers(ctx, entries, live.Taken())
	for _, o := range offers {
		text += fmt.Sprintf("\n- %s: %s Its input schema: %s", o.Tool.Name, o.Tool.Description, Bounded(string(o.Tool.Schema)))
	}
	if text == "" {
		return "", nil
	}
	return "Tools that you may call from now on besides the others, with " + capability.ToolInvoke + " where you cannot call them directly:" + text, offers
}

// All returns everything besides core that may be called, and the list of the
// rest of the catalog. It returns nil if that is too much to show in full.
func (r Reader) All(ctx context.Context, core []deliver.Offer) ([]deliver.Offer, door.Others) {
	entries, others, ok := r.Everything()
	if !ok {
		return nil, door.Others{}
	}
	taken := make(map[string]session.Offer, len(core))
	for _, o := range core {
		taken[o.Tool.Name] = session.Offer{Tool: o.Tool.Name, ID: o.ID}
	}
	return r.offers(ctx, entries, taken), others
}

// Everything returns the tools of the catalog and the list of its other
// entries. It returns false if that is too much or cannot be determined; the
// session then starts with less.
func (r Reader) Everything() (tools []*door.Entry, others door.Others, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			r.Degraded("the catalog could not be listed: " + untrusted.Line(fmt.Sprint(p), 200))
			tools, others, ok = nil, door.Others{}, false
		}
	}()
	return r.Door.Whole(r.View, r.Scope, Callable, maxWhole)
}

// Found returns the callable ones of the capabilities that were found, in order.
func (r Reader) Found(ctx context.Context, ids []capability.ID, live deliver.Live) []deliver.Offer {
	var entries []*door.Entry
	for _, id := range ids {
		if e, err := r.View.Lookup(string(id)); err == nil && Callable(e) {
			entries = append(entries, e)
		}
	}
	return r.offers(ctx, entries, live.Taken())
}

// offers reads the schemas of entries. An entry whose schema cannot be read is
// left out: it is found and described, and the call says what is wrong.
func (r Reader) offers(ctx context.Context, entries []*door.Entry, taken map[string]session.Offer) []deliver.Offer {
	named := make([]deliver.Named, 0, len(entries))
	out := make([]deliver.Offer, 0, len(entries))
	for _, e := range entries {
		d, err := r.Door.Describe(ctx, r.View, string(e.ID))
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				r.Degraded("a tool is not offered: " + err.Error())
			}
			continue
		}
		named = append(named, deliver.Named{ID: e.ID, Name: e.Name, Category: e.Category})
		out = append(out, deliver.Offer{ID: e.ID, Tool: toolOf(d)})
	}
	for i, name := range deliver.Names(named, taken) {
		out[i].Tool.Name = name
	}
	return out
}

// toolOf returns a capability as a tool that has no name yet.
func toolOf(d door.Description) llm.Tool {
	return llm.Tool{Description: untrusted.Line(d.Description, 1000), Schema: PlainSchema(d.Detail.Schema)}
}

// PlainSchema returns a schema without insignificant space, and the schema of
// any object if raw is none.
func PlainSchema(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Compact(&b, raw) != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return b.Bytes()
}

// Bounded returns as much of a schema as a text shows.
func Bounded(schema string) string {
	if len(schema) <= maxSchemaBytes {
		return schema
	}
	return strings.ToValidUTF8(schema[:maxSchemaBytes], "") + fmt.Sprintf(" … (%d of %d bytes; %s has the rest)", maxSchemaBytes, len(schema), capability.ToolDescribe)
}
