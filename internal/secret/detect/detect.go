// Package detect finds secrets that stand as plain text in definitions, by their
// names and their forms.
package detect

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

var (
	strongWords = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|PASSPHRASE|CREDENTIALS?|APIKEY|API_KEY|ACCESS_KEY|PRIVATE_KEY|AUTHORIZATION|BEARER|COOKIE)(_|$)`)
	})
	weakWords = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(^|_)(KEY|AUTH|PAT|DSN|SESSION|SIGNATURE|WEBHOOK)(_|$)`)
	})
	// What such a name ends in when it speaks about a secret and is none.
	aboutWords = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`_(ID|LIMIT|COUNT|LENGTH|SIZE|TYPE|MODE|NAME|URL|URI|ENDPOINT|HOST|PATH|FILE|DIR|TTL|TIMEOUT|REGION|ENABLED|PROVIDER|ISSUER|ALGORITHM|EXPIRY|ENV|VAR|STORE)$|^SSH_AUTH_SOCK$`)
	})
	aboutValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i)(true|false|yes|no|on|off|none|null|auto|basic|bearer|oauth2?|default|[0-9]{1,5})$`)
	})

	jwt = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*$`)
	})
	hexKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-fA-F]{32,}$`) })
	dense  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_+=~-]{24,}$`) })

	onlyRef = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:(?i:Bearer|Basic|Token) )?(?:\$\{[^}]*\}|\{env:[^}]*\}|\$[A-Z_][A-Z0-9_]*)$`)
	})
	userPass = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*://[^/?#@\s:]*:)([^/?#@\s]+)(@.*)$`)
	})
	queryParam = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([?&;])([A-Za-z0-9_.-]+)=([^&#;\s]+)`) })
	scheme     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i)((?:Bearer|Basic|Token|ApiKey|Bot)\s+)(\S.*)$`) })
	token      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_+=][A-Za-z0-9_+=~.-]*$`) })
	headerLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*)(:\s*)(\S.*)$`) })
	assignment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(-{0,2}[A-Za-z_][A-Za-z0-9_.-]*)(=)(.+)$`) })
	jsonPair   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`("([A-Za-z_][A-Za-z0-9_.-]*)"\s*:\s*")([^"\\]+)(")`) })
)

// words returns a name as words apart by _, in upper case: apiKey, api-key and
// API_KEY are one.
func words(name string) string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		switch {
		case r == '-' || r == '.' || r == ' ':
			r = '_'
		case unicode.IsUpper(r) && unicode.IsLower(last):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
		last = r
	}
	return strings.Trim(b.String(), "_")
}

// secretByName judges a value by what it is called.
func secretByName(name, value string) bool {
	name = words(name)
	if value == "" || aboutWords().MatchString(name) || aboutValue().MatchString(value) || pathLike(value) {
		return false
	}
	if strongWords().MatchString(name) {
		return true
	}
	return weakWords().MatchString(name) && len(value) >= 8 && !strings.ContainsAny(value, " \t")
}

// secretByShape judges a value by what it looks like.
func secretByShape(value string) bool {
	switch {
	case len(value) < 16:
		return false
	case jwt().MatchString(value) || hexKey().MatchString(value):
		return true
	case prefixes().MatchString(value):
		return !strings.ContainsAny(value, " /") || strings.HasPrefix(value, "-----BEGIN ")
	}
	return dense().MatchString(value) && mixed(value) && entropy(value) >= 3.7
}

// mixed: small and capital letters and digits, as keys have and names rarely.
func mixed(value string) bool {
	var small, capital, digit int
	for _, r := range value {
		switch {
		case r >= 'a' && r <= 'z':
			small++
		case r >= 'A' && r <= 'Z':
			capital++
		case r >= '0' && r <= '9':
			digit++
		}
	}
	return digit >= 3 && small >= 3 && capital >= 3
}

// entropy is in bits a character.
func entropy(value string) float64 {
	counts := map[rune]int{}
	n := 0
	for _, r := range value {
		counts[r]++
		n++
	}
	sum := 0.0
	for _, c := range counts {
		p := float64(c) / float64(n)
		sum -= p * math.Log2(p)
	}
	return sum
}

func pathLike(value string) bool {
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") ||
		len(value) > 2 && value[1] == ':' && (value[2] == '\\' || value[2] == '/')
}

// Each calls found for each secret in a value of a definition. References to
// variables and sealed secrets are none.
func Each(name, value string, found func(secret string)) {
	if onlyRef().MatchString(value) {
		return
	}
	Replace(name, value, func(_, secret string) string {
		if !strings.Contains(secret, "${") {
			found(secret)
		}
		return secret
	})
}

// NamesSecret reports whether what has this name is a secret, whatever it is.
func NamesSecret(name string) bool { return secretByName(name, "any-other-value") }

