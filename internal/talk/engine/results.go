package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/door"
	"ken/internal/talk/deliver/offers"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// writeResults writes the results of a group and returns how the turn ends, if it
// ends with them. Rest are the calls that come after it.
func (e *Engine) writeResults(ctx context.Context, t turn, p progress, group, rest []*pendingCall) (progress, ending, error) {
	results := session.Entry{Kind: session.Results}
	var notes []session.Entry
	var end ending
	size := 0
	live := t.log.history().known
	live.Tools = maps.Clone(live.Tools)
	for i, j := range group {
		found := e.searched(ctx, t, p, j, live)
		if j.waits {
			end = ending{event.EndWaiting, j.why}
			break
		}
		said := e.resultBlocks(ctx, t, j, found.within)
		// Pictures of several calls may be more than can be written at once.
		if n := written(said); size > 0 && size+n > room {
			if err := t.writeEntry(notes, results); err != nil {
				return p, ending{}, err
			}
			results, notes, size = session.Entry{Kind: session.Results}, nil, 0
		}
		size += written(said)
		results.Blocks = append(results.Blocks, resultBlock(j.asked, said, j.res.Failed || j.err != nil))
		results.Blocks = append(results.Blocks, found.beside...)
		results.Offers = append(results.Offers, found.offers...)
		notes = append(notes, j.notes...)
		notes = append(notes, j.refused()...)
		p = p.countMistakes(j)
		if j.ends {
			end = ending{reason: event.EndAnswer}
			for _, after := range slices.Concat(group[i+1:], rest) {
				results.Blocks = append(results.Blocks, resultBlock(after.asked, []llm.Block{{Text: "The call was not made: " + toolFinish + " came before it."}}, true))
			}
			break
		}
	}
	if err := t.writeEntry(notes, results); err != nil {
		return p, ending{}, err
	}
	if !end.over() && ctx.Err() != nil {
		return p, ending{}, ctx.Err()
	}
	return p, end, nil
}

// writeEntry writes results with their notes, if there are any. Results stand
// before what was given beside them, as every provider wants.
func (t turn) writeEntry(notes []session.Entry, e session.Entry) error {
	if len(e.Blocks) == 0 {
		return nil
	}
	coldsort.Stable(e.Blocks, func(a, b llm.Block) int { return boolOf(a.Result == nil) - boolOf(b.Result == nil) })
	return t.log.append(append(notes, e)...)
}

// refused returns the note that a call was not made because a person or a rule
// denied it. The model reads that in the result, which may contain anything; the
// note is for people.
func (j *pendingCall) refused() []session.Entry {
	if kind := refusalKind(j.err); kind != "" {
		return []session.Entry{session.CallRefused{ID: j.asked.ID, Kind: kind}.Entry()}
	}
	return nil
}

