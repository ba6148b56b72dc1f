package effects

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Changes returns what in the name or the input schema of a tool says that a
// call changes something, as in `its name says "delete"`, or "". It is held
// against the claim that a call only reads. What it does not find may change
// something all the same.
func Changes(name string, schema json.RawMessage) string {
	if verb := changingVerb(name); verb != "" {
		return "its name says " + strconv.Quote(verb)
	}
	return changingArgument(schema)
}

// changingVerb returns the word of a name that is about changing something.
func changingVerb(name string) string {
	reads := false
	for _, word := range nameWords(name) {
		switch {
		case slices.Contains(changeWords(), word), isGlued(word):
			return word
		case slices.Contains(readWords(), word):
			reads = true // the rest is what is read: get_commit, list_posts
		case !reads && slices.Contains(maybeChangeWords(), word):
			return word
		}
	}
	return ""
}

// nameWords splits a name at what is neither letter nor digit, and where a
// capital begins a word, in lower case.
func nameWords(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}

// changeWords change something wherever they stand in a name.
func changeWords() []string {
	return []string{
		"delete", "del", "remove", "rm", "rmdir", "unlink", "drop", "destroy", "purge", "wipe", "erase", "truncate", "overwrite",
		"write", "create", "update", "upsert", "modify", "edit", "insert", "append", "rename", "replace", "move", "mkdir",
		"send", "upload", "publish", "exec", "execute", "eval", "evaluate", "kill", "terminate", "shutdown", "reboot",
		"install", "uninstall", "deploy", "revoke", "grant", "approve", "pay", "refund", "purchase", "buy",
	}
}

// maybeChangeWords change something unless a word for reading stands before
// them: they are also names of things.
func maybeChangeWords() []string {
	return []string{
		"add", "set", "put", "post", "patch", "push", "commit", "merge", "save", "store", "run", "call", "invoke", "spawn", "start", "stop",
		"restart", "reset", "clear", "clean", "cancel", "close", "order", "book", "transfer", "charge", "submit", "trigger", "apply", "sync", "import",
		"migrate", "restore", "revert", "rollback", "archive", "assign", "invite", "subscribe", "unsubscribe", "reply", "comment", "enable",
		"disable", "lock", "unlock", "copy", "make", "build", "release", "block", "ban", "reject", "shell", "bash", "command", "register", "schedule",
	}
}

func readWords() []string {
	return []string{
		"get", "list", "read", "search", "find", "show", "describe", "fetch", "view", "count", "lookup", "look", "check", "is", "has", "stat",
		"status", "inspect", "browse", "query", "peek", "head", "tail", "diff", "compare", "explain", "preview",
	}
}

// isGlued reports whether a word begins with one of changeWords and goes on with
// another word, as in "deleteallfiles".
func isGlued(word string) bool {
	for _, verb := range changeWords() {
		rest, ok := strings.CutPrefix(word, verb)
		if ok && len(verb) >= 6 && !slices.Contains([]string{"d", "s", "r", "rs", "ed", "er", "ers", "ing", "ation", "ations", "ment", "ments"}, rest) {
			return true
		}
	}
	return false
}

// changingArgument returns what the names of arguments, at any depth, say of
// changing something.
func changingArgument(schema json.RawMessage) string {
	if len(schema) == 0 {
		return ""
	}
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return "its input schema cannot be read"
	}
	names := map[string]bool{}
	propertyNames(v, names)
	for _, one := range []string{
		"command", "commands", "cmd", "commandline", "shell", "script", "sql", "statement", "statements", "mutation", "argv", "stdin",
		"overwrite", "dryrun", "recipient", "recipients", "newcontent", "newcontents", "newname", "newpath", "newvalue", "newtext", "newstr", "newstring", "replacement",
	} {
		if names[one] {
			return "it takes the argument " + strconv.Quote(one)
		}
	}
	for _, pair := range []struct{ one, other []string }{
		{[]string{"path", "file", "filename", "filepath", "uri", "url", "key"}, []string{"content", "contents", "data", "body", "payload", "value", "text"}},
		{[]string{"url", "uri", "endpoint", "path"}, []string{"method", "httpmethod", "verb"}},
		{[]string{"to", "channel", "recipientid"}, []string{"subject", "body", "message", "text"}},
		{[]string{"code", "source"}, []string{"language", "lang", "interpreter"}},
	} {
		for _, one := range pair.one {
			for _, other := range pair.other {
				if names[one] && names[other] {
					return "it takes the arguments " + strconv.Quote(one) + " and " + strconv.Quote(other)
				}
			}
		}
	}
	return ""
}

// propertyNames gathers the names in all "properties" of a schema, without case
// and signs.
func propertyNames(v any, names map[string]bool) {
	switch x := v.(type) {
	case []any:
		for _, one := range x {
			propertyNames(one, names)
		}
	case map[string]any:
		for key, one := range x {
			if properties, ok := one.(map[string]any); ok && key == "properties" {
				for name := range properties {
					names[strings.Join(nameWords(name), "")] = true
				}
			}
			propertyNames(one, names)
		}
	}
}
