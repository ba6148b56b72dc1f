// Package card decides which cards ask to be shown for a message: capabilities
// of kind card, and any other that has triggers.
//
// [Compile] makes a [Set] of a snapshot's capabilities, once; [Set.Select]
// judges all of them against a [Context], [Set.Judge] one of them. The package
// renders nothing and knows no budgets: what is asked for here may still not
// fit.
//
// # Keywords
//
// A keyword is a word or a phrase and matches whole words, whatever their case
// and inflection, by the stemmers of package language in the language of the
// message and of the card: "cost" matches "Costs" and not "Costco", "model
// routing" matches "model-routing". A keyword that begins or ends with
// punctuation ("c++", ".env") is taken literally, and one of a script without
// spaces is found anywhere in the text. Another way of matching is said by a
// prefix:
//
//	word:cost          the default, for a keyword that looks like one of these
//	prefix:deploy      words that begin so
//	substring:sql      anywhere, also within words
//	regex:v\d+\.\d+    a regular expression (RE2), case ignored
//
// A regular expression has at most [MaxRegex] bytes, must not match the empty
// text and sees only the newest turn. Keywords that cannot be used, and stop
// words, are left out and reported by [Set.Problems].
//
// # Scores
//
// The default scorer, "evidence", takes every matched keyword as evidence of
// its own strength: everyday words are weak, others strong, phrases stronger,
// and what many cards share is weaker than what only one has. Independent
// pieces add up as probabilities do, so that one strong or two weak keywords
// reach the usual threshold of 0.6. Keywords that did not match cost nothing; a
// card all of whose keywords the user just said counts as strongly called for,
// unless they are words like "the". What the user said counts most, the
// assistant's words little, tool output nothing; each turn back halves it. A
// turn begins with what the user says.
//
// The scorer "seed" is the plain formula of ratio and density over substrings,
// without regard to who wrote them; the notations above are removed for it, and
// case and compatibility forms of characters do not matter.
package card
