// Settings writes the tables of docs/configuration.md: every key of ken.yaml with its
// default and its text, and what the profiles set.
//
//	go run ./scripts/settings
//
// It replaces what stands between the marks of the page; the rest is written by hand.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ken/internal/config"
	"ken/internal/dirs"
)

const document = "docs/configuration.md"

func main() {
	old, err := os.ReadFile(document)
	if err == nil {
		var text string
		if text, err = page(string(old)); err == nil {
			err = os.WriteFile(document, []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "settings:", err)
		os.Exit(1)
	}
}

// seeAlso are the pages that say more about a key.
var seeAlso = map[string]string{
	"model":                            "[chat](chat.md#which-model)",
	"providers":                        "[chat](chat.md#which-model)",
	"capabilities.allowWorkspaceCards": "[text safety](text-safety.md)",
	"catalog.sources":                  "[sources](sources.md)",
	"catalog.pins":                     "[text safety](text-safety.md)",
	"catalog.overrides":                "[sources](sources.md#where-ken-looks)",
	"discovery.profile":                "[profiles](#profiles)",
	"discovery.agents":                 "[agents](#agents)",
	"discovery.reader":                 "[finding](finding.md#the-second-reader)",
	"discovery.embeddingModelId":       "[finding](finding.md#another-embedding-model)",
	"experiment.name":                  "[experiments](#experiments)",
	"experiment.config":                "[experiments](#experiments)",
	"policy.sendSecrets":               "[secrets](running.md#secrets)",
	"mcp.servers":                      "[MCP](mcp.md#servers)",
	"mcp.trustHints":                   "[MCP](mcp.md#hints)",
	"databases":                        "[databases](databases.md)",
	"hooks":                            "[chat](chat.md#hooks)",
	"serve.oidc":                       "[HTTP](http.md#authentication)",
	"jobs.concurrent":                  "[jobs](jobs.md)",
}

// defaultInWords are the defaults that are not one value.
var defaultInWords = map[string]string{
	"serve.stopDelay":   "`250ms` or `5s`",
	"policy.toolAccess": "see [below](#tools-and-shell-commands)",
}

// fromProject says what a project's file may do to a key, where the tables say
// it by key. Elsewhere docs/configuration.md says it below the table.
var fromProject = map[string]string{
	"policy.profile":        "`locked`, or the same",
	"policy.deployment":     "only stricter",
	"policy.intents":        "only stricter",
	"policy.intentSurfaces": "only more",
	"policy.intentMap":      "no",
	"policy.modes":          "only new names",
	"policy.permissions":    "only stricter, per permission",
	"policy.sendSecrets":    "no",
	"policy.readRoots":      "no",
	"policy.writeRoots":     "no",
	"policy.protect":        "added",
	"policy.secrets":        "added",
	"policy.askAbove":       "only lower",
	"policy.denyAbove":      "only lower",
	"policy.toolAccess":     "narrows",
	"policy.rules":          "added, with `effect: deny` or `ask`",
	"policy.cedar":          "no",
}

func profiles() []string { return []string{"standard", "lean", "minimal", "full", "seed"} }

func policyProfiles() []string { return []string{"personal", "team", "locked", "seed"} }

// tables makes the tables of the page.
type tables struct {
	keys    []config.Setting // with the defaults
	forms   map[string]map[string]any
	profile map[string]map[string]string // the values of each profile, by key
	policy  map[string]map[string]string
	told    map[string]int // in how many tables a key is
}

func newTables() (*tables, error) {
	t := &tables{keys: config.Default().Settings(), forms: config.Forms(), profile: map[string]map[string]string{}, policy: map[string]map[string]string{}, told: map[string]int{}}
	var errs []error
	for _, p := range profiles() {
		values, err := valuesOf("discovery: {profile: " + p + "}")
		t.profile[p], errs = values, append(errs, err)
	}
	for _, p := range policyProfiles() {
		values, err := valuesOf("policy: {profile: " + p + "}")
		t.policy[p], errs = values, append(errs, err)
	}
	return t, errors.Join(errs...)
}

// valuesOf returns the value of every key with a ken.yaml.
func valuesOf(text string) (map[string]string, error) {
	dir, err := os.MkdirTemp("", "ken-settings-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "ken.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	c, err := config.Load(dirs.Places{Home: dir, Workspace: dir}, file)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, s := range c.Settings() {
		out[s.Key] = s.Value
	}
	return out, nil
}

// page returns the page with tables that are as the settings are now.
func page(text string) (string, error) {
	t, err := newTables()
	if err != nil {
		return "", err
	}
	text = regexp.MustCompile(`(?s)<!-- keys: ([^>]*) -->\n.*?<!-- end of keys -->\n`).ReplaceAllStringFunc(text, func(part string) string {
		mark, _, _ := strings.Cut(part, "\n")
		sections := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(mark, "<!-- keys:"), "-->"))
		return mark + "\n" + t.keyTable(sections) + "<!-- end of keys -->\n"
	})
	var errs []error
	for _, s := range t.keys {
		if t.told[s.Key] != 1 {
			errs = append(errs, fmt.Errorf("%s is in %d tables of %s, want 1: name its section in a mark <!-- keys: … -->", s.Key, t.told[s.Key], document))
		}
		if strings.Contains(s.Doc, "`") {
			errs = append(errs, fmt.Errorf("%s: the text has a backtick, and the page and ken init show plain text: %s", s.Key, s.Doc))
		}
	}
	for _, notes := range []map[string]string{seeAlso, defaultInWords, fromProject} {
		for key := range notes {
			if t.told[key] == 0 {
				errs = append(errs, fmt.Errorf("scripts/settings names %s, which is no key", key))
			}
		}
	}
	for _, part := range []struct{ mark, table string }{{"profiles", t.profileTable()}, {"policy profiles", t.policyTable()}} {
		begin, end := "<!-- "+part.mark+" -->\n", "<!-- end of "+part.mark+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, also := strings.Cut(rest, end)
		if !ok || !also {
			errs = append(errs, fmt.Errorf("%s has no part between the marks of %q", document, part.mark))
			continue
		}
		text = before + begin + part.table + end + after
	}
	return text, errors.Join(errs...)
}

