package runner

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"ken/capability"
	"ken/internal/run/result"
	"ken/internal/store"
	"ken/internal/untrusted"
)

// outputs keeps long outputs.
type outputs struct{ store Results } // nil: nothing does

// keep puts a long output where it can be read piece by piece, and leaves its
// beginning and its end. Short ones stay as they are unless the executor wants
// them kept. It counts the bytes of all.
func (o outputs) keep(inv *invocation, res capability.Result) (out capability.Result, total int64) {
	res.Meta = maps.Clone(res.Meta)
	if res.Meta == nil {
		res.Meta = map[string]string{}
	}
	size, limit := 0, inv.limits.Inline
	if inv.plan.facts.Inline > 0 {
		limit = min(limit, inv.plan.facts.Inline)
	}
	var whole []capability.Part // what is not cut
	if n := len(res.Parts); inv.call.Structured && n > 0 && res.Parts[n-1].JSON != nil && res.Parts[n-1].MIME == "application/json" {
		res.Parts, whole = slices.Clip(res.Parts[:n-1]), res.Parts[n-1:]
		total += int64(len(whole[0].JSON))
		defer func() { out.Parts = append(out.Parts, whole...) }()
	}
	var rest []capability.Part // what is not text
	for _, p := range res.Parts {
		size += len(p.Text) + len(p.JSON)
		total += int64(len(p.Text) + len(p.JSON) + len(p.Data))
		if p.Text == "" && p.JSON == nil {
			rest = append(rest, o.fitData(inv, res.Failed, p))
		}
	}
	if len(rest) > 0 && size <= limit {
		res.Parts = replaceData(res.Parts, rest)
	}
	if res.Handle != "" || size <= limit && !inv.plan.facts.Keep {
		return res, total
	}
	text := textOf(res.Parts)
	note := o.put(inv, &res, text)
	if size <= limit {
		return res, total
	}
	res.Meta[MetaTruncated] = "true"
	res.Parts = append([]capability.Part{{Text: result.Ends(text, limit, note)}}, rest...)
	return res, total
}

// put keeps the text under a handle, and says what to tell about it.
func (o outputs) put(inv *invocation, res *capability.Result, text []byte) string {
	if o.store == nil {
		return "nothing keeps them"
	}
	c := inv.target.Capability
	about := result.About{Target: c.ID, Extension: inv.target.extension(), Command: c.Name, Action: inv.call.Action}
	var e result.Entry
	var err error
	if c := inv.effect; c != nil && c.version != 0 { // how the call ended is kept in the same batch
		c.with.Store, _ = inv.runner.cfg.Effects.(*store.Store)
		e, err = o.store.KeepWith(&c.with, result.ScopeOf(inv.call), about, text, res.Failed, res.Meta)
	} else {
		e, err = o.store.Keep(result.ScopeOf(inv.call), about, text, res.Failed, res.Meta)
	}
	if err != nil {
		inv.notes.add("unkept", err.Error())
		return "they could not be kept"
	}
	res.Handle = e.Handle
	return "read them with read_result, handle " + e.Handle
}

func textOf(parts []capability.Part) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		if p.Text == "" && p.JSON == nil {
			continue
		}
		if n := b.Len(); n > 0 && b.Bytes()[n-1] != '\n' {
			b.WriteByte('\n')
		}
		b.WriteString(p.Text)
		b.Write(p.JSON)
	}
	return b.Bytes()
}

// fitData leaves an image or a sound as it is, unless it is larger than a
// result may hold: then it is kept, and a text says where.
func (o outputs) fitData(inv *invocation, failed bool, p capability.Part) capability.Part {
	if len(p.Data) <= inv.limits.DataBytes {
		return p
	}
	where := "nothing keeps it"
	if o.store != nil {
		c := inv.target.Capability
		about := result.About{Target: c.ID, Extension: inv.target.extension(), Command: c.Name, Action: inv.call.Action, MIME: p.MIME}
		e, err := o.store.Keep(result.ScopeOf(inv.call), about, p.Data, failed, nil)
		if err != nil {
			inv.notes.add("unkept", err.Error())
			where = "it could not be kept"
		} else {
			where = result.Where(e)
		}
	}
	return capability.Part{Text: fmt.Sprintf("[%s of %d bytes left out: limits.dataBytes is %d; %s]", untrusted.Line(p.MIME, 60), len(p.Data), inv.limits.DataBytes, where)}
}

func replaceData(parts, rest []capability.Part) []capability.Part {
	out := make([]capability.Part, 0, len(parts))
	for _, p := range parts {
		if p.Text == "" && p.JSON == nil {
			p, rest = rest[0], rest[1:]
		}
		out = append(out, p)
	}
	return out
}
