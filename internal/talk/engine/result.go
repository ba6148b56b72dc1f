package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver/offers"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// settle writes down the results of a group and says whether the turn ends
// with them. Rest are the calls that come after it.
func (t *turn) settle(group, rest []*job) (ending, bool, error) {
	e := session.Entry{Kind: session.Results}
	var notes []session.Entry
	var end ending
	size := 0
	live := t.known
	live.Tools = maps.Clone(t.known.Tools)
	for i, j := range group {
		t.searched(j, live)
		if j.waits {
			end = ending{event.EndWaiting, j.why}
			break
		}
		said := t.told(j)
		// Pictures of several calls may be more than can be written at once.
		if n := written(said); size > 0 && size+n > room {
			if err := t.write(notes, e); err != nil {
				return ending{}, true, err
			}
			e, notes, size = session.Entry{Kind: session.Results}, nil, 0
		}
		size += written(said)
		e.Blocks = append(e.Blocks, resultBlock(j.asked, said, j.res.Failed || j.err != nil))
		e.Blocks = append(e.Blocks, j.beside...)
		e.Offers = append(e.Offers, j.offers...)
		notes = append(notes, j.notes...)
		notes = append(notes, j.refused()...)
		t.judge(j)
		if j.ends {
			end = ending{reason: event.EndAnswer}
			for _, after := range slices.Concat(group[i+1:], rest) {
				e.Blocks = append(e.Blocks, resultBlock(after.asked, []llm.Block{{Text: "The call was not made: " + toolFinish + " came before it."}}, true))
			}
			break
		}
	}
	if err := t.write(notes, e); err != nil {
		return ending{}, true, err
	}
	if end.reason == "" && t.ctx.Err() != nil {
		return ending{}, true, t.ctx.Err()
	}
	return end, end.reason != "", nil
}

// write writes results down with their notes, if there are any. Results stand
// before what was given beside them, as every wire wants.
func (t *turn) write(notes []session.Entry, e session.Entry) error {
	if len(e.Blocks) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Blocks, func(a, b llm.Block) int { return boolOf(a.Result == nil) - boolOf(b.Result == nil) })
	return t.append(append(notes, e)...)
}

// refused returns the note that a call was not made because somebody or a rule
// forbids it. The model reads that in the result, where anything may stand; the
// note is for people.
func (j *job) refused() []session.Entry {
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

// judge counts mistakes, one after another.
func (t *turn) judge(j *job) {
	switch {
	case j.mistake:
		t.mistakes++
	case j.err == nil && !j.res.Failed:
		t.mistakes = 0
	}
}

// resultBlock is the one result of a call.
func resultBlock(c *llm.ToolCall, blocks []llm.Block, failed bool) llm.Block {
	return llm.Block{Result: &llm.ToolResult{ID: c.ID, Name: c.Name, Blocks: blocks, Failed: failed}}
}

// told is what the model reads of a result.
func (t *turn) told(j *job) []llm.Block {
	var out []llm.Block
	limit := t.terms.Limits.ResultBytes
	left, broken := limit, 0
	say := func(text string) {
		text = strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\n")
		if text == "" {
			return
		}
		safe, n := untrusted.Tokens(text)
		if over(len(safe), limit) || limit >= 0 && len(safe) > left {
			text = t.shortened(j, text, max(left, 0)) // the stored result stays complete
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
		t.part(&j.res.Parts[i], i > 0, say, &out)
	}
	if broken > 0 {
		say(fmt.Sprintf("(%d chat template tokens in this result are shown with a backslash or as an escape; the original has neither.)", broken))
	}
	if j.res.Handle != "" && !strings.Contains(textOf(out), j.res.Handle) {
		say("(The whole result: " + toolRead + ", handle " + j.res.Handle + ")")
	}
	if len(out) == 0 {
		out = []llm.Block{{Text: "(no output)"}}
	}
	return t.fitPictures(append(out, j.within...))
}

// shortened returns the beginning of a text that is longer than the model may
// read of a result, and says where the rest is.
func (t *turn) shortened(j *job, text string, limit int) string {
	cut := limit
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	where := ""
	switch {
	case j.res.Handle != "":
		where = "; the whole result: " + toolRead + ", handle " + j.res.Handle
	case t.e.cfg.Keep != nil:
		excerpt, err := t.e.cfg.Keep(t.ctx, Kept{Principal: t.in.Principal, Session: t.in.Session, Name: "result", Text: []byte(text), Limit: cut})
		if err == nil {
			return excerpt + fmt.Sprintf("\n[chat.resultBytes is %d]", t.terms.Limits.ResultBytes)
		}
		where = "; the rest could not be kept: " + err.Error()
	}
	return fmt.Sprintf("%s\n[%d of %d bytes: chat.resultBytes is %d%s]", text[:cut], cut, len(text), t.terms.Limits.ResultBytes, where)
}

// part gives one part of a result as the model reads it.
func (t *turn) part(p *capability.Part, later bool, say func(string), out *[]llm.Block) {
	switch {
	case p.Data != nil && strings.HasPrefix(p.MIME, "image/") && t.model.Row.Images:
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
func (t *turn) unknown(j *job) {
	name := string(j.call.Target)
	text := "There is no tool " + untrusted.Line(name, 80) + "."
	if near := nearest(t.view, name); len(near) > 0 {
		text += " Near it: " + strings.Join(near, ", ") + "."
	}
	if t.declared(toolDiscover) {
		text += " " + toolDiscover + " finds what there is, " + toolInvoke + " calls it by its id."
	}
	j.mistake = true
	j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: text}}, Meta: j.res.Meta}
}

// explain adds to what is wrong with arguments what they must be, which saves
// the model a question.
func (t *turn) explain(j *job) {
	d, err := t.e.cfg.Door.Describe(t.ctx, t.view, string(j.call.Target))
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
	slices.SortStableFunc(list, func(a, b near) int { return a.d - b.d })
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
