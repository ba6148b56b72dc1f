package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/jsonvalid"
	"ken/internal/run/executor"
	"ken/internal/run/result"
)

// inlineSelected is how long a selection may be to be shown whole beside the
// handle of what it was taken from.
const inlineSelected = 16 << 10

// result turns an answer into a result. One with a status of 400 or above, or
// whose end is missing, is failed and keeps its text.
func (x *exchange) result(a *answer) capability.Result {
	r := capability.Result{
		Failed: a.status >= 400 || a.truncated || a.broken != "" || a.elsewhere != "",
		Meta: map[string]string{
			"http_status": strconv.Itoa(a.status), "host": x.plan.url.Hostname(), "method": x.plan.method,
			"tool": x.plan.capability.Name, "truncated": strconv.FormatBool(a.truncated), "end": "returned", "isolation": isolation,
		},
	}
	say := func(text string) { r.Parts = append(r.Parts, capability.Part{Text: text}) }
	if g := x.plan.op.graph; g != nil {
		own := *a
		a = &own // the answer may be in the cache
		lines, failed := g.unpack(a)
		r.Failed = r.Failed || failed
		if len(lines) > 0 {
			say(strings.Join(lines, "\n"))
		}
	}
	if a.status >= 300 || len(a.body) == 0 && len(r.Parts) == 0 {
		say(fmt.Sprintf("HTTP %d %s", a.status, http.StatusText(a.status)))
	}
	switch {
	case a.elsewhere != "":
		say("It redirects to " + strings.ToValidUTF8(a.elsewhere, "\uFFFD") + ", another host, which this call may not reach. Nothing was sent there.")
	case a.truncated:
		say(fmt.Sprintf("The answer is longer than %d bytes, which is requests.bytes; the rest was not read. Ask for less.", x.limits.Bytes))
	case a.broken != "":
		say("The answer is incomplete: " + a.broken)
	}
	if asked := a.header.Get("Retry-After"); asked != "" && a.status >= 400 {
		say("The server asks to wait: Retry-After: " + oneLine(asked))
	}
	if at := a.header.Get("Location"); at != "" && a.status == http.StatusCreated {
		say("Location: " + oneLine(at))
	}
	if x.more {
		say(fmt.Sprintf("There is a further page. Call again with %s: %d to read more of them at once.", x.plan.op.pagesName(), min(x.plan.pages+9, x.limits.Pages)))
	}
	x.show(&r, a)
	if len(r.Parts) > 1 { // beside a text, JSON is one too: some readers show either
		for i, p := range r.Parts {
			if p.JSON != nil {
				r.Parts[i] = capability.Part{Text: string(p.JSON), MIME: executor.MIMEStdout}
			}
		}
	}
	return r
}

func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return s[:min(len(s), 300)]
}

// show adds the body: JSON, text or bytes, by what it is and not by what the
// server calls it.
func (x *exchange) show(r *capability.Result, a *answer) {
	if len(a.body) == 0 {
		return
	}
	said := a.header.Get("Content-Type")
	if said != "application/json" {
		said, _, _ = mime.ParseMediaType(said)
	}
	if said != "" {
		r.Meta["content_type"] = said
	}
	valid := jsonvalid.Valid(a.body) && !a.truncated
	switch {
	case valid && (isJSON(said) || said == "" || a.body[0] == '{' || a.body[0] == '['):
		if x.plan.choose != nil && a.status < 400 {
			x.selected(r, a)
			return
		}
		r.Parts = append(r.Parts, capability.Part{JSON: a.body, MIME: "application/json"})
		if len(a.body) > inlineSelected && a.status < 400 {
			r.Parts = append(r.Parts, capability.Part{Text: hint(x.plan.op.selectName(), a.body)})
		}
	case utf8.Valid(a.body):
		if isJSON(said) {
			r.Parts = append(r.Parts, capability.Part{Text: "The server says that this is JSON, and it is not:"})
		}
		r.Parts = append(r.Parts, capability.Part{Text: string(a.body), MIME: executor.MIMEStdout})
	case a.truncated && strings.HasPrefix(said, "text/"), a.truncated && isJSON(said):
		r.Parts = append(r.Parts, capability.Part{Text: strings.ToValidUTF8(string(a.body), "\uFFFD"), MIME: executor.MIMEStdout})
	default:
		if said == "" || strings.HasPrefix(said, "text/") || isJSON(said) {
			said = "application/octet-stream"
		}
		r.Meta["binary"] = "true"
		r.Parts = append(r.Parts, capability.Part{Data: a.body, MIME: said})
	}
}

// hint tells how to ask for less of an answer like this one.
func hint(name string, body []byte) string {
	return fmt.Sprintf("To read a part of such an answer, call again with %s, a list of paths as in [\"/items/name\"]. This answer has: %s", name, shape(body))
}

// selected shows the chosen parts, and keeps the whole.
func (x *exchange) selected(r *capability.Result, a *answer) {
	part, some, err := x.plan.choose.of(a.body)
	if err != nil {
		r.Parts = append(r.Parts, capability.Part{JSON: a.body, MIME: "application/json"})
		return
	}
	handle := x.keep(a.body)
	where := ""
	if handle != "" {
		where = fmt.Sprintf(" The whole answer of %d bytes is kept: read it with read_result, handle %s.", len(a.body), handle)
	}
	if !some {
		r.Parts = append(r.Parts, capability.Part{Text: "Nothing in the answer is at " + x.plan.choose.String() + ". It has: " + shape(a.body) + "." + where})
	} else {
		r.Parts = append(r.Parts, capability.Part{Text: part, MIME: executor.MIMEStdout})
		if where != "" {
			r.Parts = append(r.Parts, capability.Part{Text: strings.TrimSpace(where)})
		}
	}
	if handle != "" && len(part) <= inlineSelected {
		r.Handle = handle
	}
}

// keep stores the whole of an answer without the secrets in it.
func (x *exchange) keep(body []byte) string {
	if x.cfg.Results == nil {
		return ""
	}
	text := string(body)
	if x.cfg.Redact != nil {
		text = x.cfg.Redact(text)
	}
	c := x.plan.capability
	about := result.About{Target: c.ID, Extension: c.Origin.Source, Command: c.Name, Action: x.call.Action, MIME: "application/json"}
	e, err := x.cfg.Results.Keep(result.ScopeOf(x.call), about, []byte(text), false, nil)
	if err != nil {
		return ""
	}
	return e.Handle
}

// shape names what is in a JSON value, two levels deep.
func shape(body []byte) string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return "nothing that can be read"
	}
	var names []string
	var walk func(at string, v any, level int)
	walk = func(at string, v any, level int) {
		const most = 30
		if len(names) >= most {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			if level == 3 || len(v) == 0 {
				names = append(names, at)
				return
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(at+"/"+oneLine(key), v[key], level+1)
			}
		case []any:
			if len(v) == 0 || level == 3 {
				names = append(names, fmt.Sprintf("%s (%d)", at, len(v)))
				return
			}
			if _, nested := v[0].(map[string]any); !nested {
				names = append(names, fmt.Sprintf("%s (%d)", at, len(v)))
				return
			}
			walk(at, v[0], level)
		default:
			names = append(names, at)
		}
	}
	walk("", v, 0)
	return strings.Join(names, ", ")
}
