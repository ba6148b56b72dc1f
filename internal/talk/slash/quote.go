package slash

import "strings"

// Quote writes a word so that it is read back as exactly that one argument,
// never as several, as a flag or as name=value. After a command's name a word
// that is an action's name still names the action. Control characters and bytes that are
// not UTF-8 have no spelling here; a line with them is refused.
func Quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, needsQuote) && word[0] != '-' && !strings.Contains(word, "=") {
		return word
	}
	if !strings.Contains(word, "'") {
		return "'" + word + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

func needsQuote(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("_-./:@%+,~?&", r)
}
