package recipe

import (
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

	// Placeholder is where a value comes into a recipe. Braces around
	// anything else are ordinary characters.
	Placeholder = pattern.Lazy(`\{([A-Za-z_][A-Za-z0-9_.-]*?)(\.\.\.)?\}`)
)

// plainWord needs no quotes in a list.
var plainWord = pattern.Lazy(`^[A-Za-z0-9._/-]+$`)

const maxTimeoutSec = 24 * 60 * 60

// Example shows how a recipe is written, with the words of a command line
// where that is what stands there.
func Example(v yamldoc.Value) string {
	line, _ := v.Any.(string)
	words := strings.Fields(line)
	if len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return !plainWord().MatchString(w) }) {
		words = []string{"git", "status"}
	}
	return fmt.Sprintf("run: {runner: %s, argv: [%s]}", RunnerOf(strings.ToLower(path.Base(words[0]))), strings.Join(words, ", "))
}

// Runners lists the known prefixes of runner names, including those that this
// version cannot run.
func Runners() []string {
	return []string{"exec", "analyze", "api", "browser", "db", "shell", "mcp", "files", "llm"}
}

// PermissionFor returns the permission that a runner needs, or "".
func PermissionFor(runner string) string {
	switch family, _, _ := strings.Cut(runner, "."); family {
	case "exec":
		return "exec"
	case "api":
		return "network"
	case "browser":
		return "browser"
	case "analyze", "llm":
		return "llm"
	}
	return ""
}

// MissingPermission says that a runner needs a permission that was not asked
// for.
func MissingPermission(runner, need string) string {
	return fmt.Sprintf("runner %s needs the permission %s, which the manifest does not ask for; calls will be refused", runner, need)
}

// Check returns what is wrong with a recipe: the key, a message and its fix.
// The message is empty for a good one.
func Check(run *capability.Recipe, parameters []capability.Parameter) (key, message, fix string) {
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
		if !EnvName().MatchString(name) {
			return "env", fmt.Sprintf("%q cannot name a variable", name), "list names of variables, without values"
		}
	}
	if message, fix := CheckArgv(run.Argv, parameters); message != "" {
		return "argv", message, fix
	}
	if message, fix := CheckAsk(run, parameters); message != "" {
		return "ask", message, fix
	}
	return checkRequest(run, parameters)
}

const (
	mostPrompt    = 64 << 10 // bytes
	mostAskTokens = 16_384
)

// CheckAsk returns what is wrong with what a recipe asks a model.
func CheckAsk(run *capability.Recipe, parameters []capability.Parameter) (message, fix string) {
	const example = `as in ask: {prompt: "Summarize {text}"}`
	isAsk := strings.HasPrefix(run.Runner, "llm.")
	switch {
	case run.Ask == nil && run.Runner == "llm.ask":
		return "runner llm.ask has no ask", "add it, " + example
	case run.Ask == nil:
		return "", ""
	case !isAsk:
		return fmt.Sprintf("ask has no meaning for the runner %s", run.Runner), "write runner: llm.ask"
	case strings.TrimSpace(run.Ask.Prompt) == "":
		return "ask has no prompt", "add it, " + example
	case len(run.Ask.Prompt)+len(run.Ask.System) > mostPrompt:
		return fmt.Sprintf("ask has more than %d bytes", mostPrompt), "shorten the prompt"
	case run.Ask.MaxTokens < 0 || run.Ask.MaxTokens > mostAskTokens:
		return fmt.Sprintf("ask.maxTokens %d is not within 1 to %d", run.Ask.MaxTokens, mostAskTokens), "set the most tokens of an answer"
	case run.Ask.MaxPrice < 0:
		return "ask.maxPrice is negative", "set the most US dollars of a call"
	}
	names := make([]string, len(parameters))
	for i, p := range parameters {
		names[i] = p.Name
	}
	for _, found := range Placeholder().FindAllStringSubmatch(run.Ask.Prompt, -1) {
		if !slices.Contains(names, found[1]) {
			return fmt.Sprintf("ask.prompt: %s stands for a parameter that the schema does not have", found[0]), "add it to the arguments"
		}
	}
	for _, name := range run.Ask.Instructions {
		if !slices.Contains(names, name) {
			return fmt.Sprintf("ask.instructions: there is no argument %s", name), "name arguments of the schema"
		}
	}
	return "", ""
}

// CheckArgv returns what is wrong with the command of a recipe: a placeholder must
// name a parameter, and the program must not be a placeholder.
func CheckArgv(argv []string, parameters []capability.Parameter) (message, fix string) {
	for i, element := range argv {
		if message, fix := checkPlaceholders(element, parameters); message != "" {
			return fmt.Sprintf("argv[%d]: %s", i, message), fix
		}
	}
	if len(argv) > 0 && Placeholder().MatchString(argv[0]) {
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
	u, err := url.Parse(Placeholder().ReplaceAllString(run.URL, "x"))
	whole, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(run.URL, "https://"), "http://"), "/")
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Contains(whole, "{") {
		return "url", fmt.Sprintf("url %q is not an http or https address with a host", run.URL), "write it as https://host/path; only the path and query take parameters"
	}
	return "", "", ""
}

// checkPlaceholders: each names a parameter, and a list is an element of its
// own, since inside one it has no meaning.
func checkPlaceholders(text string, parameters []capability.Parameter) (message, fix string) {
	for _, found := range Placeholder().FindAllStringSubmatch(text, -1) {
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
