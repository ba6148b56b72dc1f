package main

import (
	"os/exec"
	"slices"
	"strings"
)

// How long the tests of one package may take. It ends tests that hang; no machine
// comes near it.
const limit = "40m"

// commands are what can be asked for. Each has all that its name promises, whatever
// ran before; what they build alike is built once, in Go's cache.
var commands = []command{
	{"test", "ci", []step{{"build", build}, {"test", quick}}},
	{"ci", "nightly", []step{
		{"format", func(p *place, s *Step) { p.check(s, true, p.command("gofmt", "-l", ".")) }},
		{"modules", func(p *place, s *Step) { p.check(s, false, p.command("go", "mod", "tidy", "-diff")) }},
		{"vet", func(p *place, s *Step) { p.check(s, false, p.command("go", "vet", "./...")) }},
		// The other systems that Ken is built for: type errors, tests included.
		{"platforms", func(p *place, s *Step) {
			p.check(s, false, p.command("go", "run", "./scripts/platforms", "darwin/arm64", "windows/amd64"))
		}},
		{"staticcheck", func(p *place, s *Step) { p.check(s, false, p.command("bash", ".ci/staticcheck.sh")) }},
		{"page", page},
		{"large", large},
		{"race", race},
		{"browser", browser},
		{"release", func(p *place, s *Step) { p.tests(s, nil, "-run", "^TestRelease$", "./scripts/release") }},
	}},
	{"nightly", "", []step{
		{"vulnerabilities", vulnerabilities},
		{"everything", everything},
		{"chart", func(p *place, s *Step) { p.check(s, false, p.command("bash", ".ci/chart.sh")) }},
		{"fresh", func(p *place, s *Step) { p.check(s, false, p.command("bash", ".ci/fresh.sh")) }},
		{"soak", func(p *place, s *Step) { p.check(s, false, p.command("bash", ".ci/soak.sh")) }},
	}},
}

// Tests that the race detector has nothing to find in, and that it would make several
// times slower: arithmetic over whole corpora, inputs of megabytes, and the rules that
// read the source.
const unraced = "^(TestLarge|TestLayers$|TestImportChain$|TestCodeRules$|TestCodeSize$|TestCodeLines$|TestStructFields$|" +
	"TestCoverage$|TestArchitecture$|TestPublicAPI$|TestTroubleshooting$|TestNoTestJudgesTime$)"

// Stories in a browser and the release have steps of their own.
const apart = "^(TestBrowser|TestRelease$)"

// tests runs go test with these arguments, where wrap says so under another program.
func (p *place) tests(s *Step, wrap []string, args ...string) {
	p.testsOf(s, 0, wrap, nil, args...)
}

func (p *place) testsOf(s *Step, packages int, wrap, env []string, args ...string) {
	line := slices.Concat(wrap, []string{"go", "test", "-json", "-vet=off", "-timeout", limit}, args)
	cmd := p.command(line[0], line[1:]...)
	cmd.Env = append(cmd.Env, env...)
	p.goTest(s, cmd, packages)
}

func build(p *place, s *Step) {
	cmd := p.command("go", "build", "-v", "-o", p.file("ken"), "./cmd/ken")
	cmd.Stderr = &progress{w: p.out}
	p.check(s, false, cmd)
}

// quick is go vet and the fast tests. Vet runs beside them, package by package.
func quick(p *place, s *Step) {
	packages := p.packages(s)
	cmd := p.command("go", slices.Concat([]string{"test", "-json", "-short", "-vet=all", "-ldflags=-w", "-timeout", limit}, packages)...)
	cmd.Env = append(cmd.Env, "KEN_TEST_BINARY="+p.file("ken"))
	p.goTest(s, cmd, len(packages))
}

// large runs the tests that the race detector would only slow down.
func large(p *place, s *Step) {
	p.tests(s, nil, "-ldflags=-w", "-run", unraced, "./...")
}

