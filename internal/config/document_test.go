package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ken/internal/govern/policy"
	"ken/internal/yamledit"
)

var update = flag.Bool("update", false, "write the tables of docs/configuration.md")

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

// TestDocumentedKeys: the tables of docs/configuration.md are those that the
// settings make, and every key is in one of them.
func TestDocumentedKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "configuration.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, told := string(data), map[string]int{}
	text = regexp.MustCompile(`(?s)<!-- keys: ([^>]*) -->\n.*?<!-- end of keys -->\n`).ReplaceAllStringFunc(text, func(part string) string {
		mark, _, _ := strings.Cut(part, "\n")
		sections := strings.Fields(strings.TrimSuffix(strings.TrimPrefix(mark, "<!-- keys:"), "-->"))
		return mark + "\n" + keyTable(sections, told) + "<!-- end of keys -->\n"
	})
	text = between(t, text, "profiles", profileTable())
	text = between(t, text, "policy profiles", policyProfileTable())
	for _, s := range settings() {
		if told[s.name] != 1 {
			t.Errorf("%s is in %d tables of docs/configuration.md, want 1: name its section in a mark <!-- keys: … -->", s.name, told[s.name])
		}
		if strings.Contains(s.doc, "`") {
			t.Errorf("%s: the text has a backtick, and the page and ken init show plain text: %s", s.name, s.doc)
		}
		delete(told, s.name)
	}
	for _, notes := range []map[string]string{seeAlso, defaultInWords, fromProject} {
		for key := range notes {
			if _, err := settingOf("get", key); err != nil {
				t.Errorf("document_test.go names %s: %v", key, err)
			}
		}
	}
	if text == string(data) {
		return
	}
	if !*update {
		t.Fatal("docs/configuration.md is out of date; go test ./internal/config -run TestDocumentedKeys -update writes it")
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between replaces what is between two marks of a text.
func between(t *testing.T, text, mark, table string) string {
	t.Helper()
	begin, end := "<!-- "+mark+" -->\n", "<!-- end of "+mark+" -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("docs/configuration.md has no part between the marks of %q", mark)
	}
	return before + begin + table + end + after
}

// keyTable returns the rows of the keys in some sections and counts the keys.
func keyTable(sections []string, told map[string]int) string {
	var keys []setting[Config]
	projects := false
	for _, section := range sections {
		for _, s := range settings() {
			if in, _, _ := strings.Cut(s.name, "."); in == section {
				keys = append(keys, s)
				told[s.name]++
				projects = projects || fromProject[s.name] != ""
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
	standard := Default()
	for _, s := range keys {
		about := strings.TrimSuffix(markDown(s), ".")
		if see := seeAlso[s.name]; see != "" {
			about += "; see " + see
			if strings.Contains(about, ". ") {
				about = strings.TrimSuffix(markDown(s), ".") + ". See " + see
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |", s.name, defaultOf(s, &standard), about)
		if projects {
			fmt.Fprintf(&b, " %s |", fromProject[s.name])
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// defaultOf returns the default of a key, in words where it is not one value.
func defaultOf(s setting[Config], standard *Config) string {
	if words := defaultInWords[s.name]; words != "" {
		return words
	}
	value := yamledit.Flow(s.show(standard))
	if s.governed {
		for _, p := range policyProfiles() {
			if base := (Config{Policy: policy.Defaults(p)}); yamledit.Flow(s.show(&base)) != value {
				return "by profile"
			}
		}
	}
	if value == `""` {
		return "empty"
	}
	return "`" + value + "`"
}

// codeIn finds what is code in the text of a setting: a command, an example in
// brackets, an address, a key with a capital letter inside, a key with its
// section, a name of a file.
var codeIn = regexp.MustCompile(`ken (serve|chat|worker|doctor|add|policy show|catalog lint|approve deny --all)\b|[{\[].*[}\]]|(https?|postgres)://[^\s;]*[^\s;:.,)]|PROVIDER/NAME|\b[a-z]+/…|\b[a-z]+[0-9]?[A-Z]\w*\b|\b(serve|experiment|filesystem)\.[a-zA-Z]+\b|/tmp|/readyz|~/|\*\.|[\w-]+\.(json|yaml|jsonl)\b|\.claude/skills|\.orchestration`)

// markDown returns the text of a setting as Markdown: what is code, and the words
// that the key takes, are marked.
func markDown(s setting[Config]) string {
	words := map[string]bool{}
	if all, ok := s.form["enum"].([]string); ok {
		for _, word := range all {
			words[word] = true
		}
	}
	var b strings.Builder
	rest := s.doc
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
func profileTable() string {
	var b strings.Builder
	b.WriteString("\n| profile | sets |\n|---|---|\n")
	standard := Default()
	for _, p := range []Profile{ProfileStandard, ProfileLean, ProfileMinimal, ProfileFull, ProfileSeed} {
		base := p.base()
		var sets []string
		for _, s := range profiledSettings() {
			if value := yamledit.Flow(s.show(&base)); value != yamledit.Flow(s.show(&standard)) {
				sets = append(sets, fmt.Sprintf("`%s: %s`", s.name, value))
			}
		}
		switch p {
		case ProfileStandard:
			sets = []string{"the defaults above"}
		case ProfileSeed:
			sets[len(sets)-1] += ": the literal rules of the seed designs"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", p, strings.Join(sets, ", "))
	}
	return b.String() + "\n"
}

func policyProfiles() []policy.Profile {
	return []policy.Profile{policy.Personal, policy.Team, policy.Locked, policy.Seed}
}

// policyProfileTable returns the values that policy.profile gives.
func policyProfileTable() string {
	var b strings.Builder
	b.WriteString("\n| key |")
	for _, p := range policyProfiles() {
		fmt.Fprintf(&b, " `%s` |", p)
	}
	b.WriteString("\n" + strings.Repeat("|---", len(policyProfiles())+1) + "|\n")
	for _, s := range policySettings() {
		if standard := Default(); defaultOf(s, &standard) != "by profile" {
			continue
		}
		fmt.Fprintf(&b, "| `%s` |", s.name)
		for _, p := range policyProfiles() {
			base := Config{Policy: policy.Defaults(p)}
			fmt.Fprintf(&b, " `%s` |", yamledit.Flow(s.show(&base)))
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}
