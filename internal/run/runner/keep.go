package runner

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"ken/capability"
	"ken/internal/run/result"
	"ken/internal/untrusted"
)

// keep puts a long output where it can be read piece by piece, and leaves its
// beginning and its end. Short ones stay as they are unless the executor wants
// them kept.
func (r *Runner) keep(t *trip, res capability.Result) (out capability.Result) {
	res.Meta = maps.Clone(res.Meta)
	if res.Meta == nil {
		res.Meta = map[string]string{}
	}
	size, limit := 0, t.limits.Inline
	if t.facts.Inline > 0 {
		limit = min(limit, t.facts.Inline)
	}
	var whole []capability.Part // what is not cut
	if n := len(res.Parts); t.call.Structured && n > 0 && res.Parts[n-1].JSON != nil && res.Parts[n-1].MIME == "application/json" {
		res.Parts, whole = slices.Clip(res.Parts[:n-1]), res.Parts[n-1:]
		t.bytes += int64(len(whole[0].JSON))
		defer func() { out.Parts = append(out.Parts, whole...) }()
	}
	var rest []capability.Part // what is not text
	for _, p := range res.Parts {
		size += len(p.Text) + len(p.JSON)
		t.bytes += int64(len(p.Text) + len(p.JSON) + len(p.Data))
		if p.Text == "" && p.JSON == nil {
			rest = append(rest, r.fitData(t, res.Failed, p))
		}
	}
	if len(rest) > 0 && size <= limit {
		res.Parts = replaceData(res.Parts, rest)
	}
	if res.Handle != "" || size <= limit && !t.facts.Keep {
		return res
	}
	text := textOf(res.Parts)
	note := r.store(t, &res, text)
	if size <= limit {
		return res
	}
	res.Meta[MetaTruncated] = "true"
	res.Parts = append([]capability.Part{{Text: result.Ends(text, limit, note)}}, rest...)
	return res
}

// store keeps the text under a handle, and says what to tell about it.
func (r *Runner) store(t *trip, res *capability.Result, text []byte) string {
	if r.cfg.Results == nil {
		return "nothing keeps them"
	}
	c := t.target.Capability
	about := result.About{Target: c.ID, Extension: t.extension(), Command: c.Name, Action: t.call.Action}
	e, err := r.cfg.Results.Keep(result.ScopeOf(t.call), about, text, res.Failed, res.Meta)
	if err != nil {
		t.note("unkept", err.Error())
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
func (r *Runner) fitData(t *trip, failed bool, p capability.Part) capability.Part {
	if len(p.Data) <= t.limits.DataBytes {
		return p
	}
	where := "nothing keeps it"
	if r.cfg.Results != nil {
		c := t.target.Capability
		about := result.About{Target: c.ID, Extension: t.extension(), Command: c.Name, Action: t.call.Action, MIME: p.MIME}
		e, err := r.cfg.Results.Keep(result.ScopeOf(t.call), about, p.Data, failed, nil)
		if err != nil {
			t.note("unkept", err.Error())
			where = "it could not be kept"
		} else {
			where = result.Where(e)
		}
	}
	return capability.Part{Text: fmt.Sprintf("[%s of %d bytes left out: limits.dataBytes is %d; %s]", untrusted.Line(p.MIME, 60), len(p.Data), t.limits.DataBytes, where)}
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
