//go:build unix

package scripttest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// Commands are the commands of scripts. Each says above its function how it is used.
func Commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"ken":         runKen,
		"model":       startModel,
		"asked":       modelAsked,
		"order":       modelOrder,
		"events":      happened,
		"json":        checkJSON,
		"serve":       serve,
		"get":         get,
		"post":        post,
		"put":         put,
		"remove":      remove,
		"follow":      follow,
		"over":        over,
		"hangup":      hangup,
		"rising":      rising,
		"joined":      joined,
		"hold":        hold,
		"issuer":      startIssuer,
		"apiserver":   startAPI,
		"graphql":     startGraphQL,
		"npmregistry": startNPM,
		"person":      person,
		"interrupt":   interrupt,
		"stopped":     stopped,
		"header":      header,
		"mcp":         mcpClient,
		"call":        call,
		"send":        send,
		"answers":     answers,
		"says":        says,
		"told":        told,
		"leave":       leave,
		"daemon":      daemonIs,
		"signal":      signal,
		"fifo":        fifo,
		"sparse":      sparse,
		"disk":        disk,
		"fill":        fill,
		"lines":       lines,
		"expand":      expand,
		"exits":       exits,
		"many":        many,
		"take":        take,
		"await":       await,
		"alive":       alive,
		"gone":        gone,
		"tty":         tty,
		"models":      startModels,
	}
}

// A state is what a script has started so far.
type state struct {
	t         testscript.T
	clients   map[string]*client
	exchanges map[string]*exchange
	models    map[string]*scriptedModel // by wire
	model     *scriptedModel            // the one that was named last
	server    *served                   // the one that was started last
	issuer    *Issuer
}

const stateKey = "state"

// Begin prepares the environment of a script for the commands.
func Begin(env *testscript.Env) {
	env.Values[stateKey] = &state{t: env.T(), clients: map[string]*client{}, exchanges: map[string]*exchange{}, models: map[string]*scriptedModel{}}
}

func of(ts *testscript.TestScript) *state { return ts.Value(stateKey).(*state) }

// failAtEnd fails a script after its last line has run. ts.Fatalf cannot be
// used there: testscript no longer recovers its panic, so it would end all
// scripts.
func failAtEnd(ts *testscript.TestScript, format string, args ...any) {
	t := of(ts).t
	t.Log(fmt.Sprintf(format, args...))
	t.FailNow()
}

// runKen is "exec ken".
func runKen(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("ken", args...)
	if err != nil && !neg {
		ts.Fatalf("ken %s: %v", strings.Join(args, " "), err)
	}
	if err == nil && neg {
		ts.Fatalf("ken %s: it succeeded, and should not have", strings.Join(args, " "))
	}
}

// checkJSON FILE PATH [VALUE]: the value at a path equals VALUE, matches the
// expression in ~VALUE, or is there at all. Steps of the path are apart by "|":
// a key, the index of a list's element, last, key=value for the first element
// that has it, or len for the length.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: [!] json FILE PATH [VALUE]")
	}
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc); err != nil {
		ts.Fatalf("%s is not one JSON document: %v", args[0], err)
	}
	value, ok := at(doc, strings.Split(args[1], "|"))
	got := fmt.Sprint(value)
	if f, isFloat := value.(float64); isFloat {
		got = strconv.FormatFloat(f, 'f', -1, 64)
	}
	matches := ok
	if len(args) == 3 {
		want, isPattern := strings.CutPrefix(args[2], "~")
		if isPattern {
			pattern, err := regexp.Compile(want)
			ts.Check(err)
			matches = ok && pattern.MatchString(got)
		} else {
			matches = ok && got == args[2]
		}
	}
	if matches == neg {
		ts.Fatalf("json %s is %q (there: %v)", strings.Join(args, " "), got, ok)
	}
}

func at(v any, path []string) (any, bool) {
	for _, step := range path {
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			next, ok := element(node, step)
			if !ok {
				return nil, false
			}
			v = next
		default:
			return nil, false
		}
	}
	return v, true
}

func element(list []any, step string) (any, bool) {
	if step == "len" {
		return float64(len(list)), true
	}
	if key, want, ok := strings.Cut(step, "="); ok {
		for _, item := range list {
			if m, ok := item.(map[string]any); ok && fmt.Sprint(m[key]) == want {
				return item, true
			}
		}
		return nil, false
	}
	if step == "last" {
		step = strconv.Itoa(len(list) - 1)
	}
	i, err := strconv.Atoi(step)
	if err != nil || i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

// fifo NAME makes a named pipe.
func fifo(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(syscall.Mkfifo(ts.MkAbs(name), 0o644))
	}
}

// sparse NAME SIZE makes a file that is large and holds nothing.
func sparse(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), nil, 0o644))
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

// lines FILE COUNT: the file has that many lines.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	got := strings.Count(ts.ReadFile(args[0]), "\n")
	if (strconv.Itoa(got) == args[1]) == neg {
		ts.Fatalf("%s has %d lines", args[0], got)
	}
}

// expand FILE…: puts the script's folder into files, for $WORK, and the nap of
// this run, for $NAP.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: expand FILE…")
	}
	for _, name := range args {
		text := strings.NewReplacer("$WORK", ts.Getenv("WORK"), "$NAP", ts.Getenv("NAP")).Replace(ts.ReadFile(name))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o644))
	}
}
