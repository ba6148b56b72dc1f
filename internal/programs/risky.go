package programs

import (
	"slices"
	"strings"
)

// Risky reports whether an argument of a command, from the one numbered from
// on, makes a well-known program run another program or write to an unexpected
// place. For a program whose only use is to start others, every argument does.
func Risky(argv []string, from int) bool {
	name := Name(argv[0])
	if from < 1 {
		from = 1
	}
	if from >= len(argv) {
		return false
	}
	rest := argv[from:]
	kinds := Of(name)
	switch {
	case name == "git":
		return gitRisky(argv, from)
	case name == "awk" || name == "gawk" || name == "mawk" || name == "nawk" || name == "sed" || name == "gsed":
		return true // their programs can run others, and in many spellings
	case kinds&Editor != 0:
		return slices.ContainsFunc(rest, func(a string) bool { return strings.HasPrefix(a, "-") || strings.HasPrefix(a, "+") })
	case kinds&Interpreter != 0 && kinds&Project == 0:
		// Code of the caller's, or another module.
		return slices.ContainsFunc(rest, func(a string) bool { return strings.HasPrefix(a, "-") })
	}
	if clientRuns(name, rest) {
		return true
	}
	o, known := optionsOf(name)
	switch {
	case kinds&Starter != 0:
		return true
	case !known:
		return false
	}
	if from == 1 && o.dashless && !strings.HasPrefix(rest[0], "-") && strings.ContainsAny(rest[0], o.letters) {
		return true // tar takes its first word for options
	}
	return slices.ContainsFunc(rest, o.risky)
}

// options are those by which a program runs another or writes.
type options struct {
	letters  string   // one-letter options, which may stand in a cluster
	valued   string   // harmless one-letter options that take a value: the rest of their word is not options
	words    []string // long options; any beginning counts, because programs take it for the whole
	single   []string // long options with one dash, in programs that know no clusters
	dashless bool     // the first word may be a cluster without its dash
}

func (o *options) risky(arg string) bool {
	switch {
	case len(arg) < 2 || arg[0] != '-':
		return false
	case o.single != nil:
		return slices.ContainsFunc(o.single, func(s string) bool { return strings.HasPrefix(arg, s) || strings.HasPrefix(arg, "-"+s) })
	case strings.HasPrefix(arg, "--"):
		long, _, _ := strings.Cut(arg, "=")
		return len(long) > 2 && slices.ContainsFunc(o.words, func(w string) bool { return strings.HasPrefix(w, long) || strings.HasPrefix(long, w) })
	}
	for i := 1; i < len(arg); i++ {
		if strings.IndexByte(o.letters, arg[i]) >= 0 {
			return true
		}
		if strings.IndexByte(o.valued, arg[i]) >= 0 {
			return false
		}
	}
	return false
}

