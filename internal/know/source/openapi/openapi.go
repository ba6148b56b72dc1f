package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"

	"ken/internal/know/source/format"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/pattern"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// OpenAPI 3 and Swagger 2.0 descriptions, as JSON or YAML: one tool for each operation, with
// one flat input schema. What the executor needs to make a request of the
// arguments again is kept in Meta:
//
//	in          JSON object: property → path, query, header, cookie or body;
//	            "query:id" where the name on the wire is another, "query+json"
//	            where the value is sent as JSON, "body:*" for the whole body
//	style       JSON object: property → style or style:explode, where the API
//	            says so
//	contentType of the body, where it is not application/json
//	body        "required": a body is sent even when no argument gives one
//	media       JSON object: property → type of its part of a form
//	reserved    JSON list of properties whose reserved characters stay
//	binary      JSON list of properties that are base64 of what is sent
//	auth        JSON list of how secrets are sent, see Credential
//
// The title of the API gives the category and the names of the secrets: for
// "Pet Store", PET_STORE_API_KEY for an API key, PET_STORE_TOKEN for a bearer
// token or OAuth, PET_STORE_USERNAME and PET_STORE_PASSWORD for basic
// authentication, PET_STORE_CLIENT_ID and PET_STORE_CLIENT_SECRET where OAuth
// knows the flow of client credentials alone. Of several ways to authenticate the first counts.
//
// References to other files and addresses are never followed.

const (
	Name           = "openapi"
	MaxOperations  = 5000
	MaxSchemaBytes = 64 << 10 // of one input schema
	maxAPIBytes    = 32 << 20 // of all schemas and texts of one API
	maxAPIWork     = 128 << 20

	// Short things are kept as they are, so they must be short: one path
	// item may stand for thousands of operations.
	maxAPIName       = 256
	maxAPIAddress    = 2 << 10
	maxAPITags       = 32
	MaxParameters    = 500
	MaxSummary       = 300  // characters
	MaxParagraph     = 1000 // characters
	maxAPIServerVars = 16
)

// Format returns the format of API descriptions.
func Format() format.Format {
	return format.Format{Name: Name, Claims: isOpenAPI, Limit: safefs.TableLimit, Keep: true, Pure: true, Read: readOpenAPI}
}

var (
	openapiKey  = pattern.Lazy(`(?m)(^|[{,])\s*["']?(openapi|swagger)["']?\s*:\s*["']?[0-9]`)
	openapiHead = pattern.Lazy(`^\s*\{\s*"components"\s*:\s*\{\s*"(schemas|securitySchemes|parameters|responses|headers|examples|requestBodies|links|callbacks)"`)
)

// isOpenAPI looks for the version, or for the components, which come first in a
// file with sorted keys.
func isOpenAPI(p string, head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	switch {
	case safefs.HasExt(p, ".json"):
		return openapiKey().Match(head) || openapiHead().Match(head)
	case safefs.HasExt(p, ".yaml", ".yml"):
		return openapiKey().Match(head)
	}
	return false
}

// An apiDoc is one description being read.
type apiDoc struct {
	u     *format.Unit
	tally format.Tally
	top   *yamldoc.Map

	swagger bool // it is Swagger 2.0

	index map[*yamldoc.Map]map[string]yamldoc.Value // of large maps, made when asked

	resolved map[string]yamldoc.Value // by reference

	slug, prefix, version string // category; of secrets; of the API
	names                 map[string]bool
	reported              map[string]bool // references already complained about
	deprecated            []string
	room                  int // bytes of schemas and texts that may still be kept
	work                  int // bytes and steps that schemas have taken so far
}

func readOpenAPI(u *format.Unit) {
	v, err := parseAPI(u.Path, u.Data)
	if err != nil {
		faultAPI(u, err)
		return
	}
	top, ok := v.Any.(*yamldoc.Map)
	if !ok {
		u.Fault("bad-openapi", u.Path, v.Line, "the document is not an object", "begin it with openapi: 3.1.0")
		return
	}
	d := &apiDoc{
		u: u, tally: format.Tally{Unit: u}, top: top, index: map[*yamldoc.Map]map[string]yamldoc.Value{}, resolved: map[string]yamldoc.Value{},
		names: map[string]bool{}, reported: map[string]bool{}, room: maxAPIBytes,
	}
	if !d.checkVersion() {
		return
	}
	info := mapOf(d.get(top, "info"))
	title := textOf(d.get(info, "title"))
	if title == "" {
		title = strings.TrimSuffix(path.Base(u.Path), path.Ext(u.Path))
		u.Warn("no-title", u.Path, top.Line, "the API has no title; the file's name stands for it", "add info: {title: …}")
	}
	title = strings.ToValidUTF8(title[:min(len(title), maxAPIName)], "")
	d.slug, d.prefix, d.version = slugOf(title, '-'), secretPrefix(title), textOf(d.get(info, "version"))
	d.paths()
	if n := len(d.deprecated); n > 0 {
		u.Warn("deprecated", u.Path, 0, fmt.Sprintf("deprecated operations: %d (%s)", n, someOf(d.deprecated)), "")
	}
	d.tally.Close()
}

