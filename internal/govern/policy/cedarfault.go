package policy

import (
	"errors"
	"regexp"
	"strings"
	"sync"
)

// cedarPlace matches how Cedar's parser says where an error is: the place, the
// token that it stopped at, which is often the one after the error, and what is
// wrong.
var cedarPlace = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:parser error: )?(?:parse error at )?(?:<input>|[^\s"]*?):(\d+:\d+):? ?(?:("(?:[^"\\]|\\.)*"): )?(.*)$`)
})

var cedarWanted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:exact )?got (.*) want (.+)$`) })

// parseFault returns an error of Cedar's parser as people read it: the file with
// line and column, and what is wrong there.
func parseFault(name string, err error) error {
	m := cedarPlace().FindStringSubmatch(err.Error())
	if m == nil {
		return errors.New(name + ": " + strings.TrimPrefix(err.Error(), "parser error: "))
	}
	token := m[2]
	if token == `""` || token == "" {
		token = "the end of the file"
	}
	text := m[3]
	switch wanted := cedarWanted().FindStringSubmatch(text); {
	case wanted != nil && wanted[1] == "":
		text = wanted[2] + " is missing at the end of the file"
	case wanted != nil:
		text = wanted[2] + " is missing before " + wanted[1]
	case strings.HasPrefix(text, "unexpected effect: "):
		text = "a policy begins with permit or forbid, not with " + strings.TrimPrefix(text, "unexpected effect: ")
	case strings.HasPrefix(text, "expected ident"):
		text = "a name is missing near " + token
	case strings.HasPrefix(text, "expected string"):
		text = "a quoted string is missing near " + token
	case text == "unexpected token":
		text = "unexpected text near " + token
	case text == "invalid primary":
		text = "a value is missing near " + token
	case text == "literal not terminated":
		text = "a string is not closed: a quotation mark is missing"
	}
	return errors.New(name + ":" + m[1] + ": " + text)
}

// checkFault returns an error of Cedar's validator on one line and without the
// names that it makes for policies.
func checkFault(id string, err error) error {
	var causes []string
	for line := range strings.Lines(err.Error()) {
		causes = append(causes, strings.TrimPrefix(strings.TrimSpace(line), "for policy `"+id+"`, "))
	}
	if last := len(causes) - 1; last > 0 && strings.HasPrefix(causes[last], "unable to find an applicable action") {
		causes = causes[:last] // it follows from the others
	}
	return errors.New(strings.Join(causes, "; "))
}
