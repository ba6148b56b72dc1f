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
)

// A glob is a pattern of paths: * and ? stay within one name, ** is any number
// of names. A pattern without a slash is about the last name, wherever the
// file lies.
type glob struct {
	text  string
	parts []string
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
		return glob{}, fmt.Errorf("pattern %q holds ..; write the path it means", s)
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

// clean gives a path in the one spelling that globs are matched against, or
// says what is wrong with one that could mean another file than it seems to.
func clean(p string) (name, trouble string) {
	switch {
	case p == "":
		return "", "A path is empty"
	case len(p) > longestPath:
		return "", "A path is too long"
	case strings.IndexByte(p, 0) >= 0:
		return "", "A path holds a NUL byte"
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

func parsePattern(s string) (pattern, error) {
	if strings.ContainsAny(s, "'\"`$;&|<>\n\\") {
		return nil, fmt.Errorf("command %q: no shell reads it; write plain words, or a list of them", s)
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
	project := runsProject(argv)
	if project && len(p) == 1 && len(argv) > 1 {
		return false // the program's name does not tell what it runs
	}
	for _, arg := range argv[len(p):] {
		if hazardous(argv[0], arg) || project && otherCode(program(argv[0]), arg) {
			return false
		}
	}
	return true
}

// loosely reports whether a command may be what the pattern means, wherever
// the program lies, whatever options stand first, and whoever starts it. It is
// how things are refused.
func (p pattern) loosely(argv []string) bool {
	for start := 0; start < len(argv); start++ {
		if p.from(argv[start:]) {
			return true
		}
		if start == 0 && !wrapper(program(argv[0])) {
			return false
		}
	}
	return false
}

func (p pattern) from(argv []string) bool {
	name := program(argv[0])
	if !slices.ContainsFunc(p[0], func(a string) bool { return strings.EqualFold(program(a), name) || wild(a, name, true) }) {
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

// program gives the bare name of a program.
func program(arg string) string {
	if i := strings.LastIndexAny(arg, `/\`); i >= 0 {
		arg = arg[i+1:]
	}
	if hasSuffixFold(arg, ".exe") {
		arg = arg[:len(arg)-len(".exe")]
	}
	return arg
}

// wrapper reports whether a program only starts another.
func wrapper(name string) bool {
	switch name {
	case "env", "sudo", "doas", "nice", "nohup", "timeout", "time", "command", "exec", "xargs", "stdbuf", "setsid", "busybox", "chroot", "ionice":
		return true
	}
	return false
}

// hazardous reports whether an argument makes a well-known program run another
// or write where nobody looks. Programs take any beginning of a long option for
// the whole, so a beginning counts too.
func hazardous(prog, arg string) bool {
	name := program(prog)
	known := risky(name)
	switch name {
	case "git":
		if arg == "-c" || strings.HasPrefix(arg, "ext::") || strings.HasPrefix(arg, "-c") && strings.Contains(arg, "=") {
			return true
		}
	case "awk", "gawk", "mawk", "nawk", "sed":
		return true // their programs can run others, and in many spellings
	case "perl", "python", "python3", "node", "ruby", "lua", "php":
		return strings.HasPrefix(arg, "-") // code of the caller's, or another module
	}
	if known == nil {
		return wrapper(name)
	}
	if long, _, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "--") && len(long) > 2 {
		return slices.ContainsFunc(known, func(option string) bool {
			return strings.HasPrefix(option, "--") && (strings.HasPrefix(option, long) || strings.HasPrefix(long, option))
		})
	}
	return slices.ContainsFunc(known, func(option string) bool { return !strings.HasPrefix(option, "--") && strings.HasPrefix(arg, option) })
}

// risky lists the options of a program by which it runs another or writes.
func risky(name string) []string {
	switch name {
	case "git":
		return []string{
			"--exec-path", "--upload-pack", "--receive-pack", "--config-env", "--output", "--ext-diff", "--textconv", "--exec",
			"--open-files-in-pager", "-O", "--template", "--super-prefix",
		}
	case "find":
		return []string{"-exec", "-ok", "-delete", "-fprint", "-fls"}
	case "tar":
		return []string{
			"--checkpoint-action", "--to-command", "--use-compress-program", "-I", "--rsh-command", "--info-script", "--new-volume-script", "-F",
			"--rmt-command",
		}
	case "ssh", "scp", "sftp":
		return []string{"-o", "-F", "-S", "-J", "-D", "-L", "-R", "-w"}
	case "curl":
		return []string{"-o", "-O", "-K", "--output", "--output-dir", "--config", "--remote-name", "-T", "--upload-file", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--stderr", "--libcurl", "--hsts", "--alt-svc", "--etag-save"}
	case "wget":
		return []string{"-O", "-o", "-a", "-P", "-i", "-e", "--output-document", "--output-file", "--append-output", "--execute", "--use-askpass", "--config"}
	case "rsync":
		return []string{"-e", "--rsh", "--rsync-path"}
	case "sort":
		return []string{"--compress-program", "-o", "--output", "-T", "--temporary-directory"}
	case "less", "more", "man", "vi", "vim", "nano", "ed", "emacs":
		return []string{"-", "+"}
	}
	return nil
}

// destroys reports whether a command is known to destroy what it names.
func destroys(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	name := program(argv[0])
	switch name {
	case "rm", "rmdir", "shred", "dd", "mkfs", "truncate", "unlink", "wipefs", "fdisk", "parted":
		return true
	case "git":
		return slices.ContainsFunc(argv[1:], func(a string) bool {
			return a == "--force" || a == "-f" || a == "--hard" || a == "clean" || a == "--delete" || a == "-D" || strings.HasPrefix(a, "--force-with-lease")
		})
	case "find":
		return slices.Contains(argv, "-delete")
	}
	if strings.HasPrefix(name, "mkfs.") {
		return true
	}
	return wrapper(name) && len(argv) > 1 && slices.ContainsFunc(argv[1:], func(a string) bool { return destroys([]string{a}) })
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