func faultAPI(u *format.Unit, err error) {
	if je, ok := err.(*jsonscan.Error); ok {
		u.FaultJSON(u.Data, je)
		return
	}
	u.FaultErr("bad-yaml", u.Path, 1, err)
}

// checkVersion refuses what is neither OpenAPI 3 nor Swagger 2.0.
func (d *apiDoc) checkVersion() bool {
	if v := d.get(d.top, "swagger"); v.Any != nil {
		if version := textOf(v); version != "2.0" && version != "2" {
			d.u.Fault("bad-openapi", d.u.Path, v.Line, "this is Swagger "+jsonscan.Shorten(version)+", which is not read", "convert it to OpenAPI 3 with any converter and name the new file")
			return false
		}
		d.fromSwagger()
		return true
	}
	v := d.get(d.top, "openapi")
	if version := textOf(v); !strings.HasPrefix(version, "3.") && version != "3" {
		message := "there is no openapi version in it"
		if version != "" {
			message = "OpenAPI version " + jsonscan.Shorten(version) + " is not read"
		}
		d.u.Fault("bad-openapi", d.u.Path, max(v.Line, d.top.Line), message, "write openapi: 3.0.3 or 3.1.0")
		return false
	}
	return true
}

// paths reads every operation in the order of the file.
func (d *apiDoc) paths() {
	list := d.get(d.top, "paths")
	all, ok := list.Any.(*yamldoc.Map)
	if !ok || len(all.Fields) == 0 {
		d.u.Warn("no-operations", d.u.Path, max(list.Line, d.top.Line), "the API has no paths, so there is nothing to call", "add paths, or move the file away")
		return
	}
	count := 0
	for _, f := range all.Fields {
		if strings.HasPrefix(f.Key, "x-") {
			continue
		}
		item, err := d.deref(f.Value)
		if err == nil && !strings.HasPrefix(f.Key, "/") {
			err = errors.New("missing leading slash")
		}
		if err == nil && len(f.Key) > maxAPIAddress {
			err = fmt.Errorf("longer than %d bytes", maxAPIAddress)
		}
		if err != nil {
			d.tally.Fault("bad-path", f.Line, "path "+jsonscan.Shorten(f.Key)+" is not read: "+err.Error(), "correct the path")
			continue
		}
		for _, m := range item.Fields {
			if !isMethod(m.Key) {
				continue
			}
			if d.u.Context.Err() != nil {
				return
			}
			if count++; count > MaxOperations {
				d.u.Fault("too-many-operations", d.u.Path, m.Line, fmt.Sprintf("more than %d operations; the rest is not read", MaxOperations), "split the file")
				return
			}
			d.operation(apiCall{path: f.Key, method: m.Key, line: m.Line, item: item, op: mapOf(m.Value)})
			if d.room < 0 {
				d.u.Fault("api-too-large", d.u.Path, m.Line, "the schemas and texts of this API are too large together; it and the rest are not read", "split the file")
				return
			}
		}
	}
}

func isMethod(key string) bool {
	switch key {
	case "get", "put", "post", "delete", "options", "head", "patch", "trace":
		return true
	}
	return false
}

// get returns the value of a key, or the zero Value.
func (d *apiDoc) get(m *yamldoc.Map, key string) yamldoc.Value {
	const few = 16
	if m == nil {
		return yamldoc.Value{}
	}
	if len(m.Fields) <= few {
		v, _ := m.Get(key)
		return v
	}
	known, ok := d.index[m]
	if !ok {
		known = make(map[string]yamldoc.Value, len(m.Fields))
		for _, f := range m.Fields {
			known[f.Key] = f.Value
		}
		d.index[m] = known
	}
	return known[key]
}

func mapOf(v yamldoc.Value) *yamldoc.Map {
	m, _ := v.Any.(*yamldoc.Map)
	return m
}

func textOf(v yamldoc.Value) string {
	switch s := v.Any.(type) {
	case string:
		return s
	case int64, float64: // version: 3.1
		return fmt.Sprint(s)
	}
	return ""
}

// textsOfList returns the texts of a list, each once.
func textsOfList(v yamldoc.Value) []string {
	list, _ := v.Any.([]yamldoc.Value)
	var out []string
	have := make(map[string]bool, len(list))
	for _, item := range list {
		if s := textOf(item); s != "" && !have[s] {
			have[s] = true
			out = append(out, s)
		}
	}
	return out
}

// slugOf keeps letters and digits and joins them.
func slugOf(s string, join rune) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxAPIAddress)], "")
	words := strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.ToLower(strings.Join(words, string(join)))
}

func someOf(names []string) string {
	const some = 5
	if len(names) > some {
		return strings.Join(names[:some], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

func jsonList(list []string) string {
	raw, _ := json.Marshal(list) // texts cannot fail
	return string(raw)
}

// jsonMap writes a map with its keys sorted.
func jsonMap(m map[string]string) string {
	raw, _ := json.Marshal(m) // texts cannot fail
	return string(raw)
}