// race runs all other tests with the race detector, and what stands on a store on
// PostgreSQL; make test has it on SQLite. SQLite and regular expressions are compiled
// without the detector's bookkeeping: they are not ours, they share nothing that we
// could misuse but by calls that are watched, and they would be several times slower.
func race(p *place, s *Step) {
	flags := []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc/...=-race=false", "-gcflags=regexp/...=-race=false"}
	env := []string{"CGO_ENABLED=1"}
	if _, err := exec.LookPath(compiler()); err != nil {
		s.Skipped = append(s.Skipped, Test{"race detector", "there is no C compiler: install gcc and libc6-dev; the tests ran without it"})
		flags, env = nil, nil
	}
	packages := p.packages(s)
	env = append(env, "KEN_TEST_BINARY="+p.program(s, "ken-race", flags, env...))
	wrap := withPostgres(s)
	p.testsOf(s, len(packages), wrap, env, slices.Concat(flags, []string{"-ldflags=-w", "-shuffle=on", "-skip", unraced + "|" + apart}, packages)...)
}

func compiler() string {
	out, _ := exec.Command("go", "env", "CC").Output()
	name, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	return name
}

// withPostgres returns what starts a PostgreSQL server around a command.
func withPostgres(s *Step) []string {
	if exec.Command("bash", ".ci/with-postgres.sh", "true").Run() != nil {
		s.Skipped = append(s.Skipped, Test{"PostgreSQL", "there is no PostgreSQL server: install the package postgresql; the tests ran on SQLite"})
		return nil
	}
	return []string{"bash", ".ci/with-postgres.sh"}
}

// npm returns where the packages of a lock file are, as .ci/npm.sh says.
func (p *place) npm(s *Step, script string, set ...string) string {
	out, err := p.command("bash", append([]string{script, "have"}, set...)...).Output()
	if err != nil {
		s.Skipped = append(s.Skipped, Test{s.Name + " " + strings.Join(set, " "), "packages from npm are not here: make install fetches them"})
		return ""
	}
	return strings.TrimSpace(string(out))
}

// browser plays the stories of the page in a real Chromium, against the real server
// and a scripted model. What drives it has little of its own to race.
func browser(p *place, s *Step) {
	npm := p.npm(s, ".ci/npm.sh", "browser")
	if npm == "" {
		return
	}
	p.testsOf(s, 0, nil, []string{"KEN_NPM=" + npm, "KEN_TEST_BINARY=" + p.program(s, "ken", nil)}, "-run", "^TestBrowser", "./cmd/ken")
}

// page builds the page: its files are committed, and must be those that its source
// gives.
func page(p *place, s *Step) {
	cmd := p.command("bash", ".ci/web.sh", "check-have")
	if npm := p.npm(s, ".ci/npm.sh", "browser"); npm != "" {
		cmd.Env = append(cmd.Env, "KEN_NPM="+npm)
	}
	p.optional(s, cmd, "the page's compiler from npm is not here: make install fetches it")
}

func vulnerabilities(p *place, s *Step) {
	p.optional(s, p.command("bash", ".ci/vuln.sh"), "cannot here: the vulnerability database or govulncheck is out of reach")
}

// optional runs a script that ends with 75 where it cannot run.
func (p *place) optional(s *Step, cmd *exec.Cmd, why string) {
	out, err := cmd.CombinedOutput()
	s.CPU += processorTime(cmd)
	name := s.Name + " " + strings.Join(cmd.Args, " ")
	switch {
	case err == nil:
		s.Passed, s.Ran = append(s.Passed, name), append(s.Ran, name)
	case cmd.ProcessState.ExitCode() == 75:
		s.Skipped = append(s.Skipped, Test{name, why})
	default:
		p.out.Write(out)
		s.Failed = append(s.Failed, Test{name, err.Error()})
	}
}

// everything runs all tests of the tree, and leaves out none.
func everything(p *place, s *Step) {
	env := []string{"KEN_NIGHTLY=1", "KEN_TEST_BINARY=" + p.program(s, "ken", nil)}
	if npm := p.npm(s, ".ci/npm.sh", "npm"); npm != "" {
		env = append(env, "KEN_NPM="+npm)
	}
	if clients := p.npm(s, ".ci/clients.sh", "continue", "free", "licensed"); clients != "" {
		env = append(env, "KEN_CLIENTS="+clients)
	}
	packages := p.packages(s)
	p.testsOf(s, len(packages), withPostgres(s), env, slices.Concat([]string{"-count=1", "-ldflags=-w"}, packages)...)
}
