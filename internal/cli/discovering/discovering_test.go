package discovering

import (
	"bytes"
	"strings"
	"testing"

	"ken/internal/cli/output"
	"ken/internal/door"
)

// TestStoppedCards: cards that the kill switch keeps out of prompts are not
// printed as if a model saw them.
func TestStoppedCards(t *testing.T) {
	var out bytes.Buffer
	c := Config{Out: output.New(&out)}
	found := door.Found{}
	found.Cards = []door.Piece{{ID: "invoices", Score: 0.7}}
	found.Rollout.Inject, found.Rollout.CardsReason = true, "capabilities.killSwitch is disable"
	c.printFound(found)
	if got := out.String(); !strings.Contains(got, "cards are not injected: capabilities.killSwitch is disable") {
		t.Errorf("printFound() printed\n%s\nwant that cards are not injected", got)
	}
	out.Reset()
	found.Rollout.Cards = true
	c.printFound(found)
	if got := out.String(); strings.Contains(got, "not injected") {
		t.Errorf("printFound() printed\n%s\nwant nothing about the kill switch", got)
	}
}