// Rotates reports whether a variable holds a plain token: a secret by its name
// that names nothing and runs nothing, and may become another of its kind with
// nothing else changed. What could be a path, a command or a reference is none.
func Rotates(name, value string) bool {
	if !secretByName(name, value) || !token().MatchString(value) {
		return false
	}
	if dot := strings.LastIndexByte(value, '.'); dot >= 0 && len(value)-dot <= len(".ending") {
		return false // a file in the folder that it starts in
	}
	name = words(name)
	return !slices.Contains(namingWords(), name[strings.LastIndexByte(name, '_')+1:])
}

// namingWords are what a name ends in that has a secret's in it where the value
// runs a program that gives the secret, or names the place that has it.
func namingWords() []string {
	return []string{
		"COMMAND", "CMD", "HELPER", "PROGRAM", "PROG", "EXEC", "EXECUTABLE", "BIN", "BINARY", "SCRIPT", "HOOK", "PLUGIN", "MODULE", "LOADER", "SHELL", "ARGS", "OPTIONS", "OPTS",
		"CREDENTIAL", "CREDENTIALS", "CONFIG", "SOURCE", "BACKEND", "SERVER", "PROXY", "AGENT", "SOCK", "SOCKET", "CERT", "PEM", "KEYRING",
	}
}

// Hides reports whether a value must not be shown: it may be a secret, or a text
// with one in it.
func Hides(name, value string) bool {
	if onlyRef().MatchString(value) {
		_, other, is := strings.Cut(value, ":-") // what it is where the name stands for nothing
		return is && Hides(name, strings.TrimSuffix(other, "}"))
	}
	if secretByName(name, value) || secretByShape(value) {
		return true
	}
	hidden := false
	Replace(name, value, func(string, string) string { hidden = true; return "" })
	return hidden
}

// Replace returns the value with each secret in it replaced by what seal returns for
// it. seal gets the name of each.
func Replace(name, value string, seal func(key, secret string) string) string {
	if name != "" && scheme().MatchString(value) && (secretByName(name, value) || strongWords().MatchString(words(name))) {
		m := scheme().FindStringSubmatch(value)
		return m[1] + seal(name, m[2])
	}
	if name != "" && secretByName(name, value) && !strings.Contains(value, "://") {
		return seal(name, value)
	}
	if strings.Contains(value, "://") || strings.Contains(value, "?") && queryParam().MatchString(value) {
		return seekURL(name, value, seal)
	}
	if m := headerLine().FindStringSubmatch(value); m != nil && (secretByName(m[1], m[3]) || secretByShape(m[3])) {
		return m[1] + m[2] + Replace(m[1], m[3], seal)
	}
	if m := assignment().FindStringSubmatch(value); m != nil && (secretByName(m[1], m[3]) || secretByShape(m[3])) {
		return m[1] + m[2] + seal(strings.TrimLeft(m[1], "-"), m[3])
	}
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		return replaceGroups(jsonPair(), value, func(m []string) (string, bool) {
			if !secretByName(m[2], m[3]) && !secretByShape(m[3]) {
				return "", false
			}
			return m[1] + seal(m[2], m[3]) + m[4], true
		})
	}
	if secretByShape(value) {
		return seal(name, value)
	}
	return value
}

// seekURL finds the password and the keys in an address. A value that is named
// a secret and is an address with neither is taken whole, as a webhook's is.
func seekURL(name, value string, seal func(key, secret string) string) string {
	found := false
	key := "url"
	if name != "" {
		key = name
	}
	mark := func(key, secret string) string { found = true; return seal(key, secret) }
	head, rest := "", value
	if at := strings.Index(value, "="); at > 0 && assignment().MatchString(value) && at < strings.Index(value, "://") {
		head, rest = value[:at+1], value[at+1:]
		key = strings.TrimLeft(value[:at], "-")
	}
	out := ""
	if m := userPass().FindStringSubmatch(rest); m != nil {
		out, rest = m[1]+mark(key, m[2]), m[3]
	}
	out += replaceGroups(queryParam(), rest, func(m []string) (string, bool) {
		if !secretByName(m[2], m[3]) && !secretByShape(m[3]) {
			return "", false
		}
		return m[1] + m[2] + "=" + mark(m[2], m[3]), true
	})
	if !found && name != "" && secretByName(name, value) {
		return seal(name, value)
	}
	return head + out
}

// replaceGroups replaces matches for which f says so; the rest is literal.
func replaceGroups(re *regexp.Regexp, value string, f func([]string) (string, bool)) string {
	var b strings.Builder
	at := 0
	for _, m := range re.FindAllStringSubmatchIndex(value, -1) {
		groups := make([]string, len(m)/2)
		for i := range groups {
			if m[2*i] >= 0 {
				groups[i] = value[m[2*i]:m[2*i+1]]
			}
		}
		if text, ok := f(groups); ok {
			b.WriteString(value[at:m[0]] + text)
			at = m[1]
		}
	}
	b.WriteString(value[at:])
	return b.String()
}
