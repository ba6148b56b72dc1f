package approval

import (
	"encoding/json"
	"net/url"
	"strings"

	"ken/internal/programs"
)

// longestTitle is how many characters a name in a title has at most.
const longestTitle = 80

// Title returns what a person is asked, in one sentence. It is made of what would
// run, never of what the model says about it. It contains words of the call: pass
// it through package untrusted.
func (t Ticket) Title() string {
	q := &t.Question
	switch target := string(q.Call.Target); target {
	case "tool:write_to_file", "tool:apply_diff":
		var in struct{ Path string }
		if json.Unmarshal(q.Call.Arguments, &in) == nil && in.Path != "" {
			return "Change " + short(in.Path) + "?"
		}
	}
	for _, l := range q.Shown {
		switch l.Name {
		case "database":
			return "Use the database " + short(l.Text) + "?"
		case "request":
			_, address, _ := strings.Cut(l.Text, " ")
			if u, err := url.Parse(address); err == nil && u.Host != "" {
				return "Send a request to " + short(u.Host) + "?"
			}
		case "command":
			if len(q.Argv) > 0 {
				return "Run " + short(programs.Name(q.Argv[0])) + "?"
			}
			return "Run this command line?"
		}
	}
	return "Call " + short(subject(q)) + "?"
}

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longestTitle {
		return "…" + string(r[len(r)-longestTitle+1:])
	}
	return s
}
