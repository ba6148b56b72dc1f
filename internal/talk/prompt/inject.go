package prompt

import (
	"path"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
	"ken/plugin"
)

// The names of context files that Ken itself knows.
const (
	AgentsFile       = "AGENTS.md"
	CapabilitiesFile = "CAPABILITIES.md"
)

// An Injection is what became of a selection.
type Injection struct {
	Injected  []capability.ID `json:"injectedCapabilities"`
	Tokens    int             `json:"totalTokensUsed"` // of the file that was made
	Truncated bool            `json:"truncated"`       // a budget kept something back
	Skipped   []door.Skip     `json:"skipped,omitempty"`
	Why       string          `json:"why,omitempty"` // where nothing was injected
}

const injectHead = "# Capability Context (auto-injected)"

// Inject puts what was found into the list of context files, as the file
// CAPABILITIES.md directly after AGENTS.md, or first where there is none. The
// file is virtual: its text is in the list, and no path is read. One from
// an earlier turn is replaced. Where nothing is to be shown, the list comes back
// as it is.
//
// The map is not part of it: it stands in the system prompt.
func Inject(files []plugin.File, found door.Found) ([]plugin.File, Injection) {
	in := Injection{Truncated: found.Truncated, Skipped: found.Skipped}
	text, ids := injected(found)
	if text == "" {
		in.Why = "nothing fits the message"
		if !found.Rollout.Inject {
			in.Why = "the rollout shows nothing: " + found.Rollout.Reason
		}
		return files, in
	}
	in.Injected, in.Tokens = ids, tokenizer.Count(text)
	out := slices.DeleteFunc(slices.Clone(files), func(f plugin.File) bool { return f.Name == CapabilitiesFile })
	at := slices.IndexFunc(out, func(f plugin.File) bool { return f.Name == AgentsFile })
	if at < 0 {
		at = slices.IndexFunc(out, func(f plugin.File) bool { return path.Base(f.Name) == AgentsFile })
	}
	return slices.Insert(out, at+1, plugin.File{Name: CapabilitiesFile, Text: text}), in
}

// injected returns the text of the file and what is in it.
func injected(found door.Found) (string, []capability.ID) {
	if !found.Rollout.Inject {
		return "", nil
	}
	var ids []capability.ID
	list := [][]door.Piece{found.Briefs, found.Fulls}
	if found.Rollout.Cards {
		list = append(list, found.Cards)
	}
	for _, pieces := range list {
		for i := range pieces {
			if !slices.Contains(ids, pieces[i].ID) {
				ids = append(ids, pieces[i].ID)
			}
		}
	}
	if len(ids) == 0 {
		return "", nil
	}
	rest := strings.TrimLeft(strings.TrimPrefix(found.Prompt(), found.Map), "\n")
	rest = strings.TrimRight(strings.TrimSuffix(rest, found.CardsText()), "\n")
	parts := []string{heading(ids)}
	if rest != "" {
		parts = append(parts, rest)
	}
	if found.Rollout.Cards {
		for i := range found.Cards {
			parts = append(parts, found.Cards[i].Text)
		}
	}
	text := strings.Join(parts, "\n\n")
	if found.Budget > 0 && tokenizer.Count(text) > found.Budget {
		// The line of ids is not worth more than what it names.
		parts[0] = injectHead
		text = strings.Join(parts, "\n\n")
	}
	return text, ids
}

func heading(ids []capability.ID) string {
	var b strings.Builder
	b.WriteString(injectHead + "\nInjected:")
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + untrusted.Line(string(id), 120))
	}
	return b.String()
}

// Files returns layers as context files, which is how plugins see them
// ([plugin.ContextFilter]): in their order, the layers that files name by the
// names of those.
func Files(layers []Layer) []plugin.File {
	var files []plugin.File
	for _, l := range sorted(layers) {
		files = append(files, plugin.File{Name: fileOf(l.Name), Text: l.Text})
	}
	return files
}

// Layers returns context files as layers again: what a plugin left out is out,
// except for what must be there, and what it changed is changed.
func Layers(files []plugin.File, before []Layer) []Layer {
	must := map[string]bool{}
	left := map[string]string{}
	for _, l := range sorted(before) {
		if l.Must {
			must[l.Name], left[l.Name] = true, l.Text
		}
	}
	var layers []Layer
	for _, f := range files {
		name := layerOf(f.Name)
		delete(left, name)
		layers = append(layers, Layer{Name: name, Text: f.Text, Must: must[name]})
	}
	for name, text := range left {
		layers = append(layers, Layer{Name: name, Text: text, Must: true})
	}
	return sorted(layers)
}

// fileOf and layerOf are each other's way back.
func fileOf(layer string) string {
	for _, n := range fileNames() {
		if n[0] == layer {
			return n[1]
		}
	}
	return layer
}

func layerOf(file string) string {
	for _, n := range fileNames() {
		if n[1] == file {
			return n[0]
		}
	}
	return file
}

func fileNames() [][2]string {
	return [][2]string{
		{Base, "system_prompt.md"}, {Agents, AgentsFile}, {Caps, CapabilitiesFile}, {Map, "MAP.md"},
		{Soul, "SOUL.md"}, {Profile, "USER.md"}, {Previous, "PREVIOUS.md"}, {SkillSet, "SKILLS.md"},
	}
}
