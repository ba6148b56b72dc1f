package connect

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"ken/internal/secret/detect"
	"ken/internal/untrusted"
)

// A notation is how a client writes references inside values.
type notation int

const (
	noRefs       notation = iota // every character stands for itself
	bracedRefs                   // ${NAME} and ${NAME:-default}
	shellRefs                    // those and $NAME
	editorRefs                   // ${env:NAME}, ${input:NAME}, ${userHome}, ${workspaceFolder}
	opencodeRef                  // {env:NAME} and {file:PATH}
	templateRefs                 // ${{ secrets.NAME }}, which only the client can fill in
)

var (
	reBraced   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([^}]*)\}`) })
	reShell    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([^}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`) })
	reOpencode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(env|file):([^}]*)\}`) })
	reTemplate = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{\{(.*?)\}\}`) })
	reVariable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	reDefault  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*):-((?s).*)$`) })
)

// A piece of a value is text that stands for itself, or a reference in Ken's
// notation.
type piece struct {
	text string
	ref  bool
}

// refs is what references are translated with.
type refs struct {
	notation notation
	home     string
	project  string // empty when the client knows and Ken does not
	getenv   func(string) string
	input    func(id string) (secret string) // names the secret for an input
}

// pieces takes a value apart. Why says what Ken cannot know.
func (c *refs) pieces(value string) (out []piece, why string) {
	var re *regexp.Regexp
	switch c.notation {
	case noRefs:
		return []piece{{text: value}}, ""
	case bracedRefs, editorRefs:
		re = reBraced()
	case shellRefs:
		re = reShell()
	case opencodeRef:
		re = reOpencode()
	case templateRefs:
		re = reTemplate()
	}
	at := 0
	for _, m := range re.FindAllStringSubmatchIndex(value, -1) {
		if m[0] > at {
			out = append(out, piece{text: value[at:m[0]]})
		}
		at = m[1]
		whole, inner := value[m[0]:m[1]], ""
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				inner = value[m[i]:m[i+1]]
			}
		}
		p, bad := c.reference(whole, inner)
		if bad != "" {
			return nil, bad
		}
		out = append(out, p)
	}
	if at < len(value) || len(out) == 0 {
		out = append(out, piece{text: value[at:]})
	}
	return out, ""
}

// reference translates one reference. One that a client would leave as it is
// stays text.
func (c *refs) reference(whole, inner string) (p piece, why string) {
	kind, rest, split := strings.Cut(inner, ":")
	switch {
	case c.notation == opencodeRef && strings.HasPrefix(whole, "{env:") && reVariable().MatchString(inner):
		return piece{"${" + inner + "}", true}, ""
	case c.notation == opencodeRef:
		return p, "it uses " + shown(whole) + ", which Ken does not read"
	case c.notation == templateRefs:
		return p, "it uses " + shown(whole) + ", which only the client knows"
	case c.notation == editorRefs && split && kind == "env" && reVariable().MatchString(rest):
		return piece{"${" + rest + "}", true}, ""
	case c.notation == editorRefs && split && kind == "input":
		return piece{"${secret:" + c.input(rest) + "}", true}, ""
	case c.notation == editorRefs:
		return c.editor(whole, inner)
	case reVariable().MatchString(inner):
		return piece{"${" + inner + "}", true}, ""
	}
	if m := reDefault().FindStringSubmatch(inner); m != nil {
		switch {
		case !detect.Hides(m[1], m[2]):
			return piece{"${" + m[1] + ":-" + m[2] + "}", true}, ""
		case c.getenv(m[1]) != "":
			return piece{"${" + m[1] + "}", true}, ""
		}
		return piece{text: m[2]}, "" // the secret that it stands for today
	}
	return piece{text: whole}, ""
}

func (c *refs) editor(whole, inner string) (p piece, why string) {
	switch inner {
	case "userHome":
		return piece{text: c.home}, ""
	case "pathSeparator", "/":
		return piece{text: string(filepath.Separator)}, ""
	case "workspaceFolder", "workspaceRoot":
		if c.project != "" {
			return piece{text: c.project}, ""
		}
	case "workspaceFolderBasename":
		if c.project != "" {
			return piece{text: filepath.Base(c.project)}, ""
		}
	}
	return p, "it uses " + shown(whole) + ", which only the client knows"
}

func shown(ref string) string { return fmt.Sprintf("%q", untrusted.Line(ref, 60)) }
