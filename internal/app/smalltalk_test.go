package app

import (
	"testing"

	"ken/internal/door"
)

// TestSmallTalkFindsNothing: what people say without wanting anything shows them
// nothing, and a wish in one word that no capability has is understood still.
func TestSmallTalkFindsNothing(t *testing.T) {
	a := open(t, Config{})
	for _, text := range []string{
		"hello", "hi there", "thanks", "thank you!", "ok", "good morning", "how are you", "what's up", "who are you", "bye", "goodbye", "yes please",
		"hola", "merci", "danke", "привет", "谢谢",
	} {
		found, err := a.Door.Find(t.Context(), a.View(), door.Query{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if !found.Abstained() || len(found.Briefs) > 0 || len(found.Fulls) > 0 {
			t.Errorf("for %q %v is shown, at %.2f; want nothing", text, found.Briefs[0].ID, found.Fit)
		}
	}
	for text, want := range map[string]string{
		"spreadsheet": "skill:data-cleaning", "headlines": "tool:news-search", "interpreter": "skill:translation", "timezone": "tool:date-time", "postgres": "skill:sql-query",
	} {
		found, err := a.Door.Find(t.Context(), a.View(), door.Query{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Briefs) == 0 || string(found.Briefs[0].ID) != want {
			t.Errorf("for %q %v is shown, at %.2f; want %s first", text, found.Briefs, found.Fit, want)
		}
	}
}
