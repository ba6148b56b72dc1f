package recipe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/know/source/pattern"
	"ken/internal/yamldoc"
)

// Options are what a recipe may say besides its command, in a manifest
// as in a package.
type Options struct {
	workspace, sha256         string
	hosts                     []string
	envValues                 []string // "NAME=value"
	okStatus                  []int
	endOfOptions, passthrough *bool
	ask                       *capability.Ask
}

var (
	hostPattern = pattern.Lazy(`^(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:(\*|[0-9]{1,5}))?$`)
	sha256Form  = pattern.Lazy(`^[0-9a-fA-F]{64}$`)
)

// ReadOptions takes them out of a map. What is wrong is an issue of the reader,
// and then has no effect.
func ReadOptions(r *yamldoc.Reader) Options {
	o := Options{workspace: r.String("workspace"), sha256: r.String("programSha256")}
	issue := func(key, message, fix string) { r.Issue(r.Line(key), key+" "+message, fix) }
	if o.workspace != "" && o.workspace != "read" && o.workspace != "write" {
		issue("workspace", fmt.Sprintf("is %q", o.workspace), "write read or write, or remove it")
		o.workspace = ""
	}
	if o.sha256 != "" && !sha256Form().MatchString(o.sha256) {
		issue("programSha256", "is not a hash", "write the 64 digits that sha256sum prints")
		o.sha256 = strings.Repeat("0", 64) // an invalid pin must match no program
	}
	for _, host := range r.Words("hosts") {
		if hostPattern().MatchString(host) {
			o.hosts = append(o.hosts, host)
		} else {
			issue("hosts", fmt.Sprintf("holds %q", host), "write names of hosts, as in api.example.com or *.example.com:8443")
		}
	}
	o.envValues = readEnvValues(r, issue)
	o.okStatus = readStatuses(r, issue)
	if b, ok := r.Bool("endOfOptions"); ok {
		o.endOfOptions = &b
	}
	if b, ok := r.Bool("passthrough"); ok {
		o.passthrough = &b
	}
	o.ask = readAsk(r, issue)
	return o
}

// readAsk reads what a model is asked.
func readAsk(r *yamldoc.Reader, issue func(key, message, fix string)) *capability.Ask {
	f, ok := r.Field("ask")
	if !ok {
		return nil
	}
	m, isMap := f.Value.Any.(*yamldoc.Map)
	if !isMap {
		issue("ask", "is not a map", `write it as in ask: {prompt: "Summarize {text}"}`)
		return &capability.Ask{}
	}
	in := yamldoc.NewReader(m)
	out := &capability.Ask{
		Model: in.String("model"), System: in.String("system"), Prompt: in.String("prompt"), Instructions: in.Words("instructions"),
	}
	out.MaxTokens, _ = in.Int("maxTokens")
	if price, ok := in.Float("maxPrice"); ok {
		out.MaxPrice = price
	}
	if answer, ok := in.Field("answer"); ok {
		if _, isMap := answer.Value.Any.(*yamldoc.Map); !isMap {
			issue("ask", "has an answer that is not a JSON Schema", "write answer: {type: object, properties: {…}}")
		}
		out.Answer = json.RawMessage(answer.Value.JSON())
	}
	for _, rest := range in.Rest() {
		issue("ask", "has the unknown key "+rest.Key, "the keys are model, system, prompt, instructions, answer, maxTokens and maxPrice")
	}
	for _, e := range in.Issues() {
		issue("ask", e.Message, e.Fix)
	}
	return out
}

const (
	maxEnvValues = 32
	MaxEnvValue  = 4 << 10
)

// readEnvValues reads variables with their values, in the order of the file.
// Which of them a program may be given is for the executor to say.
func readEnvValues(r *yamldoc.Reader, issue func(key, message, fix string)) []string {
	const key = "envValues"
	f, ok := r.Field(key)
	if !ok {
		return nil
	}
	m, isMap := f.Value.Any.(*yamldoc.Map)
	if !isMap || len(m.Fields) > maxEnvValues {
		issue(key, fmt.Sprintf("is not a map of at most %d variables", maxEnvValues), "write names and values, as in {TZ: UTC}")
		return nil
	}
	out := []string{}
	for _, v := range m.Fields {
		text, isText := v.Value.Any.(string)
		if !isText {
			text = v.Value.Text // a number or boolean as it is written
		}
		switch {
		case !EnvName().MatchString(v.Key):
			issue(key, fmt.Sprintf("holds %q, which cannot name a variable", v.Key), "use letters, digits and underscores")
		case !isText && text == "", len(text) > MaxEnvValue, strings.ContainsFunc(text, unicode.IsControl):
			issue(key, fmt.Sprintf("gives %s what is not one line of text", v.Key), "write a short text in quotes")
		default:
			out = append(out, v.Key+"="+text)
		}
	}
	return out
}

func readStatuses(r *yamldoc.Reader, issue func(key, message, fix string)) []int {
	const key = "okStatus"
	f, ok := r.Field(key)
	if !ok {
		return nil
	}
	items, isList := f.Value.Any.([]yamldoc.Value)
	if !isList {
		items = []yamldoc.Value{f.Value}
	}
	var out []int
	for _, item := range items {
		n, isNumber := item.Any.(int64)
		if !isNumber || n < 0 || n > 255 {
			issue(key, "holds something that no program exits with", "list numbers from 0 to 255, as in [0, 1]")
			return nil
		}
		out = append(out, int(n))
	}
	return out
}

// Or takes from base what o does not say.
func (o Options) Or(base Options) Options {
	if o.workspace == "" {
		o.workspace = base.workspace
	}
	if o.sha256 == "" {
		o.sha256 = base.sha256
	}
	if o.hosts == nil {
		o.hosts = base.hosts
	}
	if o.envValues == nil {
		o.envValues = base.envValues
	}
	if o.okStatus == nil {
		o.okStatus = base.okStatus
	}
	if o.endOfOptions == nil {
		o.endOfOptions = base.endOfOptions
	}
	if o.passthrough == nil {
		o.passthrough = base.passthrough
	}
	if o.ask == nil {
		o.ask = base.ask
	}
	return o
}

// Fill sets the options in a recipe.
func (o Options) Fill(r *capability.Recipe) {
	r.Workspace, r.ProgramSHA256 = o.workspace, strings.ToLower(o.sha256)
	r.Hosts, r.OKStatus = slices.Clone(o.hosts), slices.Clone(o.okStatus)
	r.EnvValues = slices.Clone(o.envValues)
	r.EndOfOptions = o.endOfOptions != nil && *o.endOfOptions
	r.Passthrough = o.passthrough != nil && *o.passthrough
	r.Ask = o.ask
}