// refusalKind returns the kind of an error that says that a call was denied or
// not approved, and is empty for any other.
func refusalKind(err error) string {
	switch kind := capability.KindOf(err); kind {
	case capability.Denied, capability.Unapproved:
		return kind.String()
	}
	return ""
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// countMistakes counts mistakes, one after another.
func (p progress) countMistakes(j *pendingCall) progress {
	switch {
	case j.mistake:
		p.mistakes++
	case j.err == nil && !j.res.Failed:
		p.mistakes = 0
	}
	return p
}

// resultBlock is the one result of a call.
func resultBlock(c *llm.ToolCall, blocks []llm.Block, failed bool) llm.Block {
	return llm.Block{Result: &llm.ToolResult{ID: c.ID, Name: c.Name, Blocks: blocks, Failed: failed}}
}

// resultBlocks returns what the model reads of a result, with the tools within it.
func (e *Engine) resultBlocks(ctx context.Context, t turn, j *pendingCall, within []llm.Block) []llm.Block {
	var out []llm.Block
	limit := t.terms.Limits.ResultBytes
	left, broken := limit, 0
	whole := j.res.Meta["truncated"] != "true"
	say := func(text string) {
		text = strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\n")
		if text == "" {
			return
		}
		safe, n := untrusted.Tokens(text)
		if over(len(safe), limit) || limit >= 0 && len(safe) > left {
			text = e.shortened(ctx, t, j, text, max(left, 0)) // the stored result stays complete
			whole = false
			safe, n = untrusted.Tokens(text)
		}
		text = safe
		broken += n
		left -= len(text)
		out = append(out, llm.Block{Text: text})
	}
	if j.note != "" {
		say("(" + j.note + ")")
	}
	for i := range j.res.Parts {
		part(&j.res.Parts[i], i > 0, t.model.Row.Images, say, &out)
	}
	if broken > 0 {
		say(fmt.Sprintf("(%d chat template tokens in this result are shown with a backslash or as an escape; the original has neither.)", broken))
	}
	person := j.call.Origin == capability.ByPerson // who needs no handle for what is all there
	if j.res.Handle != "" && !(person && whole) && !strings.Contains(textOf(out), j.res.Handle) {
		say("(The whole result: " + toolRead + ", handle " + j.res.Handle + ")")
	}
	if len(out) == 0 {
		out = []llm.Block{{Text: "(no output)"}}
	}
	return e.fitPictures(ctx, t, append(out, within...))
}

// shortened returns the beginning of a text that is longer than the model may
// read of a result, and says where the rest is.
func (e *Engine) shortened(ctx context.Context, t turn, j *pendingCall, text string, limit int) string {
	cut := limit
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	where := ""
	switch {
	case j.res.Handle != "":
		where = "; the whole result: " + toolRead + ", handle " + j.res.Handle
	case e.cfg.Keep != nil:
		excerpt, err := e.cfg.Keep(ctx, Kept{Principal: t.in.Principal, Session: t.in.Session, Name: "result", Text: []byte(text), Limit: cut})
		if err == nil {
			return excerpt + fmt.Sprintf("\n[chat.resultBytes is %d]", t.terms.Limits.ResultBytes)
		}
		where = "; the rest could not be kept: " + err.Error()
	}
	return fmt.Sprintf("%s\n[%d of %d bytes: chat.resultBytes is %d%s]", text[:cut], cut, len(text), t.terms.Limits.ResultBytes, where)
}

// part says one part of a result as the model reads it. Images reports whether
// the model takes pictures.
func part(p *capability.Part, later, images bool, say func(string), out *[]llm.Block) {
	switch {
	case p.Data != nil && strings.HasPrefix(p.MIME, "image/") && images:
		*out = append(*out, llm.Block{Image: &llm.Image{MIME: p.MIME, Data: p.Data}})
	case p.Data != nil:
		say(fmt.Sprintf("[%d bytes of %s that you cannot see]", len(p.Data), untrusted.Line(p.MIME, 60)))
	case p.JSON != nil && !(later && p.MIME == "application/json"): // as text it is there already
		say(string(p.JSON))
	case p.Text != "":
		say(p.Text)
	}
	if p.Link != "" {
		say("[" + untrusted.Line(p.Link, 500) + "]")
	}
}

// unknown answers a call of what is not there: with what is near.
func (j *pendingCall) unknown(view door.View, prefix session.Entry) {
	name := string(j.call.Target)
	text := "There is no tool " + untrusted.Line(name, 80) + "."
	if near := nearest(view, name); len(near) > 0 {
		text += " Near it: " + strings.Join(near, ", ") + "."
	}
	if declared(prefix, toolDiscover) {
		text += " " + toolDiscover + " finds what there is, " + toolInvoke + " calls it by its id."
	}
	j.mistake = true
	j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: text}}, Meta: j.res.Meta}
}

// explain adds to what is wrong with arguments what they must be, which saves
// the model a question.
func (e *Engine) explain(ctx context.Context, view door.View, j *pendingCall) {
	d, err := e.cfg.Door.Describe(ctx, view, string(j.call.Target))
	if err != nil || len(d.Detail.Schema) == 0 {
		return
	}
	schema := offers.Bounded(string(offers.PlainSchema(d.Detail.Schema)))
	j.res.Parts = append(slices.Clip(j.res.Parts), capability.Part{Text: "Its input schema: " + schema})
}

// nearest returns the ids of what is spelled most like a name, three at most.
func nearest(v door.View, name string) []string {
	want := []rune(strings.ToLower(untrusted.Local(name)))
	want = want[:min(len(want), 64)]
	type near struct {
		id string
		d  int
	}
	var list []near
	for e := range v.All() {
		have := []rune(strings.ToLower(e.Name))
		have = have[:min(len(have), 64)]
		d := distance(want, have)
		if strings.Contains(string(have), string(want)) && len(want) > 2 {
			d = min(d, 1)
		}
		if 2*d <= max(len(want), len(have)) {
			list = append(list, near{string(e.ID), d})
		}
	}
	coldsort.Stable(list, func(a, b near) int { return a.d - b.d })
	var out []string
	for _, n := range list[:min(len(list), 3)] {
		out = append(out, n.id)
	}
	return out
}

// distance is how many letters must change to make b of a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i, x := range a {
		last := row[0]
		row[0] = i + 1
		for j, y := range b {
			next := min(row[j]+1, row[j+1]+1, last+boolOf(x != y))
			last, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// jsonText returns a value as JSON for a note; the values here always marshal.
func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
