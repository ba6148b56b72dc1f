package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/internal/untrusted"
	"ken/llm"
)

// intents are what the model said in a turn that it is about to do. They live
// and end with the turn; nothing outside it can see or set them.
type intents struct {
	active string
	chain  []string // of this turn, the newest last
}

// maxReason is how much of a justification is kept, in characters.
const maxReason = 500

// intentTool is the tool by which a model declares an intent.
func intentTool(names []string) llm.Tool {
	enum, _ := json.Marshal(names) // strings always marshal
	return llm.Tool{
		Name: toolIntent, Description: "Select operational intent before tool execution",
		Schema: json.RawMessage(`{"type":"object","properties":{"intent":{"type":"string","enum":` + string(enum) + `},"justification":{"type":"string"}},"required":["intent"]}`),
	}
}

// A selection is an intent that the model wants to take.
type selection struct {
	intent, justification string
}

// read returns what the model selects. The refusal, for the model, is empty if
// it may be taken.
func (in intents) read(rules IntentRules, args json.RawMessage) (s selection, refusal string) {
	var asked struct {
		Intent        string `json:"intent"`
		Justification string `json:"justification"`
	}
	all := strings.Join(rules.Names, ", ")
	if err := json.Unmarshal(args, &asked); err != nil {
		return s, "The intent cannot be read; it is one of " + all + "."
	}
	s = selection{asked.Intent, untrusted.Line(asked.Justification, maxReason)}
	if strings.TrimSpace(asked.Justification) == "" {
		s.justification = ""
	}
	switch {
	case !slices.Contains(rules.Names, s.intent):
		return s, fmt.Sprintf("Unknown intent %q; use one of %s.", untrusted.Line(s.intent, 40), all)
	case in.active != "" && in.active != s.intent && s.justification == "":
		return s, fmt.Sprintf("The intent of this turn is %s, and the first one counts. To go on under %s call %s again with a justification.", in.active, s.intent, toolIntent)
	}
	return s, ""
}

// needsConsent reports whether a person must agree to an intent.
func (in intents) needsConsent(rules IntentRules, intent string) bool {
	return in.active != "" && in.active != intent && rules.Consent != nil && rules.Consent(in.active, intent)
}

// take makes an intent the active one.
func (in intents) take(intent string) intents {
	if in.active != intent {
		in.active = intent
		in.chain = append(slices.Clip(in.chain), intent)
	}
	return in
}

// newRequest returns the intents that hold for the next request to the model.
func (in intents) newRequest(rules IntentRules) intents {
	if rules.Request {
		in.active = ""
	}
	return in
}
