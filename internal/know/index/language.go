package index

import "ken/internal/language"

// englishLanguage is what a text counts as that shows no other language.
const englishLanguage = language.English

// languageOf guesses the language of a text by its small words.
func languageOf(tokens []token) int {
	var g language.Guess
	for _, t := range tokens[:min(len(tokens), 200)] {
		g.Add(t.text)
	}
	return g.Language()
}

func isStop(word string, lang int) bool { return language.IsStop(word, lang) }

// stem returns the term of a word in a language.
func stem(word string, lang int) string { return language.Stem(word, lang) }
