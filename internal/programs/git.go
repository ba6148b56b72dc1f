package programs

import (
	"slices"
	"strings"
)

// GitCommand returns the index of git's subcommand in a git command, or -1, and
// the folders that git changes to before, in order.
func GitCommand(argv []string) (at int, folders []string) {
	for i := 1; i < len(argv); i++ {
		switch arg := argv[i]; {
		case arg == "-C" && i+1 < len(argv):
			i++
			folders = append(folders, argv[i])
		case arg == "-c" || arg == "--git-dir" || arg == "--work-tree" || arg == "--namespace" || arg == "--config-env" || arg == "--super-prefix" || arg == "--attr-source":
			i++
		case !strings.HasPrefix(arg, "-"):
			return i, folders
		}
	}
	return -1, folders
}

// gitRisky: see Risky.
func gitRisky(argv []string, from int) bool {
	at, _ := GitCommand(argv)
	own, sub := gitOwn(), options{}
	if at >= 0 {
		sub = gitOptions(argv[at])
	}
	for i := from; i < len(argv); i++ {
		arg, o := argv[i], &sub
		if at < 0 || i < at {
			o = &own
		}
		if strings.HasPrefix(arg, "ext::") || o.risky(arg) {
			return true
		}
	}
	return at >= 0 && gitTakesCommand(argv[at], argv[min(max(from, at+1), len(argv)):])
}

// gitOwn returns the options before the subcommand by which git reads other
// settings or runs other programs.
func gitOwn() options {
	return options{letters: "c", words: []string{"--exec-path", "--config-env", "--git-dir", "--work-tree", "--bare", "--super-prefix"}}
}

// gitOptions returns the options of a subcommand by which it runs another
// program or writes.
func gitOptions(sub string) options {
	o := options{letters: "O", words: []string{
		"--upload-pack", "--receive-pack", "--output", "--ext-diff", "--textconv", "--filters", "--exec", "--open-files-in-pager", "--template", "--extcmd", "--tool",
		"--config", "--separate-git-dir", "--strategy", "--submodule", "--show-signature", "--to-cmd", "--cc-cmd", "--sendmail-cmd", "--smtp-server", "--editor",
	}}
	switch sub {
	case "difftool":
		o.letters = "xtgO"
	case "mergetool":
		o.letters = "tg"
	case "clone":
		o.letters = "uc"
	case "ls-remote", "fetch-pack", "archive", "format-patch", "svn":
		o.letters = "uo"
	case "rebase", "merge", "pull", "cherry-pick", "revert":
		o.letters = "xs"
	}
	return o
}

// gitTakesCommand reports whether a subcommand runs a command from its
// arguments.
func gitTakesCommand(sub string, args []string) bool {
	switch sub {
	case "filter-branch", "instaweb", "daemon", "shell", "web--browse", "upload-pack", "receive-pack", "remote-ext", "remote-fd", "for-each-repo", "interpret-trailers":
		return len(args) > 0
	case "submodule":
		return slices.Contains(args, "foreach")
	case "bisect":
		return slices.ContainsFunc(args, func(a string) bool { return a == "run" || a == "visualize" || a == "view" })
	}
	return false
}

// GitLooks reports whether a git command only looks at a repository: its
// subcommand runs no program and changes nothing. Risky options are not
// considered.
func GitLooks(argv []string) bool {
	at, _ := GitCommand(argv)
	if at < 0 {
		return true
	}
	args := argv[at+1:]
	// Of these some forms change something.
	listing := func(words ...string) bool {
		return !slices.ContainsFunc(args, func(a string) bool { return !slices.Contains(words, a) })
	}
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	switch argv[at] {
	case "status", "log", "diff", "show", "blame", "annotate", "shortlog", "describe", "grep", "ls-files", "ls-tree", "rev-parse", "rev-list", "cat-file", "name-rev", "merge-base", "cherry",
		"show-ref", "show-branch", "for-each-ref", "diff-tree", "diff-index", "diff-files", "range-diff", "whatchanged", "count-objects", "check-ignore", "check-attr", "verify-pack", "version", "var":
		return true
	case "branch":
		return first == "--list" || first == "-l" || first == "--show-current" || first == "--contains" || first == "--merged" || first == "--no-merged" ||
			listing("-a", "-r", "-v", "-vv", "-av", "-avv", "-rv", "-va", "-vva", "--all", "--remotes", "--verbose", "--no-color")
	case "tag":
		return len(args) == 0 || first == "--list" || first == "-l" || first == "--contains" || first == "--points-at"
	case "remote":
		return listing("-v", "--verbose") || first == "get-url"
	case "stash", "worktree", "notes", "bundle":
		return first == "list"
	case "reflog":
		return len(args) == 0 || first == "show"
	case "config":
		return first == "--list" || first == "-l" || first == "--get" || first == "--get-all" || first == "get" || first == "list"
	case "submodule":
		return first == "status" && len(args) == 1
	}
	return false
}

// GitDestroys reports whether a git command is known to discard work: changes
// that were not committed, commits that no branch would hold, or branches and
// tags, here or at a remote.
func GitDestroys(argv []string) bool {
	if slices.ContainsFunc(argv[1:], func(a string) bool { return a == "clean" || a == "-D" || gitLong(a, "--force", "--hard", "--delete") }) {
		return true
	}
	at, _ := GitCommand(argv)
	if at < 0 {
		return false
	}
	args := argv[at+1:]
	has := func(words ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(words, a) || gitLong(a, words...) })
	}
	letters := func(any string) bool { // also in a cluster
		return slices.ContainsFunc(args, func(a string) bool {
			return len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a[1:], any)
		})
	}
	switch argv[at] {
	case "push": // +branch forces, :branch deletes
		return letters("fd") || has("--mirror", "--prune") || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "+") || strings.HasPrefix(a, ":") })
	case "checkout":
		return letters("fB") || has("--", ".", "--pathspec-from-file")
	case "switch":
		return letters("fC") || has("--discard-changes", "--force-create")
	case "restore": // --staged alone changes the index and no file
		return !letters("S") && !has("--staged") || letters("W") || has("--worktree")
	case "reset":
		return has("--merge", "--keep")
	case "rm":
		return !has("--cached")
	case "stash":
		return has("drop", "clear")
	case "branch":
		return letters("dfMC")
	case "tag":
		return letters("df")
	case "worktree", "remote", "notes", "submodule":
		return has("remove", "rm", "prune", "deinit")
	case "reflog":
		return has("expire", "delete")
	case "update-ref":
		return letters("d") || has("--stdin")
	case "gc":
		return has("--prune")
	case "prune", "filter-branch", "filter-repo":
		return true
	}
	return false
}

// gitLong reports whether an argument is one of the long options: whole, with a
// value or another ending, or shortened, as git accepts it.
func gitLong(arg string, options ...string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return len(name) > len("--x") && strings.HasPrefix(name, "--") && slices.ContainsFunc(options, func(o string) bool {
		return len(o) > 2 && strings.HasPrefix(o, "--") && (strings.HasPrefix(name, o) || strings.HasPrefix(o, name))
	})
}
