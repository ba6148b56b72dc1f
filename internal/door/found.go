package door

import "strings"

// Found is a selection and what may be done with it.
type Found struct {
	Selection
	Rollout Rollout `json:"rollout"`
}

// Rollout says whether a selection may go into a prompt.
type Rollout struct {
	Inject      bool   `json:"inject"`
	Reason      string `json:"reason,omitempty"`
	Cards       bool   `json:"cards"`
	CardsReason string `json:"cardsReason,omitempty"`
	Experiment  string `json:"experiment,omitempty"`
	Variant     string `json:"variant,omitempty"`
}

// Prompt is the text to put into a prompt: all of the selection, without the
// cards, or nothing, as the rollout allows.
func (f Found) Prompt() string {
	switch {
	case !f.Rollout.Inject:
		return ""
	case !f.Rollout.Cards:
		return strings.TrimSuffix(strings.TrimSuffix(f.Text(), f.CardsText()), "\n\n")
	}
	return f.Text()
}