func optionsOf(name string) (options, bool) {
	switch name {
	case "find":
		return options{single: []string{"-exec", "-ok", "-delete", "-fprint", "-fls"}}, true
	case "tar", "gtar", "bsdtar":
		return options{letters: "IFT", valued: "bCfgHKLNVX", dashless: true, words: []string{
			"--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command", "--info-script", "--new-volume-script", "--rmt-command", "--files-from", "--index-file", "--volno-file",
		}}, true
	case "cpio":
		return options{letters: "OF", words: []string{"--rsh-command", "--file"}}, true
	case "zip":
		return options{letters: "TO", words: []string{"--unzip-command", "--output-file", "--test"}}, true
	case "nc", "ncat", "netcat":
		return options{letters: "ec", words: []string{"--exec", "--sh-exec", "--lua-exec"}}, true
	case "scp":
		return options{letters: "oFSJD", valued: "cilPX"}, true
	case "sftp":
		return options{letters: "oFSJDbs", valued: "BcilPRX"}, true
	case "curl":
		return options{letters: "oOKTDcJ", valued: "AbCdeEFHmPQrtuUwxXyYz", words: []string{
			"--output", "--output-dir", "--config", "--remote-name", "--remote-header-name", "--upload-file", "--dump-header", "--cookie-jar", "--trace", "--stderr", "--libcurl", "--hsts", "--alt-svc", "--etag-save", "--engine",
		}}, true
	case "wget":
		return options{letters: "OoaPie", valued: "tTwQARDIXlUB", words: []string{
			"--output-document", "--output-file", "--append-output", "--directory-prefix", "--input-file", "--execute", "--use-askpass", "--config", "--save-cookies", "--warc-file", "--rejected-log", "--hsts-file",
		}}, true
	case "rsync":
		return options{letters: "eM", valued: "BTf", words: []string{"--rsh", "--rsync-path", "--remote-option", "--daemon", "--config", "--log-file", "--write-batch", "--only-write-batch"}}, true
	case "sort":
		return options{letters: "oT", valued: "ktS", words: []string{"--compress-program", "--output", "--temporary-directory"}}, true
	case "gcc", "g++", "cc", "c++", "clang", "clang++":
		return options{single: []string{"-wrapper", "-B", "-specs", "-fplugin", "-Xclang", "-load", "-o"}}, true
	case "openssl":
		return options{single: []string{"-engine", "-provider", "-config"}}, true
	case "split":
		return options{words: []string{"--filter"}}, true
	case "install", "ginstall":
		return options{words: []string{"--strip-program"}}, true
	case "tcpdump":
		return options{letters: "zw", valued: "BcCDEfFGijmMrsTVWy", words: []string{"--postrotate-command"}}, true
	case "nmap":
		return options{words: []string{"--script", "--datadir"}}, true
	case "rpm", "rpmbuild":
		return options{letters: "E", words: []string{"--eval", "--pipe", "--define", "--load", "--rcfile", "--macros"}}, true
	case "apt", "apt-get", "aptitude":
		return options{letters: "oc", words: []string{"--option", "--config-file"}}, true
	case "helm":
		return options{words: []string{"--post-renderer"}}, true
	case "rclone", "restic", "borg":
		return options{words: []string{"--password-command", "--config", "--rsh", "--rclone.program"}}, true
	case "protoc":
		return options{words: []string{"--plugin"}}, true
	case "groff", "troff":
		return options{letters: "U"}, true
	case "tex", "latex", "pdftex", "pdflatex", "xetex", "xelatex", "luatex", "lualatex", "latexmk":
		return options{single: []string{"-shell-escape", "-enable-write18", "-e", "-r"}}, true
	case "psql", "pgcli":
		return options{letters: "foL", valued: "cdFhpPRTUv", words: []string{"--file", "--output", "--log-file"}}, true
	case "mysql", "mariadb", "mycli":
		return options{words: []string{"--pager", "--tee", "--init-command", "--plugin-dir", "--defaults-file", "--defaults-extra-file"}}, true
	case "sqlite3", "sqlite", "duckdb":
		return options{single: []string{"-init", "-cmd"}}, true
	case "rg":
		return options{words: []string{"--pre", "--hostname-bin"}}, true
	case "gh", "glab", "hg", "svn":
		return options{words: []string{"--config", "--config-option", "--config-dir", "--editor-cmd", "--diff-cmd", "--diff3-cmd", "--ssh", "--remotecmd"}}, true
	}
	return options{}, false
}

// clientRuns reports whether an argument of a database client, or of ip, is a
// command that runs a program or reads commands from a file.
func clientRuns(name string, args []string) bool {
	switch name {
	case "sqlite3", "sqlite", "duckdb": // .shell, .system, .load, .output |program
		return slices.ContainsFunc(args, func(a string) bool {
			return strings.Contains(a, "load_extension") || slices.ContainsFunc(strings.Split(a, "\n"), func(line string) bool {
				line = strings.TrimSpace(line)
				return len(line) > 1 && line[0] == '.' && line[1] != '/' && line[1] != '.'
			})
		})
	case "psql", "pgcli": // \! program, \o |program, \i file
		return slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, `\`) })
	case "mysql", "mariadb", "mycli": // system program, source file, \! program
		return slices.ContainsFunc(args, func(a string) bool {
			return strings.Contains(a, `\`) || slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(a), func(r rune) bool { return strings.ContainsRune(" \t\n;=", r) }), func(w string) bool {
				return w == "system" || w == "source" || w == "pager" || w == "tee" || w == "edit"
			})
		})
	case "ip":
		return slices.ContainsFunc(args, func(a string) bool { return a == "exec" || len(a) > 1 && strings.HasPrefix("-batch", a) })
	}
	return false
}
