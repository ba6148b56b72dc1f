package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/internal/talk/event"
	"ken/internal/untrusted"
	"ken/llm"
)

// intents are what the model said in a turn that it is about to do. They live
// and end with the turn; nothing outside it can see or set them.
type intents struct {
	rules  IntentRules
	active string
	chain  []string
}

// longestReason is how much of a justification is kept, in characters.
const longestReason = 500

// intentTool is the tool by which a model declares an intent.
func intentTool(names []string) llm.Tool {
	enum, _ := json.Marshal(names) // strings always marshal
	return llm.Tool{
		Name: toolIntent, Description: "Select operational intent before tool execution",
		Schema: json.RawMessage(`{"type":"object","properties":{"intent":{"type":"string","enum":` + string(enum) + `},"justification":{"type":"string"}},"required":["intent"]}`),
	}
}

// A selection is what the model asks of [intents.read].
type selection struct {
	intent, justification string
}

// read judges what the model selects. The refusal, for the model, is empty
// where it may be taken.
func (in *intents) read(args json.RawMessage) (s selection, refusal string) {
	var asked struct {
		Intent        string `json:"intent"`
		Justification string `json:"justification"`
	}
	all := strings.Join(in.rules.Names, ", ")
	if err := json.Unmarshal(args, &asked); err != nil {
		return s, "The intent cannot be read; it is one of " + all + "."
	}
	s = selection{asked.Intent, untrusted.Line(asked.Justification, longestReason)}
	if strings.TrimSpace(asked.Justification) == "" {
		s.justification = ""
	}
	switch {
	case !slices.Contains(in.rules.Names, s.intent):
		return s, fmt.Sprintf("There is no intent %q; it is one of %s.", untrusted.Line(s.intent, 40), all)
	case in.active != "" && in.active != s.intent && s.justification == "":
		return s, fmt.Sprintf("The intent of this turn is %s, and the first one counts. To go on under %s call %s again with a justification.", in.active, s.intent, toolIntent)
	}
	return s, ""
}

// needsConsent reports whether a person must agree to a selection.
func (in *intents) needsConsent(s selection) bool {
	return in.active != "" && in.active != s.intent && in.rules.Consent != nil && in.rules.Consent(in.active, s.intent)
}

// take makes a selection that was read the active one.
func (in *intents) take(s selection) event.Intended {
	if in.active != s.intent {
		in.active = s.intent
		in.chain = append(in.chain, s.intent)
	}
	return event.Intended{Intent: s.intent, Justification: s.justification, Chain: slices.Clone(in.chain)}
}

// newRequest is told before each request to the model.
func (in *intents) newRequest() {
	if in.rules.Request {
		in.active = ""
	}
}
