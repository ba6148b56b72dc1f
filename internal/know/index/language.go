package index

import "ken/internal/language"

// EnglishLanguage is what a text counts as that shows no other language.
const EnglishLanguage = language.English

// longestGuessed is how many tokens of a text its language is guessed by.
const longestGuessed = 200

// LanguageOf guesses the language of a text by its small words.
func LanguageOf(tokens []Token) int {
	var g language.Guess
	for _, t := range tokens[:min(len(tokens), longestGuessed)] {
		g.Add(t.Text)
	}
	return g.Language()
}

// IsStop reports whether a word says nothing in a language.
func IsStop(word string, lang int) bool { return language.IsStop(word, lang) }

// Stem returns the term of a word in a language.
func Stem(word string, lang int) string { return language.Stem(word, lang) }
