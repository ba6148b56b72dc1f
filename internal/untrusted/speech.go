package untrusted

import (
	"regexp"
	"strings"
	"sync"
)

// Roles that only a forger writes in a text, and those that ordinary texts use
// as well, for examples and parameters.
var (
	speakers   = []string{"system", "assistant", "human", "developer"}
	attention  = []string{"important", "critical"}
	quietWords = []string{"user", "instructions", "instruction", "admin", "s", "bos", "eos", "pad", "unk", "mask"}
)

var spoken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\s*_"”]*(?:you|i|we|please|ignore|obey|do|run|send|call|always|never|must|now|forget|follow|act|respond|reply|execute|` +
		`read|write|delete|give|reveal|print|output|stop|disregard|override|from now|your)\b`)
})

// markers reports forged roles and tokens of chat templates, and returns where
// in the view those are that count together with signals.
func (s *scanner) markers(v view) (places []int) {
	for _, m := range markers(v.text) {
		from, to := v.origin(m.start), v.origin(m.end-1)+1
		switch m.kind {
		case templateToken:
			if !among(m.word, quietWords) {
				s.report("chat-template", Hard, from, to)
			}
		case resultTag:
			s.report("forged-result", Soft, from, to)
		case roleTag:
			if among(m.word, attention) {
				s.report("attention-tag", Soft, from, to)
			} else if !among(m.word, quietWords) {
				s.report("forged-role", Soft, from, to)
			}
		case roleBracket:
			s.report("forged-role", Soft, from, to)
		case roleHeading:
			if among(m.word, speakers) {
				s.report("forged-role", Soft, from, to)
			}
		case roleMarker:
			if s.speaks(v.text, m) {
				s.report("forged-role", Soft, from, to)
			}
		}
		if m.kind == roleTag && among(m.word, attention) {
			places = append(places, m.start)
		}
	}
	return places
}

// speaks reports whether a role's name and colon begin a speech, and not the
// description of a field with that name.
func (s *scanner) speaks(text string, m marker) bool {
	rest := text[m.end:min(len(text), m.end+40)]
	if spoken().MatchString(rest) {
		return true
	}
	// The form of transcripts: a paragraph of its own.
	return among(m.word, speakers[:3]) && strings.HasSuffix(text[:m.start], "\n\n") &&
		(strings.TrimSpace(rest) == "" || rest[0] == ' ' && m.word != "system")
}
