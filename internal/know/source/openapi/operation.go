package openapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/know/source/effects"
	"ken/internal/know/source/jsonscan"
	"ken/internal/yamldoc"
)

// An apiCall is one operation and what stands around it.
type apiCall struct {
	path, method string
	line         int
	item, op     *yamldoc.Map
}

func (c apiCall) String() string { return strings.ToUpper(c.method) + " " + c.path }

// operation makes a tool of an operation, or says why it cannot.
func (d *apiDoc) operation(call apiCall) {
	if d.swagger {
		call = d.modern(call)
	}
	in, err := d.input(call)
	if err != nil {
		d.tally.Fault("bad-operation", call.line, call.String()+" is not read: "+err.Error(), "correct its parameters and body")
		return
	}
	c := &capability.Capability{
		Kind: capability.KindTool, Name: d.name(call), Category: d.slug, Version: d.version,
		Tags: d.tags(call), Effects: effectsOf(call.method), Permissions: []string{"network"},
	}
	detail := capability.Detail{Schema: d.schema(call, in)}
	if why := effects.Changes(c.Name, detail.Schema); why != "" && c.Effects.ReadOnly == capability.Yes {
		c.Claims = &capability.Claims{Effects: c.Effects, Doubt: why}
		c.Effects = c.Effects.Careful()
	}
	c.Description, detail.Usage = d.describe(call)
	if d.get(call.op, "deprecated").Any == true {
		d.deprecated = append(d.deprecated, c.Name)
		c.Tags = append(c.Tags, "deprecated")
	}
	address, why := d.server(call)
	c.Run = &capability.Recipe{Runner: "api.rest", Method: strings.ToUpper(call.method), URL: address}
	if c.Unavailable = why; why == "" && in.unsent != "" {
		c.Unavailable = "the API requires the header " + jsonscan.Shorten(in.unsent) + ", which Ken does not send: it decides how a request is read, where it goes or what its method is"
	}
	c.Meta = in.meta()
	d.secrets(call, c)
	c.Origin.Pointer = "/paths/" + pointerToken(call.path) + "/" + call.method
	if d.room -= len(detail.Schema) + len(detail.Usage); d.room >= 0 {
		d.u.Add(c, detail, d.u.Path, call.line)
	}
}

func (d *apiDoc) tags(call apiCall) []string {
	all := textsOfList(d.get(call.op, "tags"))
	tags := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return len(s) > maxAPIName })
	tags = tags[:min(len(tags), maxAPITags)]
	if len(tags) < len(all) {
		d.tally.Warn("too-many-tags", call.line, fmt.Sprintf("%d of the %d tags of %s are not kept", len(all)-len(tags), len(all), call), "use a few short ones")
	}
	return slices.Clip(tags)
}

// name returns the operation's id, or one made of method and path, and tells
// apart those that are the same.
func (d *apiDoc) name(call apiCall) string {
	name := strings.TrimSpace(textOf(d.get(call.op, "operationId")))
	given := name != "" && len(name) <= maxAPIName
	if !given {
		name = slugOf(call.method+"_"+call.path, '_')
	}
	unique := name
	if d.names[unique] {
		unique = name + "_" + call.method
	}
	for n := 2; d.names[unique]; n++ {
		unique = name + "_" + call.method + "_" + strconv.Itoa(n)
	}
	if unique != name && given {
		d.tally.Warn("duplicate-operation", call.line, fmt.Sprintf("operationId %s is used before; %s is called %s here", jsonscan.Shorten(name), call, jsonscan.Shorten(unique)), "give every operation an id of its own")
	}
	d.names[unique] = true
	return unique
}

// describe returns what the tool says of itself: the summary and the first
// paragraph. What they leave out is the tool's usage.
func (d *apiDoc) describe(call apiCall) (description, usage string) {
	pick := func(key string) string {
		s := strings.TrimSpace(textOf(d.get(call.op, key)))
		if s == "" {
			s = strings.TrimSpace(textOf(d.get(call.item, key)))
		}
		return strings.ReplaceAll(s, "\r\n", "\n")
	}
	title, long := pick("summary"), pick("description")
	paragraph, more, _ := strings.Cut(long, "\n\n")
	summary, cut1 := oneLine(title, MaxSummary)
	first, cut2 := oneLine(paragraph, MaxParagraph)
	switch {
	case summary == "" && first == "":
		description = call.String()
	case summary == "" || strings.HasPrefix(first, strings.TrimSuffix(summary, ".")):
		description = first
	case first == "":
		description = summary
	default:
		description = strings.TrimSuffix(summary, ".") + ". " + first
	}
	if cut1 {
		usage = title + "\n\n"
	}
	if more != "" || cut1 || cut2 {
		usage += long
	}
	return description, usage
}

// oneLine joins the lines of a text and cuts it, visibly, after so many
// characters.
func oneLine(s string, most int) (line string, cut bool) {
	if len(s) > 16*most {
		s, cut = strings.ToValidUTF8(s[:16*most], ""), true
	}
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > most {
		r, cut = r[:most], true
	}
	if cut {
		return string(r) + "…", true
	}
	return string(r), false
}

// effectsOf says what HTTP promises about a method.
func effectsOf(method string) capability.Effects {
	e := capability.Effects{ReadOnly: capability.No, OpenWorld: capability.Yes}
	switch method {
	case "get", "head", "options", "trace":
		e.ReadOnly, e.Idempotent = capability.Yes, capability.Yes
	case "put":
		e.Idempotent = capability.Yes
	case "delete":
		e.Destructive, e.Idempotent = capability.Yes, capability.Yes
	}
	return e
}

// noAddress is why an operation cannot be called that has no server.
const noAddress = "the API description names no http address for it"

// server returns the address of an operation, by the first server that is named
// nearest to it, and, where that is no address, why it cannot be called.
func (d *apiDoc) server(call apiCall) (address, why string) {
	var first *yamldoc.Map
	for _, m := range []*yamldoc.Map{call.op, call.item, d.top} {
		if list, _ := d.get(m, "servers").Any.([]yamldoc.Value); len(list) > 0 && first == nil {
			first = mapOf(list[0])
		}
	}
	base := textOf(d.get(first, "url"))
	if vars := mapOf(d.get(first, "variables")); vars != nil {
		for _, f := range vars.Fields[:min(len(vars.Fields), maxAPIServerVars)] {
			if value := textOf(d.get(mapOf(f.Value), "default")); len(value) <= maxAPIName && len(base) <= maxAPIAddress {
				base = strings.ReplaceAll(base, "{"+f.Key+"}", value)
			}
		}
	}
	if len(base) > maxAPIAddress {
		base = ""
	}
	address = strings.TrimRight(base, "/") + call.path
	if at, err := url.Parse(base); err == nil && at.Host != "" && (at.Scheme == "https" || at.Scheme == "http") {
		return address, ""
	}
	if !d.reported["no-server"] {
		d.reported["no-server"] = true
		d.u.Warn("no-server", d.u.Path, max(d.get(d.top, "servers").Line, d.top.Line), "the API names no http address for some operations; they cannot be called: "+jsonscan.Shorten(base), "add servers: [{url: https://…}]")
	}
	return address, noAddress
}
