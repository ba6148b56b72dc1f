package policy

// Programs that run the project's code, as make runs recipes and npm runs
// scripts, are one class. The name of such a program does not tell what it
// does. Permission for the name covers only the bare name; permission for "make
// test" or "npm run build" covers that, without options that lead to other
// code. The list is in package programs.

// Prefix returns the shortest prefix of a command that allows it when added to
// the allowed prefixes, or nil if none does.
func Prefix(argv []string) []string {
	var p pattern
	for i, arg := range argv {
		if p = append(p, []string{arg}); p.exactly(argv) {
			return argv[:i+1]
		}
	}
	return nil
}
