// Mutants says how much of what could go wrong the tests notice. It changes the
// product in a number of small ways, one at a time, and counts how many changes
// some test of `make test` or `make ci` sees:
//
//	go run ./scripts/mutants                       300 changes of run, govern, find, talk and serve
//	go run ./scripts/mutants -n 20 internal/glob   20 changes of one package
//
// All changes are compiled in together, each behind a switch, so that everything is
// built once. A first run of every test finds which changes it reaches; then only
// those tests run, those of the same package first, until one fails. Which changes
// are made depends on the seed and on the changed line alone, so that two versions
// of the product are compared by mostly the same ones.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	n := flag.Int("n", 300, "how many changes to make")
	seed := flag.Int64("seed", 34, "which changes to make")
	list := flag.Bool("list", false, "only print the changes")
	verbose := flag.Bool("v", false, "print every change as it is decided")
	root := flag.String("C", ".", "the folder of the module")
	flag.Parse()
	folders := flag.Args()
	if len(folders) == 0 {
		folders = []string{"internal/run", "internal/govern", "internal/find", "internal/talk", "internal/serve"}
	}
	if err := run(*root, folders, *n, *seed, *list, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(root string, folders []string, n int, seed int64, list, verbose bool) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	files, err := sources(root, folders)
	if err != nil {
		return err
	}
	chosen, err := choose(root, files, n, seed)
	if err != nil {
		return err
	}
	if list {
		for _, m := range chosen {
			fmt.Println(m)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "ken-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	l := &laboratory{root: root, dir: dir, mutants: chosen}
	if err := l.build(); err != nil {
		return err
	}
	if err := l.record(); err != nil {
		return err
	}
	l.try(verbose)
	l.report()
	return nil
}

// sources lists the Go files of the packages in these folders, for this platform.
func sources(root string, folders []string) ([]string, error) {
	args := []string{"list", "-json=Dir,GoFiles"}
	for _, f := range folders {
		args = append(args, "./"+f+"/...")
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var files []string
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct {
			Dir     string
			GoFiles []string
		}
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		for _, name := range p.GoFiles {
			rel, err := filepath.Rel(root, filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			files = append(files, filepath.ToSlash(rel))
		}
	}
	slices.Sort(files)
	return files, nil
}

// A trial is one program that can notice changes: the tests of a package, or one
// script.
type trial struct {
	name   string
	dir    string // where it runs
	binary string
	args   []string
	took   time.Duration
	reach  []byte // by the number of the change: 1 where it was reached
}

type laboratory struct {
	root, dir string
	mutants   []*mutant
	trials    []*trial
}

func (l *laboratory) env(dir string) []string {
	return append(os.Environ(), "TMPDIR="+dir, "GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0", "KEN_TEST_BINARY="+filepath.Join(l.dir, "ken"))
}

// build compiles the program and the tests of every package, with all changes in.
func (l *laboratory) build() error {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	write := func(name string, text []byte) error {
		file := filepath.Join(l.dir, "src", strings.ReplaceAll(name, "/", "_"))
		overlay.Replace[filepath.Join(l.root, filepath.FromSlash(name))] = file
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, text, 0o644)
	}
	// Lanes are folders with a switch each: several trials run at the same time.
	if err := write("internal/mutant/mutant.go", []byte(switchSource)); err != nil {
		return err
	}
	changed := map[string][]*mutant{}
	for i, m := range l.mutants {
		m.number = i + 1
		changed[m.file] = append(changed[m.file], m)
	}
	for name, list := range changed {
		text, err := rewrite(l.root, name, list)
		if err != nil {
			return err
		}
		if err := write(name, text); err != nil {
			return err
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	file := filepath.Join(l.dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	fmt.Println("building")
	build := exec.Command("go", "build", "-overlay", file, "-ldflags=-w", "-o", filepath.Join(l.dir, "ken"), "./cmd/ken")
	build.Dir, build.Env = l.root, l.env(l.dir)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	tests := filepath.Join(l.dir, "tests")
	if err := os.MkdirAll(tests, 0o755); err != nil {
		return err
	}
	out, err := l.goList()
	if err != nil {
		return err
	}
	for _, pkg := range out {
		binary := filepath.Join(tests, strings.ReplaceAll(pkg, "/", "_")+".test")
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", file, "-ldflags=-w", "-o", binary, "./"+strings.TrimPrefix(pkg, "ken/"))
		if pkg == "ken" {
			cmd.Args[len(cmd.Args)-1] = "."
		}
		cmd.Dir, cmd.Env = l.root, l.env(l.dir)
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go test -c %s: %w\n%s", pkg, err, text)
		}
		dir := filepath.Join(l.root, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(pkg, "ken"), "/")))
		if pkg == "ken/cmd/ken" {
			scripts, err := filepath.Glob(filepath.Join(l.root, "testdata/script/*.txtar"))
			if err != nil {
				return err
			}
			for _, s := range scripts {
				name := strings.TrimSuffix(filepath.Base(s), ".txtar")
				l.trials = append(l.trials, &trial{name: "script " + name, dir: dir, binary: binary, args: []string{"-test.run=^TestScript$/^" + name + "$"}})
			}
			l.trials = append(l.trials, &trial{name: pkg, dir: dir, binary: binary, args: []string{"-test.skip=^(TestScript|TestBrowser)"}})
			continue
		}
		l.trials = append(l.trials, &trial{name: pkg, dir: dir, binary: binary, args: []string{"-test.skip=^(TestRelease|TestBrowser)"}})
	}
	return nil
}

// goList returns the packages that have tests.
func (l *laboratory) goList() ([]string, error) {
	cmd := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	cmd.Dir = l.root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// runTrial runs a trial with one change made; 0 makes none. It reports whether all
// of its tests passed.
func (l *laboratory) runTrial(t *trial, number, lane int, limit time.Duration) (ok bool, out []byte) {
	dir := filepath.Join(l.dir, fmt.Sprint("lane", lane))
	work := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return false, []byte(err.Error())
	}
	defer os.RemoveAll(work)
	if err := os.WriteFile(filepath.Join(dir, "active"), fmt.Append(nil, number), 0o644); err != nil {
		return false, []byte(err.Error())
	}
	cmd := exec.Command(t.binary, append([]string{"-test.timeout=" + limit.String(), "-test.count=1"}, t.args...)...)
	cmd.Dir = t.dir
	cmd.Env = append(l.env(work), "KEN_MUTANT="+dir)
	out, err := cmd.CombinedOutput()
	return err == nil, out
}

// record runs every trial without a change, to see what it reaches and how long
// it takes. One that fails then says nothing, and is left out.
func (l *laboratory) record() error {
	began := time.Now()
	l.each(len(l.trials), func(i, lane int) {
		t := l.trials[i]
		dir := filepath.Join(l.dir, fmt.Sprint("lane", lane))
		_ = os.MkdirAll(dir, 0o755)
		reach := filepath.Join(dir, "reach")
		_ = os.WriteFile(reach, make([]byte, len(l.mutants)+1), 0o666)
		_ = os.Chmod(reach, 0o666)
		start := time.Now()
		ok, out := l.runTrial(t, 0, lane, 10*time.Minute)
		t.took = time.Since(start)
		if t.reach, _ = os.ReadFile(reach); !ok {
			fmt.Printf("left out, it fails without a change: %s\n%s\n", t.name, tail(out))
			t.reach = nil
		}
	})
	reached := 0
	for _, m := range l.mutants {
		if slices.ContainsFunc(l.trials, func(t *trial) bool { return t.reaches(m) }) {
			reached++
		}
	}
	fmt.Printf("%d trials in %v; they reach %d of %d changes\n", len(l.trials), time.Since(began).Round(time.Second), reached, len(l.mutants))
	return nil
}

func (t *trial) reaches(m *mutant) bool { return m.number < len(t.reach) && t.reach[m.number] != 0 }

// each calls do for 0 to n-1, on as many lanes as there are cores.
func (l *laboratory) each(n int, do func(i, lane int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for lane := range runtime.NumCPU() {
		all.Go(func() {
			for i := range next {
				do(i, lane)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// try makes each change in turn and runs what reaches it, the tests of its own
// package first, then what is quick.
func (l *laboratory) try(verbose bool) {
	l.each(len(l.mutants), func(i, lane int) {
		m := l.mutants[i]
		own := "ken/" + filepath.ToSlash(filepath.Dir(m.file))
		var list []*trial
		for _, t := range l.trials {
			if t.reaches(m) {
				list = append(list, t)
			}
		}
		slices.SortStableFunc(list, func(a, b *trial) int {
			if (a.name == own) != (b.name == own) {
				return cmp.Compare(b2i(b.name == own), b2i(a.name == own))
			}
			return cmp.Compare(a.took, b.took)
		})
		for _, t := range list {
			if ok, _ := l.runTrial(t, m.number, lane, 3*t.took+time.Minute); !ok {
				m.killer = t.name
				break
			}
		}
		if verbose {
			fmt.Println(m.verdict(len(list)))
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

func (l *laboratory) report() {
	type wing struct{ made, killed int }
	wings := map[string]*wing{}
	killed := 0
	fmt.Println("\nnot noticed:")
	for _, m := range l.mutants {
		name := strings.Join(strings.Split(m.file, "/")[:2], "/")
		if wings[name] == nil {
			wings[name] = &wing{}
		}
		wings[name].made++
		if m.killer != "" {
			wings[name].killed++
			killed++
			continue
		}
		fmt.Println("  " + m.String())
	}
	fmt.Println("\n| wing | changes | noticed |\n|---|---:|---:|")
	names := make([]string, 0, len(wings))
	for name := range wings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Printf("| %s | %d | %d |\n", name, wings[name].made, wings[name].killed)
	}
	fmt.Printf("| all | %d | %d (%.1f %%) |\n", len(l.mutants), killed, 100*float64(killed)/float64(len(l.mutants)))
}

// switchSource is the package that changed code asks whether its change is made.
// The file of the lane says which one is; it is found by the environment or, where a
// program was started without it, by the lane's folder above the temporary one.
const switchSource = `// Package mutant switches changes on, in a build of scripts/mutants.
package mutant

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

var (
	active int
	reach  []byte
)

func init() {
	dir := os.Getenv("KEN_MUTANT")
	if dir == "" {
		for _, name := range []string{os.Getenv("TMPDIR"), os.Getenv("WORK"), os.Getenv("HOME"), os.Getenv("KEN_HOME")} {
			if before, _, ok := strings.Cut(name, "/tmp/"); ok && strings.Contains(before, "ken-mutants-") {
				dir = before
				break
			}
			if i := strings.Index(name, "/ken-mutants-"); i >= 0 {
				if j := strings.Index(name[i:], "/lane"); j >= 0 {
					rest := name[i+j+1:]
					lane, _, _ := strings.Cut(rest, "/")
					dir = filepath.Join(name[:i+j], lane)
					break
				}
			}
		}
	}
	if dir == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, "active"))
	if err != nil {
		return
	}
	active, _ = strconv.Atoi(string(text))
	if active != 0 {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, "reach"), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		reach, _ = syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
}

// On reports whether the change of this number is made.
func On(number int) bool {
	if number < len(reach) {
		reach[number] = 1
	}
	return number == active
}
`
