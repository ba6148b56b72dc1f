package source

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/pattern"
	"ken/internal/spelling"
	"ken/internal/yamldoc"
)

var (
	manifestRunner = pattern.Lazy(`^[a-z][a-z0-9_.-]*$`)

	// placeholder is where a value comes into a recipe. Braces around
	// anything else are ordinary characters.
	placeholder = pattern.Lazy(`\{([A-Za-z_][A-Za-z0-9_.-]*?)(\.\.\.)?\}`)
)

// plainWord needs no quotes in a list.
var plainWord = pattern.Lazy(`^[A-Za-z0-9._/-]+$`)

const maxTimeoutSec = 24 * 60 * 60

// run reads a manifest's recipe. What is wrong with it costs the capability:
// a recipe that is followed in part does something that nobody wrote.
func (m *manifest) run(top *yamldoc.Reader, c *capability.Capability, schema json.RawMessage) (*capability.Recipe, bool) {
	f, given := top.Field("run")
	if !given {
		return nil, true
	}
	if _, isMap := f.Value.Any.(*yamldoc.Map); !isMap {
		m.fault("bad-recipe", m.at, f.Line, "run is not a recipe with a runner and its arguments", "write "+recipeForm(f.Value))
		return nil, false
	}
	r := top.Map("run")
	out := &capability.Recipe{
		Runner: r.String("runner"),
		Argv:   r.Strings("argv"),
		Action: r.String("action"),
		Env:    r.Words("env"),
		Method: strings.ToUpper(r.String("method")),
		URL:    r.String("url"),
	}
	out.TimeoutSec, _ = r.Int("timeoutSec")
	out.MaxOutputSize, _ = r.Int("maxOutputSize")
	before := len(r.Issues())
	readOptions(r).fill(out)
	if issues := r.Issues(); len(issues) > before {
		m.fault("bad-recipe", m.at, issues[before].Line, "run."+issues[before].Message, issues[before].Fix)
		return nil, false
	}
	for _, f := range r.Rest() {
		m.warn("unknown-key", m.at, f.Line, "run has no key "+f.Key+"; it has no effect", "remove it, or correct its name")
	}
	if len(r.Issues()) > 0 {
		for _, e := range r.Issues() {
			if strings.HasPrefix(e.Message, "run.") || strings.HasPrefix(e.Message, "an item of run.") {
				m.fault("bad-recipe", m.at, e.Line, e.Message, e.Fix)
				return nil, false
			}
		}
	}
	key, message, fix := checkRecipe(out, c.Parameters)
	if message != "" {
		m.fault("bad-recipe", m.at, r.Line(key), message, fix)
		return nil, false
	}
	for _, e := range checkPlaces(out.Argv, placesOf(schema)) {
		e.report(m.unit, m.at, r.Line("argv"))
		if e.grave {
			return nil, false
		}
	}
	m.lintRunner(out.Runner, c.Permissions, r.Line("runner"))
	return out, true
}

// recipeForm shows how a recipe is written, with the words of a command line
// where that is what stands there.
func recipeForm(v yamldoc.Value) string {
	line, _ := v.Any.(string)
	words := strings.Fields(line)
	if len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return !plainWord().MatchString(w) }) {
		words = []string{"git", "status"}
	}
	return fmt.Sprintf("run: {runner: %s, argv: [%s]}", runnerOf(strings.ToLower(path.Base(words[0]))), strings.Join(words, ", "))
}

// runners lists the known prefixes of runner names, including those that this
// version cannot run.
func runners() []string {
	return []string{"exec", "analyze", "api", "browser", "db", "shell", "mcp", "files"}
}

// lintRunner says what will keep a recipe from running.
func (m *manifest) lintRunner(runner string, permissions []string, line int) {
	family, _, _ := strings.Cut(runner, ".")
	if !slices.Contains(runners(), family) {
		// A plugin may run it. The catalog knows, and reports it if nothing
		// does.
		if near := spelling.Nearest(family, runners()); near != "" {
			m.warn("unknown-runner", m.at, line, "no runner of Ken is called "+runner, "did you mean "+near+strings.TrimPrefix(runner, family)+"?")
		}
		return
	}
	if need := permissionFor(runner); need != "" && !slices.Contains(permissions, need) {
		m.warn("missing-permission", m.at, line, missingPermission(runner, need), fmt.Sprintf("add permissions: [%s]", need))
	}
}

