package analyze

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ken/internal/untrusted"
)

const (
	firstLines = 10
	longLine   = 240 // characters of a line that are shown
	manyNames  = 40
	longName   = 60
)

func (m material) binary() bool {
	return m.entry != nil && m.entry.Binary || strings.ContainsRune(m.head, 0)
}

// known says in one phrase what is known of a text without a look at it.
func (m material) known() string {
	out := fmt.Sprintf("%d bytes, %d characters, %d lines", m.size.Bytes, m.size.Chars, m.size.Lines)
	if m.entry == nil {
		return "given in the call, " + out
	}
	out = "what " + untrusted.Line(string(m.entry.Target), longName*2) + " returned at " + m.entry.Made.UTC().Format(time.RFC3339) + ", " + out
	if m.entry.Failed {
		out += "; the call failed"
	}
	if m.entry.Lost > 0 {
		out += fmt.Sprintf("; %d bytes more were never kept (%s)", m.entry.Lost, untrusted.Line(m.entry.Note, 200))
	}
	return out
}

// summary is what rules can say of a text.
func (m material) summary(why string) string {
	form := look(m)
	var b strings.Builder
	fmt.Fprintf(&b, "This summary is by rules: %s.\n", why)
	fmt.Fprintf(&b, "Text: %s\n", m.known())
	fmt.Fprintf(&b, "Format: %s\n", form)
	if len(form.names) > 0 {
		fmt.Fprintf(&b, "%s: %s\n", form.called, listed(form.names))
	}
	lines, more := m.first(firstLines)
	if len(lines) == 0 {
		b.WriteString("It is empty.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "First %d lines:\n", len(lines))
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "%d lines more", more)
		if m.entry != nil {
			fmt.Fprintf(&b, "; read_result gives them, handle %s", m.entry.Handle)
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// first returns the first lines, fit to be shown, and how many there are besides.
func (m material) first(n int) (lines []string, more int64) {
	rest := m.head
	for len(lines) < n && rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		lines = append(lines, shortened(strings.TrimSuffix(line, "\r")))
	}
	return lines, max(0, m.size.Lines-int64(len(lines)))
}

// shortened returns a line without what cannot be seen, and cut where it is long.
func shortened(line string) string {
	if len(line) <= longLine {
		return untrusted.Terminal(line)
	}
	end := 0
	for n := 0; n < longLine && end < len(line); n++ {
		_, size := utf8.DecodeRuneInString(line[end:])
		end += size
	}
	if end == len(line) {
		return untrusted.Terminal(line)
	}
	return untrusted.Terminal(line[:end]) + "…⟨+" + strconv.Itoa(utf8.RuneCountInString(line[end:])) + "⟩"
}

// listed returns names, fit to be shown, and how many there are besides.
func listed(names []string) string {
	shown := make([]string, 0, manyNames+1)
	for i, name := range names {
		if i == manyNames {
			shown = append(shown, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		shown = append(shown, name)
	}
	return strings.Join(shown, ", ")
}

// named renders a name that came from outside.
func named(s string) string {
	if s = untrusted.Line(s, longName); s == "" {
		return `""`
	}
	return s
}
