package discover

import (
	"strings"
	"testing"
)

// TestAsksAbilities: it recognises messages that ask what Ken can do, and none
// that has a task.
func TestAsksAbilities(t *testing.T) {
	for _, text := range []string{
		"what can you do?", "What can you do", "Hi, what can you do for me?", "what are your capabilities?", "which tools do you have?", "what tools are available",
		"list all your tools", "show me your skills", "how can you help me?", "What can Ken do?", "please list the available capabilities",
		"What's available here?", "was kannst du alles?", "Was kannst du tun?", "Que peux-tu faire ?", "¿Qué puedes hacer?", "capabilities",
	} {
		if !AsksAbilities(text) {
			t.Errorf("AsksAbilities(%q) = false, want true", text)
		}
	}
	for _, text := range []string{
		"", "what can you do about the failing test?", "list all files", "list the tools in this repository's Makefile", "what can you tell me about Go", "hello",
		"show me the commands in history", "what do you do with a drunken sailor", "which tools use port 80?", "help me write a letter", strings.Repeat("what can you do ", 9),
	} {
		if AsksAbilities(text) {
			t.Errorf("AsksAbilities(%q) = true, want false", text)
		}
	}
}

// TestAbilitiesGetTheMap: the map answers such a message, and such a search by
// the model; nothing is found by chance, and nothing is reported missing.
func TestAbilitiesGetTheMap(t *testing.T) {
	w := starter(t)
	sel := w.find(t, "what can you do?", Defaults())
	if !sel.Abilities || len(sel.Briefs)+len(sel.Fulls)+len(sel.Nearest) != 0 || !strings.Contains(sel.Map, "- Communication: discord, email, google-chat, irc (+16 more) (20)") {
		t.Errorf("abilities %v, briefs %v, nearest %v, map %q; want the map alone", sel.Abilities, idsOf(sel.Briefs), sel.Nearest, sel.Map)
	}
	a := w.call(t, ToolDiscover, `{"query":"what can you do?"}`)
	data := a.Data.(Capabilities)
	if a.Failed || !strings.Contains(a.Text, "- Communication: discord, email") || data.Map == "" || data.TotalIndexed != 66 {
		t.Errorf("a search for abilities gives %q and %+v, want the map", a.Text, data)
	}
	if sel := w.find(t, "count the words of a file", Defaults()); sel.Abilities || len(sel.Briefs) == 0 {
		t.Errorf("a task has abilities %v, briefs %v", sel.Abilities, idsOf(sel.Briefs))
	}
}
