package seal

import (
	"regexp"
	"strings"

	"ken/capability"
	"ken/internal/know/source/pattern"
)

// Texts that are written by hand and shown to models must hold no credentials:
// anyone who can make the agent answer can read them. A credential is a warning
// and not a quarantine, since it is the owner's mistake, not an attack.

// A credentialForm is what one kind of secret looks like. marker is cheap to
// look for and stands in every match.
type credentialForm struct {
	what   string
	marker string
	form   func() *regexp.Regexp
}

var credentialForms = [...]credentialForm{
	{"an API key", "sk-", pattern.Lazy(`\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}`)},
	{"a GitHub token", "gh", pattern.Lazy(`\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}`)},
	{"an AWS key", "A", pattern.Lazy(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"a Slack token", "xox", pattern.Lazy(`\bxox[abeprs]-[A-Za-z0-9-]{10,}`)},
	{"a Google key", "AIza", pattern.Lazy(`\bAIza[A-Za-z0-9_-]{35}`)},
	{"a private key", "-----BEGIN", pattern.Lazy(`-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----`)},
	{"a JSON web token", "eyJ", pattern.Lazy(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)},
	{"a password in an address", "://", pattern.Lazy(`://[^\s/:@<>{}$]+:[^\s/@<>{}$]{3,}@`)},
}

// credentials finds secrets in a text. The excerpt shows only how one begins.
func credentials(field, text string) []capability.Finding {
	var out []capability.Finding
	for _, f := range credentialForms {
		if !strings.Contains(text, f.marker) {
			continue
		}
		at := f.form().FindStringIndex(text)
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
