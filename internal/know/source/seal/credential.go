package seal

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/know/source/pattern"
	"ken/internal/secret/detect"
)

// Texts that are written by hand and shown to models must hold no credentials:
// anyone who can make the agent answer can read them. A credential is a warning
// and not a quarantine, since it is the owner's mistake, not an attack.

// A credentialForm is what one kind of secret looks like. Every match has one of the
// words, which are cheap to look for.
type credentialForm struct {
	what  string
	words []string
	form  func() *regexp.Regexp
	sure  bool // a match is one, even if it looks like words
}

var credentialForms = sync.OnceValue(func() []credentialForm {
	var all []credentialForm
	for _, f := range detect.Forms {
		all = append(all, credentialForm{
			what: f.What, words: strings.Fields(f.Words), sure: strings.HasPrefix(f.Prefix, "-----BEGIN"),
			form: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(f.Expression()) }),
		})
	}
	return append(all, credentialForm{what: "a password in an address", sure: true, words: []string{"://"}, form: pattern.Lazy(`://[^\s/:@<>{}$]+:[^\s/@<>{}$]{3,}@`)})
})

// find returns where a secret is, nil where there is none.
func (f credentialForm) find(text string) []int {
	for _, at := range f.form().FindAllStringIndex(text, -1) {
		if f.sure || !ordinary(text[at[0]:at[1]]) {
			return at
		}
	}
	return nil
}

// ordinary reports whether a match is made of words, such as sk-learn-pipeline-builder.
func ordinary(match string) bool {
	const longest = 14
	for word := range strings.FieldsFuncSeq(match, func(r rune) bool { return r == '-' || r == '_' }) {
		if len(word) > longest || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
			return false
		}
	}
	return true
}

// credentials finds secrets in a text. The excerpt shows only how one begins.
func credentials(field, text string) []capability.Finding {
	var out []capability.Finding
	small := strings.ToLower(text)
	for _, f := range credentialForms() {
		if !slices.ContainsFunc(f.words, func(word string) bool { return strings.Contains(small, word) }) {
			continue
		}
		at := f.find(text)
		if at == nil {
			continue
		}
		out = append(out, capability.Finding{
			Rule: "credential", Severity: capability.Warning, Field: field,
			Line:    1 + strings.Count(text[:at[0]], "\n"),
			Excerpt: f.what + " (" + text[at[0]:min(at[0]+4, at[1])] + "…); name the secret in requiredSecrets instead",
		})
	}
	return out
}

// writtenByHand reports whether a kind's texts are prose that people write.
func writtenByHand(k capability.Kind) bool {
	return k == capability.KindCard || k == capability.KindSkill || k == capability.KindCommand
}