// keyTable returns the rows of the keys in some sections and counts the keys.
func (t *tables) keyTable(sections []string) string {
	var keys []config.Setting
	projects := false
	for _, section := range sections {
		for _, s := range t.keys {
			if in, _, _ := strings.Cut(s.Key, "."); in == section {
				keys = append(keys, s)
				t.told[s.Key]++
				projects = projects || fromProject[s.Key] != ""
			}
		}
	}
	var b strings.Builder
	b.WriteString("\n| key | default | what it does |")
	if projects {
		b.WriteString(" from a project's file |")
	}
	b.WriteString("\n" + strings.Repeat("|---", 3))
	if projects {
		b.WriteString("|---")
	}
	b.WriteString("|\n")
	for _, s := range keys {
		about := strings.TrimSuffix(t.markDown(s), ".")
		if see := seeAlso[s.Key]; strings.Contains(about+see, ". ") && see != "" {
			about += ". See " + see
		} else if see != "" {
			about += "; see " + see
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |", s.Key, t.defaultOf(s), about)
		if projects {
			fmt.Fprintf(&b, " %s |", fromProject[s.Key])
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// byProfile reports whether the profiles of policy.profile differ in a key.
func (t *tables) byProfile(key string) bool {
	return key != "policy.profile" && slices.ContainsFunc(policyProfiles(), func(p string) bool { return t.policy[p][key] != t.policy["personal"][key] })
}

// defaultOf returns the default of a key, in words where it is not one value.
func (t *tables) defaultOf(s config.Setting) string {
	switch {
	case defaultInWords[s.Key] != "":
		return defaultInWords[s.Key]
	case t.byProfile(s.Key):
		return "by profile"
	case s.Value == `""`:
		return "empty"
	}
	return "`" + s.Value + "`"
}

// codeIn finds what is code in the text of a setting: a command, an example in
// brackets, an address, a key with a capital letter inside, a key with its
// section, a name of a file.
var codeIn = regexp.MustCompile(`ken (serve|chat|worker|doctor|add|policy show|catalog lint|approve deny --all)\b|[{\[].*[}\]]|(https?|postgres)://[^\s;]*[^\s;:.,)]|PROVIDER/NAME|\b[a-z]+/…|\b[a-z]+[0-9]?[A-Z]\w*\b|\b(serve|experiment|filesystem)\.[a-zA-Z]+\b|/tmp|/readyz|~/|\*\.|[\w-]+\.(json|yaml|jsonl)\b|\.claude/skills|\.orchestration`)

// markDown returns the text of a setting as Markdown: what is code, and the words
// that the key takes, are marked.
func (t *tables) markDown(s config.Setting) string {
	words := map[string]bool{}
	if all, ok := t.forms[s.Key]["enum"].([]string); ok {
		for _, word := range all {
			words[word] = true
		}
	}
	var b strings.Builder
	rest := s.Doc
	for rest != "" {
		at := codeIn.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest), len(rest)}
		}
		b.WriteString(markWords(rest[:at[0]], words))
		if code := rest[at[0]:at[1]]; code != "" {
			b.WriteString("`" + code + "`")
		}
		rest = rest[at[1]:]
	}
	return strings.ReplaceAll(b.String(), "|", `\|`)
}

// markWords marks words where they are first.
func markWords(text string, words map[string]bool) string {
	return regexp.MustCompile(`[\w-]+`).ReplaceAllStringFunc(text, func(word string) string {
		if words[word] {
			delete(words, word)
			return "`" + word + "`"
		}
		return word
	})
}

// profileTable returns what each profile of discovery.profile sets.
func (t *tables) profileTable() string {
	var b strings.Builder
	b.WriteString("\n| profile | sets |\n|---|---|\n")
	for _, p := range profiles() {
		var sets []string
		for _, s := range t.keys {
			if value := t.profile[p][s.Key]; value != s.Value && s.Key != "discovery.profile" {
				sets = append(sets, fmt.Sprintf("`%s: %s`", s.Key, value))
			}
		}
		switch p {
		case "standard":
			sets = []string{"the defaults above"}
		case "seed":
			sets[len(sets)-1] += ": the literal rules of the seed designs"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", p, strings.Join(sets, ", "))
	}
	return b.String() + "\n"
}

// policyTable returns the values that policy.profile gives.
func (t *tables) policyTable() string {
	var b strings.Builder
	b.WriteString("\n| key |")
	for _, p := range policyProfiles() {
		fmt.Fprintf(&b, " `%s` |", p)
	}
	b.WriteString("\n" + strings.Repeat("|---", len(policyProfiles())+1) + "|\n")
	for _, s := range t.keys {
		if !t.byProfile(s.Key) || defaultInWords[s.Key] != "" {
			continue
		}
		fmt.Fprintf(&b, "| `%s` |", s.Key)
		for _, p := range policyProfiles() {
			fmt.Fprintf(&b, " `%s` |", t.policy[p][s.Key])
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}
