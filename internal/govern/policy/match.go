package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/internal/address"
	pathglob "ken/internal/glob"
	"ken/internal/programs"
)

// A glob is a pattern of paths: * and ? stay within one name, ** is any number
// of names. A pattern without a slash is about the last name, wherever the
// file lies.
type glob struct {
	text  string
	parts []string
}

// CheckGlob returns an error if s is no pattern of paths that rules can use.
func CheckGlob(s string) error {
	_, err := parseGlob(s)
	return err
}

func parseGlob(s string) (glob, error) {
	clean := strings.TrimPrefix(s, "./")
	switch {
	case clean == "":
		return glob{}, errors.New("an empty pattern matches nothing; write one, such as src/**")
	case len(clean) > longestGlob:
		return glob{}, fmt.Errorf("pattern %.40q… has more than %d bytes", s, longestGlob)
	case strings.Contains(clean, `\`) || strings.ContainsRune(clean, 0):
		return glob{}, fmt.Errorf("pattern %q: write names with / between them", s)
	case slices.Contains(strings.Split(clean, "/"), ".."):
		return glob{}, fmt.Errorf("pattern %q contains ..; write the resulting path", s)
	}
	if !strings.Contains(clean, "/") {
		clean = "**/" + clean
	} else if strings.HasSuffix(clean, "/") {
		clean += "**"
	}
	return glob{text: s, parts: strings.Split(clean, "/")}, nil
}

// match reports whether a path that clean made is one of those meant. With
// fold, letters count the same in either case.
func (g *glob) match(p string, fold bool) bool {
	return pathglob.Path(g.parts, p, func(part, name string) bool { return wild(part, name, fold) })
}

// wild matches one name against a pattern with * and ?.
func wild(pattern, name string, fold bool) bool { return pathglob.Name(pattern, name, fold) }

const (
	longestPath = 4096
	longestGlob = 1024
)

// clean returns a path in the one spelling that globs are matched against, or
// says what is wrong with one that could mean another file than it seems to.
func clean(p string) (name, trouble string) {
	switch {
	case p == "":
		return "", "A path is empty"
	case len(p) > longestPath:
		return "", "A path is too long"
	case strings.IndexByte(p, 0) >= 0:
		return "", "A path contains a NUL byte"
	}
	if strings.IndexByte(p, '\\') >= 0 {
		p = strings.ReplaceAll(p, `\`, "/")
	}
	for rest := p; ; {
		name, more, ok := strings.Cut(rest, "/")
		if name == ".." {
			return "", traversal
		}
		if !ok {
			break
		}
		rest = more
	}
	return path.Clean(p), ""
}

const traversal = "Path traversal detected" // the seed's words

// absolute reports whether a clean path does not begin at the workspace.
func absolute(p string) bool {
	return p[0] == '/' || p[0] == '~' || len(p) >= 2 && p[1] == ':'
}

func beneath(p, root string) bool {
	return p == root || root == "/" && p[0] == '/' || len(p) > len(root) && p[len(root)] == '/' && p[:len(root)] == root
}

// A pattern is the beginning of a command: each element lists what the
// argument there may be, with * for any part of it.
type pattern [][]string

// ParseCommand reads the beginning of a command as plain words. Each element of
// the result lists what the argument there may be.
func ParseCommand(s string) ([][]string, error) { return parsePattern(s) }

func parsePattern(s string) (pattern, error) {
	if strings.ContainsAny(s, "'\"`$;&|<>\n\\") {
		return nil, fmt.Errorf("command %q: shell syntax is not allowed; write plain words, or a list of them", s)
	}
	var p pattern
	for w := range strings.FieldsSeq(s) {
		p = append(p, []string{w})
	}
	return p, p.check()
}

func (p pattern) check() error {
	if len(p) == 0 || slices.ContainsFunc(p, func(alts []string) bool { return len(alts) == 0 || slices.Contains(alts, "") }) {
		return errors.New("a command pattern is empty; write at least the program's name")
	}
	return nil
}

func (p pattern) String() string {
	var words []string
	for _, alts := range p {
		words = append(words, strings.Join(alts, "|"))
	}
	return strings.Join(words, " ")
}

func (p pattern) at(argv []string) bool {
	if len(argv) < len(p) {
		return false
	}
	for i, alts := range p {
		if !slices.ContainsFunc(alts, func(a string) bool { return a == argv[i] || strings.Contains(a, "*") && wild(a, argv[i], false) }) {
			return false
		}
	}
	return true
}

// exactly reports whether a command begins with the pattern as written. It is
// used to give permission, so a program at another path is another program. The
// pattern must also name anything that makes the command run something else: an
// option or, for a program that runs the project's code, what it is to run.
func (p pattern) exactly(argv []string) bool {
	if !p.at(argv) {
		return false
	}
	return p.names(argv)
}

// names reports whether the pattern names all that decides what a command runs:
// what of the project's code, which options, and which of git's subcommands
// unless it is one that only looks.
func (p pattern) names(argv []string) bool {
	name := programs.Name(argv[0])
	project := programs.RunsProject(argv)
	if project && len(p) == 1 && len(argv) > 1 {
		return false // the program's name does not tell what it runs
	}
	if project && slices.ContainsFunc(argv[len(p):], func(arg string) bool { return programs.OtherCode(name, arg) }) {
		return false
	}
	if name == "git" && !programs.GitLooks(argv) {
		if at, _ := programs.GitCommand(argv); at >= len(p) || !slices.Contains(p[at], argv[at]) {
			return false
		}
	}
	return !programs.Risky(argv, len(p))
}

// loosely reports whether a command may be what the pattern means, wherever
// the program lies, whatever options stand first, whatever starts it, and in
// code among its arguments. It is how things are refused.
func (p pattern) loosely(argv []string) bool {
	return p.from(argv) || slices.ContainsFunc(inner(argv), p.from)
}

const mostWords = 4096

// inner returns the commands that a command may start: for a program that starts
// others or runs code, everything that follows a word of its arguments.
func inner(argv []string) [][]string {
	name := programs.Name(argv[0])
	execs := name == "find" && slices.ContainsFunc(argv, func(a string) bool { return strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") })
	if !execs && !programs.Is(name, programs.Starter|programs.Interpreter) {
		return nil
	}
	var out [][]string
	for i := 1; i < len(argv) && len(out) < mostWords; i++ {
		if argv[i] != "" {
			out = append(out, argv[i:])
		}
		if words := codeWords(argv[i]); len(words) > 1 {
			for j := range words[:min(len(words), mostWords)] {
				out = append(out, words[j:])
			}
		}
	}
	return out
}

// codeWords returns the words of a text that may be code.
func codeWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;|&<>()\"'`$={}[],:@", r) })
}

