package prompt

import (
	"fmt"
	"strings"

	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
	"ken/llm"
)

// Marker is the entry that carries out a plan without a model: it says that
// something is hidden, keeps the intents and open questions of it, and the
// words of the person that the rest of the conversation answers. It takes at
// most p.Room tokens.
func Marker(entries []session.Entry, p Plan) session.Entry {
	head := fmt.Sprintf("[%d earlier messages are hidden here because the conversation no longer fitted. They are kept and can be brought back; do not guess at what they said.]", p.Hidden)
	return standIn(session.Marker, p, head, keeps(entries, p))
}

// Summary is the entry that carries out a plan with what a model wrote to the
// request of [CondenseRequest]. It reports false, and gives the [Marker], where
// the model wrote nothing of use.
//
// The summary is fenced as data: it was made of what tools returned, too, and
// must not give that the person's voice.
func Summary(entries []session.Entry, p Plan, text string) (session.Entry, bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Marker(entries, p), false
	}
	kept := keeps(entries, p)
	left := p.Room - tokenizer.Count(kept) - 120 // for the head and the fence
	if left < 40 {
		return Marker(entries, p), false
	}
	text = short(text, left)
	for {
		fenced := untrusted.Block(text, untrusted.BlockConfig{Origin: "a summary that a model made of them", Max: len(text) + 24})
		head := fmt.Sprintf("[%d earlier messages are hidden here because the conversation no longer fitted. They are kept and can be brought back. This is what they came to.]\n", p.Hidden) + fenced
		e := standIn(session.Summary, p, head, kept)
		if e.Tokens <= p.Room || left < 40 {
			return e, e.Tokens <= p.Room
		}
		// Revealed characters took more than they were.
		left /= 2
		text = short(text, left)
	}
}

func standIn(kind session.Kind, p Plan, parts ...string) session.Entry {
	var b strings.Builder
	for _, s := range parts {
		if s == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(s)
	}
	return session.Entry{
		Kind: kind, From: p.From, To: p.To, Text: p.Why,
		Blocks: []llm.Block{{Text: b.String()}}, Tokens: tokenizer.Count(b.String()),
	}
}

// keeps returns what must outlive the plan: at most half of its room.
func keeps(entries []session.Entry, p Plan) string {
	var parts []string
	left := min(p.Room/2-30, p.Room-220)
	add := func(head string, lines []string) {
		// The newest matter most.
		for len(lines) > 0 {
			text := head + "\n- " + strings.Join(lines, "\n- ")
			if n := tokenizer.Count(text) + 2; n <= left {
				parts, left = append(parts, text), left-n
				return
			}
			lines = lines[1:]
		}
	}
	if words := answered(entries, p); words != "" && left >= 40 {
		text := "The person's message that the rest answers:\n" + short(words, left*2/3)
		parts, left = append(parts, text), left-tokenizer.Count(text)-2
	}
	questions, intents := hiddenNotes(entries, p)
	add("Questions that are still open:", questions)
	add("Intents that were declared:", intents)
	return strings.Join(parts, "\n\n")
}

// hiddenNotes returns the questions and the intents among the notes that a plan
// hides, a line for each.
func hiddenNotes(entries []session.Entry, p Plan) (questions, intents []string) {
	for _, e := range session.Notes(entries) {
		if e.Seq < p.From || e.Seq > p.To {
			continue
		}
		switch n := session.ReadNote(&e).(type) {
		case session.OpenQuestion:
			questions = appendLine(questions, n.Text)
		case session.Intended:
			intents = appendLine(intents, n.String())
		}
	}
	return questions, intents
}

func appendLine(lines []string, text string) []string {
	if line := untrusted.Line(text, 200); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// answered returns the words of the person that a plan hides although what comes
// after it belongs to the same turn.
func answered(entries []session.Entry, p Plan) string {
	words, turn := "", 0
	for _, e := range session.Live(entries) {
		switch {
		case e.Seq >= p.From && e.Seq <= p.To && e.Kind == session.User:
			words, turn = texts(e.Blocks), e.Turn
		case e.Seq > p.To && e.Kind != session.Prefix && e.To == 0:
			if e.Turn == turn && e.Kind != session.User {
				return strings.TrimSpace(words)
			}
			return ""
		}
	}
	return ""
}

func texts(blocks []llm.Block) string {
	var b strings.Builder
	for i := range blocks {
		if b.Len() > 0 && blocks[i].Text != "" {
			b.WriteString("\n")
		}
		b.WriteString(blocks[i].Text)
	}
	return b.String()
}

// short returns a text of at most most tokens, with a mark where it was cut; its
// beginning counts for more than its end.
func short(text string, most int) string {
	if n := tokenizer.Count(text); n > most {
		const mark = " …[cut]… "
		head := tokenizer.Cut(text, max(most-12, 0)*2/3)
		tail := text[len(text)-min(len(text), max(most-12, 0)*2):]
		for !validStart(tail) {
			tail = tail[1:]
		}
		// From the end one can only guess how long a part with so many tokens
		// is; it is shortened until it fits.
		for tail != "" && tokenizer.Count(head+mark+tail) > most {
			tail = tail[(len(tail)+3)/4:]
			for !validStart(tail) {
				tail = tail[1:]
			}
		}
		return head + mark + tail
	}
	return text
}

// validStart reports whether a text does not begin within a character.
func validStart(s string) bool { return s == "" || s[0]&0xC0 != 0x80 }
