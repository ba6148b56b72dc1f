package policy

import "strings"

// A Line is one line of the rules as people read them.
type Line struct {
	Stage  string `json:"stage"`
	Effect string `json:"effect"` // "deny", "ask once", "ask session", "allow"
	Rule   string `json:"rule"`
	Text   string `json:"text"`
	Knob   string `json:"knob,omitempty"`
	Where  string `json:"where,omitempty"`
}

// Describe lists the rules in the order in which they are checked, after a
// heading of what the profile chose.
func Describe(r *Rules) []Line {
	if r == nil {
		return []Line{{Stage: stageNames[stageExists], Effect: "deny", Rule: "no-rules", Text: "No rules are loaded, so nothing is allowed"}}
	}
	s := &r.settings
	lines := []Line{
		{Effect: "set", Rule: "profile", Text: s.Profile.String(), Knob: "policy.profile"},
		{Effect: "set", Rule: "deployment", Text: s.Deployment.String(), Knob: "policy.deployment"},
		{Effect: "set", Rule: "intents", Text: intentText(s), Knob: "policy.intents"},
	}
	said := map[string]bool{} // classes whose intents were told
	for _, ru := range r.rules {
		if class, ok := intentClass(ru.id); ok {
			if !said[class] {
				said[class] = true
				lines = append(lines, r.intentLine(class, ru))
			}
			continue
		}
		effect := "allow"
		switch {
		case ru.ask:
			effect = "ask " + ru.scope.String()
		case ru.forbid:
			effect = "deny"
		}
		text := ru.text
		if ru.unless && ru.instead != "" {
			text += " (" + ru.instead + ")"
		}
		lines = append(lines, Line{Stage: stageNames[ru.stage], Effect: effect, Rule: ru.id, Text: text, Knob: ru.knob, Where: ru.where})
	}
	return append(lines, Line{Stage: stageNames[stageConsent], Effect: "deny", Rule: "default", Text: "Nothing else is allowed"})
}

// intentClass returns the class that a line of the matrix of intents is about.
func intentClass(rule string) (class string, ok bool) {
	rest, ok := strings.CutPrefix(rule, "intents.")
	if !ok {
		return "", false
	}
	_, class, ok = strings.Cut(rest, ".")
	return class, ok
}

// intentLine tells all of the matrix that is about one class: the intents that
// allow it. All others, and none, are refused by a rule each.
func (r *Rules) intentLine(class string, ru *rule) Line {
	text := "No intent allows calls of the class " + class
	for c := range classes {
		if c.String() != class {
			continue
		}
		if fit := r.intentsFor(c); len(fit) > 0 {
			text = "Calls of the class " + class + " need the intent " + strings.Join(fit, " or ")
		}
	}
	return Line{Stage: stageNames[ru.stage], Effect: "deny", Rule: "intents.*." + class, Text: text, Knob: "policy.intents, policy.intentMap"}
}

func intentText(s *Settings) string {
	if s.Intents == Off || s.IntentSurfaces == nil {
		return s.Intents.String()
	}
	text := s.Intents.String() + " at"
	for _, x := range s.IntentSurfaces {
		if x != "" {
			text += " " + string(x)
		}
	}
	return text
}
