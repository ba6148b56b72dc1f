package seal

import (
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/pattern"
	"ken/internal/untrusted"
)

// scanCapability looks at every text of the capability: whatever is not shown to a model
// today may be tomorrow, or reach one in a message about something else.
func (s *Sealer) scan(c *capability.Capability, d capability.Detail, own []capability.Parameter) []capability.Finding {
	var out []capability.Finding
	note := func(field, text string) { out = append(out, Findings(field, ScanText(text))...) }
	out = append(out, Findings("name", untrusted.NameFindings(c.Name))...)
	out = append(out, badWords(c)...)
	note("description", c.Description)
	note("labels", strings.Join(labels(c), jsonscan.TextSeparator))
	if len(own) > 0 {
		note("parameters", parameterText(own))
	}
	if len(d.Schema) > 0 {
		out = append(out, s.findings(d.Schema)...)
	}
	if len(d.Output) > 0 {
		note("output schema", SchemaText(d.Output))
	}
	if len(d.Extra) > 0 {
		note("extra", SchemaText(d.Extra))
	}
	note("body", d.Body)
	note("usage", d.Usage)
	if writtenByHand(c.Kind) {
		out = append(out, credentials("description", c.Description)...)
		out = append(out, credentials("body", d.Body)...)
	}
	return out
}

// overlap is longer than anything that one rule looks at.
const overlap = 8 << 10

// ScanText scans a text of any length, in windows where it is long.
func ScanText(text string) []untrusted.Finding {
	if len(text) <= untrusted.MaxScan {
		return untrusted.Scan(text)
	}
	var out []untrusted.Finding
	for from := 0; ; from += untrusted.MaxScan - overlap {
		part := text[from:min(len(text), from+untrusted.MaxScan)]
		line := strings.Count(text[:from], "\n")
		for _, f := range untrusted.Scan(part) {
			f.Line += line
			out = append(out, f)
		}
		if from+len(part) == len(text) {
			return out
		}
	}
}

// labels gathers the short texts of a capability.
func labels(c *capability.Capability) []string {
	out := []string{c.Name, c.DisplayName, c.Category, c.Unavailable, c.Version, string(c.Kind)}
	if c.ID != capability.MakeID(c.Kind, c.Name) {
		out = append(out, string(c.ID)) // words of the source's own
	}
	for _, list := range [][]string{
		c.Tags, c.Aliases, c.RequiredTools, c.RequiredSecrets, c.RequiredBins, c.RequiredPlatforms, c.Permissions,
	} {
		out = append(out, list...)
	}
	for _, m := range c.Migrations {
		out = append(out, m.From, m.To, m.Note)
	}
	if t := c.Triggers; t != nil {
		for _, list := range [][]string{t.Keywords, t.SessionTypes, t.RouterTags, t.TimeOfDay, t.UserTier, t.EnvironmentType} {
			out = append(out, list...)
		}
	}
	if r := c.Run; r != nil {
		out = append(out, r.Runner, r.Action, r.Method, r.URL, r.Workspace, r.ProgramSHA256, r.Program, r.PackageSHA256, r.Input)
		out = slices.Concat(out, r.Argv, r.Env, r.EnvValues, r.Hosts)
		if a := r.Ask; a != nil {
			out = append(out, a.Model, a.System, a.Prompt, SchemaText(a.Answer))
			out = append(out, a.Instructions...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		out = append(out, key, c.Meta[key])
	}
	return out
}

// needWord is what programs, secrets, platforms and permissions are called.
var needWord = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.+:@/-]{0,127}$`)

const longestKind = 32

// kindWord reports whether a word can be a kind: a letter, then letters, digits, _ and
// -, all of them lower case.
func kindWord(word string) bool {
	for i := range len(word) {
		b := word[i]
		if letter := 'a' <= b && b <= 'z'; !letter && (i == 0 || b != '_' && b != '-' && (b < '0' || b > '9')) {
			return false
		}
	}
	return word != "" && len(word) <= longestKind
}

// badWords finds texts where only a word can stand, and ids that do not show
// what they are.
func badWords(c *capability.Capability) []capability.Finding {
	var out []capability.Finding
	bad := func(field, word, why string) {
		out = append(out, capability.Finding{Rule: "bad-word", Field: field, Excerpt: untrusted.Line(word, 80) + ": " + why})
	}
	if !kindWord(string(c.Kind)) {
		bad("kind", string(c.Kind), "a kind is one lower-case word")
	}
	if id := string(c.ID); untrusted.Terminal(id) != id || strings.ContainsAny(id, "\n\t") {
		bad("id", id, "an id has only characters that can be seen")
	}
	for _, need := range []struct {
		field string
		list  []string
	}{
		{"requiredBins", c.RequiredBins}, {"requiredSecrets", c.RequiredSecrets},
		{"requiredPlatforms", c.RequiredPlatforms}, {"permissions", c.Permissions},
	} {
		for _, w := range need.list {
			if !needWord().MatchString(w) {
				bad(need.field, w, "it is not the name of one")
			}
		}
	}
	return out
}