// permissionFor returns the permission that a runner needs, or "".
func permissionFor(runner string) string {
	switch family, _, _ := strings.Cut(runner, "."); family {
	case "exec":
		return "exec"
	case "api":
		return "network"
	case "browser":
		return "browser"
	case "analyze":
		return "llm"
	}
	return ""
}

func missingPermission(runner, need string) string {
	return fmt.Sprintf("runner %s needs the permission %s, which the manifest does not ask for; calls will be refused", runner, need)
}

func checkRecipe(run *capability.Recipe, parameters []capability.Parameter) (key, message, fix string) {
	switch {
	case run.Runner == "":
		return "runner", "run has no runner", "add runner:, as in runner: exec.git"
	case !manifestRunner().MatchString(run.Runner):
		return "runner", fmt.Sprintf("runner %q is not a name", run.Runner), "use small letters, digits, dots, dashes and underscores, as in exec.git"
	case run.TimeoutSec < 0 || run.TimeoutSec > maxTimeoutSec:
		return "timeoutSec", fmt.Sprintf("timeoutSec %d is not within 0 to %d", run.TimeoutSec, maxTimeoutSec), "set the seconds after which the call is stopped"
	case run.MaxOutputSize < 0:
		return "maxOutputSize", fmt.Sprintf("maxOutputSize %d is negative", run.MaxOutputSize), "set the bytes of output that are kept"
	}
	for _, name := range run.Env {
		if !envName().MatchString(name) {
			return "env", fmt.Sprintf("%q cannot name a variable", name), "list names of variables, without values"
		}
	}
	if message, fix := checkArgv(run.Argv, parameters); message != "" {
		return "argv", message, fix
	}
	return checkRequest(run, parameters)
}

// checkArgv: what stands for a parameter names one, and the program is none.
func checkArgv(argv []string, parameters []capability.Parameter) (message, fix string) {
	for i, element := range argv {
		if message, fix := checkPlaceholders(element, parameters); message != "" {
			return fmt.Sprintf("argv[%d]: %s", i, message), fix
		}
	}
	if len(argv) > 0 && placeholder().MatchString(argv[0]) {
		return "argv[0]: the program itself is a parameter", "name the program; only its arguments can be parameters"
	}
	return "", ""
}

func checkRequest(run *capability.Recipe, parameters []capability.Parameter) (key, message, fix string) {
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	if run.Method != "" && !slices.Contains(methods, run.Method) {
		return "method", fmt.Sprintf("method %q is not an HTTP method", run.Method), "write one of " + strings.Join(methods, ", ")
	}
	if run.URL == "" {
		return "", "", ""
	}
	if message, fix := checkPlaceholders(run.URL, parameters); message != "" {
		return "url", "url: " + message, fix
	}
	// A value may fill a place in the path, never choose the host.
	u, err := url.Parse(placeholder().ReplaceAllString(run.URL, "x"))
	whole, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(run.URL, "https://"), "http://"), "/")
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Contains(whole, "{") {
		return "url", fmt.Sprintf("url %q is not an http or https address with a host", run.URL), "write it as https://host/path; only the path and query take parameters"
	}
	return "", "", ""
}

// checkPlaceholders: each names a parameter, and a list is an element of its
// own, since inside one it has no meaning.
func checkPlaceholders(text string, parameters []capability.Parameter) (message, fix string) {
	for _, found := range placeholder().FindAllStringSubmatch(text, -1) {
		i := slices.IndexFunc(parameters, func(p capability.Parameter) bool { return p.Name == found[1] })
		list := found[2] != ""
		switch {
		case i < 0:
			names := make([]string, len(parameters))
			for j, p := range parameters {
				names[j] = p.Name
			}
			fix = "add it to the properties of the schema"
			if near := spelling.Nearest(found[1], names); near != "" {
				fix = "did you mean {" + near + "}?"
			}
			return fmt.Sprintf("%s stands for a parameter that the schema does not have", found[0]), fix
		case list && found[0] != text:
			return fmt.Sprintf("the list %s is only a part of an argument", found[0]), "let it be an argument of its own"
		case list && parameters[i].Type != "" && !strings.Contains(parameters[i].Type, "array"):
			return fmt.Sprintf("%s wants a list, and the schema says %s", found[0], parameters[i].Type), "write {" + found[1] + "}"
		case !list && parameters[i].Type == "array":
			return fmt.Sprintf("%s is one argument, and the schema says array", found[0]), "write {" + found[1] + "...} as an argument of its own"
		}
	}
	return "", ""
}