func (p pattern) from(argv []string) bool {
	name := programs.Name(argv[0])
	if !slices.ContainsFunc(p[0], func(a string) bool { return strings.EqualFold(programs.Name(a), name) || wild(a, name, true) }) {
		return false
	}
	rest, args := p[1:], argv[1:]
	for {
		if rest.at(args) {
			return true
		}
		// Options, and a word after one, may stand before the rest.
		if len(args) == 0 || args[0] == "" || args[0][0] != '-' {
			return false
		}
		if len(args) > 1 && rest.at(args[1:]) {
			return true
		}
		if len(args) > 1 && (args[1] == "" || args[1][0] != '-') {
			args = args[2:]
		} else {
			args = args[1:]
		}
	}
}

// destroys reports whether a command is known to destroy what it names, or
// starts one that does.
func destroys(argv []string) bool {
	return len(argv) > 0 && (programs.Destroys(argv) || slices.ContainsFunc(inner(argv), programs.Destroys))
}

// destructiveWord reports whether a command line that is more than its commands
// show has a word that destroys, as in R=rm; $R -r x.
func destructiveWord(line string) bool {
	return slices.ContainsFunc(codeWords(line), func(w string) bool {
		return w == "-delete" || w == "--hard" || strings.HasPrefix(w, "--force") || programs.Destroys([]string{w})
	})
}

// A hostPattern is a host, *.domain for names below a domain, * for any,
// or a range of addresses.
type hostPattern struct {
	text string
	net  netip.Prefix
}

func parseHost(s string) (hostPattern, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return hostPattern{text: s, net: p.Masked()}, nil
	}
	h := strings.ToLower(strings.TrimSuffix(s, "."))
	plain := strings.TrimPrefix(h, "*.")
	if h != "*" && (plain == "" || strings.ContainsAny(plain, "*/@ ?") || !ascii(plain)) {
		return hostPattern{}, fmt.Errorf("host %q: write a name, *.domain, * or a range such as 10.0.0.0/8, without scheme, port or path", s)
	}
	return hostPattern{text: h}, nil
}

// match reports whether the pattern matches a host. A rule that allows matches
// narrowly: *.domain is one level, and an address must be spelled the same. A
// rule that denies matches widely: any level, and every spelling of an address.
func (p *hostPattern) match(host string, allows bool) bool {
	host = address.Bare(host)
	if p.net.IsValid() {
		if ip, err := netip.ParseAddr(host); err == nil && p.net.Contains(ip.Unmap()) {
			return true
		}
		ip, ok := address.Parse(host)
		return !allows && ok && p.net.Contains(address.Inner(ip))
	}
	if p.text == "*" {
		return true
	}
	if domain, below := strings.CutPrefix(p.text, "*."); below {
		if allows {
			return address.Below(host, domain)
		}
		return address.Under(host, domain)
	}
	return strings.EqualFold(host, p.text) || !allows && sameAddress(host, p.text)
}

func sameAddress(a, b string) bool {
	x, ok := address.Parse(a)
	y, both := address.Parse(b)
	return ok && both && address.Inner(x) == address.Inner(y)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || s[i] <= ' ' {
			return false
		}
	}
	return true
}
