package discover

import (
	"regexp"
	"strings"
	"sync"
)

// abilities matches a message that only asks what Ken can do, without a task.
// The map answers it; no single capability does.
var abilities = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:hi|hello|hey|ok|so|please|ken|can you|could you|tell me|hallo|bitte)[ ,]+)*(?:` + strings.Join([]string{
		`(?:what|which things) (?:all )?(?:can|could) (?:you|ken|i|we|this) (?:all )?(?:do|help(?: me| us)? with)`,
		`what (?:are you|is ken) (?:able to do|capable of|good at|for)`,
		`what do you do`,
		`(?:what|which) (?:are|is) (?:all )?(?:your|the|kens) (?:available )?(?:tools?|skills?|capabilit(?:y|ies)|abilit(?:y|ies)|features?|commands?)`,
		`(?:what|which) (?:tools|skills|capabilities|abilities|features|commands) (?:do you have|does ken have|are there|are available|have you got|can you use|can i use|exist)`,
		`(?:list|show|name|describe|explain)(?: me| us)?(?: all)?(?: of)?(?: your| the| kens| available)*(?: tools| skills| capabilities| abilities| features| commands)`,
		`(?:list|show|describe|explain)(?: me)? what (?:you|ken) can do`,
		`how can (?:you|ken) help(?: me| us)?`,
		`what(?: is|s) (?:there|available)`,
		`help|abilities|capabilities`,
		`was k(?:a|oe|ö)nn(?:st|en|t)? (?:du|sie|ihr|ken|ich)(?: alles| hier)*(?: tun| machen)?`, `was kann(?:st)? (?:du|ken|ich)(?: alles| hier)*(?: tun| machen)?`,
		`welche (?:werkzeuge|fähigkeiten|funktionen|befehle) (?:hast du|gibt es)`, `wobei kannst du(?: mir| uns)? helfen`,
		`que (?:peux|sais)[ -]tu faire`, `que pouvez[ -]vous faire`, `qu[ée] (?:puedes|sabes) hacer`, `cosa (?:puoi|sai) fare`, `o que (?:você|voce) (?:pode|sabe) fazer`,
	}, "|") + `)(?: (?:for (?:me|us)|here|now|today|please|bitte|exactly|with (?:ken|this)|then))*$`)
})

const longestAsk = 120 // in bytes; a longer message has a task

// AsksAbilities reports whether a message asks what Ken can do.
func AsksAbilities(text string) bool {
	if len(text) > longestAsk {
		return false
	}
	plain := strings.Map(func(r rune) rune {
		switch r {
		case '?', '!', '.', '\'', '’', '¿', '¡', '"':
			return -1
		case ',', ';', ':':
			return ' '
		}
		return r
	}, strings.ToLower(text))
	return abilities().MatchString(strings.Join(strings.Fields(plain), " "))
}
