package checkup

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"ken/capability"
)

// Requests returns messages that ask for a capability: the first and the second
// sentence of its description as wishes, and its keywords. One without a
// description is asked for by its name.
func Requests(c *capability.Capability) (out []string) {
	add := func(text string) {
		if words := strings.Fields(text); len(words) > mostRequested {
			text = strings.Join(words[:mostRequested], " ")
		}
		if len(wordsOf(text)) >= 2 {
			out = append(out, text)
		}
	}
	first, rest := sentence(c.Description)
	add(wish(first))
	second, _ := sentence(rest)
	add(wish(second))
	keywords := c.Tags
	if c.Triggers != nil {
		keywords = append(keywords[:len(keywords):len(keywords)], c.Triggers.Keywords...)
	}
	add(strings.Join(keywords, " "))
	if len(out) == 0 {
		out = append(out, strings.Join(wordsOf(c.Name), " "))
	}
	return out
}

// sentence cuts off the first sentence of a text.
func sentence(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	for i, r := range text {
		after := text[i+len(string(r)):]
		switch {
		case r == '\n', (r == '.' || r == '!' || r == '?') && (after == "" || strings.IndexFunc(after, unicode.IsSpace) == 0), r == '。':
			return strings.TrimSpace(text[:i]), strings.TrimSpace(after)
		}
	}
	return text, ""
}

// tells are the words before what a description says.
var tells = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:(?:this|the)\s+(?:tool|function|skill|command|endpoint|operation|extension|server)\s+(?:is\s+used\s+to\s+|can\s+be\s+used\s+to\s+|allows\s+(?:you|users)\s+to\s+|lets\s+(?:you|users)\s+|will\s+|can\s+)?|use\s+(?:this|it)(?:\s+\w+)?\s+(?:to|when)\s+|allows\s+(?:you|users)\s+to\s+|used\s+to\s+|a\s+tool\s+(?:to|that|for)\s+|tool\s+(?:to|that|for)\s+)`)
})

// wish turns a sentence about a capability into a request for it: "Lists files."
// becomes "list files".
func wish(text string) string {
	text = strings.TrimSpace(tells().ReplaceAllString(text, ""))
	verb, rest, _ := strings.Cut(text, " ")
	if verb == "" {
		return ""
	}
	if lower := strings.ToLower(verb); lower[1:] == verb[1:] { // not an abbreviation
		verb = imperative(lower)
	}
	return strings.TrimSpace(verb + " " + rest)
}

// imperative returns the basic form of a verb in the third person.
func imperative(verb string) string {
	switch {
	case len(verb) < 4 || !strings.HasSuffix(verb, "s") || strings.HasSuffix(verb, "ss") || strings.HasSuffix(verb, "us") || verb == "this":
		return verb
	case strings.HasSuffix(verb, "ies"):
		return strings.TrimSuffix(verb, "ies") + "y"
	}
	for _, end := range []string{"sses", "ches", "shes", "xes", "zzes"} {
		if strings.HasSuffix(verb, end) {
			return strings.TrimSuffix(verb, "es")
		}
	}
	return strings.TrimSuffix(verb, "s")
}
